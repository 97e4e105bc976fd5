"""What holds in a session whatever branch is shown: input that waits, pins, redactions, what was spent and learned.

Pure: a fold over all entries in the order of writing. Laws: it may begin anywhere at or before what the newest head
shows, as heads carry what is older; what was given out stays as it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..entries import (
    CompactionRecord,
    Entry,
    ExtensionRecord,
    HeadRecord,
    InboxRecord,
    MessageRecord,
    OutcomeRecord,
    PinRecord,
    RedactRecord,
    SettingRecord,
    Waiting,
)

#: What the names of settings begin with that were learned of a model: they are true on every branch.
LEARNED = "fit:"

_WAITING = ("queued", "steered", "held")


@dataclass(frozen=True, slots=True)
class Standing:
    """`inbox` is the input that waits, by the entry that holds it. `pins` says of each entry that was ever pinned
    whether it is now. `redactions` gives for each redacted entry the one that redacted it, `redaction` is the newest
    `redact` entry (0: none). `settings` are from all
    branches, the newest of a name. `spent` is in US dollars; None: some of it is unknown. `breaker` is that of
    compactions, with what was said since."""

    inbox: Mapping[int, Waiting] = field(default_factory=dict)
    pins: Mapping[int, bool] = field(default_factory=dict)
    redactions: Mapping[int, int] = field(default_factory=dict)
    redacted: frozenset[int] = frozenset()
    redaction: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)
    spent: float | None = 0.0
    breaker: Mapping[str, Any] = field(default_factory=dict)

    @property
    def waiting(self) -> tuple[Waiting, ...]:
        """The input that is neither delivered nor dropped, oldest first."""
        return tuple(self.inbox.values())


def carried_settings(branch: Mapping[str, Any], session: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that a head carries: those of its `branch`, and what was learned anywhere in the `session`."""
    learned = {name: value for name, value in session.items() if name.startswith(LEARNED)}
    return {**branch, **learned}


def standing_of(entries: Iterable[Entry], copied: int = 0) -> Standing:
    """What holds after `entries`; those up to `copied` were paid for by another session (`Header.copied`)."""
    fold = StandingFold(copied)
    for entry in entries:
        fold.take(entry)
    return fold.standing


class StandingFold:
    """What holds after the entries that were taken."""

    def __init__(self, copied: int = 0) -> None:
        self._copied = copied
        self._standing = Standing()
        self._spent: float | None = 0.0
        self._first: int | None = None

    @property
    def standing(self) -> Standing:
        if self._standing.spent != self._spent:
            self._standing = replace(self._standing, spent=self._spent)
        return self._standing

    def take(self, entry: Entry) -> None:
        if self._first is None:
            self._first = entry.id
        match entry.record:
            case OutcomeRecord(usage=usage, cost=cost):
                if usage is not None and entry.id > self._copied:
                    self._spent = None if self._spent is None or cost is None else self._spent + cost
            case MessageRecord(inbox=item) as record:
                if item is not None:
                    self._without_input(item)
                if record.role == "user" and not record.steered and self._standing.breaker:
                    self._change(breaker={**self._standing.breaker, "spoken": True})
            case ExtensionRecord(inbox=int() as item):
                self._without_input(item)
            case CompactionRecord(breaker=breaker):
                self._change(breaker=breaker)
            case InboxRecord() as record:
                self._input(entry.id, record)
            case SettingRecord(name=name, value=value):
                self._change(settings={**self._standing.settings, name: value})
            case HeadRecord() as record:
                self._head(record, self._first)
                self._spent = record.spent if entry.id > self._copied else 0.0
                self._change(breaker=record.breaker)
            case PinRecord(target=int() as target, on=on):
                self._change(pins={**self._standing.pins, target: on})
            case RedactRecord(target=target):
                self._without_input(target)
                redactions = {target: entry.id, **self._standing.redactions}
                self._change(redactions=redactions, redacted=frozenset(redactions), redaction=entry.id)
            case _:
                pass

    def _change(self, **fields: Any) -> None:
        self._standing = replace(self._standing, **fields)

    def _input(self, identity: int, record: InboxRecord) -> None:
        item = identity if record.item is None else record.item
        if record.state not in _WAITING:
            self._without_input(item)
            return
        inbox = self._standing.inbox
        if record.item is None:
            known = Waiting(entry=item, state=record.state, content=record.content, context=record.context)
            self._change(inbox={**inbox, item: known})
        elif item in inbox:
            self._change(inbox={**inbox, item: replace(inbox[item], state=record.state)})

    def _without_input(self, item: int) -> None:
        inbox = self._standing.inbox
        if item in inbox:
            self._change(inbox={each: waiting for each, waiting in inbox.items() if each != item})

    def _head(self, head: HeadRecord, first: int) -> None:
        """A head tells of what is older than all that was read; the rest is known better than it could be."""
        now = self._standing
        older = {each.entry: each for each in head.inbox if each.entry < first and each.entry not in now.redacted}
        self._change(inbox={**older, **now.inbox}, settings={**head.settings, **now.settings})
