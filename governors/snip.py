"""Where to cut a history that has grown too long: at a user boundary, oldest first.

Pure arithmetic over sizes. Laws:
- The messages since the turn began keep every user message; the user's current message is never cut.
- A cut stops at a low watermark, so that the next call does not need another (unless what must stay is larger).
- Before the turn's first message whole turns go. When one turn is too long by itself, its oldest complete steps go;
  the newest step goes only when nothing else can.
- A short answer keeps the question it replies to, quoted, as long as there is room.
- Patches stay, unless the caller tells their news himself: what a cut takes away of them leads the rest (`carrying`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from math import inf

from .carrying import carried
from .messages import AssistantMessage, Message, Messages, SystemPatch, Text, UserMessage

#: What stands where the first of the steps that were left out stood.
OMITTED_STEPS = "[Earlier steps of this turn are left out here to save space.]"
#: Of the room. A higher mark keeps more now and cuts more often: 0.6 costs 1.2 times as much on a long tool run.
LOW_WATERMARK = 0.5
#: A turn that takes no more than this share of the room by itself is kept whole.
WHOLE_TURN = 0.8
_SHORT_ANSWER = 200  # characters; a longer message says by itself what it is about
_LONGEST_QUOTE = 1_200  # characters, the end of the question


@dataclass(frozen=True, slots=True)
class Snip:
    """A decision: the context begins at message `start` (an index); mid-turn its first kept step is at `resume`
    (`len(messages)`: none is kept). `quote` is the question that the first kept message answers."""

    start: int
    resume: int | None = None
    quote: str | None = None


def turn_start(messages: Messages) -> int:
    """The index of the user message that opened the current turn, as far as a bare list tells: the first of the
    newest run of user messages that follows a finished reply. 0 when there is none."""
    start = 0
    resting = True
    for index, message in enumerate(messages):
        if isinstance(message, UserMessage):
            if resting:
                start = index
                resting = False
        elif isinstance(message, AssistantMessage):
            resting = not message.calls
    return start


def snip(
    messages: Messages,
    sizes: Sequence[int],
    room: int,
    *,
    turn: int,
    lead: int = 0,
    boundaries: Collection[int] | None = None,
    measure: Callable[[str], int] = len,
    low: float | None = None,
    whole: float | None = None,
    keep_patches: bool = True,
) -> Snip | None:
    """The cut that brings `messages` (of `sizes` tokens each) under `room` tokens, or None when they fit already or
    nothing can go.

    `turn` is the index of the message that opened the turn; the first `lead` messages (an older summary, of whole
    steps if any) stay in any case. `boundaries` are the indices where a context may begin, by default every user
    message. `measure` gives the tokens of a user message with a text, for the quote and the marker that a cut puts
    in. `low` and `whole` are the marks to come under, for callers who know by how much calls grow (by default
    `LOW_WATERMARK` and `WHOLE_TURN` of the room). The result may still be over when nothing more can go: the caller
    checks.
    """
    if sum(sizes) <= room or lead >= len(messages):
        return None
    size = _sizing(messages, sizes, lead, measure, keep_patches)
    starts = [
        index
        for index in range(lead + 1, turn + 1)
        if isinstance(messages[index], UserMessage) and (boundaries is None or index in boundaries)
    ]
    low = room * LOW_WATERMARK if low is None else low
    whole = room * WHOLE_TURN if whole is None else whole
    for start in starts:
        if size(Snip(start)) <= low and size(cut := Snip(start, None, _question(messages, start))) <= low:
            return cut
    start = starts[-1] if starts else lead
    resorts = _last_resorts(messages, start, whole=whole, low=low, room=room)
    cut = next(cut for cut, limit in resorts if size(cut) <= limit)
    return cut if cut.start > lead or cut.resume is not None else None


def apply_snip(messages: Messages, cut: Snip, *, lead: int = 0, keep_patches: bool = True) -> Messages:
    """`messages` as they are seen after `cut`."""
    patches = [each for each in messages[lead : cut.start] if isinstance(each, SystemPatch)] if keep_patches else []
    patch = carried(patches)
    quote = (UserMessage((Text(cut.quote),)),) if cut.quote else ()
    kept = messages[cut.start :]
    if cut.resume is not None:
        step = next(i for i in range(cut.start, len(messages)) if isinstance(messages[i], AssistantMessage))
        before, after = (
            tuple(message for message in part if stays(message, keep_patches))
            for part in (messages[cut.start : step], messages[step : cut.resume])
        )
        marker = UserMessage((Text(OMITTED_STEPS),))
        marked = any(message == marker for message in (*before, *after))
        kept = (*before, *(() if marked else (marker,)), *after, *messages[cut.resume :])
    return (*messages[:lead], *([] if patch is None else [patch]), *quote, *kept)


def stays(message: Message, keep_patches: bool) -> bool:
    """Whether a message is kept where the steps around it are left out."""
    return isinstance(message, UserMessage) or (keep_patches and isinstance(message, SystemPatch))


def _sizing(
    messages: Messages, sizes: Sequence[int], lead: int, measure: Callable[[str], int], keep_patches: bool
) -> Callable[[Snip], int]:
    """A function that gives the tokens of what stays after a cut without walking the messages again."""
    leading = sum(sizes[:lead])
    behind = _sums_from(sizes)
    sized = tuple(zip(messages, sizes, strict=True))
    said = _sums_from([size if stays(each, keep_patches) else 0 for each, size in sized])
    patched = _sums_from([size if keep_patches and isinstance(each, SystemPatch) else 0 for each, size in sized])
    measured = cache(measure)

    def size(cut: Snip) -> int:
        added = leading + (measured(cut.quote) if cut.quote else 0) + patched[lead] - patched[max(lead, cut.start)]
        if cut.resume is None:
            return added + behind[cut.start]
        return added + measured(OMITTED_STEPS) + said[cut.start] - said[cut.resume] + behind[cut.resume]

    return size


def _sums_from(sizes: Sequence[int]) -> list[int]:
    """For each index the sum of the sizes from there on; 0 for the end."""
    return list(accumulate(reversed(sizes), initial=0))[::-1]


def _last_resorts(
    messages: Messages, start: int, *, whole: float, low: float, room: float
) -> Iterator[tuple[Snip, float]]:
    """The cuts at `start` (the last place where a context may begin), each with the most it may leave, from the one
    that keeps most."""
    question = _question(messages, start)
    steps = [i for i in range(start, len(messages)) if isinstance(messages[i], AssistantMessage)]
    yield Snip(start, None, question), whole
    for resume in steps[1:]:
        yield Snip(start, resume, question), low
    newest = steps[-1] if len(steps) > 1 else None
    yield Snip(start, newest, question), room
    yield Snip(start, newest), room
    yield Snip(start, len(messages) if steps else None), inf


def _question(messages: Messages, index: int) -> str | None:
    """What the user's short message at `index` replies to, quoted."""
    message = messages[index]
    if not isinstance(message, UserMessage) or len(message.text) > _SHORT_ANSWER:
        return None
    for earlier in reversed(messages[:index]):
        if isinstance(earlier, UserMessage):
            return None
        if isinstance(earlier, AssistantMessage) and earlier.text.strip():
            text = earlier.text.strip()
            shown = text if len(text) <= _LONGEST_QUOTE else "…" + text[-_LONGEST_QUOTE:]
            return f"[Earlier messages are left out. The next message replies to this:]\n{shown}"
    return None
