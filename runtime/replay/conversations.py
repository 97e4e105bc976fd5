"""From recorded messages with their times to a trace: every reply is a model call that sent all before it.

Tokens are counted by the governors' counter. Where the record has usage, the first prompt tells what led it unseen
(system prompt, tools), and the largest one how many tokens of the model a counted token is worth. Replies that did
not finish are calls, but stay out of later prompts, as in a projection. A reply that follows another with nothing
between them (what was asked is not in the record) is no call: nobody sends such a prompt.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from governors.messages import UNFINISHED, AssistantMessage, Message, ToolResult, UserMessage
from governors.microcompact import stub as stub_of
from governors.tokens import Counter, message_tokens

from .trace import WORTH_A_STUB, Call, Item, Trace

#: What a counted token can be worth in a model's own; a fit outside is a sign of something else (another history).
_LEAST, _MOST = 0.7, 1.7


@dataclass(frozen=True, slots=True)
class Timed:
    """A message and when it was recorded (seconds from any origin; None where the record does not say)."""

    message: Message
    at: float | None = None


def trace_of(name: str, said: Sequence[Timed], counter: Counter, *, base: int = 0) -> Trace:
    """The trace of a conversation. `base` is what is known to lead each prompt, in tokens, where no usage tells."""
    first = next((each.at for each in said if each.at is not None), None)
    calls: list[Call] = []
    items: list[Item] = []
    prompts: list[tuple[int, int]] = []  # counted and recorded
    counted, at = 0, 0.0
    for each in said:
        message = each.message
        at = max(at, each.at - first) if each.at is not None and first is not None else at
        if isinstance(message, AssistantMessage) and any(_is_asked(item) for item in items):
            counted += sum(item.tokens for item in items)
            calls.append(Call(at, tuple(items), not message.calls, message.model))
            items = []
            if message.usage is not None and message.usage.prompt:
                prompts.append((counted, message.usage.prompt))
        if isinstance(message, AssistantMessage) and message.stop in UNFINISHED:
            continue
        items.append(_item(message, counter))
    worth, unseen = _fit(prompts)
    scaled = tuple(replace(call, items=tuple(_scaled(item, worth) for item in call.items)) for call in calls)
    return Trace(name, base if unseen is None else unseen, scaled, timed=first is not None)


def _is_asked(item: Item) -> bool:
    return not isinstance(item.message, AssistantMessage)


def _item(message: Message, counter: Counter) -> Item:
    tokens = message_tokens(message, counter)
    if isinstance(message, ToolResult) and len(message.text) > WORTH_A_STUB:
        return Item(tokens, message_tokens(stub_of(message), counter), message=message)
    return Item(tokens, boundary=isinstance(message, UserMessage), message=message)


def _scaled(item: Item, worth: float) -> Item:
    if worth == 1:
        return item
    stub = None if item.stub is None else round(item.stub * worth)
    return replace(item, tokens=round(item.tokens * worth), stub=stub)


def _fit(prompts: Sequence[tuple[int, int]]) -> tuple[float, int | None]:
    """What a counted token is worth, and what leads each prompt unseen; (1, None) without any usage."""
    if not prompts:
        return 1.0, None
    least, most = prompts[0], max(prompts, key=lambda prompt: prompt[1])
    worth = (most[1] - least[1]) / (most[0] - least[0]) if most[0] - least[0] > 1_000 else 1.0
    worth = worth if _LEAST <= worth <= _MOST else 1.0
    return worth, max(0, round(least[1] - worth * least[0]))
