"""Undo, retry, other branches: conversations that go back and on, against a scripted model."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from governors.messages import Text
from governors.tokens import TiktokenCounter
from governors.wire import WIRES
from runtime import Call, Reply, tool
from runtime.agent.agent import Agent
from runtime.agent.aside import AsideFailed
from runtime.agent.branches import planned, with_tree
from runtime.agent.ease import AT_ONCE
from runtime.agent.states import State
from runtime.agent.thrift import thrift_of
from runtime.errors import SessionError
from runtime.events import MessageRecorded, TurnFinished
from runtime.exports.as_model import as_model
from runtime.session.entries import (
    BranchSummaryRecord,
    HeadRecord,
    InboxRecord,
    MessageRecord,
    NoteRecord,
    OutcomeRecord,
    RequestRecord,
    SystemRecord,
    Waiting,
)
from runtime.session.moving.outline import outline
from runtime.session.moving.turns import said
from runtime.session.opening import read_log
from runtime.session.tree import Tree
from runtime.session.view.projection import project
from tests.agents import Talk, of, talk
from tests.session.logs import line


@tool(read_only=True)
def look(where: str) -> str:
    """Look somewhere.

    Args:
        where: At what.
    """
    return f"seen: {where}"


def shown(agent: Agent) -> list[str]:
    """What the model sees of the branch, context left out."""
    return [line(message).split(" | <")[0] for message in project(agent.session.branch()).messages]


def words(body: dict[str, Any]) -> list[str]:
    """The texts of a request's messages, without what the runtime adds at their end."""
    texts = []
    for message in body["messages"]:
        content = message["content"]
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        texts += [part.get("text", part["type"]) for part in parts if not part.get("text", "").startswith("<")]
    return texts


def assert_prefix_law_on_branches(it: Talk) -> None:
    """Each request extends the newest earlier one on its branch, unless its outcome names the cause."""
    tree = Tree(it.on_disk())
    sent = [entry for entry in tree.entries if isinstance(entry.record, RequestRecord)]
    causes = {entry.record.request: entry.record.cause for entry in tree.entries if entry.record.type == "outcome"}  # type: ignore[union-attr] # outcomes
    bodies = {entry.id: request for entry, request in zip(sent, it.model.requests, strict=True)}
    blocks = {key: WIRES[each.model.wire].prefix_blocks(dict(each.body)) for key, each in bodies.items()}
    for entry in sent:
        assert isinstance(entry.record, RequestRecord)
        chain = [
            each.id
            for each in tree.branch_to(entry.id)
            if isinstance(each.record, RequestRecord)
            and each.id != entry.id
            and each.record.purpose == "turn"
            and each.record.model == entry.record.model
        ]
        if chain:
            earlier = blocks[chain[-1]]
            assert (blocks[entry.id][: len(earlier)] == earlier) == (causes[entry.id] is None)
        assert causes[entry.id] != "unexplained"


async def test_undo_and_say_it_in_other_words(tmp_path: Path) -> None:
    """The message comes back, its turn is off the branch and in the file, and the model never hears of it again."""
    async with talk(tmp_path, ["Paris.", "About 2 million.", "About 12 million."]) as it:
        await it.say("What is the capital of France?")
        await it.say("How many people live there?")
        before = it.log.read_bytes()
        moved = await it.agent.branches.undo()
        assert (moved.text, moved.turns, moved.first is not None) == ("How many people live there?", 1, True)
        assert shown(it.agent) == ["user: What is the capital of France?", "reply: Paris."]
        assert it.log.read_bytes().startswith(before)
        await it.say("How many with its suburbs?")
        assert words(it.bodies[-1]) == ["What is the capital of France?", "Paris.", "How many with its suburbs?"]
        assert_prefix_law_on_branches(it)


async def test_undo_of_everything_begins_the_conversation_anew(tmp_path: Path) -> None:
    """The leaf is before the first entry; the system prompt is told again."""
    async with talk(tmp_path, ["One.", "Two.", "Fresh."]) as it:
        await it.say("a")
        await it.say("b")
        moved = await it.agent.branches.undo(2)
        assert (moved.leaf, moved.text) == (None, "a")
        await it.say("c")
        assert words(it.bodies[-1]) == ["c"]
        assert len(it.records(SystemRecord)) == 2
        with pytest.raises(SessionError, match="only 1 turn"):
            await it.agent.branches.undo(2)
        await it.agent.branches.undo()
        with pytest.raises(SessionError, match="nothing to undo"):
            await it.agent.branches.undo()


async def test_undo_stops_the_turn_that_runs_and_leaves_what_waits(tmp_path: Path) -> None:
    """The input that was typed meanwhile is held, as after every stop; the undone message is not sent with it."""
    reached = anyio.Event()

    async def hold() -> None:
        reached.set()
        await anyio.sleep_forever()

    async with talk(tmp_path, ["Hello.", Reply("Half", hold=hold), "Later."]) as it, anyio.create_task_group() as group:
        await it.say("hi")
        group.start_soon(it.say, "count to a million")
        await reached.wait()
        waiting = it.agent.send("and then back")
        await anext(waiting)
        moved = await it.agent.branches.undo()
        assert it.agent.state is State.IDLE
        assert moved.text == "count to a million"
        assert [(item.state, item.text) for item in it.agent.waiting()] == [("held", "and then back")]
        assert shown(it.agent) == ["user: hi", "reply: Hello."]
        stream = await it.agent.release()
        assert stream is not None
        assert of(TurnFinished, [event async for event in stream])
        assert words(it.bodies[-1]) == ["hi", "Hello.", "and then back"]
        assert_prefix_law_on_branches(it)


async def test_retry_sends_the_same_bytes(tmp_path: Path) -> None:
    """Nothing of the first answer is seen; both answers are in the file."""
    async with talk(tmp_path, ["Hello.", "A bad one.", "A better one."]) as it:
        await it.say("hi")
        await it.say("a joke, please")
        events = [event async for event in it.agent.branches.retry()]
        assert of(TurnFinished, events)[0].text == "A better one."
        assert it.bodies[2] == it.bodies[1]
        assert shown(it.agent)[-2:] == ["user: a joke, please", "reply: A better one."]
        assert [said(entry) for entry in it.on_disk() if entry.record.type == "message"][-2:] == [
            "A bad one.",
            "A better one.",
        ]
        assert_prefix_law_on_branches(it)


@pytest.mark.parametrize("ending", ["error", "refused", "aborted"])
async def test_retry_after_a_turn_that_failed(tmp_path: Path, ending: str) -> None:
    """After an error, a refusal and a stop alike; no trace of the first attempt is sent."""
    reached = anyio.Event()

    async def hold() -> None:
        reached.set()
        await anyio.sleep_forever()

    first = {
        "error": Reply("par", error="server"),
        "refused": Reply("I will not.", stop="refused"),
        "aborted": Reply("Half", hold=hold),
    }[ending]
    async with talk(tmp_path, [first, "Here it is."]) as it, anyio.create_task_group() as group:
        if ending == "aborted":
            group.start_soon(it.say, "please")
            await reached.wait()
            await it.agent.stop()
        else:
            await it.say("please")
        events = [event async for event in it.agent.branches.retry()]
        assert of(TurnFinished, events)[0].text == "Here it is."
        assert words(it.bodies[-1]) == ["please"]
        assert it.bodies[1] == it.bodies[0]


async def test_retry_brings_what_was_steered_in_at_once(tmp_path: Path) -> None:
    """It follows the message as a user's; the steps between are gone, and a later redaction finds both copies."""
    reached, going = anyio.Event(), anyio.Event()

    async def hold() -> None:
        reached.set()
        await going.wait()

    script = [Reply("Looking.", [Call("look", {"where": "in"})], hold=hold), "Nothing.", "Both answered."]
    async with talk(tmp_path, script, tools=[look]) as it, anyio.create_task_group() as group:
        group.start_soon(it.say, "what is in the box?")
        await reached.wait()
        await anext(it.agent.send("and under it?"))
        going.set()
        await it.agent.rest()
        events = [event async for event in it.agent.branches.retry()]
        assert of(TurnFinished, events)[0].text == "Both answered."
        assert shown(it.agent) == ["user: what is in the box?", "user: and under it?", "reply: Both answered."]
        assert len(of(MessageRecorded, events)) == 2
        assert it.agent.waiting() == ()
        redacted = await it.agent.marks.redact(_last_user(it))
        assert len(redacted.entries) == 3  # the input as it arrived, and both messages that brought it
        assert_prefix_law_on_branches(it)


def _last_user(it: Talk) -> int:
    branch = it.agent.session.branch()
    return next(e.id for e in reversed(branch) if isinstance(e.record, MessageRecord) and e.record.role == "user")


async def test_retry_with_another_model(tmp_path: Path) -> None:
    """It answers from here on, on this branch; going back to before brings the first model back."""
    async with talk(tmp_path, ["Hm.", "Yes.", "Well."]) as it:
        other = it.model.chosen(id="stronger")
        await it.say("is it?")
        [event async for event in it.agent.branches.retry(other)]
        assert it.model.requests[-1].model.id == "stronger"
        assert it.agent.model.name == "scripted/stronger"
        first = next(entry.id for entry in it.on_disk() if said(entry) == "Hm.")
        moved = await it.agent.branches.switch(first)
        assert (it.agent.model.name, moved.model) == ("scripted/scripted", None)
        await it.say("sure?")
        assert it.model.requests[-1].model.id == "scripted"
        assert words(it.bodies[-1]) == ["is it?", "Hm.", "sure?"]
        back = next(entry.id for entry in it.on_disk() if said(entry) == "Yes.")
        moved = await it.agent.branches.switch(back)
        assert moved.model == "scripted/stronger"  # whoever has it, puts it back
        assert_prefix_law_on_branches(it)


async def test_there_and_back_again(tmp_path: Path) -> None:
    """A branch that was left goes on where it ended; every request extends the last one of its own branch."""
    async with talk(tmp_path, ["One.", "Two.", "Other two.", "Three.", "Other three."]) as it:
        await it.say("a")
        await it.say("b")
        b = _last_user(it)
        await it.agent.branches.undo()
        await it.say("other b")
        other = _last_user(it)
        moved = await it.agent.branches.switch(b)
        assert moved.changed
        await it.say("c")
        assert words(it.bodies[-1]) == ["a", "One.", "b", "Two.", "c"]
        await it.agent.branches.switch(other)
        await it.say("other c")
        assert words(it.bodies[-1]) == ["a", "One.", "other b", "Other two.", "other c"]
        assert not (await it.agent.branches.switch(_last_user(it))).changed
        assert_prefix_law_on_branches(it)


async def test_switch_within_the_branch_goes_to_the_end_of_the_turn(tmp_path: Path) -> None:
    """Whichever of its entries is named; with `edit`, to before it, and the message comes back."""
    script = [Reply("", [Call("look", {"where": "up"})]), "The sky.", "Two.", "Three."]
    async with talk(tmp_path, script, tools=[look]) as it:
        await it.say("what is up?")
        result = next(entry.id for entry in it.on_disk() if entry.record.type == "result")
        await it.say("b")
        b = _last_user(it)
        await it.agent.branches.switch(result)
        assert shown(it.agent)[-1] == "reply: The sky."
        moved = await it.agent.branches.switch(b, edit=True)
        assert (moved.text, shown(it.agent)[-1]) == ("b", "reply: The sky.")
        await it.say("c")
        assert_prefix_law_on_branches(it)
        with pytest.raises(SessionError, match=r"no entry 999 .* nearest: "):
            await it.agent.branches.switch(999)


async def test_a_summary_of_the_branch_that_is_left(tmp_path: Path) -> None:
    """It extends the warm prefix, is no part of the branch that is left, and is known on the other one."""
    async with talk(tmp_path, ["One.", "Two.", "They tried b and got Two.", "Three."]) as it:
        await it.say("a")
        a = _last_user(it)
        await it.say("try b")
        tip = it.agent.session.tree.leaf
        moved = await it.agent.branches.switch(a, summarise=True)
        asked = it.records(RequestRecord)[-1]
        assert (asked.purpose, len(it.records(OutcomeRecord))) == ("branch_summary", 3)
        assert words(it.bodies[2])[:-1] == ["a", "One.", "try b", "Two."]
        assert "begins with: try b" in words(it.bodies[2])[-1]
        entries = it.on_disk()
        number = [entry.id for entry in entries if isinstance(entry.record, RequestRecord)][-1]
        seen = as_model(entries, number, it.agent.model.info)
        assert seen.same and seen.body == it.bodies[2], "what was asked is in the log"
        (record,) = it.records(BranchSummaryRecord)
        assert (record.text, record.fork) == ("They tried b and got Two.", moved.leaf and record.fork)
        assert tip is not None and record.tip >= tip
        assert moved.summary == it.agent.session.tree.leaf
        await it.say("go on")
        assert_prefix_law_on_branches(it)
        assert "They tried b and got Two." in str(it.bodies[-1])
        await it.agent.branches.switch(tip)
        assert shown(it.agent)[-1] == "reply: Two."


async def test_a_summary_of_a_long_branch_leaves_the_loop_free_and_knows_what_was_learned(tmp_path: Path) -> None:
    """Its request is prepared in a thread, for the window that a head tells of."""
    threads = set()

    class Counting(TiktokenCounter):
        def count(self, text: str) -> int:
            threads.add(threading.get_ident())
            return super().count(text)

    async with talk(tmp_path, ["One.", "They said much."]) as it:
        await it.say("a")
        a = _last_user(it)
        state = project(it.agent.session.branch()).state
        learned = {"fit:scripted/scripted": {"window": 20_000, "factor": 1.0}}
        head = HeadRecord(start=a, baseline=state.baseline, cause="by hand", generation=1, settings=learned)
        said = [MessageRecord(role="user", content=(Text(f"number {number}"),)) for number in range(AT_ONCE)]
        await it.agent.session.append(head, *said)
        it.agent.equipment = replace(it.agent.equipment, counter=Counting())
        await it.agent.branches.switch(a, summarise=True)
        asked = it.records(RequestRecord)[-1]
        assert asked.purpose == "branch_summary" and asked.budget < 20_000
        assert threads and threading.get_ident() not in threads


@pytest.mark.parametrize("answer", [Reply("", error="server"), Reply("half", stop="length"), Call("look", {})])
async def test_a_summary_that_fails_moves_nothing(tmp_path: Path, answer: Any) -> None:
    """Only a complete answer counts; the attempt is recorded, and the conversation goes on where it was."""
    async with talk(tmp_path, ["One.", "Two.", answer, "Three."], tools=[look]) as it:
        await it.say("a")
        a = _last_user(it)
        await it.say("b")
        with pytest.raises(AsideFailed):
            await it.agent.branches.switch(a, summarise=True)
        assert shown(it.agent)[-1] == "reply: Two."
        assert it.agent.state is State.IDLE
        await it.say("c")
        assert words(it.bodies[-1]) == ["a", "One.", "b", "Two.", "c"]
        assert_prefix_law_on_branches(it)


async def test_a_summary_can_be_stopped(tmp_path: Path) -> None:
    """As a turn can; nothing moves."""
    reached = anyio.Event()

    async def hold() -> None:
        reached.set()
        await anyio.sleep_forever()

    async with talk(tmp_path, ["One.", "Two.", Reply("They", hold=hold), "Three."]) as it:
        await it.say("a")
        a = _last_user(it)
        await it.say("b")
        failed = []

        async def go() -> None:
            with pytest.raises(AsideFailed, match="stopped"):
                await it.agent.branches.switch(a, summarise=True)
            failed.append(True)

        async with anyio.create_task_group() as group:
            group.start_soon(go)
            await reached.wait()
            assert it.agent.state is State.COMPACT
            await it.agent.stop()
        assert failed
        assert it.records(OutcomeRecord)[-1].stop == "aborted"
        await it.say("c")
        assert words(it.bodies[-1]) == ["a", "One.", "b", "Two.", "c"]


async def test_a_resumed_session_goes_on_where_the_leaf_was_put(tmp_path: Path) -> None:
    """What an undo says is on disk."""
    async with talk(tmp_path, ["One.", "Two."], session="s") as it:
        await it.say("a")
        await it.say("b")
        await it.agent.branches.undo()
    async with talk(tmp_path, ["Three."], session="s") as it:
        await it.say("c")
        assert words(it.bodies[-1]) == ["a", "One.", "c"]
        assert read_log(it.log).broken == ()


async def test_an_undo_that_crosses_a_cut_decides_it_anew(tmp_path: Path) -> None:
    """Heads of the governors are not kept; the next request is legal, in budget and explained."""
    async with talk(tmp_path, otherwise=lambda request: "x " * 400, window=6_000) as it:
        for number in range(12):
            await it.say(f"question {number} " + "word " * 150)
        assert it.records(HeadRecord)
        await it.agent.branches.undo(4)
        await it.say("another question")
        assert not [event for event in it.records(OutcomeRecord) if event.problem]
        assert_prefix_law_on_branches(it)
        assert not it.records(InboxRecord)


async def test_the_agent_remembers_nothing_of_the_branch_it_left(tmp_path: Path) -> None:
    """What it knows of the provider's cache is what a resumed agent would read from the log."""
    async with talk(tmp_path, otherwise="ok") as it:
        for number in range(3):
            await it.say(f"question {number}")
        await it.agent.branches.undo(2)
        desk = it.agent.room.desk()
        economy = desk.thrift(it.agent.model).economy
        assert economy == thrift_of(it.agent.session.branch(), it.agent.model).economy
        assert economy.cache is not None
        assert economy.cache.tokens < max(record.usage.prompt for record in it.records(OutcomeRecord) if record.usage)


@pytest.mark.parametrize(("turns", "in_a_thread"), [(3, False), (100, True)])
async def test_what_reads_a_long_tree_leaves_the_event_loop_free(tmp_path: Path, turns: int, in_a_thread: bool) -> None:
    """It gets a copy in a thread, which does not grow with the session; a short one is read at once."""
    async with talk(tmp_path, []) as scene:
        session = scene.agent.session
        for number in range(turns):
            said = MessageRecord(role="user", content=(Text(f"{number}"),))
            await session.append(said, *(NoteRecord(text="n") for _ in range(3)))
        seen: list[Tree] = []

        def work(tree: Tree) -> tuple[int, object]:
            seen.append(tree)
            return threading.get_ident(), (outline(tree), tree.entries, list(tree.branch()), tree.next_id)

        thread, found = await with_tree(session, work)
        tree = session.tree
        assert found == (outline(tree), tree.entries, list(tree.branch()), tree.next_id)
        assert (thread != threading.get_ident()) == in_a_thread
        await session.append(NoteRecord(text="later"))
        assert (seen[0].entries == session.tree.entries) == (not in_a_thread)


async def test_input_dropped_while_a_move_is_planned_is_in_no_head(tmp_path: Path) -> None:
    """A plan that was made with input that does not wait any more is made anew."""
    async with talk(tmp_path) as scene:
        item = Waiting(entry=1, state="held", content=(Text("wait"),))
        answers = [(item,), (), (), ()]
        made = await planned(scene.agent.session, lambda: answers.pop(0), lambda tree, waiting: waiting)
        assert made == ()
