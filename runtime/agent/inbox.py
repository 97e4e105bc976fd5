"""Input that waits: what arrived while a turn was running, by the log alone.

Laws: an item is on disk before its sender hears that it was received; it is delivered once (the message that
delivers it cites it); after a stop it is held until a person says what becomes of it, also across a restart.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from governors.messages import Image, Text

from ..session.entries import Entry, HeadRecord, InboxRecord, InboxState, MessageRecord, Waiting


@dataclass(frozen=True, slots=True)
class InboxItem:
    """`entry` is the id of the record that holds the input."""

    entry: int
    state: InboxState
    content: tuple[Text | Image, ...]
    context: str | None

    @property
    def text(self) -> str:
        return "\n\n".join(part.text for part in self.content if isinstance(part, Text))


def waiting_items(entries: Iterable[Entry]) -> tuple[InboxItem, ...]:
    """The items that are neither delivered nor dropped, oldest first."""
    items: dict[int, InboxItem] = {}
    for entry in entries:
        match entry.record:
            case InboxRecord(item=None) as record:
                items[entry.id] = InboxItem(entry.id, record.state, record.content, record.context)
            case InboxRecord(item=int() as item, state=state) if item in items:
                old = items[item]
                items[item] = InboxItem(item, state, old.content, old.context)
            case MessageRecord(inbox=int() as item):
                items.pop(item, None)
            case HeadRecord(inbox=waiting):  # what was read may begin after the entries that held it
                for each in waiting:
                    items.setdefault(each.entry, InboxItem(each.entry, each.state, each.content, each.context))
            case _:
                pass
    return tuple(item for item in items.values() if item.state in ("queued", "steered", "held"))


def in_state(items: Sequence[InboxItem], *states: InboxState) -> tuple[InboxItem, ...]:
    return tuple(item for item in items if item.state in states)


def carried(item: InboxItem) -> Waiting:
    """The item as a head carries it."""
    return Waiting(entry=item.entry, state=item.state, content=item.content, context=item.context)


def deliver(item: InboxItem, *, steered: bool) -> MessageRecord:
    """The message that delivers `item`."""
    return MessageRecord(role="user", content=item.content, context=item.context, inbox=item.entry, steered=steered)
