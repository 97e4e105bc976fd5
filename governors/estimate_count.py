"""Counting a request in the units that an estimate needs: what is measured, what has to be scaled, what has not.

A reply's own usage is a measurement of what the reply costs when it is sent again (on real sessions the next prompt
was the last one plus the whole output, reasoning included, plus what is new), so it is kept, and only the rest is
counted. This holds for the model that gave the reply; another model's tokens are counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil

from .documents import as_text
from .messages import (
    AssistantMessage,
    AssistantPart,
    Document,
    Image,
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    ToolSpec,
    UserMessage,
    remember,
)
from .tokens import (
    CALL_FRAME,
    MESSAGE_FRAME,
    SYSTEM_FRAME,
    TOOL_FRAME,
    Counter,
    image_tokens,
    message_tokens,
    page_tokens,
    scaled,
    system_tokens,
    tools_tokens,
)

_LEAST_OF_REPLY = 0.7  # of our count of its text: what is reported below that is not the size of this text


@dataclass(frozen=True, slots=True)
class Count:
    """`counted` are our tokens, to be scaled to the model's; `frames` is the share of them that no text stands for.
    `known` are tokens of the model, measured. `pictures` are tokens by a provider's formula, an upper bound: of
    images, and of pages of documents."""

    counted: int = 0
    known: int = 0
    frames: int = 0
    pictures: int = 0

    def __add__(self, other: Count) -> Count:
        return Count(
            self.counted + other.counted,
            self.known + other.known,
            self.frames + other.frames,
            self.pictures + other.pictures,
        )

    def __sub__(self, other: Count) -> Count:
        return Count(
            self.counted - other.counted,
            self.known - other.known,
            self.frames - other.frames,
            self.pictures - other.pictures,
        )

    @property
    def possible(self) -> bool:
        """Whether this can be the count of something: a difference need not be."""
        return min(self.counted, self.known, self.frames, self.pictures) >= 0

    def scaled(self, factor: float) -> int:
        """Tokens of a model that finds up to `factor` for one of ours."""
        return self.known + self.pictures + scaled(self.counted, factor)


def fixed_count(system: str, tools: Sequence[ToolSpec], counter: Counter) -> Count:
    """What stands before all messages."""
    counted = system_tokens(system, counter) + tools_tokens(tools, counter)
    return Count(counted, frames=TOOL_FRAME * len(tools) + (SYSTEM_FRAME if system else 0))


def message_count(message: Message, counter: Counter, model: str | None, *, documents: bool = True) -> Count:
    """The count of one message, when it is sent to `model`; worked out once and kept with the message. Without
    `documents` the model takes none, and their text stands for them."""

    def count() -> Count:
        return _message_count(message if documents else as_text(message), counter, model)

    return remember(message, count_key(counter, model, documents=documents), count)


def messages_count(
    messages: Iterable[Message], counter: Counter, model: str | None, *, documents: bool = True
) -> Count:
    """The sum of their counts. Thousands of messages are summed for each call: hence in plain integers."""
    key = count_key(counter, model, documents=documents)
    counted = known = frames = pictures = 0
    for message in messages:
        count: Count = message.memo.get(key) or message_count(message, counter, model, documents=documents)
        counted += count.counted
        known += count.known
        frames += count.frames
        pictures += count.pictures
    return Count(counted, known, frames, pictures)


def count_key(counter: Counter, model: str | None, *, documents: bool = True) -> str:
    """Under which a message keeps its count."""
    return f"count/{counter.key}/{model}" if documents else f"count/{counter.key}/{model}/no documents"


def reply_tokens(reply: AssistantMessage) -> int:
    """What a reply costs when it is sent again, by its own usage: its output, less reasoning that it does not hold."""
    if reply.usage is None:
        return 0
    kept = any(isinstance(part, Thinking) or _signature(part) for part in reply.content)
    return reply.usage.output - (0 if kept else min(reply.usage.reasoning, reply.usage.output))


def _message_count(message: Message, counter: Counter, model: str | None) -> Count:
    frames, pictures = _frames(message), _pictures(message)
    counted = message_tokens(message, counter) - pictures
    if isinstance(message, AssistantMessage) and message.usage is not None and message.model == model:
        measured = reply_tokens(message)
        if measured >= _LEAST_OF_REPLY * (counted - frames - _signed(message)):
            return Count(MESSAGE_FRAME, known=measured, frames=MESSAGE_FRAME)
    return Count(counted, frames=frames, pictures=pictures)


def _frames(message: Message) -> int:
    match message:
        case ToolResult():
            return MESSAGE_FRAME + CALL_FRAME
        case AssistantMessage():
            return MESSAGE_FRAME + CALL_FRAME * sum(isinstance(part, ToolCall) for part in message.content)
        case UserMessage():
            return MESSAGE_FRAME
    return MESSAGE_FRAME + SYSTEM_FRAME


def _pictures(message: Message) -> int:
    if not isinstance(message, UserMessage | ToolResult):
        return 0
    images = sum(image_tokens(part) for part in message.content if isinstance(part, Image))
    return images + sum(page_tokens(part) for part in message.content if isinstance(part, Document))


def _signed(reply: AssistantMessage) -> int:
    """What the signatures of a reply add to our count at most: they stand for reasoning, in characters unlike text."""
    return sum(ceil(len(_signature(part)) / 3) + 4 for part in reply.content if not isinstance(part, Text))


def _signature(part: AssistantPart) -> str:
    return "" if isinstance(part, Text) else part.signature or ""
