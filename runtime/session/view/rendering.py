"""Which entries of a branch are shown as messages, and where. Pure; it grows with the branch. What the message of an
entry says is in `saying.py`.

Entries are first all taken in (which result answers which call, which edits hold), then shown in order, so that a
result that is there already stands in its slot at once. Laws:
- Taking entries in one batch or one by one gives the same messages, as long as no edit and no head is among the later
  ones. A result that comes for a stand-in that no request has carried is put in its place (`filled` tells where).
- Messages of the user's role stay when the steps of a turn go; replies, results and system patches go.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from governors.messages import UNFINISHED, Message, Text, ToolCall, ToolResult, ToolSpec

from ..entries import (
    BranchSummaryRecord,
    CallReference,
    EditRecord,
    Entry,
    ExtensionRecord,
    HeadRecord,
    MessageRecord,
    ResultRecord,
    SettingRecord,
    SystemRecord,
    made,
)
from .answers import Answers, reply_of
from .edits import Edits
from .ranges import Range, range_of
from .saying import (
    answer_message,
    gap_message,
    late_message,
    leading_messages,
    missing_message,
    reply_message,
    said_by_none,
    summary_message,
    user_message,
)
from .sections import SystemState, patch_of, state_of
from .wrapping import INTERRUPTED as INTERRUPTED
from .wrapping import OTHER_BRANCH as OTHER_BRANCH
from .wrapping import opening_of


class Rendering:
    """Begins at the head `head` (None: at the first entry). `places` are the indices of users' messages by their
    entry, `openings` the indices of those that opened a turn, `stand_ins` those of the calls without a result;
    `restored` are the entries that a person wanted to see again; `brought` the tools that patches define."""

    def __init__(self, head: Entry | None, redacted: Collection[int] = ()) -> None:
        self.messages: list[Message] = []
        self.filled: list[int] = []
        self.places: dict[int, int] = {}
        self.openings: list[int] = []
        self.stand_ins: dict[CallReference, int] = {}
        self.settings: Mapping[str, Any] = {}
        self.restored: set[int] = set()
        self.edited = 0  # edits since the head
        self.baseline = self.state = SystemState()
        self.brought: tuple[ToolSpec, ...] = ()
        self.has_system = head is not None
        self.head = head
        self._answers = Answers()
        self._edits = Edits(redacted=redacted)
        self._late: list[CallReference] = []  # calls whose result is shown at its own place
        self._range = Range(0, 0)
        self._interrupted = self._marked = self._begun = False
        self._ahead: dict[int, list[Entry]] = {}  # what extensions put in front of an entry's message

    @property
    def record(self) -> HeadRecord | None:
        """What the head says."""
        return self.head.record if self.head is not None and isinstance(self.head.record, HeadRecord) else None

    def take(self, entries: Sequence[Entry]) -> None:
        """Show `entries`, which follow those that were taken before."""
        self.filled = []
        for entry in entries:
            self._answers.take(entry)
            self._edits.take(entry)
            self._note(entry)
        if not self._begun:
            self._begin()
        for entry in entries:
            self._show(entry)

    def open_calls(self) -> dict[CallReference, int | None]:
        """The calls without a result in their slot, each with its result if one came late and is in range."""
        earlier = self.record.open_calls if self.record is not None else ()
        away = (call for call in earlier if not self._range.shows(call[0]) and not self._edits.hides(call[0]))
        found: dict[CallReference, int | None] = {}
        for call in (*away, *self.stand_ins, *self._late):
            result = self._answers.result_of(call)
            if result is None or result.id >= self._range.start:
                found[call] = None if result is None else result.id
        return found

    def results(self, wanted: Collection[int]) -> list[ResultRecord]:
        """The results of calls among the entries `wanted`."""
        return self._answers.results(wanted) if wanted else []

    def _note(self, entry: Entry) -> None:
        """What changes nothing of the messages."""
        match entry.record:
            case SettingRecord(name=name, value=value):
                without = {each: held for each, held in self.settings.items() if each != name}
                self.settings = without if value is None else {**without, name: value}
            case HeadRecord(settings=settings):
                self.settings = {name: value for name, value in settings.items() if value is not None}
                self.edited = 0
            case EditRecord() as record:
                self.edited += 1
                if record.action == "restore" and record.cause == "user":
                    self.restored.add(record.target)
            case ExtensionRecord(before=int() as target):
                self.edited += 1
                self._ahead.setdefault(target, []).append(entry)
            case _:
                pass

    def _begin(self) -> None:
        self._begun = True
        record, head = self.record, self.head
        if record is None or head is None:
            return
        self.baseline = self.state = state_of(record.baseline)
        self.has_system = bool(record.baseline.sections or record.baseline.tools)  # an imported one has neither
        self._range = range_of(record)
        self.messages += leading_messages(self._edits, head, record)

    def _show(self, entry: Entry) -> None:
        match entry.record:
            case MessageRecord(role="user") as record:
                self._user(entry, record)
            case MessageRecord() as record:
                self._reply(entry, record)
            case ResultRecord() as record:
                self._result(entry, record)
            case SystemRecord() as record:
                self._system(entry, record)
            case HeadRecord(placement="last") as record if self.head is not None and entry.id == self.head.id:
                if record.summary is not None:
                    self.messages.append(summary_message(self._edits, entry, record.summary, record.item))
            case BranchSummaryRecord(text=text):
                self.messages.append(said_by_none(self._edits, entry, "branch", [Text(text)], OTHER_BRANCH))
            case ExtensionRecord(before=None):
                self._extensions((entry,))
            case _:
                pass

    def _extensions(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            if isinstance(record := entry.record, ExtensionRecord) and record.content:
                opening = opening_of(record.name, record.data)
                self.messages.append(said_by_none(self._edits, entry, "extension", record.content, opening))

    def _user(self, entry: Entry, record: MessageRecord) -> None:
        tagged, self._interrupted = self._interrupted, False
        self._extensions(self._ahead.get(entry.id, ()))
        self.places[entry.id] = len(self.messages)
        if not record.steered:
            self.openings.append(len(self.messages))
        self.messages.append(user_message(self._edits, entry, record, tagged))

    def _reply(self, entry: Entry, record: MessageRecord) -> None:
        if record.stop in UNFINISHED:
            seen = any(isinstance(part, Text) and part.text.strip() for part in record.content)
            self._interrupted = self._interrupted or seen
            return
        reply = reply_of(entry)
        if reply.message is None or self._edits.hides(entry.id):
            return
        if self._range.leaves_out(entry.id):
            self._mark_gap()
            return
        self._extensions(self._ahead.get(entry.id, ()))
        self.messages.append(reply_message(self._edits, entry, reply.message))
        for number in reply.sent:
            self._answer(entry, number, reply.calls[number])

    def _answer(self, reply: Entry, number: int, call: ToolCall) -> None:
        reference = (reply.id, number)
        entry = self._answers.slot(reference)
        if entry is not None:
            self.messages.append(answer_message(self._edits, entry, call.id))
            return
        self.stand_ins[reference] = len(self.messages)
        self.messages.append(missing_message(reply, number, call))

    def _result(self, entry: Entry, record: ResultRecord) -> None:
        """A result that came late at its own place, or in that of the stand-in for it."""
        index = self.stand_ins.get(record.call)
        if index is not None and self._answers.slot(record.call) is entry:
            del self.stand_ins[record.call]
            stand = self.messages[index]
            assert isinstance(stand, ToolResult)
            self.messages[index] = answer_message(self._edits, entry, stand.call_id)
            self.filled.append(index)
            return
        if not self._answers.is_shown_late(entry, record.call) or self._edits.hides(record.call[0]):
            return
        if self._range.leaves_out(entry.id):
            self._mark_gap()
            return
        self._late.append(record.call)
        self.messages.append(late_message(self._edits, entry, record))

    def _system(self, entry: Entry, record: SystemRecord) -> None:
        if self.head is not None and entry.id < self.head.id:
            return  # the head's baseline holds it
        if not self.has_system:
            self.baseline = self.state = self.baseline.patched(record)
            self.has_system = True
        else:
            before, self.state = self.state, self.state.patched(record)
            self.messages.append(made(entry, "patch", lambda: patch_of(before, record, entry.id)))
            self.brought = (*self.brought, *record.tools_added)

    def _mark_gap(self) -> None:
        """Where the first of the steps that went out of view stood, one constant line says so."""
        record, head = self.record, self.head
        if record is not None and head is not None and record.summary is None and not self._marked:
            self.messages.append(gap_message(head))
            self._marked = True
