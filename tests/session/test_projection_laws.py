"""Projection over random logs: forks, late, double and missing results, heads, patches, replies that broke off."""

from __future__ import annotations

from collections import Counter

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from governors.messages import AssistantMessage, Messages, Text, Thinking, ToolCall, ToolResult, UserMessage
from governors.repair import repair
from runtime.session.entries import (
    HeadRecord,
    LeafRecord,
    MessageRecord,
    NoteRecord,
    RequestRecord,
    ResultRecord,
    SettingRecord,
)
from runtime.session.projection import Projection, project
from runtime.session.reading import read_session
from runtime.session.tree import Tree

from .logs import Log
from .records import file_of

ACTIONS = [
    *("user", "calls", "calls", "result", "result", "result", "request", "request", "head", "head"),
    *("reply", "broken", "length", "system", "leaf", "other"),
]


def calls_of(log: Log) -> list[tuple[int, int]]:
    """Every call of every reply in the log, on whatever branch."""
    return [
        (entry.id, number)
        for entry in log.tree.entries
        if isinstance(entry.record, MessageRecord) and entry.record.role == "assistant"
        for number in range(sum(isinstance(part, ToolCall) for part in entry.record.content))
    ]


@st.composite
def tool_calls(draw: st.DrawFn) -> tuple[ToolCall, ...]:
    """Calls as bad relays send them: ids that repeat, are empty or illegal, doubles, calls that were cut off."""
    one = st.builds(
        ToolCall,
        st.sampled_from(["call_0", "call_1", "", "fc:1 ", "call_0-2-0"]),
        st.sampled_from(["x", "y", " "]),
        st.sampled_from(["{}", "", '{"a":', "[1]"]),
        st.sampled_from([True, True, True, False]),
    )
    return tuple(draw(st.lists(one, min_size=1, max_size=3)))


def begin_anew(draw: st.DrawFn, log: Log) -> None:
    """A head as the runtime may make it: at a user-role message in view, never before the previous one's."""
    projection = log.projection
    starts = [message.origin for message in projection.messages if isinstance(message, UserMessage)]
    starts = [start for start in starts if isinstance(start, int) and start != projection.head]
    if not starts:
        return
    start = draw(st.sampled_from(starts))
    assert isinstance(start, int)
    replies = [message.origin for message in projection.messages if isinstance(message, AssistantMessage)]
    steps = [origin for origin in replies if isinstance(origin, int) and origin > start]
    resume = draw(st.sampled_from([None, 0, *steps]))
    before = log.tree.get(projection.head or 0)
    if resume is None and before is not None and isinstance(before.record, HeadRecord):
        held = before.record.resume
        resume = held if held is not None and start < held else None
    log.head(
        start, resume, draw(st.sampled_from([None, "So far."])), placement=draw(st.sampled_from(["first", "last"]))
    )


def act(draw: st.DrawFn, log: Log, action: str) -> None:
    match action:
        case "user":
            log.user(draw(st.sampled_from(["hi", "", "\ud83d"])), context=draw(st.sampled_from([None, "noon"])))
        case "reply":
            log.reply("so", Thinking("hm"))
        case "calls":
            log.reply(*draw(st.sampled_from([(), ("so",)])), *draw(tool_calls()))
        case "broken":
            stop = draw(st.sampled_from(["aborted", "error", "refused", "deferred"]))
            log.reply("half", *draw(tool_calls()), stop=stop)
        case "length":
            log.reply(draw(st.sampled_from(["half", ""])), Thinking("hm"), *draw(tool_calls()), stop="length")
        case "result":
            known = calls_of(log)
            log.result(
                *draw(st.sampled_from([*known[-6:], *known[-3:], (99, 0), (1, 5)])), draw(st.sampled_from(["done", ""]))
            )
        case "request":
            log.request()
        case "system":
            log.system(draw(st.sampled_from([{"a": "x"}, {"b": "y"}, {"a": None}])))
        case "leaf":
            log.add(LeafRecord(leaf=draw(st.sampled_from([None, *(entry.id for entry in log.tree.entries)]))))
        case "head":
            begin_anew(draw, log)
        case _:
            log.add(draw(st.sampled_from([NoteRecord(text="n"), SettingRecord(name="model", value="m")])))


@st.composite
def logs(draw: st.DrawFn) -> Log:
    log = Log()
    log.user("go")
    for action in draw(st.lists(st.sampled_from(ACTIONS), min_size=4, max_size=30)):
        act(draw, log, action)
    return log


laws = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@laws
@given(logs())
def test_the_repairs_change_nothing(log: Log) -> None:
    """A projection is legal as it comes, at every moment of its branch."""
    for end in range(len(log.branch) + 1):
        messages = project(log.branch[:end]).messages
        assert repair(messages) is messages


@laws
@given(logs())
def test_the_same_entries_show_the_same_messages(log: Log) -> None:
    """Read back from its file, a log shows what it showed while it was written."""
    tree = Tree(read_session(file_of(*((entry,) for entry in log.tree.entries))).entries)
    assert project(tree.branch()) == log.projection == project(list(log.branch))


@laws
@given(logs())
def test_a_reader_of_the_tail_sees_the_same(log: Log) -> None:
    """Nothing older than the newest head's `from` is needed."""
    projection = log.projection
    head = log.tree.get(projection.head or 0)
    start = head.record.start if head is not None and isinstance(head.record, HeadRecord) else 0
    assert project([entry for entry in log.branch if entry.id >= start]) == projection


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
    """Except a head, and a result that no request has missed, which takes the place of its stand-in alone."""
    before = project([])
    for end, entry in enumerate(log.branch, 1):
        after = project(log.branch[:end])
        if isinstance(entry.record, ResultRecord) and len(after.stand_ins) < len(before.stand_ins):
            was = without_slot(before.messages, before, entry.record)
            assert without_slot(after.messages, after, entry.record) == was
            changed = [a for a, b in zip(after.messages, before.messages, strict=True) if a != b]
            assert [message.origin for message in changed] == [entry.id]
        elif not isinstance(entry.record, HeadRecord):
            assert after.messages[: len(before.messages)] == before.messages
        before = after


@laws
@given(logs())
def test_each_request_extends_the_one_before(log: Log) -> None:
    """Between two heads, message for message."""
    sent: Messages = ()
    for end, entry in enumerate(log.branch):
        if isinstance(entry.record, RequestRecord):
            messages = project(log.branch[:end]).messages
            assert messages[: len(sent)] == sent
            sent = messages
        elif isinstance(entry.record, HeadRecord):
            sent = ()


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
