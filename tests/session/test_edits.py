"""Edits: what a model sees changes, the log does not."""

from __future__ import annotations

from governors.messages import AssistantMessage, Image, Text, Thinking, ToolResult, UserMessage
from governors.repair import repair
from runtime.session.entries import BranchSummaryRecord, EditRecord, LeafRecord, MessageRecord
from runtime.session.view.edits import LEFT_OUT
from runtime.session.view.rendering import OTHER_BRANCH
from runtime.session.view.wrapping import SUMMARY

from .logs import Log, call


def test_a_replaced_result_keeps_its_place() -> None:
    """A stub stands where the result stood."""
    log = Log()
    log.user("go")
    reply = log.calls("a")
    result = log.result(reply)
    before = log.projection
    log.add(EditRecord(action="replace", target=result, cause="microcompact", content=(Text("[stub]"),)))
    after = log.projection
    assert [type(message) for message in after.messages] == [type(message) for message in before.messages]
    assert after.messages[2].text == "[stub]"  # type: ignore[union-attr] # a result
    assert after.generation == before.generation + 1
    assert repair(after.messages) is after.messages


def test_the_newest_edit_wins_and_restore_takes_it_back() -> None:
    """Whatever was done in between."""
    log = Log()
    said = log.user("first words")
    log.add(EditRecord(action="replace", target=said, cause="user", content=(Text("second"),)))
    log.add(EditRecord(action="replace", target=said, cause="user", content=(Text("third"),)))
    assert log.projection.messages[0].text == "third"  # type: ignore[union-attr] # a user's message
    log.add(EditRecord(action="restore", target=said, cause="user"))
    assert log.projection.messages[0].text == "first words"  # type: ignore[union-attr] # a user's message


def test_an_omitted_user_message_leaves_a_constant_text() -> None:
    """So that roles stay legal without looking ahead."""
    log = Log()
    said = log.user("secret")
    log.add(EditRecord(action="omit", target=said, cause="user"))
    assert log.projection.messages == (UserMessage((Text(LEFT_OUT),), origin=said),)


def test_an_omitted_reply_hides_its_results() -> None:
    """FAULT 26: context editing deletes the assistant but not its results."""
    log = Log()
    log.user("go")
    reply = log.calls("a", "b")
    log.result(reply)
    log.add(EditRecord(action="omit", target=reply, cause="user"))
    projection = log.projection
    assert log.shown == ["user: go"]
    assert projection.stand_ins == ()


def test_one_block_of_a_message_can_go() -> None:
    """The others stay as they are."""
    log = Log()
    picture = Image("image/png", "aGk=")
    said = log.add(MessageRecord(role="user", content=(Text("look"), picture)))
    log.add(EditRecord(action="omit", target=said, block=1, cause="images"))
    message = log.projection.messages[0]
    assert isinstance(message, UserMessage) and message.content == (Text("look"), Text(LEFT_OUT))


def test_an_edit_holds_on_its_branch_only() -> None:
    """A fork made before it does not see it."""
    log = Log()
    said = log.user("words")
    reply = log.reply("done")
    log.add(EditRecord(action="omit", target=said, cause="user"))
    assert log.projection.messages[0].text == LEFT_OUT  # type: ignore[union-attr] # a user's message
    log.add(LeafRecord(leaf=reply))
    assert log.projection.messages[0].text == "words"  # type: ignore[union-attr] # a user's message


def test_an_edited_result_is_still_that_calls_result() -> None:
    """And a late one is edited where it stands."""
    log = Log()
    log.user("go")
    reply = log.calls("a")
    log.request()
    late = log.result(reply)
    log.add(EditRecord(action="replace", target=late, cause="microcompact", content=(Text("[stub]"),)))
    messages = log.projection.messages
    assert isinstance(messages[2], ToolResult) and messages[2].stand_in
    assert isinstance(messages[3], UserMessage) and messages[3].text.endswith("[stub]")


def test_rule_7_the_newest_edit_of_a_block_wins_and_each_block_has_its_own() -> None:
    """An edit of the whole hides those of blocks until it is taken back."""
    log = Log()
    said = log.add(MessageRecord(role="user", content=(Text("one"), Text("two"))))
    log.edit(said, "replace", "ONE", block=0)
    log.edit(said, block=1)
    assert log.shown == [f"user: ONE | {LEFT_OUT}"]
    log.edit(said, "replace", "all")
    assert log.shown == ["user: all"]
    log.edit(said, "restore")
    log.edit(said, "restore", block=1)
    assert log.shown == ["user: ONE | two"]


def test_rule_7_edits_within_the_range_hold_after_a_head() -> None:
    """A head keeps what it shows as it was shown."""
    log = Log()
    log.user("go")
    start = log.user("next")
    log.edit(start, "replace", "NEXT")
    log.head(start)
    assert log.shown == ["user: NEXT"]
    log.edit(start, "restore")
    assert log.shown == ["user: next"]


def test_rule_7_a_summary_can_be_edited() -> None:
    """Of another branch inside its wrapping, and that of a head."""
    log = Log()
    told = log.add(BranchSummaryRecord(text="Tried it.", tip=1))
    log.edit(told, "replace", "Tried it twice.")
    assert log.shown == [f"user: {OTHER_BRANCH} | Tried it twice."]
    head = log.head(log.user("next"), summary="So far.")
    log.edit(head, "replace", "So far, rightly.")
    assert log.shown == [f"user: {SUMMARY} | So far, rightly.", "user: next"]
    log.edit(head)
    assert log.shown == [f"user: {SUMMARY} | {LEFT_OUT}", "user: next"]


def test_rule_7_reasoning_goes_without_a_trace_and_a_call_cannot_go_alone() -> None:
    """Its result would be an orphan."""
    log = Log()
    log.user("go")
    reply = log.reply(Thinking("hm"), "let me look", call("a"))
    log.result(reply)
    log.edit(reply, block=0)
    log.edit(reply, block=2)
    message = log.projection.messages[1]
    assert isinstance(message, AssistantMessage)
    assert message.content == (Text("let me look"), call("a"))


def test_rule_7_a_replaced_reply_keeps_its_calls() -> None:
    """Other words, the same deeds."""
    log = Log()
    log.user("go")
    reply = log.reply("secret", call("a"))
    log.result(reply)
    log.edit(reply, "replace", "words")
    assert log.shown == ["user: go", "reply: words [a]", "result: done"]


def test_rule_4_a_late_result_of_an_omitted_reply_is_hidden_and_its_call_not_carried() -> None:
    """Omitting a reply hides its results, those that come after a head too."""
    log = Log()
    log.user("go")
    reply = log.calls("a")
    log.head(log.user("next"))
    log.edit(reply)
    assert log.projection.open == {}
    log.result(reply, text="real")
    assert log.shown == ["user: next"]


def test_rule_7_an_edit_of_what_shows_nothing_changes_nothing() -> None:
    """A request, a setting, a system patch."""
    log = Log()
    log.system({"a": "x"})
    log.user("go")
    patch = log.system({"a": "y"})
    before = log.shown
    for target in (log.request(), patch, 99):
        log.edit(target)
    assert log.shown == before
