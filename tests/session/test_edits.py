"""Edits: what a model sees changes, the log does not."""

from __future__ import annotations

from governors.messages import Image, Text, ToolResult, UserMessage
from governors.repair import repair
from runtime.session.edits import LEFT_OUT
from runtime.session.entries import EditRecord, LeafRecord, MessageRecord

from .logs import Log


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
