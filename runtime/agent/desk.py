"""What model calls are made with: the session they are recorded in, the model, what is known of its cache."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

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
    `ledger` is asked before a call leaves; `workspace` is the folder that it counts the call for."""

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
