"""From a branch of the log to what a model sees. Pure: same entries, same messages.

In this order: pair results with calls (by the call that each result names), cut to the range of the newest head,
render. Laws:
- Results stand straight after their reply, in call order; one result a call; a result without a call is left out.
- A call without a result gets the stand-in. Once a request carried it, or a head cut the call, a later real result
  is shown at its own place, never in the slot (`answers.py`).
- Replies that did not finish are left out with their calls; a constant tag on the next user message says so where
  people saw some of their text.
- Nothing that depends on later entries changes an earlier message, save a result that no request has missed yet.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from governors.messages import (
    UNFINISHED,
    AssistantMessage,
    Image,
    Message,
    Messages,
    SystemPatch,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    ToolSpec,
    UserMessage,
)
from governors.repair import late_result, normalise, stand_in
from governors.snip import OMITTED_STEPS

from .answers import Answers, Range, range_of, reply_of
from .edits import Edits
from .entries import (
    CallReference,
    EditRecord,
    Entry,
    HeadRecord,
    MessageRecord,
    ResultRecord,
    SettingRecord,
    SystemRecord,
)
from .sections import SystemState, news, state_of

INTERRUPTED = "[The reply before this message was interrupted; the user saw only a part of it.]"

_Made = TypeVar("_Made", bound=Message)


@dataclass(frozen=True, slots=True)
class Projection:
    """What a branch shows a model. `system` and `tools` are the leading baseline, `state` what holds after all
    patches; `stand_ins` the calls in view that have no result; `head` the newest head's entry id.

    `open` holds all calls without a result in their slot, also those that earlier heads took out of view, each with
    the entry of the result that came late, if one did.
    """

    messages: Messages
    baseline: SystemState
    state: SystemState
    settings: Mapping[str, Any]
    stand_ins: tuple[CallReference, ...]
    open: Mapping[CallReference, int | None]
    head: int | None
    generation: int

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        return self.state.offered

    def open_calls(self, start: int) -> tuple[CallReference, ...]:
        """What a head that begins at the entry `start` has to carry: the calls whose result it shows at its own place,
        and those that may still get one."""
        return tuple(call for call, late in self.open.items() if late is None or late >= start)


def project(branch: Sequence[Entry]) -> Projection:
    """The projection of `branch` (root to leaf)."""
    edits = Edits(branch)
    view = _View(Answers(branch), edits)
    for entry in view.in_range(branch):
        view.show(entry)
    return Projection(
        messages=normalise(tuple(view.messages)),
        baseline=view.baseline,
        state=view.state,
        settings=_settings(branch),
        stand_ins=tuple(view.stand_ins),
        open=view.open_calls(),
        head=view.head_id or None,
        generation=(view.head.generation if view.head is not None else 0) + edits_since(branch, view.head_id),
    )


def system_state(branch: Sequence[Entry]) -> SystemState | None:
    """The system prompt and tools that hold at the end of `branch`; None before the first `system` entry."""
    state: SystemState | None = None
    for entry in branch:
        if isinstance(entry.record, SystemRecord):
            state = (state or SystemState()).patched(entry.record)
        elif isinstance(entry.record, HeadRecord):
            state = state_of(entry.record.baseline)
    return state


def edits_since(branch: Sequence[Entry], head: int) -> int:
    """How many edits came after the entry `head`."""
    return sum(isinstance(entry.record, EditRecord) and entry.id > head for entry in branch)


def _settings(branch: Sequence[Entry]) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    for entry in branch:
        if isinstance(entry.record, HeadRecord):
            settings = dict(entry.record.settings)
        elif isinstance(entry.record, SettingRecord):
            settings[entry.record.name] = entry.record.value
    return {name: value for name, value in settings.items() if value is not None}


class _View:
    """Renders the entries of the range in order."""

    def __init__(self, answers: Answers, edits: Edits) -> None:
        self.messages: list[Message] = []
        self.stand_ins: list[CallReference] = []
        self.late: list[CallReference] = []  # calls whose result is shown at its own place
        self.head: HeadRecord | None = None
        self.head_id = 0
        self.baseline = SystemState()
        self._answers = answers
        self._edits = edits
        self._range = Range(0, 0)
        self._interrupted = False
        self._marked = False
        if answers.head is not None and isinstance(answers.head.record, HeadRecord):
            self._begin_at(answers.head, answers.head.record)
        self.state = self.baseline
        self._has_baseline = self.head is not None

    def _begin_at(self, entry: Entry, record: HeadRecord) -> None:
        self.head, self.head_id = record, entry.id
        self.baseline = state_of(record.baseline)
        self._range = range_of(record)
        if record.summary is not None and record.placement == "first":
            self._summary(entry, record.summary)
        if record.quote is not None:
            quote = record.quote
            self.messages.append(_made(entry, "quote", lambda: UserMessage((Text(quote),), origin=entry.id)))

    def in_range(self, branch: Sequence[Entry]) -> Sequence[Entry]:
        """The entries from the head's `start` on (from the next one when that line was lost)."""
        return branch[bisect_left(branch, self._range.start, key=lambda entry: entry.id) :]

    def open_calls(self) -> dict[CallReference, int | None]:
        """The calls without a result in their slot, each with its result if one came late and is in range."""
        earlier = self.head.open_calls if self.head is not None else ()
        calls = (*(call for call in earlier if not self._range.shows(call[0])), *self.stand_ins, *self.late)
        results = {call: self._answers.result_of(call) for call in calls}
        return {
            call: None if result is None else result.id
            for call, result in results.items()
            if result is None or result.id >= self._range.start
        }

    def show(self, entry: Entry) -> None:
        match entry.record:
            case MessageRecord(role="user") as record:
                self._user(entry, record)
            case MessageRecord() as record:
                self._reply(entry, record)
            case ResultRecord() as record:
                self._late_result(entry, record)
            case SystemRecord() as record:
                self._system(entry, record)
            case HeadRecord(placement="last", summary=str(summary)) if entry.id == self.head_id:
                self._summary(entry, summary)
            case _:
                pass

    def _user(self, entry: Entry, record: MessageRecord) -> None:
        tagged, self._interrupted = self._interrupted, False

        def make() -> UserMessage:
            shown = self._edits.content(entry.id, record.content)
            said = [part for part in shown if not isinstance(part, (Thinking, ToolCall))]
            before = [Text(INTERRUPTED)] if tagged else []
            after = [Text(record.context)] if record.context else []
            return UserMessage((*before, *said, *after), origin=entry.id)

        self.messages.append(_made(entry, f"user/{tagged}/{self._edits.key(entry.id)}", make))

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
        self.messages.append(self._edited(entry, reply.message))
        for number in reply.sent:
            self._answer(entry, number, reply.calls[number])

    def _answer(self, reply: Entry, number: int, call: ToolCall) -> None:
        reference = (reply.id, number)
        entry = self._answers.slot(reference)
        if entry is None:
            self.stand_ins.append(reference)
            self.messages.append(_made(reply, f"stand-in/{number}", lambda: replace(stand_in(call), origin=reply.id)))
            return
        record = entry.record
        assert isinstance(record, ResultRecord)
        self.messages.append(
            _made(
                entry,
                f"result/{self._edits.key(entry.id)}",
                lambda: ToolResult(call.id, record.tool, self._said(entry), record.is_error, origin=entry.id),
            )
        )

    def _said(self, entry: Entry) -> tuple[Text | Image, ...]:
        """What is shown of a result."""
        assert isinstance(entry.record, ResultRecord)
        shown = self._edits.content(entry.id, entry.record.content)
        return tuple(part for part in shown if isinstance(part, (Text, Image)))

    def _edited(self, entry: Entry, reply: AssistantMessage) -> AssistantMessage:
        """A reply with other words; its calls stay, as their results do."""
        key = self._edits.key(entry.id)
        if not key:
            return reply

        def make() -> AssistantMessage:
            assert isinstance(entry.record, MessageRecord)
            shown = self._edits.content(entry.id, entry.record.content)
            kept = [part for part in shown if isinstance(part, (Text, Thinking))]
            return replace(reply, content=(*kept, *reply.calls))

        return _made(entry, f"reply/{key}", make)

    def _late_result(self, entry: Entry, record: ResultRecord) -> None:
        if not self._answers.is_shown_late(entry, record.call) or self._edits.hides(record.call[0]):
            return
        if self._range.leaves_out(entry.id):
            self._mark_gap()
            return
        self.late.append(record.call)
        result = ToolResult("", record.tool, self._said(entry), record.is_error, origin=entry.id)
        key = f"late/{self._edits.key(entry.id)}"
        self.messages.append(_made(entry, key, lambda: late_result(result, str(record.call[0]))))

    def _system(self, entry: Entry, record: SystemRecord) -> None:
        if not self._has_baseline:
            self.baseline = self.state = self.baseline.patched(record)
            self._has_baseline = True
        elif entry.id > self.head_id:
            self.state = self.state.patched(record)
            self.messages.append(_made(entry, "patch", lambda: SystemPatch(news(record), origin=entry.id)))

    def _summary(self, head: Entry, summary: str) -> None:
        self.messages.append(_made(head, "summary", lambda: UserMessage((Text(summary),), origin=head.id)))

    def _mark_gap(self) -> None:
        """Where the first of the steps that went out of view stood, one constant line says so."""
        if self.head is not None and self.head.summary is None and not self._marked:
            self.messages.append(UserMessage((Text(OMITTED_STEPS),), origin=self.head_id))
            self._marked = True


def _made(entry: Entry, key: str, make: Callable[[], _Made]) -> _Made:
    """The message that `make` gives, made once for this entry and `key`, so that what is counted stays with it."""
    if key not in entry.memo:
        entry.memo[key] = make()
    made: _Made = entry.memo[key]
    return made
