"""From what a person typed to a session: its id, a part of it as screens show it, or a name, of one agent or of any."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from ..errors import SessionError
from .names import is_generated
from .store import Filter, SessionStore

_MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class Named:
    """A session that is there."""

    agent: str
    id: str
    path: Path


def find_session(store: SessionStore, wanted: str, agent: str | None = None) -> Named:
    """The session that `wanted` names: a whole id or name, or 6 characters or more of an id's beginning or end.

    `agent` None: of any agent. What cannot be read is found as well, for whoever reads it to say why. Blocks. Raises
    `SessionError` when there is none (the nearest are named) or several.
    """
    agents = store.agents() if agent is None else (agent,)
    found = [(each, wanted) for each in agents if _exists(store, each, wanted)]
    if not found:
        found = [(each, session) for each in agents for session in store.matching(each, wanted)]
    if not found:  # what cannot be read is found too, so that whoever reads it says why
        found = [(each, session) for each in agents for session in store.alike(each, wanted)]
    if not found:
        raise SessionError(_unknown(store, wanted, agent))
    if len(found) > 1:
        raise SessionError(_several(wanted, found))
    ((owner, session),) = found
    return Named(owner, session, store.path(owner, session))


def short_id(session: str) -> str:
    """An id as screens show it: the end of one that was made here (its beginning is the time), a name whole. What asks
    for a session takes either."""
    return session[-8:] if is_generated(session) else session


def _exists(store: SessionStore, agent: str, wanted: str) -> bool:
    try:
        return store.exists(agent, wanted)
    except SessionError:  # what is no possible name is no session either
        return False


def _several(wanted: str, found: list[tuple[str, str]]) -> str:
    agents = sorted({agent for agent, _ in found})
    if len({session for _, session in found}) == 1:
        return f"{wanted} is a session of {' and of '.join(agents)}: say which with --agent"
    named = ", ".join(session for _, session in found[:_MOST_NAMED])
    more = f" and {len(found) - _MOST_NAMED} more" if len(found) > _MOST_NAMED else ""
    return f"{wanted} may be any of these sessions: {named}{more}. Give more of the id"


def _unknown(store: SessionStore, wanted: str, agent: str | None) -> str:
    listed = store.list(agent, Filter(archived=None))
    of_whom = "" if agent is None else f" of {agent}"
    names = {each: info.id for info in reversed(listed.sessions) for each in (info.id, short_id(info.id))}
    near = dict.fromkeys(short_id(names[each]) for each in get_close_matches(wanted, names, n=3, cutoff=0.5))
    if near:
        return f"there is no session {wanted!r}{of_whom}. The nearest: {', '.join(near)}"
    if not listed:
        return f"there is no session {wanted!r}: {agent or 'this workspace'} has none yet"
    newest = ", ".join(short_id(info.id) for info in listed[:3])
    return f"there is no session {wanted!r}{of_whom}. The newest: {newest}. `moonwake sessions list` shows all"


__all__ = ["Named", "find_session", "short_id"]
