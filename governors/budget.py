"""How much of a model's window a request may take."""

from __future__ import annotations

from dataclasses import dataclass

from .errors import ImpossibleBudget

_MARGIN_SHARE = 0.025
_LEAST_MARGIN = 64
_LEAST_MARGIN_OF_LARGE = 1_024
_LARGE_WINDOW = 32_768


@dataclass(frozen=True, slots=True)
class Budget:
    """`window` is what the model takes in all, `max_output` what is kept free for its reply, `margin` what covers
    the error of counting (by default 2.5 % of the window, at least 64, from a 32k window on at least 1,024).

    All figures are tokens. Raises `ImpossibleBudget` when nothing is left for a request.
    """

    window: int
    max_output: int
    margin: int | None = None

    def __post_init__(self) -> None:
        if self.window < 1 or self.max_output < 1 or (self.margin is not None and self.margin < 0):
            raise ImpossibleBudget(f"window and max_output must be positive, margin not negative: {self}")
        if self.tokens < 1:
            raise ImpossibleBudget(
                f"nothing is left for a request: a window of {self.window:,} tokens less {self.max_output:,} for the "
                f"reply and a margin of {self.reserve:,}. Lower max_output or choose a larger window"
            )

    @property
    def reserve(self) -> int:
        if self.margin is not None:
            return self.margin
        least = _LEAST_MARGIN_OF_LARGE if self.window >= _LARGE_WINDOW else _LEAST_MARGIN
        return max(least, int(self.window * _MARGIN_SHARE))

    @property
    def tokens(self) -> int:
        """What system prompt, tools and messages may take together."""
        return self.window - self.max_output - self.reserve
