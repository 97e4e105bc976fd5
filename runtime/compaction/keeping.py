"""What stays word for word when the rest is folded into a summary. Pure: places in a list of messages.

Laws: the newest stay, at most so many messages and tokens; a context begins at a user's message that opened a turn; the
turn at hand keeps all its user messages; call and results stay together, so a step is kept whole or not at all; what
is kept moves only forward, and folding nothing is no fold.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from governors.messages import AssistantMessage, Messages, UserMessage


@dataclass(frozen=True, slots=True)
class Fold:
    """The context begins at message `start`; inside a turn, its first kept step is at `resume` (`len(messages)`: none
    is kept). `folded` are the places that go out of view."""

    start: int
    resume: int | None
    folded: tuple[int, ...]


def fold_before_turn(
    messages: Messages,
    sizes: Sequence[int],
    *,
    boundaries: Collection[int],
    turn: int,
    lead: int,
    most: int,
    tokens: int,
) -> Fold | None:
    """What goes before the turn that opens at `turn`, and what stays of what was said before it: at most `most`
    messages with it, and `tokens` tokens without. `boundaries` are where a context may begin, the first `lead` messages
    are an older summary. None when nothing goes.
    """
    places = sorted({each for each in boundaries if lead < each < turn} | ({turn} if turn > lead else set()))
    fitting = (place for place in places if len(messages) - place <= most and sum(sizes[place:turn]) <= tokens)
    start = next(fitting, places[-1] if places else None)
    return None if start is None else Fold(start, None, tuple(range(start)))


def fold_at_rest(
    messages: Messages, sizes: Sequence[int], *, boundaries: Collection[int], lead: int, most: int, tokens: int
) -> Fold | None:
    """What goes while nobody talks: as before a turn, and of a newest turn that is too long by itself its oldest
    steps. None when nothing goes."""
    places = sorted(each for each in boundaries if each >= lead)
    for place in places:
        if len(messages) - place <= most and sum(sizes[place:]) <= tokens:
            return Fold(place, None, tuple(range(place))) if place > lead else None
    if not places:
        return None
    return fold_mid_turn(messages, sizes, turn=places[-1], lead=lead, most=most, tokens=tokens)


def fold_mid_turn(
    messages: Messages, sizes: Sequence[int], *, turn: int, lead: int, most: int, tokens: int, steps: bool = True
) -> Fold | None:
    """What goes while the turn that opened at `turn` goes on: all before it, and its oldest steps. `steps` is False
    where no step of the turn may stay (reasoning is bound to what goes). None when nothing goes."""
    begun = [place for place in range(turn, len(messages)) if isinstance(messages[place], AssistantMessage)]
    resume = _first_kept(messages, sizes, begun, most, tokens) if steps else len(messages)
    gone = [place for place in range(turn, resume) if not isinstance(messages[place], UserMessage)]
    folded = (*range(turn), *gone)
    if not [place for place in folded if place >= lead]:
        return None
    return Fold(turn, resume if gone else None, folded)


def _first_kept(messages: Messages, sizes: Sequence[int], begun: Sequence[int], most: int, tokens: int) -> int:
    """The first step that stays: the newest as many as fit."""
    return next(
        (place for place in begun if len(messages) - place <= most and sum(sizes[place:]) <= tokens),
        len(messages),
    )
