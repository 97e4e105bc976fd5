"""Input that waits: what arrived while a turn was running, by the log alone.

Laws: an item is on disk before its sender hears that it was received; it is delivered once (the message that
delivers it cites it); after a stop it is held until a person says what becomes of it, also across a restart.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from governors.messages import Text, UserPart

from ..session.entries import Entry, InboxState, MessageRecord, Waiting
from ..session.view.standing import Standing, standing_of


@dataclass(frozen=True, slots=True)
class InboxItem:
    """`entry` is the id of the record that holds the input."""

    entry: int
    state: InboxState
    content: tuple[UserPart, ...]
    context: str | None

    @property
    def text(self) -> str:
        return "\n\n".join(part.text for part in self.content if isinstance(part, Text))


def waiting_items(entries: Iterable[Entry]) -> tuple[InboxItem, ...]:
    """The items that are neither delivered nor dropped, oldest first."""
    return items_of(standing_of(entries))


def items_of(standing: Standing) -> tuple[InboxItem, ...]:
    """The same, from what holds in the session."""
    return tuple(InboxItem(each.entry, each.state, each.content, each.context) for each in standing.waiting)


def in_state(items: Sequence[InboxItem], *states: InboxState) -> tuple[InboxItem, ...]:
    return tuple(item for item in items if item.state in states)


def carried(item: InboxItem) -> Waiting:
    """The item as a head carries it."""
    return Waiting(entry=item.entry, state=item.state, content=item.content, context=item.context)


def deliver(item: InboxItem, *, steered: bool) -> MessageRecord:
    """The message that delivers `item`."""
    return MessageRecord(role="user", content=item.content, context=item.context, inbox=item.entry, steered=steered)
