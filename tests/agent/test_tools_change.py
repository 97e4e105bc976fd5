"""Tools and sections that change while people talk: what it costs, what is logged, and that the log tells it all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from governors.messages import ToolSpec
from governors.wire import WIRES
from governors.wire.base import Abilities
from runtime import Call, Reply, tool
from runtime.agent.prepare import front_moved
from runtime.exports import as_model
from runtime.providers.scripted import Script
from runtime.session.entries import HeadRecord, OutcomeRecord, RequestRecord, ResultRecord, SystemRecord
from runtime.tools.base import Tool
from runtime.tools.toolset import Toolset
from tests.agents import Talk, assert_prefix_law, talk
from tests.agents_again import assert_every_request_is_made_again

INLINE = Abilities(images=True, inline_tools=True, system_after_user=True)
FOLDS = Abilities(images=True, folds_patches=True)
WIRES_AND_ABILITIES = [("anthropic", INLINE), ("anthropic", Abilities()), ("openai_chat", Abilities())]


@tool(read_only=True)
def listing() -> str:
    """Give a listing."""
    return "a listing"


@tool(read_only=True)
def weather(city: str) -> str:
    """Tell the weather.

    Args:
        city: Where.
    """
    return f"rain in {city}"


@tool(read_only=True)
def zebra() -> str:
    """Count zebras."""
    return "three"


def reworded(one: Tool, **changes: Any) -> Tool:
    """`one` as a server describes it after an update."""
    return replace(one, spec=replace(one.spec, **changes))


def give(it: Talk, *tools: Tool) -> None:
    """These tools beside those that the runtime brings."""
    ours = {"listing", "weather", "zebra"}
    kept = [each for each in it.agent.equipment.toolset if each.spec.name not in ours]
    it.agent.equipment = replace(it.agent.equipment, toolset=Toolset([*kept, *tools]))


def names(body: dict[str, Any]) -> list[str]:
    return [each.get("name") or each["function"]["name"] for each in body["tools"]]


def causes(it: Talk) -> list[str | None]:
    return [record.cause for record in it.records(OutcomeRecord)]


@pytest.mark.parametrize(("wire", "abilities"), WIRES_AND_ABILITIES)
async def test_tools_come_and_go_and_every_cause_is_logged(tmp_path: Path, wire: str, abilities: Abilities) -> None:
    """A new tool moves the prefix only where it cannot stand inside the conversation; a removal moves it nowhere."""
    script: list[Script] = ["one", Call("weather", {"city": "Oslo"}), "two", Call("listing", {}), "three", "four"]
    async with talk(tmp_path, script, tools=[listing], wire=wire, abilities=abilities) as it:
        await it.say("hello")
        give(it, listing, weather)
        await it.say("and now?")
        give(it, weather)
        await it.say("once more")
        give(it, weather, listing)
        await it.say("all of them")
        inline = WIRES[wire].inline_tools(abilities)
        assert causes(it) == [None, None if inline else "tools", None, None, None, None]
        assert_prefix_law(it)
        assert_every_request_is_made_again(it)
        arrays = [names(body) for body in it.bodies]
        if inline:
            assert all(array == arrays[0] for array in arrays) and "weather" not in arrays[0]
        else:
            assert arrays[1] == [*arrays[0], "weather"] and all(array == arrays[1] for array in arrays[1:])
        results = [(record.tool, record.is_error) for record in it.records(ResultRecord)]
        assert results == [("weather", False), ("listing", True)], "a call of a removed tool fails and says so"
        assert "no tool" in str(it.records(ResultRecord)[1].content)


@pytest.mark.parametrize(("wire", "abilities"), WIRES_AND_ABILITIES)
async def test_a_reconnect_in_another_order_changes_no_byte(tmp_path: Path, wire: str, abilities: Abilities) -> None:
    """The same tools in another order, with the keys of their schemas in another order, are no change at all."""
    async with talk(tmp_path, tools=[listing, weather], otherwise="yes", wire=wire, abilities=abilities) as it:
        await it.say("hello")
        shuffled = dict(reversed(list(weather.spec.parameters.items())))
        give(it, reworded(weather, parameters=shuffled), listing)
        await it.say("still there?")
        assert len(it.records(SystemRecord)) == 1 and causes(it) == [None, None]
        assert names(it.bodies[0]) == names(it.bodies[1])
        assert_prefix_law(it)


@pytest.mark.parametrize(("wire", "abilities"), WIRES_AND_ABILITIES)
async def test_a_definition_that_changed_takes_effect_at_once(tmp_path: Path, wire: str, abilities: Abilities) -> None:
    """It is defined anew where tools stand inside the conversation, and replaced in the array elsewhere."""
    async with talk(tmp_path, tools=[listing, weather], otherwise="yes", wire=wire, abilities=abilities) as it:
        await it.say("hello")
        give(it, listing, reworded(weather, description="Tell tomorrow's weather."))
        await it.say("and now?")
        inline = WIRES[wire].inline_tools(abilities)
        assert causes(it) == [None, None if inline else "tools"]
        assert "tomorrow" in str(it.bodies[1]) and ("tomorrow" in str(it.bodies[1]["tools"])) is not inline
        assert_prefix_law(it)
        assert_every_request_is_made_again(it)


@pytest.mark.parametrize("wire", ["anthropic", "openai_chat"])
async def test_a_model_that_takes_no_patch_has_it_folded_with_a_cause(tmp_path: Path, wire: str) -> None:
    """The system prompt and the array say what holds now; the outcome names why the prefix moved."""
    async with talk(tmp_path, tools=[listing], otherwise="yes", wire=wire, abilities=FOLDS) as it:
        await it.say("hello")
        (tmp_path / "AGENTS.md").write_text("Answer in verse.\n")
        give(it, weather)
        await it.say("and now?")
        await it.say("and still?")
        assert causes(it) == [None, "system folded", None]
        part = it.bodies[1]["system"] if wire == "anthropic" else it.bodies[1]["messages"][0]
        assert "Answer in verse" in str(part) and "now read as follows" not in str(it.bodies[1])
        assert "weather" in names(it.bodies[1]) and "listing" not in names(it.bodies[1])
        assert_prefix_law(it)
        assert_every_request_is_made_again(it)


@pytest.mark.parametrize(("wire", "abilities"), WIRES_AND_ABILITIES)
async def test_the_next_head_cleans_the_array(tmp_path: Path, wire: str, abilities: Abilities) -> None:
    """An epoch's array is sorted and holds what is on; what came and went before is not told again."""
    script = [Reply("word " * 900) for _ in range(12)]
    options: dict[str, Any] = {"wire": wire, "abilities": abilities, "window": 9_000}
    async with talk(tmp_path, script, tools=[listing, zebra], **options) as it:
        await it.say("hello")
        give(it, weather, zebra)
        while not it.records(HeadRecord):
            await it.say("on")
        await it.say("and on")
        shown = [name for name in names(it.bodies[-1]) if name != "place_for_later_tools"]
        assert shown == sorted(shown) and {"weather", "zebra"} <= {*shown} and "listing" not in shown
        assert "now available" not in str(it.bodies[-1]["messages"])
        assert_prefix_law(it)
        assert_every_request_is_made_again(it)


async def test_what_a_model_saw_is_shown_with_its_tools(tmp_path: Path) -> None:
    """The request that brought a tool inside the conversation is made again by the exports, with its hash."""
    async with talk(tmp_path, tools=[listing], otherwise="yes", abilities=INLINE) as it:
        await it.say("hello")
        give(it, listing, weather)
        await it.say("and now?")
        entries = it.on_disk()
        newest = [entry.id for entry in entries if isinstance(entry.record, RequestRecord)][-1]
        seen = as_model(entries, newest, it.agent.model.info)
        assert seen.same and "tool_addition" in str(seen.body)
        assert "weather" not in [spec.name for spec in seen.tools]


@pytest.mark.parametrize(
    ("abilities", "added", "moved"),
    [
        (INLINE, (weather.spec,), False),
        (Abilities(), (weather.spec,), True),
        (Abilities(), (), False),
        (Abilities(), (listing.spec,), False),
        (FOLDS, (), True),
    ],
)
async def test_the_economy_knows_when_the_front_moves(
    tmp_path: Path, abilities: Abilities, added: Sequence[ToolSpec], moved: bool
) -> None:
    """A cache that cannot be read any more is no reason to wait with an edit; tools that come back move nothing."""
    async with talk(tmp_path, tools=[listing], otherwise="yes", abilities=abilities) as it:
        await it.say("hello")
        gone = () if added else ("listing",)
        await it.agent.session.append(SystemRecord(tools_added=tuple(added), tools_removed=gone))
        assert front_moved(tuple(it.agent.session.branch()), it.agent.model.info) is moved
