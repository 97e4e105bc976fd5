"""Stopping, steering, queueing, and being killed: nothing that was acknowledged is lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import anyio
import pytest

from governors.messages import ToolResult
from runtime import Call, Reply, tool
from runtime.agent.calls import STOPPED
from runtime.agent.states import TRANSITIONS, IllegalMove, State, Trigger, move
from runtime.errors import SessionLocked
from runtime.events import (
    Event,
    MessageRecorded,
    RequestSent,
    StateChanged,
    TextDelta,
    ToolFinished,
    ToolStarted,
    TurnFinished,
)
from runtime.session.entries import InboxRecord, MessageRecord, OutcomeRecord, ResultRecord
from runtime.session.opening import read_log
from runtime.session.view.projection import project
from tests.agents import Talk, assert_prefix_law, of, talk


async def until(kind: type[Event], it: Talk, text: str, collected: list[Event]) -> None:
    """Send `text` in the background task of the caller and stop the turn at the first event of `kind`."""
    async for event in it.agent.send(text):
        collected.append(event)
        if isinstance(event, kind):
            await it.agent.stop()


async def test_stop_in_a_tool_keeps_every_finished_step(tmp_path: Path) -> None:
    """FAULT 142: /stop loses the whole turn, user message included."""

    @tool
    async def hang() -> str:
        """Never ends by itself."""
        await anyio.sleep_forever()
        return ""

    script = [Call("list_dir", {}), Reply("Now the long one.", [Call("list_dir", {}), Call("hang", {})]), "went on"]
    async with talk(tmp_path, script, tools=[hang]) as it:
        events: list[Event] = []
        started = 0
        async for event in it.agent.send("work"):
            events.append(event)
            if isinstance(event, ToolFinished):
                started += 1
            if started == 2 and isinstance(event, ToolFinished):
                await it.agent.stop()
        assert of(TurnFinished, events)[-1].stop == "aborted"
        assert [(state.before, state.after) for state in of(StateChanged, events)] == [
            ("idle", "run"),
            ("run", "stopping"),
            ("stopping", "idle"),
        ]
        results = it.records(ResultRecord)
        assert len(results) == 3
        assert [record.content[0].text for record in results if record.tool == "hang"] == [STOPPED]
        assert of(TurnFinished, await it.say("go on"))[0].text == "went on"
        assert_prefix_law(it)


async def test_stop_before_any_text_leaves_a_record(tmp_path: Path) -> None:
    """FAULT 143: cancel while nothing was shown yet leaves only 'cancelled'."""
    async with talk(tmp_path, [Reply(hold=anyio.sleep_forever), "fine"]) as it:
        async with anyio.create_task_group() as group:
            stream = it.agent.send("hello")
            async for event in stream:
                if event.type == "request_sent":
                    group.start_soon(it.agent.stop)
        assert [record.stop for record in it.records(OutcomeRecord)] == ["aborted"]
        assert [record.role for record in it.records(MessageRecord)] == ["user", "assistant"]
        assert of(TurnFinished, await it.say("again"))[0].text == "fine"


async def test_stop_in_a_reply_keeps_what_was_shown(tmp_path: Path) -> None:
    async with talk(tmp_path, [Reply("Once upon a time", hold=anyio.sleep_forever), "The end."]) as it:
        events: list[Event] = []
        await until(TextDelta, it, "tell me a story", events)
        replies = [record for record in it.records(MessageRecord) if record.role == "assistant"]
        assert replies[0].stop == "aborted"
        assert "Once upon" in replies[0].content[0].text  # type: ignore[union-attr] # a text part
        await it.say("go on")
        assert "interrupted" in str(it.bodies[-1]["messages"])


async def test_what_is_said_in_a_turn_joins_it_after_the_results_of_the_step(tmp_path: Path) -> None:
    """FAULT 20: a queued message lands between call and result."""
    said = anyio.Event()

    @tool
    async def wait() -> str:
        """Waits until the user has said more."""
        await said.wait()
        return "waited"

    async with talk(tmp_path, [Call("wait", {}), "with that in mind"], tools=[wait]) as it:
        async with anyio.create_task_group() as group:

            async def steer() -> None:
                async for event in it.agent.send("and also this"):
                    if isinstance(event, MessageRecorded) and event.steered:
                        said.set()

            async for event in it.agent.send("first"):
                if isinstance(event, ToolStarted):
                    group.start_soon(steer)
        messages = it.bodies[1]["messages"]
        assert [block["type"] for block in messages[-2]["content"]] == ["tool_result"]
        assert "and also this" in str(messages[-1])
        assert_prefix_law(it)


async def test_what_is_said_while_the_last_reply_is_written_is_answered_in_the_same_turn(tmp_path: Path) -> None:
    gate = anyio.Event()
    async with talk(tmp_path, [Reply("first answer", hold=gate.wait), "second answer"]) as it:
        async with anyio.create_task_group() as group:

            async def steer() -> None:
                async for _ in it.agent.send("one more thing"):
                    gate.set()

            async for event in it.agent.send("hello"):
                if isinstance(event, RequestSent) and event.entry < 4:
                    group.start_soon(steer)
                last = event
        assert isinstance(last, TurnFinished)
        assert (last.text, last.steps) == ("second answer", 2)


async def test_queued_input_gets_a_turn_of_its_own(tmp_path: Path) -> None:
    gate = anyio.Event()
    later: list[Event] = []
    async with talk(tmp_path, [Reply("first", hold=gate.wait), "second"]) as it:
        async with anyio.create_task_group() as group:

            async def queue() -> None:
                async for event in it.agent.send("next", queue=True):
                    later.append(event)
                    gate.set()

            async for event in it.agent.send("hello"):
                if isinstance(event, RequestSent):
                    group.start_soon(queue)
                last = event
        assert isinstance(last, TurnFinished) and last.text == "first"
        await it.agent.rest()
        assert of(TurnFinished, later)[0].text == "second"
        assert not it.agent.waiting()


async def test_a_stop_holds_queued_input_also_across_a_restart(tmp_path: Path) -> None:
    script = [Reply("…", hold=anyio.sleep_forever)]
    async with talk(tmp_path, script, session="held") as it, anyio.create_task_group() as group:

        async def queue() -> None:
            async for event in it.agent.send("and then this", queue=True):
                if isinstance(event, MessageRecorded):
                    await it.agent.stop()

        async for event in it.agent.send("hello"):
            if isinstance(event, RequestSent):
                group.start_soon(queue)
    async with talk(tmp_path, ["done then"], session="held") as it:
        (item,) = it.agent.waiting()
        assert (item.state, item.text) == ("held", "and then this")
        stream = await it.agent.release()
        assert stream is not None
        events = [event async for event in stream]
        assert of(TurnFinished, events)[0].text == "done then"
        assert not it.agent.waiting()


async def test_dropped_input_stays_in_the_log_and_goes_nowhere(tmp_path: Path) -> None:
    async with talk(tmp_path, [], session="drop") as it:
        await it.agent.session.append(InboxRecord(state="held", content=()))
        assert await it.agent.drop() == 1
        assert not it.agent.waiting()
        assert len(it.records(InboxRecord)) == 2


async def test_closing_the_runtime_stops_the_turn_and_records_it(tmp_path: Path) -> None:
    async with talk(tmp_path, [Reply("never finished", hold=anyio.sleep_forever)], session="closing") as it:
        async for event in it.agent.send("hello"):
            if isinstance(event, TextDelta):
                break
        path = it.log
    records = [entry.record for entry in read_log(path).entries]
    assert [record.stop for record in records if isinstance(record, OutcomeRecord)] == ["aborted"]


async def test_cancelling_the_runtime_from_outside_records_the_turn(tmp_path: Path) -> None:
    path: list[Path] = []
    with anyio.CancelScope() as scope:
        async with talk(tmp_path, [Reply("never finished", hold=anyio.sleep_forever)], session="cancel") as it:
            path.append(it.log)
            async for event in it.agent.send("hello"):
                if isinstance(event, TextDelta):
                    scope.cancel()
    records = [entry.record for entry in read_log(path[0]).entries]
    assert [record.stop for record in records if isinstance(record, OutcomeRecord)] == ["aborted"]


async def test_a_second_writer_is_refused_and_the_first_goes_on(tmp_path: Path) -> None:
    async with talk(tmp_path, ["one"], session="mine") as it:
        await it.agent.session.append(InboxRecord(state="held", content=()))
        with pytest.raises(SessionLocked, match="mine"):
            async with talk(tmp_path, session="mine"):
                pass
        assert of(TurnFinished, await it.say("hello"))[0].text == "one"


KILLED = """
    import anyio, json, sys
    from pathlib import Path
    from runtime import Reply, Runtime, Scripted, Call, tool
    from tests.agents import acknowledged

    @tool
    async def hang() -> str:
        '''Never ends.'''
        await anyio.sleep_forever()
        return ""

    async def main():
        last = {"reply": Reply("It began so well", hold=anyio.sleep_forever), "tool": Call("hang", {})}[sys.argv[2]]
        model = Scripted(["one", Call("list_dir", {}), "two", last])
        settings = {"tools.exec": "off"}
        opened = Runtime.open(sys.argv[1], model=model.chosen(), tools=[hang], settings=settings, environ={})
        async with opened as runtime:
            agent = runtime.agent(session="killed")
            for text in ("first", "second", "third"):
                async for event in agent.send(text):
                    print(json.dumps([event.type, acknowledged(event)]), flush=True)

    anyio.run(main)
"""


@pytest.mark.parametrize("where", ["reply", "tool"])
async def test_kill_9_loses_nothing_that_was_acknowledged(tmp_path: Path, where: str) -> None:
    script = tmp_path / "killed.py"
    script.write_text(textwrap.dedent(KILLED))
    workspace = tmp_path / "workspace"
    root = Path(__file__).parents[2]
    child = subprocess.Popen(
        [sys.executable, script, workspace, where],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(root)},
        cwd=root,
    )
    assert child.stdout is not None
    seen: list[Any] = []
    stop_at = {"reply": "text_delta", "tool": "tool_started"}[where]
    for line in child.stdout:
        seen.append(json.loads(line))
        if [kind for kind, _ in seen].count("turn_finished") == 2 and seen[-1][0] == stop_at:
            break
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()
    promised = {entry for _, entry in seen if entry is not None}
    async with talk(workspace, ["still here"], session="killed") as it:
        assert promised <= {entry.id for entry in it.on_disk()}
        assert of(TurnFinished, await it.say("and now?"))[0].text == "still here"
        stand_ins = [m for m in project(it.agent.session.branch()).messages if isinstance(m, ToolResult) and m.stand_in]
        assert len(stand_ins) == (1 if where == "tool" else 0)
        assert "third" in str(it.bodies[-1]["messages"])


def test_every_move_is_in_the_table_or_refused() -> None:
    for state in State:
        for trigger in Trigger:
            if (state, trigger) in TRANSITIONS:
                assert move(state, trigger) is TRANSITIONS[state, trigger]
            else:
                with pytest.raises(IllegalMove, match=state.value):
                    move(state, trigger)
    assert all(move(state, Trigger.FAULT) is State.FAILED for state in State)
