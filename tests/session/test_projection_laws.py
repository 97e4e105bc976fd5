"""Projection over random logs (see `random_logs`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import takewhile

from hypothesis import given
from hypothesis import strategies as st

from governors.messages import AssistantMessage, Message, Messages, Text, ToolCall, ToolResult
from governors.repair import repair
from runtime.session.entries import (
    BranchSummaryRecord,
    EditRecord,
    Entry,
    ExtensionRecord,
    HeadRecord,
    MessageRecord,
    RedactRecord,
    RequestRecord,
    ResultRecord,
)
from runtime.session.format.reading import read_session
from runtime.session.tree import Tree
from runtime.session.view.projection import Projection, project

from .logs import Log
from .random_logs import ACTIONS, act, laws, logs
from .records import file_of


def redacted_before(log: Log, identity: int) -> dict[int, int]:
    """What was redacted before the entry `identity` was written, each with the entry that says so."""
    redactions = [entry for entry in log.tree.entries if isinstance(entry.record, RedactRecord)]
    found: dict[int, int] = {}
    for entry in redactions:
        assert isinstance(entry.record, RedactRecord)
        if entry.id < identity:
            found.setdefault(entry.record.target, entry.id)
    return found


def moments(log: Log) -> Iterable[tuple[int, Projection]]:
    """The projection of each beginning of the branch, as it was when the next entry of it was written."""
    branch = log.branch
    for end in range(len(branch) + 1):
        following = branch[end].id if end < len(branch) else log.tree.next_id
        yield end, project(branch[:end], redacted_before(log, following))


def head_of(branch: Sequence[Entry], projection: Projection) -> HeadRecord | None:
    entry = next((entry for entry in branch if entry.id == projection.head), None)
    return entry.record if entry is not None and isinstance(entry.record, HeadRecord) else None


def before_target(projection: Projection, branch: Sequence[Entry], target: int) -> Messages:
    """The messages that stand before anything that was made from the entry `target`."""
    head = head_of(branch, projection)
    edits = {entry.id: entry.record.target for entry in branch if isinstance(entry.record, EditRecord)}
    target = edits.get(target, target)  # what a redacted edit had put there
    if head is not None and (target in {pin.entry for pin in head.pins} or target == head.quoted):
        return ()
    calls = {entry.id: entry.record.call[0] for entry in branch if isinstance(entry.record, ResultRecord)}
    delivered = {e.record.inbox: e.id for e in branch if isinstance(e.record, MessageRecord) and e.record.inbox}

    # an inbox entry: the message that delivered it; a result: it may stand right after its reply
    made_from = calls.get(target, delivered.get(target, target))

    def stands_before(message: Message) -> bool:
        origin = message.origin
        assert isinstance(origin, int)
        return (calls.get(origin, origin) if isinstance(message, ToolResult) else origin) < made_from

    front = sum(1 for _ in takewhile(lambda message: message.origin == projection.head, projection.messages))
    leads = target != projection.head
    return projection.messages[: front if leads else 0] + tuple(
        takewhile(stands_before, projection.messages[front:] if leads else ())
    )


@laws
@given(logs())
def test_the_repairs_change_nothing(log: Log) -> None:
    """A projection is legal as it comes, at every moment of its branch."""
    for _, projection in moments(log):
        assert repair(projection.messages) is projection.messages


@laws
@given(logs())
def test_the_same_entries_show_the_same_messages(log: Log) -> None:
    """Read back from its file, a log shows what it showed while it was written."""
    tree = Tree(read_session(file_of(*((entry,) for entry in log.tree.entries))).entries)
    assert project(tree.branch(), tree.redacted) == log.projection == project(list(log.branch), log.tree.redacted)


@laws
@given(logs())
def test_a_reader_of_the_tail_sees_the_same(log: Log) -> None:
    """Nothing older than the newest head's `from` is needed."""
    projection = log.projection
    head = log.tree.get(projection.head or 0)
    start = head.record.start if head is not None and isinstance(head.record, HeadRecord) else 0
    redacted = {e.record.target for e in log.tree.entries if isinstance(e.record, RedactRecord) and e.id >= start}
    assert project([entry for entry in log.branch if entry.id >= start], redacted) == projection


@laws
@given(logs())
def test_every_call_has_one_result_and_every_result_one_place(log: Log) -> None:
    """Straight after the reply, in call order; no result entry is shown twice."""
    projection = log.projection
    messages = projection.messages
    for index, message in enumerate(messages):
        if isinstance(message, AssistantMessage):
            following = messages[index + 1 : index + 1 + len(message.calls)]
            assert all(isinstance(each, ToolResult) for each in following)
            assert [each.call_id for each in following if isinstance(each, ToolResult)] == [
                each.id for each in message.calls
            ]
    results = sum(isinstance(message, ToolResult) for message in messages)
    assert results == sum(len(message.calls) for message in messages if isinstance(message, AssistantMessage))
    stand_ins = [message for message in messages if isinstance(message, ToolResult) and message.stand_in]
    assert len(stand_ins) == len(projection.stand_ins)
    shown = Counter(
        message.origin
        for message in messages
        if message.origin in {entry.id for entry in log.branch if isinstance(entry.record, ResultRecord)}
    )
    assert all(count == 1 for count in shown.values())


def without_slot(messages: Messages, projection: Projection, result: ResultRecord) -> list[object]:
    """`messages` but for what stands in the slot of `result`'s call."""
    kept: list[object] = []
    number, reply = 0, 0
    for message in messages:
        if isinstance(message, AssistantMessage):
            reply, number = int(message.origin or 0), 0
        if isinstance(message, ToolResult):
            number += 1
            if reply == result.call[0]:
                kept.append((message.call_id, number))
                continue
        kept.append(message)
    return kept


@laws
@given(logs())
def test_adding_an_entry_never_changes_what_was_shown(log: Log) -> None:
    """Except a head; a result that no request has missed, in the place of its stand-in alone; and an edit or a
    redaction, from its target on."""
    before, known = project([]), dict[int, int]()
    for end, after in moments(log):
        if not end:
            continue
        entry, following = log.branch[end - 1], log.branch[end].id if end < len(log.branch) else log.tree.next_id
        added = project(log.branch[:end], known)
        if isinstance(entry.record, EditRecord):
            stood = before_target(before, log.branch, entry.record.target)
            assert added.messages[: len(stood)] == stood
        elif isinstance(entry.record, ResultRecord) and len(added.stand_ins) < len(before.stand_ins):
            was = without_slot(before.messages, before, entry.record)
            assert without_slot(added.messages, added, entry.record) == was
            changed = [a for a, b in zip(added.messages, before.messages, strict=True) if a != b]
            assert [message.origin for message in changed] == [entry.id]
        elif not isinstance(entry.record, HeadRecord):
            assert added.messages[: len(before.messages)] == before.messages
        redacted = redacted_before(log, following)
        for target in redacted.keys() - known.keys():
            stood = before_target(added, log.branch, target)
            known = {**known, target: 0}
            added = project(log.branch[:end], known)
            assert added.messages[: len(stood)] == stood
        assert added == after
        before, known = after, redacted


@laws
@given(logs())
def test_each_request_extends_the_one_before(log: Log) -> None:
    """Between two heads, message for message; an edit or a redaction explains what comes from its target on."""
    sent, at, targets = project([]), 0, [0]
    for end, projection in moments(log):
        entry = log.branch[end] if end < len(log.branch) else None
        if entry is None:
            break
        redacted = redacted_before(log, entry.id)
        if isinstance(entry.record, RequestRecord):
            targets += [target for target, by in redacted.items() if by > at]
            stood = min((before_target(sent, log.branch, target) for target in targets), key=len, default=sent.messages)
            assert projection.messages[: len(stood)] == stood
            sent, at, targets = projection, entry.id, []
        elif isinstance(entry.record, HeadRecord):
            sent, targets = project([]), []
            at = entry.id
        elif isinstance(entry.record, EditRecord):
            targets.append(entry.record.target)


@laws
@given(logs())
def test_what_the_users_side_said_stays_in_view(log: Log) -> None:
    """Every message of the user's role since the head's `from`, whatever steps went: once each, at its place."""
    projection = log.projection
    head = head_of(log.branch, projection)
    said = [
        entry.id
        for entry in log.branch
        if entry.id >= (head.start if head is not None else 0)
        and (
            (isinstance(entry.record, MessageRecord) and entry.record.role == "user")
            or isinstance(entry.record, BranchSummaryRecord)
            or (isinstance(entry.record, ExtensionRecord) and entry.record.content)
        )
    ]
    shown = [message.origin for message in projection.messages if message.origin in said]
    assert shown == said


@laws
@given(logs(), st.data())
def test_nothing_of_a_redacted_entry_is_shown(log: Log, data: st.DataObject) -> None:
    """Not by itself, nor in a pin, a quote or a stub that was made from it; no edit brings it back."""
    secret = "the secret"
    target = log.user(secret) if data.draw(st.booleans()) else log.result(log.calls("x"), text=secret)
    log.pin(target)
    if data.draw(st.booleans()):
        log.edit(target, "replace", f"[x result: {secret}]")
    for action in data.draw(st.lists(st.sampled_from(ACTIONS), max_size=8)):
        act(data.draw, log, action)
    log.redact(target)
    log.edit(target, "restore")
    assert secret not in str(log.projection.messages)
    log.head(log.user("on"))
    assert secret not in str(log.projection.messages)


@laws
@given(logs())
def test_real_results_of_calls_in_view_are_never_lost(log: Log) -> None:
    """The first result of every call that is sent stands in its slot or, late, at its own place."""
    projection = log.projection
    replies = {message.origin for message in projection.messages if isinstance(message, AssistantMessage)}
    origins = {message.origin for message in projection.messages}
    first: dict[tuple[int, int], int] = {}
    for entry in log.branch:
        if isinstance(entry.record, ResultRecord):
            first.setdefault(entry.record.call, entry.id)
    head = log.tree.get(projection.head or 0)
    gap = range(0)
    if head is not None and isinstance(head.record, HeadRecord) and head.record.resume is not None:
        gap = range(head.record.start + 1, head.record.resume)
    lost = [
        call
        for call, result in first.items()
        if call[0] in replies and result not in gap and result not in origins and not _double(log, call)
    ]
    assert not lost


def _double(log: Log, reference: tuple[int, int]) -> bool:
    """Whether the call repeats an earlier one of its reply, or does not exist: then it is not sent."""
    entry = log.tree.get(reference[0])
    assert entry is not None and isinstance(entry.record, MessageRecord)
    calls = [part for part in entry.record.content if isinstance(part, ToolCall)]
    return reference[1] >= len(calls) or (
        bool(calls[reference[1]].id.strip()) and calls[reference[1]] in calls[: reference[1]]
    )


def test_texts_that_are_empty_or_broken_are_made_legal() -> None:
    """The placeholder is constant, a lone surrogate becomes the replacement character."""
    log = Log()
    log.user("")
    log.user("a\ud83d")
    log.reply(Text("").text, stop="stop")
    assert log.shown == ["user: (empty message)", "user: a�", "reply: (no text)"]
