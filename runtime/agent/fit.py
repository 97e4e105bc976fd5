"""How much of a model's window a request may take.

What a provider's answers teach (its real window, how many tokens a request really had) is kept as a setting in the
log, so that a resumed session does not learn it by failing again. Laws:
- Numbers that a provider told are believed. Where it told none, the lesson is blind: a smaller window is on trial for
  the request at hand, and what was believed before holds again after it. Only when a request is refused so a second
  time, and none of such a size was answered, does the smaller window stay.
- A blind lesson never ends a session: where nothing fits by it, what was believed before holds again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from governors.budget import Budget

from ..providers.base import ChosenModel, Problem
from ..session.entries import Entry, OutcomeRecord, RequestRecord
from ..session.view.standing import LEARNED

_SAFETY = 1.05  # beyond the ratio that one overflow showed
_BLIND_SHRINK = 0.75  # of the last estimate, when the provider told no numbers


@dataclass(frozen=True, slots=True)
class Fit:
    """The window (tokens) and the factor from our tokens to the model's, as far as is known.

    `refused` is the size (tokens) of a request that was called too large without a number, 0 when there was none.
    `before` is the window that was believed when `window` is a blind lesson, else 0; `firm`: it stays until nothing
    fits by it, else it is on trial.
    """

    window: int
    factor: float
    refused: int = 0
    before: int = 0
    firm: bool = False

    @property
    def on_trial(self) -> bool:
        return self.before > 0 and not self.firm

    @property
    def believed(self) -> int:
        """The window but for a blind lesson (tokens)."""
        return self.before or self.window

    def relaxed(self) -> Fit:
        """Without the blind lesson, if it is one, but for the memory that there was one."""
        return Fit(self.believed, self.factor, self.refused)

    def as_setting(self) -> dict[str, Any]:
        known = {"refused": self.refused, "before": self.before, "firm": self.firm}
        return {
            "window": self.window,
            "factor": round(self.factor, 4),
            **{name: value for name, value in known.items() if value},
        }


def fit_setting(model: ChosenModel) -> str:
    """The name of the setting that keeps what was learned of `model`."""
    return LEARNED + model.name


def known_fit(model: ChosenModel, settings: Mapping[str, Any]) -> Fit:
    """What is known of `model`: its data, and what this session learned."""
    learned = settings.get(fit_setting(model))
    fit = Fit(model.info.window, model.info.token_factor)
    if not isinstance(learned, Mapping):
        return fit
    factor = learned.get("factor")
    return Fit(
        min(fit.window, _tokens(learned, "window") or fit.window),
        max(fit.factor, factor) if isinstance(factor, (int, float)) else fit.factor,
        _tokens(learned, "refused"),
        min(fit.window, _tokens(learned, "before")),
        learned.get("firm") is True,
    )


def _tokens(learned: Mapping[str, Any], name: str) -> int:
    value = learned.get(name)
    return value if isinstance(value, int) and value > 0 else 0


def is_blind(fit: Fit, problem: Problem, estimate: int) -> bool:
    """Whether an overflow tells no number that we did not know when we took the request for `estimate` tokens."""
    return not (problem.window and problem.window < fit.believed) and not (problem.prompt or 0) > estimate > 0


def learn(fit: Fit, problem: Problem, estimate: int, answered: int = 0) -> Fit:
    """What an overflow teaches. `estimate` is what we took the refused request for, `answered` the largest that was
    answered (`largest_answered`), both in tokens."""
    if is_blind(fit, problem, estimate):
        again = min(fit.refused, estimate) > answered
        window = min(fit.window, max(int(estimate * _BLIND_SHRINK), 256))
        return Fit(window, fit.factor, estimate, fit.believed, again)
    window = min(fit.believed, problem.window) if problem.window else fit.believed
    if problem.prompt and problem.prompt > estimate > 0:
        return Fit(window, fit.factor * problem.prompt / estimate * _SAFETY)
    return Fit(window, fit.factor)


def largest_answered(entries: Iterable[Entry], model: ChosenModel) -> int:
    """What we took the largest request of a turn for that `model` answered (tokens), on any branch."""
    asked: dict[int, int] = {}
    largest = 0
    for entry in entries:
        match entry.record:
            case RequestRecord(purpose="turn") as record if (record.provider, record.model) == (
                model.info.provider,
                model.info.id,
            ):
                asked[entry.id] = record.forecast
            case OutcomeRecord(problem=None, stop="stop" | "tool_use" | "length") as outcome:
                largest = max(largest, asked.get(outcome.request, 0))
            case _:
                pass
    return largest


def budget_of(model: ChosenModel, fit: Fit, margin: int | None = None) -> Budget:
    """The budget of a request. A reply never takes more than a quarter of a window."""
    return Budget(fit.window, max(1, min(model.info.max_output, fit.window // 4)), margin)
