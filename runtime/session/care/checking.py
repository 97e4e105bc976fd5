"""What is wrong with the entries of a session, taken one by one and together. Pure.

Nothing here stops a session from being read: projection, tree and resume have an answer for each of these. But each
says that something was lost, or that somebody wrote what we would not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Literal

from governors.messages import ToolCall

from ..ancestry import Ancestry
from ..entries import (
    BranchSummaryRecord,
    CallReference,
    CompactionRecord,
    EditRecord,
    Entry,
    ExtensionRecord,
    HeadRecord,
    InboxRecord,
    IntentRecord,
    LabelRecord,
    LeafRecord,
    MessageRecord,
    OutcomeRecord,
    PinRecord,
    RedactRecord,
    RequestRecord,
    ResultRecord,
)
from ..format.located import Located

Severity = Literal["error", "warning", "note"]


@dataclass(frozen=True, slots=True)
class Problem:
    """`error`: something is lost or cannot be read. `warning`: odd, but there is a rule for it. `note`: worth knowing.
    `line` counts from 1 and `offset` is in bytes; both are None for what is not inside the file."""

    severity: Severity
    problem: str
    line: int | None = None
    offset: int | None = None

    def __str__(self) -> str:
        where = "" if self.line is None else f"line {self.line} (byte {self.offset or 0:,}): "
        return f"{self.severity}: {where}{self.problem}"


def check_entries(located: Sequence[Located], copied: str = "") -> list[Problem]:
    """What is wrong, in the order of the lines. Entries up to the time `copied` come from elsewhere (fork, import):
    numbers are missing before them by right."""
    check = _Check([each.entry for each in located])
    found = []
    for each, after in zip_longest(located, located[1:]):
        for severity, problem in (*_sequence(each, after, copied), *check.entry(each.entry)):
            found.append(Problem(severity, problem, each.line, each.offset))
    first = located[0] if located else None
    if first is not None and first.entry.id > 1 and first.entry.at > copied:
        problem = f"it is the first one; what came before entry {first.entry.id} is missing"
        found.insert(0, Problem("error", problem, first.line, first.offset))
    return found


_Found = Iterator[tuple[Severity, str]]


def _sequence(this: Located, after: Located | None, copied: str) -> _Found:
    """Whether the next entry is the one that has to follow."""
    goes_on = after is not None and after.entry.id == this.entry.id + 1
    if this.until is not None:
        same = after is not None and (after.until == this.until or after.entry.id == this.until)
        if not goes_on or not same:
            yield "error", f"its batch lasts until entry {this.until}, but entry {this.entry.id + 1} of it is missing"
    elif after is not None and not goes_on and after.entry.at > copied:
        first, last = this.entry.id + 1, after.entry.id - 1
        which = f"entry {first} is" if first == last else f"entries {first} to {last} are"
        yield "warning", f"{which} missing after it: a line was broken or removed"


class _Check:
    def __init__(self, entries: Sequence[Entry]) -> None:
        self._known = {entry.id: entry for entry in entries}
        self._ancestry = Ancestry(entries)
        self._answered: dict[CallReference, list[int]] = {}
        self._head: dict[int, Entry] = {}  # the newest head on the branch that ends in an entry

    def entry(self, entry: Entry) -> _Found:
        before = self._head.get(entry.parent) if entry.parent is not None else None
        match entry.record:
            case MessageRecord(inbox=item):
                yield from self._is_inbox(entry, item)
            case IntentRecord(call=call):
                yield from self._call(entry, call, "its call")
            case ResultRecord() as record:
                yield from self._result(entry, record)
            case EditRecord() as record:
                yield from self._edit(entry, record)
            case HeadRecord() as record:
                yield from self._range(entry, record, before)
                yield from self._carried(entry, record)
            case CompactionRecord() as record:
                yield from self._receipt(entry, record)
            case InboxRecord(item=item):
                yield from self._is_inbox(entry, item)
            case LeafRecord(leaf=target):
                yield from self._exists(entry, target, "the entry that it goes on from")
            case PinRecord(target=target) | LabelRecord(target=target) | RedactRecord(target=target):
                yield from self._exists(entry, target, "its target")
            case ExtensionRecord(before=target, inbox=item):
                yield from self._is_inbox(entry, item)
                yield from self._exists(entry, target, "the entry that it stands in front of")
            case BranchSummaryRecord(tip=tip, fork=fork):
                yield from self._exists(entry, tip, "the tip of the branch that it sums up")
                yield from self._exists(entry, fork, "the entry where that branch began")
            case RequestRecord(stand_ins=calls, decisions=decisions):
                for call in calls:
                    yield from self._call(entry, call, "the call of a stand-in")
                for decision in decisions:
                    yield from self._exists(entry, decision, "a decision")
            case OutcomeRecord(request=request):
                if not isinstance(self._record(entry, request), RequestRecord):
                    yield "warning", f"its request, entry {request}, is not there"
            case _:
                pass
        newest = entry if isinstance(entry.record, HeadRecord) else before
        if newest is not None:
            self._head[entry.id] = newest

    def _record(self, entry: Entry, identity: int) -> object:
        """The record of an earlier entry."""
        found = self._known.get(identity) if identity < entry.id else None
        return None if found is None else found.record

    def _exists(self, entry: Entry, target: int | None, what: str) -> _Found:
        if target is not None and self._record(entry, target) is None:
            yield "warning", f"{what}, entry {target}, is not there"

    def _is_inbox(self, entry: Entry, item: int | None) -> _Found:
        if item is not None and not isinstance(self._record(entry, item), InboxRecord):
            yield "warning", f"the input that it names, entry {item}, is not there"

    def _call(self, entry: Entry, call: CallReference, what: str) -> _Found:
        reply, number = call
        record = self._record(entry, reply)
        if not isinstance(record, MessageRecord) or record.role != "assistant":
            yield "warning", f"{what} is number {number} of entry {reply}, which is no reply"
        elif number >= (calls := sum(isinstance(part, ToolCall) for part in record.content)) or number < 0:
            yield "warning", f"{what} is number {number} of entry {reply}, which has {calls}"

    def _result(self, entry: Entry, record: ResultRecord) -> _Found:
        wrong = tuple(self._call(entry, record.call, "its call"))
        yield from wrong
        earlier = self._answered.setdefault(record.call, [])
        if not wrong and not self._ancestry.is_above(record.call[0], entry.id):
            yield "warning", f"its call, in entry {record.call[0]}, is on another branch"
        for each in earlier:
            if self._ancestry.is_above(each, entry.id):
                yield "warning", f"its call had a result already (entry {each}), which counts"
                break
        earlier.append(entry.id)

    def _edit(self, entry: Entry, record: EditRecord) -> _Found:
        target = self._record(entry, record.target)
        if target is None:
            yield "warning", f"its target, entry {record.target}, is not there"
            return
        if not self._ancestry.is_above(record.target, entry.id):
            yield "warning", f"its target, entry {record.target}, is on another branch, so it changes nothing"
        parts = len(getattr(target, "content", ()))
        if record.block is not None and not 0 <= record.block < parts:
            yield "warning", f"its target is part {record.block} of entry {record.target}, which has {parts}"

    def _range(self, entry: Entry, record: HeadRecord, before: Entry | None) -> _Found:
        start = self._record(entry, record.start)
        if start is None:
            yield "error", f"it begins at entry {record.start}, which is not there"
        elif not self._ancestry.is_above(record.start, entry.id):
            yield "error", f"it begins at entry {record.start}, which is on another branch"
        elif not _is_shown_as_user(start):
            yield "error", f"it begins at entry {record.start}, which is no user message"
        elif before is not None and isinstance(before.record, HeadRecord) and record.start < before.record.start:
            yield "error", f"it begins at entry {record.start}, before entry {before.record.start} of head {before.id}"
        resume = record.resume
        if resume is None or resume == entry.id or start is None:
            return
        reply = self._record(entry, resume)
        if not isinstance(reply, MessageRecord) or reply.role != "assistant":
            yield "error", f"it resumes at entry {resume}, which is no reply"
        elif resume < record.start or not self._ancestry.is_above(resume, entry.id):
            yield "error", f"it resumes at entry {resume}, which does not lie after entry {record.start} on its branch"

    def _receipt(self, entry: Entry, record: CompactionRecord) -> _Found:
        if record.result == "done" and not isinstance(self._record(entry, entry.parent or 0), HeadRecord):
            yield "warning", "it tells of a compaction that was done, but hangs on no head"
        for request in record.requests:
            if not isinstance(self._record(entry, request), RequestRecord):
                yield "warning", f"its request, entry {request}, is not there"

    def _carried(self, entry: Entry, record: HeadRecord) -> _Found:
        for pinned in record.pins:
            yield from self._exists(entry, pinned.entry, "a pinned entry")
        for waiting in record.inbox:
            yield from self._is_inbox(entry, waiting.entry)
        for call in record.open_calls:
            yield from self._call(entry, call, "an open call")


def _is_shown_as_user(record: object) -> bool:
    match record:
        case MessageRecord(role="user") | BranchSummaryRecord() | ResultRecord():  # a late result is a user message
            return True
        case ExtensionRecord(content=content):
            return bool(content)
        case _:
            return False
