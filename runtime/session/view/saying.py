"""One entry as the message by which a model reads it. Pure.

Laws: a message is made once for an entry and the state of its edits, and kept with the entry; it depends on nothing
else, save on what its arguments say. What no user said, though it has the user's role, stands in a fixed wrapping
(`wrapping.py`); the wrapping of what is redacted goes with it, as a command says as much as its output.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from governors.messages import (
    AssistantMessage,
    CompactionItem,
    Document,
    Image,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    UserMessage,
)
from governors.repair import late_result, stand_in
from governors.snip import OMITTED_STEPS

from ..entries import Entry, HeadRecord, MessageRecord, Part, ResultRecord, made
from .edits import Edits
from .pins import pins_message
from .redaction import REDACTED
from .wrapping import INTERRUPTED, SUMMARY, wrapped


def user_message(edits: Edits, entry: Entry, record: MessageRecord, after_interruption: bool) -> UserMessage:
    """What a user said. `after_interruption`: a reply stands before it of which people saw only a part."""

    def make() -> UserMessage:
        shown = edits.content(entry.id, record.content)
        said = [part for part in shown if not isinstance(part, (Thinking, ToolCall))]
        before = [Text(INTERRUPTED)] if after_interruption else []
        after = [Text(record.context)] if record.context and not edits.is_redacted(entry.id) else []
        return UserMessage((*before, *said, *after), origin=entry.id)

    return made(entry, f"user/{after_interruption}/{edits.key(entry.id)}", make)


def said_by_none(edits: Edits, entry: Entry, kind: str, content: Sequence[Part], opening: str) -> UserMessage:
    """A message of the user's role that is no user's, in the wrapping that `opening` opens."""

    def make() -> UserMessage:
        shown = edits.content(entry.id, content)
        return wrapped(None if edits.is_redacted(entry.id) else opening, shown, entry.id)

    return made(entry, f"{kind}/{edits.key(entry.id)}", make)


def reply_message(edits: Edits, entry: Entry, reply: AssistantMessage) -> AssistantMessage:
    """A reply, as edits have it; its calls stay, as their results do."""
    key = edits.key(entry.id)
    if not key:
        return reply

    def make() -> AssistantMessage:
        assert isinstance(entry.record, MessageRecord)
        shown = edits.content(entry.id, entry.record.content)
        kept = [part for part in shown if isinstance(part, (Text, Thinking))]
        return replace(reply, content=(*kept, *reply.calls))

    return made(entry, f"reply/{key}", make)


def answer_message(edits: Edits, entry: Entry, call: str) -> ToolResult:
    """A result in the slot of its call, whose id is `call`."""
    record = entry.record
    assert isinstance(record, ResultRecord)

    def make() -> ToolResult:
        return ToolResult(call, record.tool, _shown(edits, entry, record), record.is_error, origin=entry.id)

    return made(entry, f"result/{edits.key(entry.id)}", make)


def missing_message(reply: Entry, number: int, call: ToolCall) -> ToolResult:
    """The stand-in for the result of a reply's call."""
    return made(reply, f"stand-in/{number}", lambda: replace(stand_in(call), origin=reply.id))


def late_message(edits: Edits, entry: Entry, record: ResultRecord) -> UserMessage:
    """A result that came late, at its own place."""

    def make() -> UserMessage:
        result = ToolResult("", record.tool, _shown(edits, entry, record), record.is_error, origin=entry.id)
        return late_result(result, str(record.call[0]))

    return made(entry, f"late/{edits.key(entry.id)}", make)


def summary_message(edits: Edits, head: Entry, summary: str, item: CompactionItem | None = None) -> UserMessage:
    """A head's summary of what it put out of view; `item` goes in its place to models that can read it."""
    said = said_by_none(edits, head, "summary", [Text(summary)], SUMMARY)
    if item is None or edits.is_redacted(head.id):
        return said
    return made(head, f"item/{edits.key(head.id)}", lambda: replace(said, item=item))


def leading_messages(edits: Edits, head: Entry, record: HeadRecord) -> list[UserMessage]:
    """What a head says before all else: its summary, if that stands first, its pins, its quote."""
    leading: list[UserMessage] = []
    if record.placement == "first" and record.summary is not None:
        leading.append(summary_message(edits, head, record.summary, record.item))
    if record.pins:
        redacted = edits.is_redacted
        hidden = ",".join(str(pin.entry) for pin in record.pins if redacted(pin.entry))
        leading.append(made(head, f"pins/{hidden}", lambda: pins_message(head.id, record.pins, redacted)))
    if record.quote is not None:
        quoted = record.quoted is not None and edits.is_redacted(record.quoted)
        gone = quoted or edits.is_redacted(head.id)
        quote = REDACTED if gone else record.quote
        leading.append(made(head, f"quote/{gone}", lambda: UserMessage((Text(quote),), origin=head.id)))
    return leading


def gap_message(head: Entry) -> UserMessage:
    """The marker of the steps that a head put out of view and has no summary of."""
    return made(head, "marker", lambda: UserMessage((Text(OMITTED_STEPS),), origin=head.id))


def _shown(edits: Edits, entry: Entry, record: ResultRecord) -> tuple[Text | Image | Document, ...]:
    """What is shown of a result."""
    shown = edits.content(entry.id, record.content)
    return tuple(part for part in shown if isinstance(part, (Text, Image, Document)))
