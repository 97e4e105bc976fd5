"""Takes up a session as a person asked for it: the newest, or one by its name, its id, or what a screen showed of it.

A session goes on with the model that was chosen in it (`/model`), unless another one was asked for.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import anyio.to_thread

from ..agent.agent import Agent
from ..errors import ConfigError, ModelUnavailable, SessionError
from ..session.moving.rewind import session_model
from ..session.store import SessionStore
from .base import Host

_MOST_LISTED = 10


@dataclass(frozen=True, slots=True)
class TakenUp:
    """An agent on its session. `notes` are what a person should know of it, a sentence each."""

    agent: Agent
    notes: tuple[str, ...] = ()


async def take_up(
    host: Host, name: str, *, session: str | None = None, resume: bool = False, own_model: bool = False
) -> TakenUp:
    """The agent `name` on `session`, opened or begun; without one, with `resume`, on the newest.

    `own_model`: the session's model answers where it can be reached. Raises `NothingToContinue`, `SessionError` (also
    when `session` is a part of several ids), `SessionLocked`.
    """
    supervisor = host.supervisor
    if session is None and resume:
        agent = await supervisor.newest(name)
    else:
        agent = await supervisor.agent(name, await _whole_id(supervisor.store, name, session))
    return TakenUp(agent, await use_own_model(host, agent) if own_model else ())


def is_new(agent: Agent) -> bool:
    """Whether nothing was ever said in the agent's session."""
    return not len(agent.session.tree)


async def _whole_id(store: SessionStore, name: str, wanted: str | None) -> str | None:
    if wanted is None or store.exists(name, wanted):
        return wanted
    found = await anyio.to_thread.run_sync(store.matching, name, wanted)
    if len(found) > 1:
        more = f" and {len(found) - _MOST_LISTED} more" if len(found) > _MOST_LISTED else ""
        raise SessionError(
            f"{wanted} may be any of these sessions: {', '.join(found[:_MOST_LISTED])}{more}. Give more of the id"
        )
    return found[0] if found else wanted


async def use_own_model(host: Host, agent: Agent) -> tuple[str, ...]:
    """Let the model answer that was chosen on the branch, where it can be had; notes for a person."""
    wanted = session_model(agent.session.branch())
    if wanted is None or wanted == agent.model.name:
        return ()
    try:
        chosen = await host.choose(wanted)
    except (ModelUnavailable, ConfigError) as error:
        return (f"This session talked to {wanted}, which cannot be had now ({error}). {agent.model.name} answers.",)
    agent.model = replace(chosen, why="as in this session")
    return ()
