"""Models that bind reasoning to its prefix: whatever moves it, no request leaves that they would refuse."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from governors.messages import AssistantMessage, Text, Thinking, UserMessage
from governors.wire import WIRES
from governors.wire.base import THINKING_LEVELS, Abilities
from governors.wire.binding import check_binding
from governors.wire.encoder import Encoder
from runtime import Call, Hook, Reply, tool
from runtime.agent.bound import as_asked
from runtime.app import Runtime
from runtime.errors import SessionError
from runtime.events import HistoryEdited, TurnFinished
from runtime.providers.base import Finished, Problem, Request, StreamEvent
from runtime.providers.scripted import Script, Scripted
from runtime.session.entries import EditRecord, MessageRecord, OutcomeRecord, SettingRecord
from runtime.tools.toolset import Toolset
from tests.agents import Talk, assert_prefix_law, of
from tests.agents_again import assert_every_request_is_made_again

BINDS = Abilities(images=True, thinking="adaptive", binds_prefix=True)
DROPS = replace(BINDS, drop_block=True)


@tool(read_only=True)
def look(where: str) -> str:
    """Look somewhere.

    Args:
        where: At what.
    """
    return f"seen: {where}"


@tool(read_only=True)
def listen(where: str) -> str:
    """Listen somewhere.

    Args:
        where: To what.
    """
    return f"heard: {where}"


class Binding(Scripted):
    """Signs what it thinks, and refuses what it signed where it stands under another prefix: as it knows by itself. It
    drops it where the request asks for that."""

    def __init__(self, script: Sequence[Script] = (), *, otherwise: Script | None = None) -> None:
        super().__init__(script, otherwise=otherwise)
        self.produced: dict[str, str] = {}
        self.refused: list[str] = []

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[AsyncIterator[StreamEvent]]:
        wire, body = WIRES[request.model.wire], dict(request.body)
        asked = "block_binding" in (body.get("thinking") or {})
        found = () if asked else check_binding(self.produced, body, wire, request.model.abilities)
        self.refused += map(str, found)
        async with super().stream(request) as events:
            signed = self._signed(events, wire.prefix_hash(body), str(found[0]) if found else None)
            try:
                yield signed
            finally:
                await signed.aclose()

    async def _signed(
        self, events: AsyncIterator[StreamEvent], prefix: str, refusal: str | None
    ) -> AsyncGenerator[StreamEvent, None]:
        if refusal is not None:
            yield Finished(AssistantMessage((), "error"), Problem("bad_request", refusal, 400))
            return
        async for event in events:
            if isinstance(event, Finished):
                content = tuple(self._sign(part, prefix) for part in event.message.content)
                event = replace(event, message=replace(event.message, content=content))
            yield event

    def _sign(self, part: Any, prefix: str) -> Any:
        if not isinstance(part, Thinking):
            return part
        signature = f"signature-{len(self.produced)}"
        self.produced[signature] = prefix
        return replace(part, signature=signature)

    def thoughts(self, index: int = -1) -> int:
        return str(self.requests[index].body).count("signature-")


@asynccontextmanager
async def binding(folder: Path, model: Binding, abilities: Abilities = BINDS, **options: Any) -> AsyncIterator[Talk]:
    chosen = model.chosen(wire="anthropic", abilities=abilities)
    opened = Runtime.open(
        folder, model=chosen, tools=[look], settings={"tools.exec": "off", "thinking": "high"}, environ={}, **options
    )
    async with opened as runtime:
        it = Talk(runtime, await runtime.supervisor.agent("assistant"), model)
        yield it
    assert_prefix_law(it)
    assert not model.refused


def thinking(text: str = "well", *calls: Call) -> Reply:
    return Reply(text, calls, thinking=f"about {text}")


async def test_reasoning_stays_while_the_prefix_stands(tmp_path: Path) -> None:
    model = Binding([thinking("", Call("look", {"where": "up"})), thinking()], otherwise=thinking())
    async with binding(tmp_path, model) as it:
        await it.say("one")
        await it.say("two")
        await it.say("three")
        assert model.thoughts() == 3
        assert not it.records(EditRecord)


async def test_what_a_person_leaves_out_takes_later_reasoning_along(tmp_path: Path) -> None:
    model = Binding(otherwise=thinking())
    async with binding(tmp_path, model) as it:
        await it.say("one")
        await it.say("two")
        said = [entry.id for entry in it.on_disk() if isinstance(entry.record, MessageRecord)]
        await it.agent.marks.omit(said[2])
        events = await it.say("three")
        assert of(TurnFinished, events)[0].text == "well"
        assert "bound" in of(HistoryEdited, events)[0].why
        assert model.thoughts() == 1, "what was thought before it still stands where it did"
        await it.say("four")
        assert model.thoughts() == 2
        assert [record.cause for record in it.records(OutcomeRecord)] == [None, None, "edit", None]


async def test_a_new_tool_that_moves_the_prefix_takes_reasoning_along(tmp_path: Path) -> None:
    model = Binding(otherwise=thinking())
    async with binding(tmp_path, model) as it:
        await it.say("one")
        toolset = Toolset([*it.agent.equipment.toolset, listen])
        it.agent.equipment = replace(it.agent.equipment, toolset=toolset)
        await it.say("two")
        assert model.thoughts() == 0
        await it.say("three")
        assert model.thoughts() == 1
        assert_every_request_is_made_again(it)


async def test_a_hook_that_moves_the_prefix_takes_reasoning_along(tmp_path: Path) -> None:
    """And one that goes on as it did moves nothing."""
    on = [False]

    def shape(context: Any, body: dict[str, Any]) -> dict[str, Any]:
        return {**body, "system": [{"type": "text", "text": "Be brief."}]} if on[0] else body

    model = Binding(otherwise=thinking())
    async with binding(tmp_path, model, hooks=[Hook("shape", before_request=shape)]) as it:
        await it.say("one")
        on[0] = True
        await it.say("two")
        assert model.thoughts() == 0
        await it.say("three")
        await it.say("four")
        assert model.thoughts() == 2
        on[0] = False
        await it.say("five")
        assert model.thoughts() == 0
        assert [record.cause for record in it.records(OutcomeRecord)] == [None, "hook:shape", None, None, "hook:shape"]


async def think(it: Talk, level: str) -> None:
    await it.agent.session.append(SettingRecord(name="thinking", value=level))


async def test_reasoning_that_was_moved_is_left_out_where_it_cannot_be_asked_to_be_dropped(tmp_path: Path) -> None:
    """With thinking off a request has no place for the wish that the provider drops it."""
    model = Binding(otherwise=thinking())
    async with binding(tmp_path, model, DROPS) as it:
        await it.say("one")
        await it.say("two")
        said = [entry.id for entry in it.on_disk() if isinstance(entry.record, MessageRecord)]
        await it.agent.marks.omit(said[2])
        await it.say("three")
        assert model.thoughts() == 2, "the provider drops what has moved"
        await think(it, "off")
        await it.say("four")
        assert "block_binding" not in str(model.requests[-1].body)
        assert model.thoughts() == 1, "what is left out moves what was thought after it"
        await think(it, "high")
        await it.say("five")
        assert model.thoughts() == 2
        assert [record.cause for record in it.records(OutcomeRecord)] == [None, None, "edit", "reasoning", None]
        assert_every_request_is_made_again(it)


async def test_a_hook_that_moves_the_prefix_takes_reasoning_along_once_thinking_is_off(tmp_path: Path) -> None:
    on = [False]

    def shape(context: Any, body: dict[str, Any]) -> dict[str, Any]:
        return {**body, "system": [{"type": "text", "text": "Be brief."}]} if on[0] else body

    model = Binding(otherwise=thinking())
    async with binding(tmp_path, model, DROPS, hooks=[Hook("shape", before_request=shape)]) as it:
        await it.say("one")
        on[0] = True
        await it.say("two")
        assert model.thoughts() == 1
        await think(it, "off")
        await it.say("three")
        assert model.thoughts() == 0
        await it.say("four")
        assert model.thoughts() == 1


@pytest.mark.parametrize("ability", ["none", "budget", "adaptive", "effort"])
@pytest.mark.parametrize("level", [None, *THINKING_LEVELS])
def test_a_model_counts_as_one_that_drops_just_where_its_request_asks_for_it(ability: Any, level: str | None) -> None:
    info = Scripted().model(wire="anthropic", abilities=replace(DROPS, thinking=ability))
    encoder = Encoder(
        WIRES["anthropic"],
        system="",
        abilities=info.abilities,
        model=info.id,
        max_output=20_000,
        thinking=level,
        tools=(),
    )
    encoder.append((UserMessage((Text("hello"),)),))
    assert as_asked(info, level).abilities.drop_block == ("block_binding" in str(encoder.body()))


ACTS = st.lists(
    st.sampled_from(
        ["say", "call", "omit", "restore", "redact", "tool", "file", "undo", "retry", "resume", "other", "think"]
    ),
    min_size=3,
    max_size=9,
)


@settings(max_examples=40, deadline=None)
@given(ACTS, st.sampled_from([BINDS, DROPS]))
def test_no_request_leaves_that_a_binding_model_refuses(acts: list[str], abilities: Abilities) -> None:
    with TemporaryDirectory() as folder:
        anyio.run(_play, Path(folder), acts, abilities)


async def _play(folder: Path, acts: list[str], abilities: Abilities) -> None:
    model = Binding(otherwise=thinking())
    chosen = model.chosen(wire="anthropic", abilities=abilities)
    options: dict[str, Any] = {"tools": [look], "settings": {"tools.exec": "off", "thinking": "high"}, "environ": {}}
    begun = ["say", "say", *acts, "say"]
    session: str | None = None
    while begun:
        async with Runtime.open(folder, model=chosen, **options) as runtime:
            it = Talk(runtime, await runtime.supervisor.agent("assistant", session), model)
            session = it.agent.session.id
            while begun and (act := begun.pop(0)) != "resume":
                await _act(it, model, act, len(begun))
    assert not model.refused


async def _act(it: Talk, model: Binding, act: str, left: int) -> None:
    said = [entry for entry in it.agent.session.branch() if isinstance(entry.record, MessageRecord)]
    edits = [e.record for e in it.agent.session.branch() if isinstance(e.record, EditRecord) and e.record.block is None]
    match act:
        case "omit" if said:
            with suppress(SessionError):  # it is redacted
                await it.agent.marks.omit(said[left % len(said)].id)
        case "redact" if said:
            with suppress(SessionError):  # it was redacted already
                await it.agent.marks.redact(said[left % len(said)].id)
        case "restore" if edits and edits[-1].action == "omit":
            with suppress(SessionError):  # the same
                await it.agent.marks.restore(edits[-1].target)
        case "tool":
            on = [each for each in it.agent.equipment.toolset if each.spec.name != "listen"]
            more = on if len(on) < len(list(it.agent.equipment.toolset)) else [*on, listen]
            it.agent.equipment = replace(it.agent.equipment, toolset=Toolset(more))
        case "file":
            (it.agent.equipment.workspace / "AGENTS.md").write_text(f"Rule {left}.\n")
        case "undo" if said:
            await it.agent.branches.undo()
        case "retry" if said:
            async for _ in it.agent.branches.retry():
                pass
        case "other":
            other = Scripted(otherwise="from elsewhere").chosen(id="other", wire="openai_chat")
            mine = it.agent.model
            await it.agent.switch_model(other)
            await it.say("and you?")
            await it.agent.switch_model(mine)
        case "think":
            await think(it, "high" if it.agent.room.standing().settings.get("thinking") == "off" else "off")
        case "call":
            model.add(thinking("", Call("look", {"where": "there"})))
            await it.say("look")
        case _:
            (finished,) = of(TurnFinished, await it.say("go on"))
            assert finished.error is None
