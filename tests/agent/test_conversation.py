"""Conversations as people have them: said, answered, with tools, with faults."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import anyio
import pytest

from governors.messages import Usage
from runtime import Call, Reply, ToolContext, tool
from runtime.errors import SessionError
from runtime.events import (
    Notice,
    ReplyRecorded,
    StateChanged,
    TextDelta,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    TurnStarted,
)
from runtime.session.entries import IntentRecord, MessageRecord, NoteRecord, OutcomeRecord, RequestRecord
from runtime.session.opening import read_log
from tests.agents import acknowledged, assert_prefix_law, of, talk


async def test_an_answer_streams_and_is_recorded_before_it_is_announced(tmp_path: Path) -> None:
    async with talk(tmp_path, ["Good morning to you."]) as it:
        async for event in it.agent.send("Good morning!"):
            entry = acknowledged(event)
            if entry is not None:
                assert entry in [each.id for each in it.on_disk()]
            last = event
        assert isinstance(last, TurnFinished)
        assert (last.text, last.stop, last.steps, last.error) == ("Good morning to you.", "stop", 1, None)


async def test_deltas_add_up_to_the_reply(tmp_path: Path) -> None:
    async with talk(tmp_path, ["A reply that is longer than one piece of a stream."]) as it:
        events = await it.say("hello")
        assert "".join(delta.text for delta in of(TextDelta, events)) == of(ReplyRecorded, events)[0].text


async def test_a_request_is_recorded_before_it_leaves(tmp_path: Path) -> None:
    async with talk(tmp_path) as it:
        seen = []
        it.model.add(lambda request: str(seen.append(it.records(RequestRecord)) or "ok"))
        await it.say("hello")
        assert len(seen[0]) == 1
        assert it.records(OutcomeRecord)[0].usage is not None


@pytest.mark.parametrize("wire", ["anthropic", "openai_chat"])
async def test_ten_turns_with_tools_keep_the_prefix(tmp_path: Path, wire: str) -> None:
    (tmp_path / "notes.md").write_text("buy milk\n")
    script = []
    for number in range(10):
        script += [Reply("Looking.", [Call("read_file", {"path": "notes.md"}), Call("list_dir", {})]), f"turn {number}"]
    async with talk(tmp_path, script, wire=wire) as it:
        for number in range(10):
            events = await it.say(f"question {number}")
            assert of(TurnFinished, events)[0].text == f"turn {number}"
            assert not [event for event in of(ToolFinished, events) if event.is_error]
        assert_prefix_law(it)
        assert not [outcome.cause for outcome in it.records(OutcomeRecord) if outcome.cause]


async def test_results_stand_in_call_order_whatever_finishes_first(tmp_path: Path) -> None:
    second_done = anyio.Event()

    @tool
    async def first() -> str:
        """The slow one."""
        await second_done.wait()
        return "one"

    @tool
    async def second() -> str:
        """The quick one."""
        second_done.set()
        return "two"

    async with talk(
        tmp_path, [Reply(calls=[Call("first", {}), Call("second", {})]), "done"], tools=[first, second]
    ) as it:
        events = await it.say("both, please")
        assert [event.tool for event in of(ToolFinished, events)] == ["second", "first"]
        results = it.bodies[1]["messages"][-1]["content"]
        assert [block["tool_use_id"] for block in results] == ["call_1", "call_2"]


async def test_a_tool_starts_only_after_its_intent_is_on_disk(tmp_path: Path) -> None:
    found: list[tuple[int, int]] = []

    @tool
    def look(context: ToolContext) -> str:
        """Look into the log."""
        path = next((context.workspace / ".moonwake" / "sessions").rglob(f"{context.session}.jsonl"))
        entries = read_log(path).entries
        found.extend(entry.record.call for entry in entries if isinstance(entry.record, IntentRecord))
        return str(context.call in found)

    async with talk(tmp_path, [Call("look", {}), "done"], tools=[look]) as it:
        events = await it.say("look")
        assert of(ToolFinished, events)[0].text == "true" or of(ToolFinished, events)[0].text == "True"
        assert found == [of(ToolStarted, events)[0].call]


async def test_a_wrong_call_is_told_to_the_model_and_the_turn_goes_on(tmp_path: Path) -> None:
    calls = [
        Call("reed_file", {"path": "x"}),
        Call("read_file", '{"path": "x'),
        Call("read_file", {"path": "../../etc/passwd"}),
        Call("read_file", {"path": 7}),
    ]
    async with talk(tmp_path, [Reply(calls=calls), "I see."]) as it:
        events = await it.say("try")
        results = {event.call[1]: event for event in of(ToolFinished, events)}
        assert all(event.is_error for event in results.values())
        assert "read_file" in results[0].text
        assert of(TurnFinished, events)[0].text == "I see."


async def test_a_provider_problem_ends_the_turn_with_its_sentence_and_the_next_turn_works(tmp_path: Path) -> None:
    async with talk(tmp_path, [Reply(error="auth"), "now it works"]) as it:
        events = await it.say("hello")
        assert of(TurnFinished, events)[0].error == "the scripted model failed (auth)"
        assert it.records(NoteRecord)[0].text == "the scripted model failed (auth)"
        assert of(TurnFinished, await it.say("again"))[0].text == "now it works"


async def test_a_reply_that_broke_off_is_marked_for_the_model(tmp_path: Path) -> None:
    async with talk(tmp_path, [Reply("The answer is", error="network", stop="aborted"), "42"]) as it:
        await it.say("what is it?")
        await it.say("go on")
        texts = [block["text"] for message in it.bodies[1]["messages"] for block in message["content"]]
        assert "The answer is" not in texts
        assert any("interrupted" in text for text in texts)


async def test_a_turn_ends_after_the_allowed_number_of_steps(tmp_path: Path) -> None:
    async with talk(tmp_path, otherwise=Call("list_dir", {}), settings={"limits.max_steps": 4}) as it:
        finished = of(TurnFinished, await it.say("for ever"))[0]
        assert finished.steps == 4
        assert "4 steps" in (finished.error or "")


async def test_malformed_arguments_are_not_retried_without_end(tmp_path: Path) -> None:
    """FAULT 52: the same broken call again and again burns tokens."""
    async with talk(tmp_path, otherwise=Call("read_file", '{"path": "')) as it:
        finished = of(TurnFinished, await it.say("read"))[0]
        assert finished.steps == 3
        assert "read_file" in (finished.error or "")


async def test_a_failure_that_the_model_mends_does_not_end_the_turn(tmp_path: Path) -> None:
    wrong, right = Call("read_file", {"path": "no"}), Call("list_dir", {})
    async with talk(tmp_path, [wrong, wrong, right, wrong, wrong, "done"]) as it:
        assert of(TurnFinished, await it.say("read"))[0].text == "done"


async def test_a_fault_of_ours_ends_the_turn_and_not_the_conversation(tmp_path: Path) -> None:
    class Broken:
        def build(self, *arguments: object) -> object:
            raise RuntimeError("a bug")

    async with talk(tmp_path, ["fine"]) as it:
        from dataclasses import replace

        whole = it.agent.equipment
        it.agent.equipment = replace(whole, prompt=Broken())  # type: ignore[arg-type] # broken on purpose
        events = await it.say("hello")
        assert "a bug" in (of(TurnFinished, events)[0].error or "")
        assert of(StateChanged, events)[-1].after == "failed"
        it.agent.equipment = whole
        assert of(TurnFinished, await it.say("again"))[0].text == "fine"


async def test_a_listener_that_leaves_does_not_stop_the_turn(tmp_path: Path) -> None:
    async with talk(tmp_path, [Call("list_dir", {}), "done"]) as it:
        async for event in it.agent.send("hello"):
            if isinstance(event, TurnStarted):
                break
        await it.agent.rest()
        assert [record.stop for record in it.records(MessageRecord) if record.role == "assistant"] == [
            "tool_use",
            "stop",
        ]


async def test_the_cost_of_a_turn_is_that_of_its_calls(tmp_path: Path) -> None:
    million = Usage(plain=1_000_000, output=1_000_000)
    async with talk(tmp_path, [Reply("", [Call("list_dir", {})], usage=million), Reply("ok", usage=million)]) as it:
        finished = of(TurnFinished, await it.say("hello"))[0]
        assert finished.cost == pytest.approx(36.0)
        assert finished.usage == Usage(plain=2_000_000, output=2_000_000)


async def test_a_written_file_reaches_the_prompt_as_a_patch_at_the_tail(tmp_path: Path) -> None:
    async with talk(tmp_path, ["one", "two"]) as it:
        await it.say("hello")
        (tmp_path / "AGENTS.md").write_text("Always answer in verse.\n")
        await it.say("again")
        first, second = it.bodies
        assert [block["text"] for block in second["system"]] == [block["text"] for block in first["system"]]
        assert "Always answer in verse." in str(second["messages"][-1]) + str(second["messages"][-2])
        assert_prefix_law(it)


async def test_a_model_without_tools_gets_none(tmp_path: Path) -> None:
    from governors.wire.base import Abilities

    async with talk(tmp_path, ["hi"], abilities=Abilities(tools=False), profile="tiny") as it:
        await it.say("hello")
        assert "tools" not in it.bodies[0] or not it.bodies[0]["tools"]


async def test_nothing_is_told_twice(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_bytes(b"\x00\x01binary")
    async with talk(tmp_path, ["one", "two"]) as it:
        assert len(of(Notice, await it.say("hello"))) == 1
        assert not of(Notice, await it.say("again"))


async def test_the_users_settings_reach_the_request(tmp_path: Path) -> None:
    from governors.wire.base import Abilities

    @tool
    async def slow() -> str:
        """Takes for ever."""
        await anyio.sleep_forever()
        return ""

    settings = {"thinking": "high", "limits.margin": 50_000, "tools.timeout": 0.01}
    abilities = Abilities(thinking="adaptive")
    async with talk(tmp_path, [Call("slow", {}), "ok"], tools=[slow], settings=settings, abilities=abilities) as it:
        events = await it.say("hello")
        assert it.bodies[0]["output_config"] == {"effort": "high"}
        assert it.records(RequestRecord)[0].budget == 200_000 - 4_096 - 50_000
        assert "0.01 seconds" in of(ToolFinished, events)[0].text


@pytest.mark.parametrize("wire", ["anthropic", "openai_chat"])
async def test_lone_surrogates_from_user_model_and_tool_end_nothing(tmp_path: Path, wire: str) -> None:
    """FAULT 47: half of a pair in arguments or text, and every later request is refused."""
    half = "broken \ud99c half"

    @tool
    def echo(text: str) -> str:
        """Say it again."""
        return text + half

    script = [Reply(half, [Call("echo", '{"text": "\\ud83d alone"}')]), Reply(half), "fine"]
    async with talk(tmp_path, script, tools=[echo], wire=wire) as it:
        assert of(TurnFinished, await it.say(half))[0].error is None
        assert of(TurnFinished, await it.say("again"))[0].text == "fine"
        it.log.read_bytes().decode("utf-8")
        assert "broken \ufffd half" in str(it.bodies[-1]["messages"])
    async with talk(tmp_path, ["still fine"], session=it.agent.session.id) as again:
        assert of(TurnFinished, await again.say("hello"))[0].text == "still fine"


@pytest.mark.parametrize("stop", ["refused", "deferred"])
async def test_calls_of_a_reply_that_is_not_sent_back_do_not_run(tmp_path: Path, stop: Any) -> None:
    """The reply would be left out of the next request, and the model would make the same calls again and again."""
    wish = Reply("I will not", [Call("write_file", {"path": "a.txt", "content": "x"})], stop=stop)
    async with talk(tmp_path, [wish], otherwise="never asked") as it:
        finished = of(TurnFinished, await it.say("go"))[0]
        assert (finished.stop, finished.steps) == (stop, 1)
        assert finished.error
        assert not (tmp_path / "a.txt").exists()


async def test_a_call_that_is_made_twice_in_one_reply_runs_once(tmp_path: Path) -> None:
    """FAULT 11: a reused id makes the client send the same result again and again."""
    same = Call("list_dir", {}, id="one")
    async with talk(tmp_path, [Reply(calls=[same, same]), "done"]) as it:
        events = await it.say("go")
        assert len(of(ToolStarted, events)) == len(of(ToolFinished, events)) == 1
        assert of(TurnFinished, events)[0].text == "done"


async def test_plain_tools_that_hang_do_not_hold_up_the_log(tmp_path: Path) -> None:
    """They have threads of their own: the log, the prompt and other agents go on."""
    release = threading.Event()

    @tool(timeout=0.05)
    def stuck(number: int) -> str:
        """Hangs until the test ends."""
        release.wait()
        return ""

    calls = [Call("stuck", {"number": number}) for number in range(45)]
    try:
        async with talk(tmp_path, [Reply(calls=calls), "went on"], tools=[stuck]) as it:
            with anyio.fail_after(20):
                assert of(TurnFinished, await it.say("go"))[0].text == "went on"
    finally:
        release.set()


async def test_a_closed_runtime_says_so_and_writes_nothing(tmp_path: Path) -> None:
    async with talk(tmp_path, ["one"], session="open") as it:
        await it.say("hello")
    later = it.runtime.agent(session="later")
    with pytest.raises(SessionError, match="closed"):
        await later.ask("anybody there?")
    with pytest.raises(SessionError, match="closed"):
        await it.say("and here?")
    assert [path.stem for path in tmp_path.rglob("*.jsonl")] == ["open"]
