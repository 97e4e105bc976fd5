"""What model calls are made with: the session they are recorded in, the model, what is known of its cache."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

from ..compaction.timing import Marks
from ..hooks.running import Hooks
from ..ledger.base import Ledger, NoLimits
from ..providers.base import ChosenModel
from ..session.session import Session
from ..session.view.standing import Standing
from .announce import Announcer
from .drafts import Drafts
from .thrift import Thrift


@dataclass(frozen=True, slots=True)
class Desk:
    """What a model call needs. `model` is asked for each step, as the user may switch; `thrift` gives what is known of
    its cache, `standing` what holds in the session whatever branch is shown, `now` the time (seconds since 1970).
    `ledger` is asked before a call leaves; `workspace` is the folder that it counts the call for.
    `strategy` and `marks` say how room is made and when, `compacting` is entered while it is made, `wish` is what the
    model asked for."""

    session: Session
    model: Callable[[], ChosenModel]
    drafts: Drafts
    announcer: Announcer
    thrift: Callable[[ChosenModel], Thrift]
    standing: Callable[[], Standing]
    now: Callable[[], float]
    margin: int | None = None
    thinking: str | None = None
    hooks: Hooks | None = None
    ledger: Ledger = field(default_factory=NoLimits)
    workspace: str = ""
    strategy: str = "off"
    marks: Marks = field(default_factory=Marks)
    compacting: Callable[[str], AbstractContextManager[object]] = nullcontext
    wish: Wish = field(default_factory=lambda: Wish())

    def compacts(self) -> bool:
        """Whether room is made by itself: a tiny model cannot write a summary that counts."""
        return self.strategy != "off" and (self.strategy != "summary" or self.model().info.profile != "tiny")


@dataclass(slots=True)
class Wish:
    """That the model asked for room. `focus` is what it wants to keep above all, None: it asked for none."""

    focus: str | None = None
