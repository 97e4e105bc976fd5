"""Which result of a branch answers which call, and which came too late for that.

Pairing goes by the call that each result names, over the whole branch. Laws:
- One result a call, the first. A result without a call is left out.
- A result is late once a request carried the stand-in of its call, or a head took the call out of view, before it
  came. A late result is shown at its own place, never in the slot. So is the result of a call that was cut off and is
  never sent, as long as its reply is in view.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from governors.messages import UNFINISHED, AssistantMessage, Text, Thinking, ToolCall
from governors.repair import collapse_calls, drop_unfinished

from ..entries import CallReference, Entry, HeadRecord, MessageRecord, RequestRecord, ResultRecord
from .ranges import Range, range_of


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's reply as it was (`calls`), and as it is sent: `message`, None when nothing of it is; `sent` are the
    indices of the calls that stay in it."""

    calls: tuple[ToolCall, ...]
    message: AssistantMessage | None
    sent: tuple[int, ...]


def reply_of(entry: Entry) -> Reply:
    """The reply in `entry`, made once."""
    made = entry.memo.get("reply")
    if not isinstance(made, Reply):
        made = entry.memo["reply"] = _reply(entry)
    return made


class Answers:
    """The calls and results of one branch."""

    def __init__(self, branch: Iterable[Entry] = ()) -> None:
        self.head: Entry | None = None  # the newest
        self._replies: dict[int, Entry] = {}
        self._results: dict[CallReference, Entry] = {}
        self._missed: dict[CallReference, int] = {}  # call -> the first request that carried its stand-in
        self._heads: list[tuple[int, Range]] = []
        self._open: frozenset[CallReference] = frozenset()  # by the newest head, for replies that were not read
        for entry in branch:
            self.take(entry)

    def slot(self, reference: CallReference) -> Entry | None:
        """The result that stands after the call; None where a stand-in has to."""
        entry = self._results.get(reference)
        return None if entry is None or self._is_late(reference, entry.id) else entry

    def is_shown_late(self, entry: Entry, reference: CallReference) -> bool:
        """Whether the result `entry` of the call `reference` is shown at its own place."""
        first = self._results.get(reference)
        if first is None or first.id != entry.id:
            return False
        reply = self._replies.get(reference[0])
        if reply is None:
            return reference in self._open
        made, number = reply_of(reply), reference[1]
        if number in made.sent:
            return self._is_late(reference, entry.id)
        was_cut_off = number < len(made.calls) and not made.calls[number].complete and not _is_unfinished(reply)
        return was_cut_off and not self._left_view(reference, entry.id)

    def result_of(self, reference: CallReference) -> Entry | None:
        return self._results.get(reference)

    def results(self, wanted: Collection[int]) -> list[ResultRecord]:
        """The results that are among the entries `wanted`."""
        found = (entry.record for entry in self._results.values() if entry.id in wanted)
        return [record for record in found if isinstance(record, ResultRecord)]

    def take(self, entry: Entry) -> None:
        match entry.record:
            case MessageRecord(role="assistant"):
                self._replies[entry.id] = entry
            case ResultRecord(call=call) if call[0] < entry.id:  # no call comes after its result
                self._results.setdefault(call, entry)
            case RequestRecord(stand_ins=stand_ins):
                for call in stand_ins:
                    self._missed.setdefault(call, entry.id)
            case HeadRecord() as record:
                self.head = entry
                self._heads.append((entry.id, range_of(record)))
                self._open = frozenset(record.open_calls)
            case _:
                pass

    def _is_late(self, reference: CallReference, result: int) -> bool:
        missed = self._missed.get(reference)
        return (missed is not None and missed < result) or self._left_view(reference, result)

    def _left_view(self, reference: CallReference, result: int) -> bool:
        """Whether a head took the call out of view before its result came."""
        return any(head < result and not shown.shows(reference[0]) for head, shown in self._heads)


def _is_unfinished(entry: Entry) -> bool:
    return isinstance(entry.record, MessageRecord) and entry.record.stop in UNFINISHED


def _reply(entry: Entry) -> Reply:
    record = entry.record
    assert isinstance(record, MessageRecord)
    parts = tuple(part for part in record.content if isinstance(part, (Text, Thinking, ToolCall)))
    named = tuple(_with_id(entry.id, parts))
    whole = AssistantMessage(named, record.stop or "stop", record.model, record.wire, record.usage, origin=entry.id)
    kept = drop_unfinished(collapse_calls((whole,)))
    if not kept:
        return Reply(whole.calls, None, ())
    (message,) = kept
    assert isinstance(message, AssistantMessage)
    standing = {id(call) for call in message.calls}
    return Reply(whole.calls, message, tuple(n for n, call in enumerate(whole.calls) if id(call) in standing))


def _with_id(entry: int, parts: Sequence[Text | Thinking | ToolCall]) -> list[Text | Thinking | ToolCall]:
    """`parts` with an id for each call that came without one: a result finds its call by it."""
    named: list[Text | Thinking | ToolCall] = []
    number = 0
    for part in parts:
        if isinstance(part, ToolCall):
            named.append(part if part.id.strip() else replace(part, id=f"call_{entry}_{number}"))
            number += 1
        else:
            named.append(part)
    return named
