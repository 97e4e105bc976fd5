"""Who answers when the model of a session cannot now: another one that the settings name, for the rest of the turn.

Laws: nothing of the failed answer was shown, and its own retries are over; each of the others is tried once a turn;
the next turn begins with the session's own model again. What reasoning, signatures and ids of one model another one
may see is the wire's to decide.
"""

from __future__ import annotations

from collections.abc import Callable

from ..errors import MoonwakeError
from ..events import Notice
from ..providers.base import ChosenModel
from ..providers.problems import TRANSIENT
from .equipment import Equipment
from .step import StepResult


class Fallback:
    """Of one agent. `own` is the model of the session, `emit` tells who steps in."""

    def __init__(
        self, own: Callable[[], ChosenModel], equipment: Callable[[], Equipment], emit: Callable[[Notice], None]
    ) -> None:
        self._own, self._equipment, self._emit = own, equipment, emit
        self._failed: ChosenModel | None = None
        self._answering: ChosenModel | None = None
        self._tried = 0

    def model(self) -> ChosenModel:
        """Who answers now: a switch by the user counts at once."""
        own = self._own()
        return self._answering if self._answering is not None and self._failed is own else own

    def begin(self) -> None:
        """A turn begins: the session's own model is asked again."""
        self._failed = self._answering = None
        self._tried = 0

    async def step_in(self, result: StepResult) -> bool:
        """Let another model answer in place of the call that ended with `result`; whether one does."""
        given = self._equipment()
        if result.shown or not _may_pass(result, on_refusal=given.fallback_on_refusal):
            return False
        before = self.model()
        while self._tried < len(given.fallbacks):
            opener = given.fallbacks[self._tried]
            self._tried += 1
            try:
                model = await opener()
            except MoonwakeError as error:
                self._emit(Notice(level="warning", text=f"A fallback cannot be used: {error}"))
                continue
            if model.name == before.name:
                continue
            self._failed, self._answering = self._own(), model
            why = result.problem.text if result.problem is not None else f"{before.name} refused to answer."
            self._emit(
                Notice(level="warning", text=f"{why.rstrip('.')}. {model.name} answers for the rest of this turn.")
            )
            return True
        return False


def _may_pass(result: StepResult, *, on_refusal: bool) -> bool:
    """Whether another model may succeed where this one did not."""
    kind = result.problem.kind if result.problem is not None else None
    refused = kind == "refused" or result.reply.stop == "refused"
    return kind in TRANSIENT or (refused and on_refusal)
