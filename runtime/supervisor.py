"""Owns every agent of a runtime: their tasks, their sessions, their end.

Laws: one agent a session; the task group that turns run in lives as long as the supervisor, and ends with it: turns
that run are stopped, what must be recorded is recorded, then sessions and providers are closed. What was said is in the
index about a second later, and no turn waits for that.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
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

logger = logging.getLogger(__name__)


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
        self.index_every = 1.0  # seconds
        self._indexing: anyio.CancelScope | None = None
        self._indexed: dict[Path, int] = {}  # the next entry of each session when it was taken into the index

    async def agent(self, name: str, session: str | None = None) -> Agent:
        """The agent `name` on `session`: an id or a name, opened or begun. None begins a new one.

        Raises `SessionError`, `SessionLocked`.
        """
        async with self._opening:
            if self._closed:
                raise SessionError("the runtime is closed; open it again to go on")
            if session is not None and (name, session) in self._agents:
                return self._agents[name, session]
            equipment = self._equipment(name)
            opened = await self._open(name, session, equipment.channel)
            agent = Agent(opened, equipment, self.model, self._group)
            self._agents[name, opened.id] = agent
            self._indexed[opened.path] = opened.tree.next_id
            if self._indexing is None:
                self._indexing = anyio.CancelScope()
                self._group.start_soon(self._keep_index)
            return agent

    async def newest(self, name: str) -> Agent:
        """The agent on the session that was talked in last. Raises `NothingToContinue`, `SessionLocked`."""
        newest = await self.store.ask(lambda: self.store.newest(name))
        if newest is None:
            raise NothingToContinue(f"there is no session of {name} to continue yet; start one without --continue")
        return await self.agent(name, newest.id)

    async def leave(self, agent: Agent) -> None:
        """Stop an agent and close its session. Raises `SessionError` when entries of it could not be saved."""
        await agent.stop()
        await agent.room.hooks.settle()
        self._agents.pop((agent.name, agent.session.id), None)
        try:
            await agent.session.close()
        finally:
            self._note_written(agent)
            self._indexed.pop(agent.session.path, None)

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
            if self._indexing is not None:
                self._indexing.cancel()
                await self._guarded(self.store.leave_index)
        if problems:
            raise SessionError("\n".join(problems))

    async def _keep_index(self) -> None:
        """Bring the index up to date once, and what is written from now on as it comes."""
        assert self._indexing is not None
        with self._indexing:
            await anyio.sleep(self.index_every)  # whoever begins to type comes first
            async with anyio.create_task_group() as group:
                group.start_soon(self._guarded, self.store.keep_index)
                while True:
                    await self._update_index()
                    await anyio.sleep(self.index_every)

    async def _update_index(self) -> None:
        for agent in list(self._agents.values()):
            self._note_written(agent)
        await self._guarded(self.store.update_index)

    def _note_written(self, agent: Agent) -> None:
        path, following = agent.session.path, agent.session.tree.next_id
        if self._indexed.get(path) != following:
            self._indexed[path] = following
            self.store.changed(path)

    async def _guarded(self, work: Callable[[], Awaitable[None]]) -> None:
        try:
            await work()
        except Exception:  # the task boundary of the index, which is a mirror: a fault of it ends no conversation
            logger.exception("the index of sessions could not be written")

    async def _open(self, name: str, session: str | None, channel: str) -> Session:
        if session is not None and self.store.exists(name, session):
            return await self.store.open(name, session)
        return await self.store.create(name, session, channel=channel)
