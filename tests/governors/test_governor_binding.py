"""Models that bind reasoning to the exact prefix it was produced under: what changes takes later reasoning with it."""

from __future__ import annotations

from governors.budget import Budget
from governors.content import without_thinking
from governors.decisions import Cut, DropThinking, Stub
from governors.economy import Economy
from governors.governor import Governor
from governors.messages import AssistantMessage, Message, Text, Thinking, ToolCall, ToolResult
from governors.microcompact import handle_of
from governors.policy import Moment, Policy
from governors.tokens import ByteCounter
from governors.wire.base import Abilities
from tests.builders import user

BINDS = Abilities(binds_prefix=True)


def step(number: int, length: int = 0) -> list[Message]:
    thought = Thinking(f"thought {number}" + " and more" * length, f"signature-{number}")
    reply = AssistantMessage((thought, ToolCall(f"c{number}", "read_file")), "tool_use", "m", "anthropic")
    return [reply, ToolResult(f"c{number}", "read_file", (Text(f"line {number} " * 100),))]


def conversation(count: int, length: int = 0) -> list[Message]:
    rest = AssistantMessage((Text("done"),), "stop", "m", "anthropic")
    return [
        user("go"),
        *(message for number in range(count) for message in step(number, length)),
        rest,
        user("and now?"),
    ]


def thoughts(messages: object) -> list[str]:
    return [
        part.text
        for message in messages  # type: ignore[attr-defined] # a sequence of messages
        if isinstance(message, AssistantMessage)
        for part in message.content
        if isinstance(part, Thinking)
    ]


def cold() -> Moment:
    return Moment(Economy().sent(0.0, 1_000, 1_000), 100_000.0)


def test_an_edit_takes_all_reasoning_after_it() -> None:
    """In the same decision; reasoning before it stays, and so does what is produced later."""
    governor = Governor(Budget(9_000, 100, margin=0), counter=ByteCounter(), abilities=BINDS, model="m")
    governed = governor.step(conversation(14))
    kinds = {type(decision) for decision in governed.decisions}
    assert Stub in kinds and DropThinking in kinds
    assert thoughts(governed.messages)[:1] in ([], ["thought 0"])
    assert "thought 13" not in thoughts(governed.messages)
    later = AssistantMessage((Thinking("fresh", "s"), Text("yes")), "stop", "m", "anthropic")
    assert "fresh" in thoughts(governor.step([later, user("go on")]).messages)


def test_a_cut_takes_all_reasoning_that_is_left() -> None:
    """The prefix of every reply is another one now."""
    messages = conversation(3) + conversation(3)
    governor = Governor(Budget(2_400, 100, margin=0), counter=ByteCounter(), abilities=BINDS, model="m")
    governed = governor.step(messages)
    assert any(isinstance(decision, Cut) for decision in governed.decisions)
    assert thoughts(governed.messages) == []


def test_the_loss_is_weighed_so_a_cold_cache_alone_is_no_reason() -> None:
    """With reasoning at stake a cold edit is not free."""
    free = Governor(Budget(10**6, 100), counter=ByteCounter(), model="m")
    bound = Governor(Budget(10**6, 100), counter=ByteCounter(), abilities=BINDS, model="m")
    assert any(isinstance(decision, Stub) for decision in free.step(conversation(14, 200), cold()).decisions)
    assert not bound.step(conversation(14, 200), cold()).decisions


def test_a_rebuilt_governor_shows_the_same() -> None:
    """The decision is kept like any other."""
    governor = Governor(Budget(9_000, 100, margin=0), counter=ByteCounter(), abilities=BINDS, model="m")
    governed = governor.step(conversation(14))
    again = Governor(
        Budget(9_000, 100, margin=0), counter=ByteCounter(), abilities=BINDS, model="m", decisions=governed.decisions
    )
    rebuilt = again.step(conversation(14))
    assert rebuilt.messages == governed.messages
    assert not rebuilt.decisions


def test_where_the_provider_drops_blocks_itself_they_are_left_to_it() -> None:
    """Anthropic's `drop_block`: the request is taken, and the provider says what it dropped."""
    abilities = Abilities(binds_prefix=True, drop_block=True)
    governor = Governor(Budget(10**6, 100), counter=ByteCounter(), abilities=abilities, model="m")
    governed = governor.step(conversation(14), cold())
    assert any(isinstance(decision, Stub) for decision in governed.decisions)
    assert not any(isinstance(decision, DropThinking) for decision in governed.decisions)
    assert "thought 13" in thoughts(governed.messages)


def test_a_spared_result_stays_whole_while_there_is_room() -> None:
    """Somebody wants to see it: only a request that cannot fit otherwise makes a line of it."""
    messages = conversation(14)
    first = messages[2]
    assert isinstance(first, ToolResult)
    policy = Policy(spared=frozenset({handle_of(first.content)}))
    governor = Governor(Budget(10**6, 100), policy, counter=ByteCounter(), model="m")
    places = [each.place for each in governor.step(messages, cold()).decisions if isinstance(each, Stub)]
    assert places == [4, 6, 8]


def test_what_is_no_reply_has_no_reasoning_to_lose() -> None:
    """The same object comes back."""
    said = user("hello")
    assert without_thinking(said) is said
    only = AssistantMessage((Thinking("deep", "s"),), "stop", "m", "anthropic")
    assert without_thinking(only).content == (Text("(no text)"),)  # type: ignore[union-attr] # a reply
