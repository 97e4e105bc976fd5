"""From a branch of the log to what a model sees. Pure: same entries, same messages.

In this order: pair results with calls (by the call that each result names), cut to the range of the newest head,
render. Laws:
- Results stand straight after their reply, in call order; one result a call; a result without a call is left out.
- A call without a result gets the stand-in. Once a request carried it, or a head cut the call, a later real result
  is shown at its own place, never in the slot.
- Replies that did not finish are left out with their calls; a constant tag on the next user message says so where
  people saw some of their text.
- Nothing that depends on later entries changes an earlier message, save a result that no request has missed yet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from governors.messages import (
    UNFINISHED,
    AssistantMessage,
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

from .entries import (
    CallReference,
    Entry,
    HeadRecord,
    MessageRecord,
    RequestRecord,
    ResultRecord,
    SettingRecord,
    SystemRecord,
)
from .sections import SystemState, patch_text

INTERRUPTED = "[The reply before this message was interrupted; the user saw only a part of it.]"


@dataclass(frozen=True, slots=True)
class Projection:
    """What a branch shows a model. `system` and `tools` are the leading baseline, `state` what holds after all
    patches; `stand_ins` the calls in view that have no result; `head` the newest head's entry id."""

    messages: Messages
    baseline: SystemState
    state: SystemState
    settings: Mapping[str, Any]
    stand_ins: tuple[CallReference, ...]
    head: int | None
    generation: int

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        return self.state.offered


@dataclass(slots=True)
class _Branch:
    """A branch with what pairing needs, gathered in one pass."""

    entries: Sequence[Entry]
    head: Entry | None = None
    results: dict[CallReference, Entry] = field(default_factory=dict)
    missed: dict[CallReference, int] = field(default_factory=dict)  # call -> entry of the request that lacked it
    replies: dict[int, MessageRecord] = field(default_factory=dict)


def project(branch: Sequence[Entry]) -> Projection:
    """The projection of `branch` (root to leaf)."""
    gathered = _gather(branch)
    view = _View(gathered)
    for entry in gathered.entries[view.first :]:
        view.show(entry)
    messages = normalise(tuple(view.finish()))
    head = gathered.head
    generation = head.record.generation if head is not None and isinstance(head.record, HeadRecord) else 0
    return Projection(
        messages=messages,
        baseline=view.baseline,
        state=view.state,
        settings=_settings(branch, head),
        stand_ins=tuple(view.stand_ins),
        head=head.id if head is not None else None,
        generation=generation,
    )


def system_state(branch: Sequence[Entry]) -> SystemState | None:
    """The system prompt and tools that hold at the end of `branch`; None before the first `system` entry."""
    state: SystemState | None = None
    for entry in branch:
        if isinstance(entry.record, SystemRecord):
            state = (state or SystemState()).patched(entry.record)
        elif isinstance(entry.record, HeadRecord):
            state = SystemState(dict(entry.record.baseline.sections), entry.record.baseline.tools)
    return state


def _gather(branch: Sequence[Entry]) -> _Branch:
    gathered = _Branch(branch)
    for entry in branch:
        match entry.record:
            case MessageRecord(role="assistant"):
                gathered.replies[entry.id] = entry.record
            case ResultRecord(call=call):
                gathered.results.setdefault(call, entry)
            case RequestRecord(stand_ins=stand_ins):
                for call in stand_ins:
                    gathered.missed.setdefault(call, entry.id)
            case HeadRecord():
                gathered.head = entry
            case _:
                pass
    return gathered


def _settings(branch: Sequence[Entry], head: Entry | None) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    for entry in branch:
        if isinstance(entry.record, HeadRecord) and head is not None and entry.id == head.id:
            settings = dict(entry.record.settings)
        elif isinstance(entry.record, SettingRecord):
            settings[entry.record.name] = entry.record.value
    return {name: value for name, value in settings.items() if value is not None}


class _View:
    """Renders the entries of the range in order."""

    def __init__(self, branch: _Branch) -> None:
        self._branch = branch
        self._out: list[Message] = []
        self._interrupted = False
        self._marked = False
        self.stand_ins: list[CallReference] = []
        self.first = 0
        self.baseline = SystemState()
        self._head_id = 0
        self._gap: tuple[int, int] | None = None  # ids strictly between these are out of view, users aside
        self._head: HeadRecord | None = None
        head = branch.head
        if head is not None and isinstance(head.record, HeadRecord):
            self._begin_at(head, head.record)
        self.state = self.baseline
        self._has_baseline = head is not None

    def _begin_at(self, head: Entry, record: HeadRecord) -> None:
        self._head, self._head_id = record, head.id
        self.baseline = SystemState(dict(record.baseline.sections), record.baseline.tools)
        places = {entry.id: place for place, entry in enumerate(self._branch.entries)}
        self.first = places.get(record.start, 0)
        if record.resume is not None:
            self._gap = (record.start, record.resume)
        if record.summary is not None and record.placement == "first":
            self._out.append(UserMessage((Text(record.summary),), origin=head.id))

    def show(self, entry: Entry) -> None:
        match entry.record:
            case MessageRecord(role="user"):
                self._user(entry.id, entry.record)
            case MessageRecord():
                self._reply(entry.id, entry.record)
            case ResultRecord():
                self._late(entry.id, entry.record)
            case SystemRecord():
                self._system(entry.id, entry.record)
            case HeadRecord() if entry.id == self._head_id:
                self._at_head(entry.id, entry.record)
            case _:
                pass

    def finish(self) -> list[Message]:
        return self._out

    def _out_of_view(self, identity: int) -> bool:
        return self._gap is not None and self._gap[0] < identity < self._gap[1]

    def _user(self, identity: int, record: MessageRecord) -> None:
        content = tuple(part for part in record.content if not isinstance(part, (Thinking, ToolCall)))
        if self._interrupted:
            content = (Text(INTERRUPTED), *content)
            self._interrupted = False
        if record.context:
            content = (*content, Text(record.context))
        self._out.append(UserMessage(content, origin=identity))

    def _reply(self, identity: int, record: MessageRecord) -> None:
        if self._out_of_view(identity):
            self._mark_gap(identity)
            return
        content = tuple(part for part in record.content if not isinstance(part, ToolCall) or part.complete)
        shown = any(isinstance(part, Text) and part.text.strip() for part in content)
        if record.stop in UNFINISHED:
            self._interrupted = self._interrupted or shown
            return
        calls = [part for part in record.content if isinstance(part, ToolCall)]
        sent = [number for number, call in enumerate(calls) if call.complete]
        if record.stop == "length" and not shown and not sent:
            return
        stop = record.stop or "stop"
        parts = tuple(part for part in content if isinstance(part, (Text, Thinking, ToolCall)))
        self._out.append(AssistantMessage(parts, stop, record.model, record.wire, record.usage, origin=identity))
        self._out.extend(self._answer((identity, number), calls[number]) for number in sent)

    def _answer(self, reference: CallReference, call: ToolCall) -> ToolResult:
        entry = self._branch.results.get(reference)
        if entry is None or self._came_late(reference, entry.id):
            self.stand_ins.append(reference)
            return replace(stand_in(call), origin=reference[0])
        assert isinstance(entry.record, ResultRecord)
        record = entry.record
        return ToolResult(call.id, record.tool, record.content, record.is_error, origin=entry.id)

    def _came_late(self, reference: CallReference, result: int) -> bool:
        missed = self._branch.missed.get(reference)
        return missed is not None and missed < result

    def _late(self, identity: int, record: ResultRecord) -> None:
        reference = record.call
        if self._branch.results[reference].id != identity or self._out_of_view(identity):
            return
        reply = self._branch.replies.get(reference[0])
        cut = self._was_cut(reference, identity)
        if reply is None and not cut:
            return
        unsent = reply is not None and reply.stop not in UNFINISHED and not _is_complete(reply, reference[1])
        if cut or unsent or self._came_late(reference, identity):
            result = ToolResult("", record.tool, record.content, record.is_error, origin=identity)
            self._out.append(late_result(result, str(reference[0])))

    def _was_cut(self, reference: CallReference, result: int) -> bool:
        """Whether the head took the call out of view before its result came."""
        if self._head is None or result < self._head_id:
            return False
        before = reference[0] < self._head.start or self._out_of_view(reference[0])
        reply = self._branch.replies.get(reference[0])
        return before and (reference in self._head.open_calls or (reply is not None and reply.stop not in UNFINISHED))

    def _system(self, identity: int, record: SystemRecord) -> None:
        if not self._has_baseline:
            self.baseline = self.state = self.baseline.patched(record)
            self._has_baseline = True
        elif self._head is None or identity > self._head_id:
            self.state = self.state.patched(record)
            self._out.append(SystemPatch(patch_text(record), origin=identity))

    def _mark_gap(self, identity: int) -> None:
        """Where the first of the steps that went out of view stood, one constant line says so."""
        if self._head is not None and self._head.summary is None and not self._marked:
            self._out.append(UserMessage((Text(OMITTED_STEPS),), origin=self._head_id))
            self._marked = True

    def _at_head(self, identity: int, record: HeadRecord) -> None:
        if record.summary is not None and record.placement == "last":
            self._out.append(UserMessage((Text(record.summary),), origin=identity))


def _is_complete(reply: MessageRecord, number: int) -> bool:
    calls = [part for part in reply.content if isinstance(part, ToolCall)]
    return number < len(calls) and calls[number].complete
