"""Projection: rule by rule, each test named after the rule of the design that it holds."""

from __future__ import annotations

import pytest

from governors.messages import (
    AssistantMessage,
    Image,
    StopReason,
    SystemPatch,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    ToolSpec,
    UserMessage,
)
from governors.repair import repair, stand_in
from runtime.session.entries import (
    BranchSummaryRecord,
    Entry,
    ExtensionRecord,
    InboxRecord,
    LeafRecord,
    MessageRecord,
    NoteRecord,
    OutcomeRecord,
    SettingRecord,
    UnknownRecord,
)
from runtime.session.view.projection import INTERRUPTED, project, system_state
from runtime.session.view.rendering import OTHER_BRANCH
from runtime.session.view.wrapping import SUMMARY

from .logs import Log, call
from .records import AT


@pytest.fixture
def log() -> Log:
    return Log()


def tool(name: str, description: str = "") -> ToolSpec:
    return ToolSpec(name, description, {"type": "object"})


def test_an_empty_branch_shows_nothing() -> None:
    """Nothing was said yet."""
    projection = project([])
    assert (projection.messages, projection.head, projection.generation) == ((), None, 0)


def test_rule_1_results_stand_after_their_reply_in_call_order(log: Log) -> None:
    """However they came, and whatever came between."""
    log.user("go")
    reply = log.calls("a", "b", "c")
    log.intent(reply)
    log.result(reply, 2, "third")
    log.user("wait")
    log.result(reply, 0, "first")
    log.result(reply, 1, "second")
    assert log.shown == [
        "user: go",
        "reply: [a] [b] [c]",
        "result: first",
        "result: second",
        "result: third",
        "user: wait",
    ]


def test_rule_1_pairing_goes_by_the_named_call_not_by_its_id(log: Log) -> None:
    """Every reply calls call_0; each result finds its own, and no id is sent twice."""
    log.user("go")
    first, second = log.calls("a"), log.calls("b")
    log.result(second, 0, "of b")
    log.result(first, 0, "of a")
    assert log.shown == ["user: go", "reply: [a]", "result: of a", "reply: [b]", "result: of b"]
    sent = [
        each.id
        for message in log.projection.messages
        if isinstance(message, AssistantMessage)
        for each in message.calls
    ]
    assert len(set(sent)) == 2


def test_rule_1_one_result_a_call_the_first(log: Log) -> None:
    """A second one is left out."""
    log.user("go")
    reply = log.calls("a")
    log.result(reply, 0, "first")
    log.result(reply, 0, "second")
    assert log.shown == ["user: go", "reply: [a]", "result: first"]


@pytest.mark.parametrize("reference", [(99, 0), (1, 0), (2, 1), (2, 7)])
def test_rule_1_a_result_without_a_call_is_left_out(log: Log, reference: tuple[int, int]) -> None:
    """Neither an unknown reply, nor a user's message, nor a call that the reply did not make."""
    log.user("go")
    reply = log.calls("a")
    log.result(reply, 0, "real")
    log.result(*reference, "surplus")
    assert log.shown == ["user: go", "reply: [a]", "result: real"]


def test_rule_1_identical_calls_of_a_reply_collapse(log: Log) -> None:
    """As the repairs have it: one call, one result."""
    log.user("go")
    reply = log.reply(call("a"), call("a"), call("b"))
    for number, text in enumerate(["first", "again", "other"]):
        log.result(reply, number, text)
    assert log.shown == ["user: go", "reply: [a] [b]", "result: first", "result: other"]


def test_rule_1_calls_without_an_id_keep_their_results(log: Log) -> None:
    """Some servers send none; the log knows which result is whose."""
    log.user("go")
    reply = log.reply(ToolCall("", "a"), ToolCall(" ", "b"), ToolCall("", "a"))
    for number, text in enumerate(["first", "second", "third"]):
        log.result(reply, number, text)
    assert log.shown == ["user: go", "reply: [a] [b] [a]", "result: first", "result: second", "result: third"]
    messages = log.projection.messages
    assert repair(messages) is messages


def test_rule_2_a_call_without_a_result_gets_the_stand_in(log: Log) -> None:
    """The very one that the repairs would put there."""
    log.user("go")
    reply = log.calls("a", "b")
    log.result(reply, 1, "of b")
    messages = log.projection.messages
    assert log.shown == ["user: go", "reply: [a] [b]", "stand-in: a", "result: of b"]
    assert log.projection.stand_ins == ((reply, 0),)
    assert isinstance(messages[1], AssistantMessage) and isinstance(messages[2], ToolResult)
    assert messages[2].content == stand_in(messages[1].calls[0]).content and messages[2].is_error


def test_rule_2_a_result_takes_the_place_of_a_stand_in_that_no_request_carried(log: Log) -> None:
    """Nobody has seen the stand-in."""
    log.user("go")
    reply = log.calls("a")
    log.user("next")
    log.result(reply, 0, "real")
    assert log.shown == ["user: go", "reply: [a]", "result: real", "user: next"]
    assert log.projection.stand_ins == ()


def test_rule_2_a_result_after_a_request_with_the_stand_in_is_shown_at_its_own_place(log: Log) -> None:
    """What was sent stands; the real outcome is told where it became known."""
    log.user("go")
    reply = log.calls("a")
    log.user("next")
    log.request()
    real = log.result(reply, 0, "real", tool="a")
    log.result(reply, 0, "again", tool="a")
    late = f"user: [late result of a, call {reply}] | real"
    assert log.shown == ["user: go", "reply: [a]", "stand-in: a", "user: next", late]
    assert log.projection.stand_ins == ((reply, 0),)
    assert log.projection.open_calls(real) == ((reply, 0),) and log.projection.open_calls(real + 1) == ()


def test_rule_2_a_request_that_had_the_result_does_not_make_it_late(log: Log) -> None:
    """Only the stand-in of that very call counts."""
    log.user("go")
    reply = log.calls("a", "b")
    log.result(reply, 0, "of a")
    log.request()
    log.result(reply, 1, "of b")
    assert log.shown == [
        "user: go",
        "reply: [a] [b]",
        "result: of a",
        "stand-in: b",
        f"user: [late result of x, call {reply}] | of b",
    ]


def test_rule_3_projection_reads_one_branch_only(log: Log) -> None:
    """A fork at a call shows its stand-in: the result belongs to the other branch."""
    log.user("go")
    reply = log.calls("a")
    log.result(reply, 0, "real")
    log.add(LeafRecord(leaf=reply))
    log.user("instead")
    assert log.shown == ["user: go", "reply: [a]", "stand-in: a", "user: instead"]


def test_rule_3_a_late_result_of_a_left_branch_does_not_show_on_this_one(log: Log) -> None:
    """It waits there for whoever goes back."""
    first = log.user("go")
    reply = log.calls("a")
    log.add(LeafRecord(leaf=first))
    log.user("instead")
    result = log.result(reply, 0, "real")
    assert log.shown == ["user: go", "user: instead"]
    log.add(LeafRecord(leaf=result))
    assert log.shown == ["user: go", "reply: [a]", "result: real"]


@pytest.mark.parametrize("stop", ["aborted", "error", "refused", "deferred"])
def test_rule_4_unfinished_replies_are_left_out_with_their_calls(log: Log, stop: StopReason) -> None:
    """What the user saw of one is marked on the next message, once."""
    log.user("go")
    reply = log.reply("half a sen", call("a"), stop=stop)
    log.result(reply, 0, "never shown")
    log.user("again")
    log.user("and")
    assert log.shown == ["user: go", f"user: {INTERRUPTED} | again", "user: and"]


def test_rule_4_an_unfinished_reply_that_nobody_saw_is_not_marked(log: Log) -> None:
    """Reasoning is not what people see."""
    log.user("go")
    log.reply(Thinking("hm"), "  ", stop="aborted")
    log.user("again")
    assert log.shown == ["user: go", "user: again"]


def test_rule_4_a_reply_cut_by_its_length_keeps_its_text(log: Log) -> None:
    """The call that was cut off is left out; the whole one stays."""
    log.user("go")
    reply = log.reply("long", call("a", 0), call("b", 1, complete=False), stop="length")
    log.result(reply, 0, "of a")
    assert log.shown == ["user: go", "reply: long [a]", "result: of a"]


def test_rule_4_a_reply_with_only_reasoning_cut_by_its_length_is_left_out(log: Log) -> None:
    """With or without half a call."""
    log.user("go")
    log.reply(Thinking("long"), stop="length")
    log.reply(Thinking("long"), call("a", complete=False), stop="length")
    assert log.shown == ["user: go"]


def test_rule_4_a_real_result_of_a_call_that_was_cut_off_is_shown_late(log: Log) -> None:
    """Something produced it, so the model is told; its slot does not exist."""
    log.user("go")
    reply = log.reply(Thinking("long"), call("a", complete=False), stop="length")
    log.result(reply, 0, "real", tool="a")
    assert log.shown == ["user: go", f"user: [late result of a, call {reply}] | real"]


def test_rule_6_the_first_system_entry_leads(log: Log) -> None:
    """Wherever it stands: nothing of it is a message."""
    log.user("go")
    log.system({"who": "You are", "what": "an agent"}, tools_added=(tool("b"), tool("a")))
    log.user("on")
    projection = log.projection
    assert projection.baseline.text == "You are\n\nan agent"
    assert [each.name for each in projection.tools] == ["a", "b"]
    assert log.shown == ["user: go", "user: on"]


def test_rule_6_a_later_patch_stays_at_its_place(log: Log) -> None:
    """After all results of the step; the baseline stays as it was sent, the state is the new one."""
    log.system({"who": "You are", "old": "x"})
    log.user("go")
    reply = log.calls("a")
    log.system({"who": "I am", "old": None})
    log.result(reply)
    projection = log.projection
    assert log.shown[:3] == ["user: go", "reply: [a]", "result: done"]
    assert log.shown[3].startswith("patch: ") and "I am" in log.shown[3] and "no longer part" in log.shown[3]
    assert (projection.baseline.text, projection.state.text) == ("You are\n\nx", "I am")
    assert system_state(log.branch) == projection.state


def test_rule_6_patches_are_worded_by_themselves_alone(log: Log) -> None:
    """The same patch reads the same, whatever stands before or after it."""
    other = Log()
    for each, text in ((log, "one"), (other, "two")):
        each.system({"who": text})
        each.user(text)
        each.system({"now": "B"}, tools_added=(tool("t"),), tools_removed=("u",))
    other.system({"now": "C"})
    one, two = log.projection.messages[1], other.projection.messages[1]
    assert isinstance(one, SystemPatch) and isinstance(two, SystemPatch) and one.text == two.text
    assert "These sections now read as follows" in one.text and "\nB" in one.text
    assert "now available: t." in one.text and "no longer available: u." in one.text


def test_rule_6_the_tool_array_only_grows_between_heads(log: Log) -> None:
    """New tools come last in sorted order, removed ones stay, a changed one keeps its place; a head cleans it."""
    log.system({"s": "x"}, tools_added=(tool("m"), tool("k")))
    start = log.user("go")
    log.system({}, tools_added=(tool("z"), tool("a")), tools_removed=("k",))
    log.system({}, tools_added=(tool("m", "new"),))
    projection = log.projection
    assert [each.name for each in projection.tools] == ["k", "m", "a", "z"]
    assert projection.tools[1].description == "new"
    assert sorted(each.name for each in projection.state.tools) == ["a", "m", "z"]
    log.user("more")
    log.head(start)
    assert [each.name for each in log.projection.tools] == ["a", "m", "z"]


def test_settings_hold_from_their_entry_on_and_none_takes_them_back(log: Log) -> None:
    """Heads carry them."""
    log.add(SettingRecord(name="model", value="a"))
    log.add(SettingRecord(name="thinking", value="low"))
    start = log.user("go")
    log.add(SettingRecord(name="model", value="b"))
    log.add(SettingRecord(name="thinking", value=None))
    assert log.projection.settings == {"model": "b"}
    log.head(start)
    assert log.projection.settings == {"model": "b"}
    log.add(SettingRecord(name="model", value=None))
    assert log.projection.settings == {}


def test_entries_for_people_and_bookkeeping_are_never_shown(log: Log) -> None:
    """Notes, inbox, requests, outcomes, intents and unknown types leave the messages alone."""
    log.user("go")
    before = log.projection.messages
    log.add(NoteRecord(text="secret"))
    log.add(InboxRecord(state="queued", content=(Text("later"),)))
    request = log.request()
    log.add(OutcomeRecord(request=request, stop="stop"))
    log.add(UnknownRecord(raw={"type": "pin", "text": "keep"}))
    log.intent(1)
    assert log.projection.messages == before


def test_a_users_context_stands_at_the_end_of_the_message(log: Log) -> None:
    """The clock and the sender, rendered the same for ever."""
    log.user("go", context="<context>noon</context>")
    assert log.shown == ["user: go | <context>noon</context>"]


def test_messages_are_made_once(log: Log) -> None:
    """What was counted and encoded of a message stays with it when the log grows."""
    log.system({"s": "x"})
    log.user("go")
    reply = log.calls("a", "b")
    log.result(reply, 0)
    log.system({"s": "y"})
    log.user("on")
    before = log.projection.messages
    log.user("more")
    after = log.projection.messages
    assert all(a is b for a, b in zip(before, after, strict=False))


def test_origins_name_the_entries(log: Log) -> None:
    """Each message says where it came from."""
    first = log.user("go")
    reply = log.calls("a", "b")
    result = log.result(reply, 1)
    assert [message.origin for message in log.projection.messages] == [first, reply, reply, result]


def test_a_users_message_with_parts_of_a_model_loses_them() -> None:
    """A wrong import must not make a user think or call."""
    record = MessageRecord(role="user", content=(Thinking("hm"), Text("hi"), call()))
    (message,) = project([Entry(1, None, AT, record)]).messages
    assert isinstance(message, UserMessage) and message.content == (Text("hi"),)


def test_a_summary_of_another_branch_is_a_message_of_the_users_role(log: Log) -> None:
    """In a constant wrapping, at its own place; steps that go do not take it along."""
    start = log.user("go")
    told = log.add(BranchSummaryRecord(text="Tried it.", tip=9))
    reply = log.calls("a")
    log.result(reply)
    assert log.shown[:2] == ["user: go", f"user: {OTHER_BRANCH} | Tried it."]
    assert isinstance(log.projection.messages[1], UserMessage) and log.projection.messages[1].origin == told
    log.head(start, resume=0, summary="Did a.", placement="last")
    assert log.shown == ["user: go", f"user: {OTHER_BRANCH} | Tried it.", f"user: {SUMMARY} | Did a."]


def test_what_an_extension_has_to_say_is_a_message_of_the_users_role(log: Log) -> None:
    """Named; without content it is for nobody but the extension."""
    log.add(ExtensionRecord(name="weather", data={"at": 1}))
    log.add(ExtensionRecord(name="weather", content=(Text("Rain."), Image("image/png", "aGk="))))
    assert log.shown == ["user: [From the extension weather:] | Rain."]
    (message,) = log.projection.messages
    assert isinstance(message, UserMessage) and len(message.content) == 3


def test_a_context_may_begin_at_a_summary_of_another_branch_or_at_what_an_extension_said(log: Log) -> None:
    """Both are of the user's role."""
    log.user("go")
    told = log.add(BranchSummaryRecord(text="Tried it.", tip=9))
    news = log.add(ExtensionRecord(name="weather", content=(Text("Rain."),)))
    log.user("on")
    log.head(told)
    assert len(log.shown) == 3
    log.head(news)
    assert log.shown == ["user: [From the extension weather:] | Rain.", "user: on"]


def test_a_result_that_names_a_later_entry_answers_nothing(log: Log) -> None:
    """No call comes after its result, whatever a file says."""
    log.user("go")
    log.result(3, 0, "before its time")
    assert log.calls("a") == 3
    assert log.shown == ["user: go", "reply: [a]", "stand-in: a"]
