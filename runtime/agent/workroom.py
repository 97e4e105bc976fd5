"""What the turns of an agent work with, kept from turn to turn: the prompt that was told, the economy, the warnings."""

from __future__ import annotations

from collections.abc import Callable

from ..events import Notice
from ..providers.base import ChosenModel
from ..session.live import LiveStanding
from ..session.recall import recall
from ..session.session import Session
from ..session.standing import Standing
from ..tools.base import ToolContext
from .announce import Announcer
from .calls import Workbench
from .drafts import Drafts
from .equipment import Equipment
from .step import Desk, project_now
from .system import refresh_system
from .thrift import Thrift, thrift_of


class Workroom:
    """`equipment` and `model` are asked for each time, as they may be changed between steps."""

    def __init__(
        self,
        session: Session,
        equipment: Callable[[], Equipment],
        model: Callable[[], ChosenModel],
        announcer: Announcer,
    ) -> None:
        self._session, self._announcer = session, announcer
        self._equipment, self._model = equipment, model
        self._thrift: Thrift | None = None
        self._drafts = Drafts(equipment().counter)
        self._standing = LiveStanding()
        self._warned: set[str] = set()

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
        )

    def bench(self) -> Workbench:
        """What running calls needs."""
        given, session = self._equipment(), self._session
        context = ToolContext(
            given.workspace, session.agent, session.id, (0, 0), lambda what: recall(session.branch(), what)
        )
        return Workbench(session, given.toolset, context, self._announcer)

    async def refresh(self) -> None:
        """Bring the system prompt in the log up to date; what is wrong with its files is told once."""
        projection = await project_now(self._drafts, self._session.branch(), self.standing().redacted)
        state = projection.state if projection.told else None
        for warning in await refresh_system(self._session, self._equipment(), self._model(), state):
            if warning not in self._warned:
                self._warned.add(warning)
                self._announcer.emit(Notice(level="warning", text=warning))

    def forget(self) -> None:
        """The leaf has moved: what is known of the request and the cache is read from this branch anew."""
        self._thrift = None
        self._drafts = Drafts(self._equipment().counter)

    def rested(self) -> None:
        """A turn begins: the agent had rested before it."""
        self._thrift_for(self._model()).rested = True

    def _thrift_for(self, model: ChosenModel) -> Thrift:
        """What is known of the cache of `model`: read from the log once, kept up to date from then on."""
        if self._thrift is None or self._thrift.model != model.name:
            self._thrift = thrift_of(self._session.branch(), model)
        return self._thrift
