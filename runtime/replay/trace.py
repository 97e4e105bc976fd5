"""A recorded session as a replay sees it: model calls in time, and what each one added to the prompt.

Sizes are tokens of the model that was used, as far as the record tells. A trace with text keeps its messages, so that
what a policy makes of them can be held against the rules of a wire; a trace of sizes alone has none.
"""

from __future__ import annotations

from dataclasses import dataclass

from governors.messages import Message

#: How many of the newest results always stay whole, and how long (characters) one must be to be worth a stub.
NEWEST_KEPT = 10
WORTH_A_STUB = 500


@dataclass(frozen=True, slots=True)
class Item:
    """Something that stands in the prompt. `stub` is its size once it is reduced to a line (None: it cannot be);
    `boundary`: a context may begin here."""

    tokens: int
    stub: int | None = None
    boundary: bool = False
    message: Message | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """A model call at second `at`; `items` are what was added since the call before. `rests`: its reply ended the
    turn. `model` is who answered, where recorded."""

    at: float
    items: tuple[Item, ...]
    rests: bool
    model: str | None = None


@dataclass(frozen=True, slots=True)
class Trace:
    """`base` is what leads every prompt (system prompt and tools). `timed`: the record says when calls were made;
    otherwise each follows the one before at once."""

    name: str
    base: int
    calls: tuple[Call, ...]
    timed: bool = True

    @property
    def has_text(self) -> bool:
        return any(item.message is not None for call in self.calls for item in call.items)

    @property
    def model(self) -> str | None:
        """The model of the newest call that names one."""
        return next((call.model for call in reversed(self.calls) if call.model), None)
