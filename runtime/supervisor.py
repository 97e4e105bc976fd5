"""Owns every agent of a runtime: their tasks, their sessions, their end.

Laws: one agent a session; the task group that turns run in lives as long as the supervisor, and ends with it: turns
that run are stopped, what must be recorded is recorded, then sessions and providers are closed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import anyio
from anyio.abc import TaskGroup

from .agent.agent import Agent
from .agent.equipment import Equipment
from .errors import SessionError
from .providers.base import ChosenModel
from .session.store import SessionStore

if TYPE_CHECKING:
    from .session.session import Session


class NothingToContinue(SessionError):
    """There is no session yet in which somebody spoke."""


class Supervisor:
    """`equipment` gives what an agent of that name works with; `model` is what new agents talk to."""

    def __init__(
        self,
        store: SessionStore,
        equipment: Callable[[str], Equipment],
        model: ChosenModel,
        group: TaskGroup,
    ) -> None:
        self.store = store
        self.model = model
        self._equipment = equipment
        self._group = group
        self._agents: dict[tuple[str, str], Agent] = {}
        self._opening = anyio.Lock()
        self._closed = False

    async def agent(self, name: str, session: str | None = None) -> Agent:
        """The agent `name` on `session`: an id or a name, opened or begun. None begins a new one.

        Raises `SessionError`, `SessionLocked`.
        """
        async with self._opening:
            if self._closed:
                raise SessionError("the runtime is closed; open it again to go on")
            if session is not None and (name, session) in self._agents:
                return self._agents[name, session]
            opened = await self._open(name, session)
            agent = Agent(opened, self._equipment(name), self.model, self._group)
            self._agents[name, opened.id] = agent
            return agent

    async def newest(self, name: str) -> Agent:
        """The agent on the session that was written last. Raises `NothingToContinue`, `SessionLocked`."""
        listed = await anyio.to_thread.run_sync(self.store.list, name)
        sessions = [info for info in listed if not info.empty]
        if not sessions:
            raise NothingToContinue(f"there is no session of {name} to continue yet; start one without --continue")
        return await self.agent(name, sessions[0].id)

    async def leave(self, agent: Agent) -> None:
        """Stop an agent and close its session. Raises `SessionError` when entries of it could not be saved."""
        await agent.stop()
        self._agents.pop((agent.name, agent.session.id), None)
        await agent.session.close()

    async def close(self) -> None:
        """Stop what runs and close every session. Raises `SessionError` when entries could not be saved."""
        problems = []
        with anyio.CancelScope(shield=True):
            self._closed = True
            for agent in list(self._agents.values()):
                try:
                    await self.leave(agent)
                except SessionError as error:  # the others still have to be closed
                    problems.append(str(error))
        if problems:
            raise SessionError("\n".join(problems))

    async def _open(self, name: str, session: str | None) -> Session:
        if session is not None and self.store.exists(name, session):
            return await self.store.open(name, session)
        return await self.store.create(name, session)
