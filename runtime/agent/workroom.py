"""What the turns of an agent work with, kept from turn to turn: the prompt that was told, the economy, the warnings."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial

import anyio.to_thread
from anyio.abc import TaskGroup

from ..events import Notice
from ..hooks.running import Hooks
from ..providers.base import ChosenModel
from ..session.session import Session
from ..session.view.live import LiveStanding
from ..session.view.recall import recall
from ..session.view.standing import Standing
from ..tools.base import ToolContext
from .announce import Announcer
from .calls import Workbench
from .desk import Desk, Wish
from .drafts import Drafts
from .ease import at_ease
from .equipment import Equipment
from .fallback import Fallback
from .fit import known_fit
from .hooked import Shaping
from .system import keep_images, refresh_system
from .thrift import Thrift, thrift_of, warms


class Workroom:
    """`equipment` and `model` are asked for each time, as they may be changed between steps. `compacting` is entered
    while room is made; `wish` is what the model asked for."""

    def __init__(
        self,
        session: Session,
        equipment: Callable[[], Equipment],
        model: Callable[[], ChosenModel],
        announcer: Announcer,
        group: TaskGroup,
        compacting: Callable[[str], AbstractContextManager[object]] = nullcontext,
    ) -> None:
        self._session, self._announcer = session, announcer
        self.fallback = Fallback(model, equipment, announcer.emit)
        self._equipment, self._model, self._compacting = equipment, self.fallback.model, compacting
        self._own = model
        self.wish = Wish()
        self._thrift: Thrift | None = None
        self._drafts = Drafts(equipment().counter)
        self._standing = LiveStanding()
        self._redaction = 0  # the newest that the cache's owner was told of
        self._warned: set[str] = set()
        given = equipment()
        self.hooks = Hooks(
            given.hooks,
            agent=session.agent,
            session=session.id,
            workspace=given.workspace,
            notify=announcer.emit,
            group=group,
            timeout=given.hook_timeout,
        )
        self._shaping = Shaping(self.hooks, session)

    def standing(self) -> Standing:
        """What holds in the session, whatever branch is shown."""
        return self._standing.read(self._session.tree)

    def desk(self) -> Desk:
        """What model calls need."""
        given = self._equipment()
        return Desk(
            session=self._session,
            model=self._model,
            drafts=self._drafts,
            announcer=self._announcer,
            thrift=self._thrift_for,
            standing=self.standing,
            now=given.now,
            margin=given.margin,
            thinking=given.thinking,
            hooks=self.hooks,
            ledger=given.ledger,
            workspace=str(given.workspace),
            strategy=given.strategy,
            marks=given.marks,
            compacting=self._compacting,
            wish=self.wish,
        )

    @property
    def sleep(self) -> Callable[[float], Awaitable[None]]:
        """Waits for as many seconds, by the clock that `Desk.now` tells."""
        return self._equipment().sleep

    def warming_times(self) -> tuple[float, ...]:
        """When to keep the cache warm, as the agent rests now (seconds since 1970); never, where that does not pay."""
        if self._thrift is None or self._thrift.model != self._own().name:
            return ()
        plan = self._thrift.economy.warmings(rested=True)
        return () if plan is None else plan.times

    def bench(self) -> Workbench:
        """What running calls needs."""
        given, session = self._equipment(), self._session
        context = ToolContext(given.workspace, session.agent, session.id, (0, 0), self._read_back, self._want_room)
        return Workbench(session, given.toolset, context, self._announcer, self.hooks)

    def _want_room(self, focus: str) -> None:
        self.wish.focus = focus

    async def _read_back(self, what: str) -> str | None:
        """What `recall` finds, over the whole branch however little of it was read so far, blobs included."""
        tree = await self._session.whole()
        branch = tuple(tree.branch())
        return await anyio.to_thread.run_sync(recall, branch, what, tree.redacted, self._session.blobs)

    async def refresh(self) -> None:
        """Bring the system prompt in the log up to date; what is wrong with its files is told once."""
        await keep_images(self._session, self.standing().settings, shown=self._equipment().images)
        standing = self.standing()
        await self._learn(self._model(), standing.redaction)
        drafts, branch, redacted = self._drafts, tuple(self._session.branch()), standing.redacted
        projection = await at_ease(drafts.live.pending(branch, redacted), lambda: drafts.project(branch, redacted))
        model = self._model()
        window = known_fit(model, standing.settings).window
        for warning in await refresh_system(
            self._session, self._equipment(), model, projection, window, self._shaping.shape
        ):
            if warning not in self._warned:
                self._warned.add(warning)
                self._announcer.emit(Notice(level="warning", text=warning))

    def forget(self) -> None:
        """The leaf has moved: what is known of the request and the cache is read from this branch anew."""
        self._thrift = None
        self._drafts = Drafts(self._equipment().counter)

    def rested(self, opening: int) -> None:
        """A turn begins, with the entry `opening`: the agent had rested before it. What is not yet read from the log
        tells so by itself."""
        self._shaping.begin(opening)
        self.fallback.begin()
        if self._thrift is not None:
            self._thrift.rested = True

    async def _learn(self, model: ChosenModel, redaction: int) -> None:
        """Read what is known of the cache of `model`, in a worker thread when there is much to read."""
        if self._thrift is None or self._thrift.model != model.name:
            branch, warming = tuple(self._session.branch()), warms(model.info, self._equipment().warming)
            self._thrift = await at_ease(len(branch), partial(thrift_of, branch, model, redaction, warming=warming))
        elif redaction != self._redaction:
            self._thrift.moved()
        self._redaction = redaction

    def _thrift_for(self, model: ChosenModel) -> Thrift:
        """What is known of the cache of `model`: read from the log once, kept up to date from then on."""
        if self._thrift is None or self._thrift.model != model.name:
            warming = warms(model.info, self._equipment().warming)
            self._thrift = thrift_of(self._session.branch(), model, self.standing().redaction, warming=warming)
        return self._thrift
