"""What a hook changed of the messages that a model sees, as entries for the log. Pure.

A replaced or removed message becomes an `edit` of its entry, an inserted one an `extension` entry, at the end or in
front of the message of an older entry. Laws: the projection of the branch with these records is what the hook gave
back, but for what is refused and for the constant text that stands where a message of the user's role was removed;
nothing that cannot be told from the log alone is recorded.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from governors.messages import AssistantMessage, Message, Messages, Text, Thinking, ToolResult, UserMessage
from governors.repair import legal_content

from ..session.entries import BranchSummaryRecord, EditRecord, Entry, ExtensionRecord, MessageRecord, ResultRecord
from ..session.view.edits import LEFT_OUT
from ..session.view.projection import project
from ..session.view.wrapping import INTERRUPTED, opening_of, wrapped

DifferenceRecord: TypeAlias = EditRecord | ExtensionRecord


_USERS = (MessageRecord, ExtensionRecord, BranchSummaryRecord)


@dataclass(slots=True)
class Differences:
    """`records` say what was changed; `refused` what cannot be recorded, in words. `first` is the index of the first of
    the given messages that changes or has something new in front of it; None where only the end grows."""

    records: list[DifferenceRecord] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    first: int | None = None


def differences(
    hook: str, given: Messages, wanted: Sequence[Message], branch: Sequence[Entry], redacted: Collection[int] = ()
) -> Differences:
    """What makes `wanted` of `given`, the projection of `branch`. Every message of `wanted` is sound in itself."""
    pairs = _matched(given, wanted)
    if pairs is None:
        return Differences(refused=["messages cannot be moved"])
    found = _Comparison(hook, given, branch).compare(pairs)
    if found.made.records and not _come_true(found, branch, redacted):
        text = "what it gave back cannot be told by entries of the log, so that nothing of it was taken"
        return Differences(refused=[*found.made.refused, text])
    return found.made


class _Comparison:
    def __init__(self, hook: str, given: Messages, branch: Sequence[Entry]) -> None:
        self.made = Differences()
        self.expected: list[Message] = []
        self._hook, self._given = hook, given
        self._entries = {entry.id: entry for entry in branch}
        self._gone: set[int] = set()

    def compare(self, pairs: Sequence[tuple[int | None, Message]]) -> _Comparison:
        kept = {index for index, _ in pairs if index is not None}
        self._gone = {index for index in range(len(self._given)) if index not in kept}
        done = 0
        pending: list[UserMessage] = []
        for index, message in pairs:
            if index is None:
                if isinstance(message, UserMessage):
                    pending.append(message)
                else:
                    self._refuse("only messages of the user's role can be added")
                continue
            for gone in range(done, index):
                self._remove(gone)
            self._insert(pending, index)
            self._keep(index, message)
            pending, done = [], index + 1
        for gone in range(done, len(self._given)):
            self._remove(gone)
        self._insert(pending, None)
        return self

    def _refuse(self, why: str) -> None:
        if why not in self.made.refused:
            self.made.refused.append(why)

    def _moves(self, index: int) -> None:
        first = self.made.first
        self.made.first = index if first is None else min(first, index)

    def _record(self, message: Message) -> object:
        entry = self._entries.get(message.origin) if isinstance(message.origin, int) else None
        return None if entry is None else entry.record

    def _edit(self, index: int, record: EditRecord) -> None:
        self.made.records.append(record)
        self._moves(index)

    def _insert(self, new: Sequence[UserMessage], index: int | None) -> None:
        """Put messages in front of the message of `index`, or at the end."""
        if not new:
            return
        before = None
        if index is not None:
            message = self._given[index]
            if not isinstance(message.origin, int) or not _is_anchor(message, self._record(message)):
                self._refuse("a message can be added at the end, or in front of a user's message or a reply")
                return
            before = message.origin
            self._moves(index)
        for each in new:
            record = ExtensionRecord(
                name=self._hook, data={"cause": f"hook:{self._hook}"}, content=each.content, before=before
            )
            self.made.records.append(record)
            self.expected.append(wrapped(opening_of(record.name, record.data), each.content, 0))

    def _remove(self, index: int) -> None:
        message = self._given[index]
        record, cause = self._record(message), f"hook:{self._hook}"
        if isinstance(message, ToolResult):
            reply = next(place for place in range(index, -1, -1) if not isinstance(self._given[place], ToolResult))
            if reply in self._gone and isinstance(self._record(self._given[reply]), MessageRecord):
                return  # it goes with its reply
        elif isinstance(message.origin, int) and isinstance(message, AssistantMessage):
            following = index + 1
            while following < len(self._given) and isinstance(self._given[following], ToolResult):
                following += 1
            if all(place in self._gone for place in range(index + 1, following)):
                self._edit(index, EditRecord(action="omit", target=message.origin, cause=cause))
                return
        elif isinstance(message, UserMessage) and isinstance(record, _USERS):
            assert isinstance(message.origin, int)
            self._edit(index, EditRecord(action="omit", target=message.origin, cause=cause))
            self.expected.append(self._with_content(message, record, (Text(LEFT_OUT),)))
            return
        self._refuse("a result cannot go without its reply, nor a message that the runtime itself made")
        self.expected.append(message)

    def _keep(self, index: int, message: Message) -> None:
        given = self._given[index]
        if _same(given, message):
            self.expected.append(given)
            return
        edits = self._changed(given, message)
        if not edits:
            self._refuse("of a message only the words can be changed, and not of one that the runtime itself made")
            self.expected.append(given)
            return
        for edit in edits:
            self._edit(index, edit)
        self.expected.append(message)

    def _changed(self, given: Message, message: Message) -> list[EditRecord]:
        """The edits after which the entry of `given` reads as `message`; none when there are no such."""
        record = self._record(given)
        if not isinstance(given.origin, int) or type(given) is not type(message) or record is None:
            return []
        whole = EditRecord(action="replace", target=given.origin, cause=f"hook:{self._hook}")
        match message:
            case ToolResult(content=content) if isinstance(record, ResultRecord):
                return [replace(whole, content=content)]
            case UserMessage(content=content) if isinstance(record, MessageRecord):
                if content and content[0] == Text(INTERRUPTED):
                    content = content[1:]
                if record.context and content and content[-1] == Text(record.context):
                    content = content[:-1]
                return [replace(whole, content=content)] if content else []
            case UserMessage(content=content) if isinstance(record, _USERS):
                assert isinstance(given, UserMessage)
                same = content[:1] == given.content[:1] and len(content) > 1
                return [replace(whole, content=content[1:])] if same else []
            case AssistantMessage() if isinstance(record, MessageRecord) and isinstance(given, AssistantMessage):
                return _reworded(given, message, record, whole)
            case _:
                return []

    def _with_content(self, message: UserMessage, record: object, content: tuple[Text, ...]) -> UserMessage:
        """What is shown of a message of the user's role whose content is `content` now."""
        if isinstance(record, MessageRecord):
            before = message.content[:1] if message.content[0] == Text(INTERRUPTED) else ()
            after = (Text(record.context),) if record.context else ()
            return replace(message, content=(*before, *content, *after))
        return replace(message, content=(*message.content[:1], *content))


def _reworded(
    given: AssistantMessage, message: AssistantMessage, record: MessageRecord, whole: EditRecord
) -> list[EditRecord]:
    """The edits of a reply's words; its calls stay, and its reasoning goes or stays as it is."""
    if message.calls != given.calls:
        return []
    thinking = [part for part in message.content if isinstance(part, Thinking)]
    if thinking != [part for part in given.content if isinstance(part, Thinking)]:
        if thinking:
            return []
        texts = tuple(part for part in message.content if isinstance(part, Text))
        return [replace(whole, content=texts)] if texts or message.calls else []
    before = [block for block, part in enumerate(record.content) if isinstance(part, Text)]
    texts = tuple(part for part in message.content if isinstance(part, Text))
    if len(texts) != len(before):
        return [replace(whole, content=texts)] if not thinking and texts else []
    shown = [part for part in given.content if isinstance(part, Text)]
    changed = zip(before, shown, texts, strict=False)
    return [replace(whole, block=block, content=(new,)) for block, old, new in changed if old != new]


def _matched(given: Messages, wanted: Sequence[Message]) -> list[tuple[int | None, Message]] | None:
    """Each of `wanted` with the index of the message that it is; None when they stand in another order."""
    places: dict[tuple[type, object, int], int] = {}
    counts: dict[tuple[type, object], int] = {}
    for place, message in enumerate(given):
        number = counts[type(message), message.origin] = counts.get((type(message), message.origin), -1) + 1
        places[type(message), message.origin, number] = place
    counts, last = {}, -1
    found: list[tuple[int | None, Message]] = []
    for message in wanted:
        number = counts[type(message), message.origin] = counts.get((type(message), message.origin), -1) + 1
        known = message.origin is not None
        index = places.get((type(message), message.origin, number)) if known else None
        if index is not None and index <= last:
            return None
        last = last if index is None else index
        found.append((index, message))
    return found


def _is_anchor(message: Message, record: object) -> bool:
    """Whether something may stand in front of the message: it is that of an entry where a step or a turn may begin."""
    return isinstance(record, MessageRecord) and isinstance(message, (UserMessage, AssistantMessage))


def _same(one: Message, other: Message) -> bool:
    return type(one) is type(other) and one == other


def _come_true(found: _Comparison, branch: Sequence[Entry], redacted: Collection[int]) -> bool:
    """Whether the log with the records shows what is expected."""
    entries = list(branch)
    for record in found.made.records:
        last = entries[-1]
        entries.append(Entry(last.id + 1, last.id, last.at, record))
    shown = project(entries, redacted).messages
    expected = [legal_content(message) for message in found.expected]
    return len(shown) == len(expected) and all(map(_reads_alike, shown, expected))


def _reads_alike(one: Message, other: Message) -> bool:
    return type(one) is type(other) and replace(one, origin=0) == replace(other, origin=0)
