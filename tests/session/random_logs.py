"""Random logs: a tree with forks, late, double and missing results, replies that broke off, heads of all kinds, edits,
redactions, pins, summaries of other branches, input that waits."""

from __future__ import annotations

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from governors.messages import AssistantMessage, Image, Text, Thinking, ToolCall, Usage, UserMessage
from runtime.session.entries import (
    BranchSummaryRecord,
    EditRecord,
    ExtensionRecord,
    HeadRecord,
    InboxRecord,
    MessageRecord,
    NoteRecord,
    OutcomeRecord,
    SettingRecord,
)

from .logs import Log

ACTIONS = [
    *("user", "calls", "calls", "result", "result", "result", "request", "request", "head", "head"),
    *("reply", "broken", "length", "system", "leaf", "other", "edit", "edit", "redact", "pin", "pin", "aside", "inbox"),
]

laws = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])


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
    said = [origin for origin in replies if isinstance(origin, int) and origin < start]
    quoted = draw(st.sampled_from([None, *said[-1:]]))
    log.head(
        start,
        resume,
        draw(st.sampled_from([None, "So far."])),
        placement=draw(st.sampled_from(["first", "last"])),
        carry=draw(st.booleans()),
        quote=None if quoted is None else "Shall I?",
        quoted=quoted,
    )


def edit(draw: st.DrawFn, log: Log) -> None:
    """An edit of anything earlier on the branch, of the whole or of a block, also of one that is not there."""
    if not log.branch:
        return
    log.add(
        EditRecord(
            action=draw(st.sampled_from(["omit", "replace", "restore"])),
            target=draw(st.sampled_from([entry.id for entry in log.branch])),
            block=draw(st.sampled_from([None, None, 0, 1, 7])),
            cause=draw(st.sampled_from(["user", "microcompact"])),
            content=draw(st.sampled_from([(), (Text("other"),), (Text(""), Image("image/png", "aGk="))])),
        )
    )


def tell_aside(draw: st.DrawFn, log: Log) -> None:
    """A summary of another branch, or something of an extension."""
    tips = [entry.id for entry in log.tree.entries]
    summary = BranchSummaryRecord(text="Tried it.", tip=draw(st.sampled_from(tips)), fork=draw(st.sampled_from(tips)))
    told = ExtensionRecord(name="x", content=(Text("news"),))
    log.add(draw(st.sampled_from([summary, told, ExtensionRecord(name="x", data={"a": 1})])))


def wait_or_come(draw: st.DrawFn, log: Log) -> None:
    """Input that waits, is held, dropped, or delivered."""
    items = [e.id for e in log.tree.entries if isinstance(e.record, InboxRecord) and e.record.item is None]
    delivered = {e.record.inbox for e in log.tree.entries if isinstance(e.record, MessageRecord)}
    items = [item for item in items if item not in delivered]
    action = draw(st.sampled_from(["queued", "held", "dropped", "deliver"])) if items else "new"
    match action:
        case "deliver":
            log.user("came", inbox=draw(st.sampled_from(items)), steered=draw(st.booleans()))
        case "queued" | "held" | "dropped":
            log.add(InboxRecord(state=action, item=draw(st.sampled_from(items))))
        case _:
            log.add(InboxRecord(state="queued", content=(Text("came"),)))


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
            log.leaf(draw(st.sampled_from([None, *(entry.id for entry in log.tree.entries)])))
        case "edit":
            edit(draw, log)
        case "redact":
            log.redact(draw(st.sampled_from([entry.id for entry in log.tree.entries])))
        case "pin":
            log.pin(
                draw(st.sampled_from([entry.id for entry in log.tree.entries])),
                draw(st.sampled_from([True, True, False])),
            )
        case "aside":
            tell_aside(draw, log)
        case "inbox":
            wait_or_come(draw, log)
        case "head":
            begin_anew(draw, log)
        case _:
            setting = SettingRecord(name="model", value=draw(st.sampled_from(["m", "n", None])))
            paid = OutcomeRecord(request=1, stop="stop", usage=Usage(output=1), cost=draw(st.sampled_from([0.5, None])))
            log.add(draw(st.sampled_from([NoteRecord(text="n"), setting, paid])))


@st.composite
def logs(draw: st.DrawFn) -> Log:
    log = Log()
    log.user("go")
    for action in draw(st.lists(st.sampled_from(ACTIONS), min_size=4, max_size=30)):
        act(draw, log, action)
    return log
