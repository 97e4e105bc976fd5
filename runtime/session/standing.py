"""What holds in a session whatever branch is shown: input that waits, pins, redactions, what was spent and learned.

Pure: a fold over all entries in the order of writing. Laws: it may begin anywhere at or before what the newest head
shows, as heads carry what is older; taking an entry that tells nothing of this returns the same object.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from .entries import (
    Entry,
    HeadRecord,
    InboxRecord,
    MessageRecord,
    OutcomeRecord,
    PinRecord,
    RedactRecord,
    SettingRecord,
    Waiting,
)

_WAITING = ("queued", "steered", "held")


@dataclass(frozen=True, slots=True)
class Standing:
    """`inbox` is the input that waits, by the entry that holds it. `pins` says of each entry that was ever pinned
    whether it is now. `redactions` gives for each redacted entry the one that redacted it. `settings` are from all
    branches, the newest of a name. `spent` is in US dollars; None: some of it is unknown. `first` is the oldest entry
    that was read."""

    inbox: Mapping[int, Waiting] = field(default_factory=dict)
    pins: Mapping[int, bool] = field(default_factory=dict)
    redactions: Mapping[int, int] = field(default_factory=dict)
    redacted: frozenset[int] = frozenset()
    settings: Mapping[str, Any] = field(default_factory=dict)
    spent: float | None = 0.0
    first: int | None = None

    @property
    def waiting(self) -> tuple[Waiting, ...]:
        """The input that is neither delivered nor dropped, oldest first."""
        return tuple(self.inbox.values())

    @property
    def redaction(self) -> int:
        """The newest entry that redacted one; 0 when there is none."""
        return max(self.redactions.values(), default=0)

    def after(self, entry: Entry) -> Standing:
        """What holds once `entry` was written."""
        if self.first is None:
            self = replace(self, first=entry.id)
        match entry.record:
            case InboxRecord() as record:
                return self._with_input(entry.id, record)
            case MessageRecord(inbox=int() as item):
                return self._without_input(item)
            case OutcomeRecord(usage=usage, cost=cost) if usage is not None:
                return replace(self, spent=None if self.spent is None or cost is None else self.spent + cost)
            case SettingRecord(name=name, value=value):
                return replace(self, settings={**self.settings, name: value})
            case HeadRecord() as record:
                return self._after_head(record)
            case PinRecord(target=int() as target, on=on):
                return replace(self, pins={**self.pins, target: on})
            case RedactRecord(target=target):
                return self._without(target, entry.id)
            case _:
                return self

    def _with_input(self, identity: int, record: InboxRecord) -> Standing:
        item = identity if record.item is None else record.item
        if record.state not in _WAITING:
            return self._without_input(item)
        known = self.inbox.get(item)
        if record.item is None:
            known = Waiting(entry=item, state=record.state, content=record.content, context=record.context)
        if known is None:
            return self
        return replace(self, inbox={**self.inbox, item: replace(known, state=record.state)})

    def _without_input(self, item: int) -> Standing:
        if item not in self.inbox:
            return self
        return replace(self, inbox={each: waiting for each, waiting in self.inbox.items() if each != item})

    def _after_head(self, head: HeadRecord) -> Standing:
        """A head tells of what is older than all that was read; the rest is known better than it could be."""
        first = self.first or 0
        older = {each.entry: each for each in head.inbox if each.entry < first and each.entry not in self.redacted}
        settings = {**head.settings, **self.settings} if head.settings else self.settings
        return replace(self, spent=head.spent, inbox={**older, **self.inbox}, settings=settings)

    def _without(self, target: int, by: int) -> Standing:
        if target in self.redactions:
            return self
        without = self._without_input(target)
        return replace(
            without, redactions={**self.redactions, target: by}, redacted=frozenset((*self.redacted, target))
        )


def standing_of(entries: Iterable[Entry]) -> Standing:
    """What holds after `entries`."""
    standing = Standing()
    for entry in entries:
        standing = standing.after(entry)
    return standing
