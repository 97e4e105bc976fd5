"""What redacting an entry does to what was made from it. Pure.

A redacted user message, result, summary or extension shows `REDACTED`; a redacted reply goes with its results. What
quotes one (a pin, the quote of a head, a stub) shows `REDACTED` too, as it names its entry. A summary names none: it is
*stale* when it was made from an entry that was redacted afterwards. Laws:
- A head's summary was made from what the head put out of view, a branch summary from the branch that was left, and
  both from the summaries that stood there.
- A stale summary is flagged to people and stays as it was sent, since only a person knows whether it holds what was to
  be hidden. The next head does not carry it on: it shows `STALE_SUMMARY`, unless it brings a summary of its own.
- What cannot be known (entries before the part of a log that was read) counts as the worse case.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from math import inf

from ..entries import (
    BranchSummaryRecord,
    Entry,
    ExtensionRecord,
    HeadRecord,
    InboxRecord,
    MessageRecord,
    Record,
    RedactRecord,
)
from .ranges import range_of

REDACTED = "[redacted]"
STALE_SUMMARY = (
    "[A summary of earlier messages stood here. Something that it was made from has been redacted since, so it is left "
    "out. What else was said can still be recalled.]"
)


def redacted_entries(entries: Iterable[Entry], redacted: Collection[int] = ()) -> frozenset[int]:
    """All that is redacted, by the `redact` entries among `entries` or by `redacted`: with an inbox entry the message
    that delivered it."""
    known = tuple(entries)
    targets = {entry.record.target for entry in known if isinstance(entry.record, RedactRecord)}.union(redacted)
    if not targets:
        return frozenset()
    delivered = (entry.id for entry in known if is_delivery(entry.record) and input_of(entry) in targets)
    return frozenset(targets.union(delivered))


def redactions_of(entries: Iterable[Entry]) -> dict[int, float]:
    """The targets of the `redact` entries among `entries`, each with the first that redacted it."""
    times: dict[int, float] = {}
    for entry in entries:
        if isinstance(entry.record, RedactRecord):
            times.setdefault(entry.record.target, entry.id)
    return times


def with_copies(known: Mapping[int, Entry], redactions: Mapping[int, float]) -> dict[int, float]:
    """`redactions` (what was redacted, and when) with those of every copy among `known`: the input that brought a
    message, each message that brought that input."""
    items: dict[int, float] = {}
    for target, time in redactions.items():
        item = input_of(known[target]) if target in known else target  # what is not known may be the input itself
        if item is not None:
            items[item] = min(time, items.get(item, time))
    times = dict(redactions)
    for entry in known.values() if items else ():
        item = input_of(entry)
        if item in items:
            times[entry.id] = min(items[item], times.get(entry.id, items[item]))
    return times


def is_delivery(record: Record) -> bool:
    """Whether `record` brings input that waited."""
    return isinstance(record, (MessageRecord, ExtensionRecord)) and record.inbox is not None


def input_of(entry: Entry) -> int | None:
    """The inbox entry that holds the same input, if one does."""
    match entry.record:
        case MessageRecord(inbox=item) | ExtensionRecord(inbox=item):
            return item
        case InboxRecord(item=item):
            return entry.id if item is None else item
        case _:
            return None


def stale_summaries(entries: Iterable[Entry], redacted: Collection[int] = ()) -> frozenset[int]:
    """The heads and branch summaries among `entries` (all of a session, oldest first) that were made from an entry
    before it was redacted. `redacted` are targets whose `redact` entries are not among `entries`: they count as the
    newest of all."""
    known = {entry.id: entry for entry in entries}
    return stale_at(known, {**dict.fromkeys(redacted, inf), **redactions_of(known.values())})


def stale_at(known: Mapping[int, Entry], redactions: Mapping[int, float]) -> frozenset[int]:
    """`stale_summaries` of the entries `known` (by id, oldest first), where `redactions` gives for each redacted entry
    the id of the entry that redacted it."""
    if not redactions:
        return frozenset()
    hidden = with_copies(known, redactions)  # what must not be told on -> since when
    oldest = next(iter(known), 0)
    stale: set[int] = set()
    for entry in known.values():
        if not _is_summary(entry):
            continue
        sources = [source for source in hidden if source < entry.id and _made_from(entry, source, known, oldest)]
        since = max((hidden[source] for source in sources), default=0)
        if since > entry.id or any(_carries(entry, known.get(source)) for source in sources if source in stale):
            stale.add(entry.id)
            hidden[entry.id] = max(since, hidden.get(entry.id, 0))
    return frozenset(stale)


def carried_summary(earlier: Entry | None, stale: Collection[int]) -> str | None:
    """The summary that a head without one of its own carries on from the head `earlier`."""
    if earlier is None or not isinstance(earlier.record, HeadRecord) or earlier.record.summary is None:
        return None
    return STALE_SUMMARY if earlier.id in stale else earlier.record.summary


def _is_summary(entry: Entry) -> bool:
    match entry.record:
        case HeadRecord(summary=summary):
            return summary is not None
        case BranchSummaryRecord():
            return True
        case _:
            return False


def _made_from(entry: Entry, source: int, known: Mapping[int, Entry], oldest: int) -> bool:
    record = entry.record
    if isinstance(record, BranchSummaryRecord):
        return source > (record.fork or 0) and _is_on_branch(source, record.tip, known, oldest)
    assert isinstance(record, HeadRecord)
    return _is_on_branch(source, entry.parent, known, oldest) and not _keeps(record, source, known)


def _is_on_branch(identity: int, tip: int | None, known: Mapping[int, Entry], oldest: int) -> bool:
    while tip is not None and tip > identity:
        entry = known.get(tip)
        if entry is None:
            return identity < oldest  # a part that was not read
        tip = entry.parent
    return tip == identity


def _keeps(head: HeadRecord, source: int, known: Mapping[int, Entry]) -> bool:
    """Whether the head still shows the entry `source`, so that its summary had not to tell of it."""
    entry = known.get(source)
    if source < head.start or entry is None or isinstance(entry.record, HeadRecord):
        return False
    match entry.record:
        case MessageRecord(role="user") | BranchSummaryRecord() | ExtensionRecord():
            return True
        case _:
            return range_of(head).shows(source)


def _carries(entry: Entry, earlier: Entry | None) -> bool:
    """Whether the head `entry` shows the very summary of the head `earlier`."""
    if earlier is None or not isinstance(entry.record, HeadRecord) or not isinstance(earlier.record, HeadRecord):
        return False
    return entry.record.summary == earlier.record.summary
