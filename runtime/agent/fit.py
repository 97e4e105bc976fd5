"""How much of a model's window a request may take.

What a provider's answers teach (its real window, how many tokens a request really had) is kept as a setting in the
log, so that a resumed session does not learn it by failing again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from governors.budget import Budget

from ..providers.base import ChosenModel, Problem
from ..session.view.standing import LEARNED

_SAFETY = 1.05  # beyond the ratio that one overflow showed
_BLIND_SHRINK = 0.75  # of the last estimate, when the provider told no numbers


@dataclass(frozen=True, slots=True)
class Fit:
    """The window (tokens) and the factor from our tokens to the model's, as far as is known."""

    window: int
    factor: float

    def as_setting(self) -> dict[str, Any]:
        return {"window": self.window, "factor": round(self.factor, 4)}


def fit_setting(model: ChosenModel) -> str:
    """The name of the setting that keeps what was learned of `model`."""
    return LEARNED + model.name


def known_fit(model: ChosenModel, settings: Mapping[str, Any]) -> Fit:
    """What is known of `model`: its data, and what this session learned."""
    learned = settings.get(fit_setting(model))
    fit = Fit(model.info.window, model.info.token_factor)
    if not isinstance(learned, Mapping):
        return fit
    window, factor = learned.get("window"), learned.get("factor")
    return Fit(
        min(fit.window, window) if isinstance(window, int) and window > 0 else fit.window,
        max(fit.factor, factor) if isinstance(factor, (int, float)) else fit.factor,
    )


def learn(fit: Fit, problem: Problem, estimate: int) -> Fit:
    """What an overflow teaches. `estimate` is what we took the refused request for, in tokens."""
    window = min(fit.window, problem.window) if problem.window else fit.window
    if problem.prompt and problem.prompt > estimate > 0:
        return Fit(window, fit.factor * problem.prompt / estimate * _SAFETY)
    if window < fit.window:
        return Fit(window, fit.factor)
    return Fit(max(int(estimate * _BLIND_SHRINK), 256), fit.factor)


def budget_of(model: ChosenModel, fit: Fit, margin: int | None = None) -> Budget:
    """The budget of a request. A reply never takes more than a quarter of a window."""
    return Budget(fit.window, max(1, min(model.info.max_output, fit.window // 4)), margin)
