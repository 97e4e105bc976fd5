"""Where to cut a history that has grown too long: at a user boundary, oldest first.

Pure arithmetic over sizes. Laws:
- The messages since the turn began keep every user message; the user's current message is never cut.
- A cut stops at a low watermark, so that the next call does not need another.
- Before the turn's first message whole turns go. When one turn is too long by itself, its oldest complete steps go.
- A short answer keeps the question it replies to, quoted.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from .messages import AssistantMessage, Messages, UserMessage

#: What stands where the first of the steps that were left out stood.
OMITTED_STEPS = "[Earlier steps of this turn are left out here to save space.]"
LOW_WATERMARK = 0.6
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
) -> Snip | None:
    """The cut that brings `messages` (of `sizes` tokens each) under `room` tokens, or None when they fit already.

    `turn` is the index of the message that opened the turn; the first `lead` messages (an older summary) stay in any
    case. `boundaries` are the indices where a context may begin, by default every user message. The result may still
    be over when nothing more can go: the caller checks.
    """
    if sum(sizes) <= room:
        return None
    leading = sum(sizes[:lead])
    target = int(room * LOW_WATERMARK)
    candidates = [
        index
        for index in range(lead + 1, turn + 1)
        if isinstance(messages[index], UserMessage) and (boundaries is None or index in boundaries)
    ]
    for boundary in candidates:
        if leading + sum(sizes[boundary:]) <= target:
            return Snip(boundary, None, _question(messages, boundary))
    if candidates and candidates[-1] == turn and leading + sum(sizes[turn:]) <= room:
        return Snip(turn, None, _question(messages, turn))
    return _within_turn(messages, sizes, target - leading, max(turn, lead))


def _within_turn(messages: Messages, sizes: Sequence[int], target: int, turn: int) -> Snip | None:
    """Leave out the oldest steps of the turn; its user messages stay."""
    steps = [i for i in range(turn, len(messages)) if isinstance(messages[i], AssistantMessage)]
    if not steps:
        return Snip(turn, None, _question(messages, turn)) if turn > 0 else None
    said = sum(sizes[i] for i in range(turn, len(messages)) if isinstance(messages[i], UserMessage))
    for resume in steps[1:]:
        rest = sum(sizes[i] for i in range(resume, len(messages)) if not isinstance(messages[i], UserMessage))
        if said + rest <= target:
            return Snip(turn, resume, _question(messages, turn))
    return Snip(turn, len(messages), _question(messages, turn))


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
