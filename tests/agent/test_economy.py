"""Old results become lines when that is free, pays or must be; nothing that went is gone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from governors.decisions import Stub
from governors.messages import Image, Text, Usage
from governors.microcompact import BULKY_TOOLS
from governors.report import Governed, Report
from governors.wire.base import Abilities
from runtime import Call, Reply, tool
from runtime.agent.thrift import thrift_of
from runtime.events import HistoryEdited, ToolFinished, TurnFinished
from runtime.session.entries import EditRecord, HeadRecord, OutcomeRecord, RequestRecord, ResultRecord
from runtime.session.view.recall import recall
from runtime.session.view.standing import standing_of
from tests.agents import Talk, assert_prefix_law, of, talk


@tool(bulky=True, read_only=True)
def listing(number: int) -> str:
    """Give a long listing.

    Args:
        number: Which one.
    """
    return f"listing {number}\n" + "\n".join(f"entry {number}-{line} of a long listing" for line in range(40))


class Clock:
    """A clock that stands still until it is told otherwise."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def with_clock(it: Talk) -> Clock:
    clock = Clock()
    it.agent.equipment = replace(it.agent.equipment, now=clock)
    return clock


def calls(count: int, first: int = 0) -> list[Any]:
    return [Call("listing", {"number": first + number}) for number in range(count)]


async def test_a_cold_cache_is_the_cheap_moment(tmp_path: Path) -> None:
    """FAULT 107: an idle timer rewrites history although a cold cache is rebuilt anyway."""
    script = [*calls(14), "done", "welcome back"]
    async with talk(tmp_path, script, tools=[listing]) as it:
        clock = with_clock(it)
        await it.say("look at all of them")
        assert not it.records(EditRecord), "a warm prefix is not broken"
        clock.now += 3_600
        events = await it.say("I am back")
        (edited,) = of(HistoryEdited, events)
        assert len(edited.entries) == 4, "the newest ten stay whole"
        assert edited.after < edited.before
        assert "cold" in edited.why
        assert {record.cause for record in it.records(EditRecord)} == {"microcompact: the cache was cold"}
        assert it.records(OutcomeRecord)[-1].cause == "edit"
        assert_prefix_law(it)


async def test_a_warm_prefix_stays_as_it_is_when_editing_would_not_pay(tmp_path: Path) -> None:
    async with talk(tmp_path, [*calls(14), "done", "again"], tools=[listing]) as it:
        clock = with_clock(it)
        await it.say("look")
        clock.now += 20
        assert not of(HistoryEdited, await it.say("and?"))
        assert_prefix_law(it)


async def test_a_request_over_budget_edits_before_it_cuts(tmp_path: Path) -> None:
    script = [*calls(24), "done"]
    async with talk(tmp_path, script, tools=[listing], window=9_000) as it:
        with_clock(it)
        events = await it.say("look at all of them")
        assert of(TurnFinished, events)[0].text == "done"
        assert of(HistoryEdited, events)
        causes = [record.cause for record in it.records(EditRecord)]
        assert "microcompact: the request was over budget" in causes
        assert_prefix_law(it)


async def test_the_model_reads_back_what_a_stub_hides(tmp_path: Path) -> None:
    async with talk(tmp_path, [*calls(14), "done", "thinking"], tools=[listing]) as it:
        clock = with_clock(it)
        await it.say("look at all of them")
        clock.now += 3_600
        await it.say("I am back")
        line = it.records(EditRecord)[0].content[0]
        assert isinstance(line, Text) and line.text.startswith("[listing result, ")
        handle = line.text.split("recall ")[1].split(":")[0]
        it.model.add(Call("recall", {"what": handle}), "now I know")
        events = await it.say("what was in the first?")
        (result,) = of(ToolFinished, events)
        assert not result.is_error
        assert result.text == it.records(ResultRecord)[0].content[0].text  # type: ignore[union-attr] # a text


async def test_an_output_that_is_too_long_is_cut_at_birth_and_recalled_whole(tmp_path: Path) -> None:
    @tool
    def flood() -> str:
        """Say very much."""
        return "".join(f"{number:>9}\n" for number in range(20_000))

    async with talk(tmp_path, [Call("flood", {}), "done"], tools=[flood]) as it:
        events = await it.say("go")
        (result,) = of(ToolFinished, events)
        assert len(result.text) <= 40_000
        handle = result.text.split("recall ")[1].split(" ")[0]
        whole = recall(it.agent.session.branch(), handle, blobs=it.agent.session.blobs)
        assert whole is not None and len(whole) == 200_000 and "12345" in whole
        it.model.add(Call("recall", {"what": handle, "offset": 100_000}), "found")
        (page,) = of(ToolFinished, await it.say("read on"))
        assert "10000\n" in page.text and "go on with offset=112000" in page.text


async def test_what_a_cut_left_out_is_found_by_its_words(tmp_path: Path) -> None:
    async with talk(tmp_path, otherwise="noted", window=4_500) as it:
        await it.say("the code word is heliotrope " + "and so on " * 300)
        for number in range(8):
            await it.say(f"more {number} " + "words " * 150)
        assert it.records(HeadRecord)
        assert "heliotrope" not in str(it.bodies[-1]["messages"])
        it.model.add(Call("recall", {"what": "HELIOTROPE"}), "it is heliotrope")
        (found,) = of(ToolFinished, await it.say("what was the code word?"))
        assert found.text.startswith("#1 (user, ") and "heliotrope" in found.text


async def test_pictures_over_the_limit_go_oldest_first_down_to_half_of_it(tmp_path: Path) -> None:
    """FAULT 43: an image that was fine for many turns is refused once there are too many."""
    abilities = Abilities(images=True, max_images=6)
    async with talk(tmp_path, otherwise="seen", abilities=abilities) as it:
        for number in range(8):
            picture = Image("image/png", f"aGVsbG8{number}", 64, 64)
            events = [event async for event in it.agent.send([Text(f"picture {number}"), picture])]
            assert of(TurnFinished, events)[0].error is None
        pictures = [str(body["messages"]).count("'type': 'image'") for body in it.bodies]
        assert pictures == [1, 2, 3, 4, 5, 6, 3, 4]
        assert_prefix_law(it)


async def test_people_who_come_back_after_twenty_minutes_find_a_warm_cache(tmp_path: Path) -> None:
    """The lifetime of a write is chosen from the gaps seen so far, and what it costs to write little for long."""
    async with talk(tmp_path, otherwise="yes") as it:
        clock = with_clock(it)
        for _ in range(5):
            await it.say("are you there?")
            clock.now += 20
            await it.say("good")
            clock.now += 1_200
        assert it.records(RequestRecord)[-1].lifetime == 3_600
        assert str(it.bodies[-1]).count("'ttl': '1h'") >= 1
        assert_prefix_law(it)


async def test_quick_turns_with_much_to_write_keep_the_cheap_lifetime(tmp_path: Path) -> None:
    async with talk(tmp_path, otherwise="yes") as it:
        clock = with_clock(it)
        for _ in range(12):
            await it.say("and this? " + "a long text that is new " * 400)
            clock.now += 15
        assert it.records(RequestRecord)[-1].lifetime == 300
        assert "'ttl'" not in str(it.bodies[-1])


async def test_what_is_known_of_the_cache_is_read_off_the_log(tmp_path: Path) -> None:
    usage = Usage(plain=500, cache_read=1_500, output=10)
    async with talk(tmp_path, [Reply("one", usage=usage), Reply("two", usage=usage)], session="thrift") as it:
        await it.say("hello")
        await it.say("again")
        thrift = thrift_of(it.agent.session.branch(), it.agent.model)
        assert thrift.economy.cache is not None and thrift.economy.cache.tokens == 2_000
        assert thrift.economy.prices.rates.plain == 3.0


def test_the_shipped_bulky_tools_are_those_that_say_so() -> None:
    from runtime.tools.standard import standard_tools

    bulky = {each.spec.name for each in standard_tools("unconfined") if each.spec.bulky}
    assert bulky <= BULKY_TOOLS


async def test_what_a_person_wants_to_see_whole_stays_whole(tmp_path: Path) -> None:
    """A restore by the user holds against edits that are only cheap."""
    async with talk(tmp_path, [*calls(14), "done"], tools=[listing], otherwise="yes") as it:
        clock = with_clock(it)
        await it.say("look at all of them")
        clock.now += 3_600
        await it.say("I am back")
        target = it.records(EditRecord)[0].target
        await it.agent.session.append(EditRecord(action="restore", target=target, cause="user"))
        clock.now += 3_600
        await it.say("and again")
        assert [record.action for record in it.records(EditRecord) if record.target == target] == ["replace", "restore"]
        assert "entry 0-39" in str(it.bodies[-1]["messages"])
        assert_prefix_law(it)


async def test_an_edit_tells_what_it_was_expected_to_bring(tmp_path: Path) -> None:
    async with talk(tmp_path, [*calls(14), "done", "yes"], tools=[listing]) as it:
        clock = with_clock(it)
        await it.say("look")
        clock.now += 3_600
        await it.say("back")
        forecast = it.records(EditRecord)[0].forecast
        assert forecast is not None and forecast["tokens"] > 0 and forecast["money"] > 0


def test_a_stub_is_found_by_its_handle_whatever_the_result_held() -> None:
    from governors.messages import ToolResult, UserMessage
    from runtime.agent.decided import records_of
    from runtime.agent.heading import Shown
    from tests.session.logs import Log

    picture = Image("image/png", "aGVsbG8=")
    for content in ((Text(""), Text("x" * 900)), (picture, picture), (Text("y" * 900), picture)):
        log = Log()
        log.user("go")
        reply = log.calls("read_file")
        log.add(ResultRecord(call=(reply, 0), tool="read_file", content=content))
        projection = log.projection
        governed = Governed(projection.messages, (Stub(2, ""),), Report(0, 0, 0, 0, 0))
        (edit,) = records_of(governed, Shown(projection, log.branch, standing_of(log.tree.entries), lambda _: 0))
        assert isinstance(edit, EditRecord) and isinstance(projection.messages[0], UserMessage)
        assert isinstance(projection.messages[2], ToolResult)
        handle = edit.content[0].text.split("recall ")[1].split(":")[0].rstrip("]")  # type: ignore[union-attr] # a text
        assert recall(log.branch, handle)


async def test_reasoning_that_was_bound_to_what_changed_goes_with_it(tmp_path: Path) -> None:
    """On a model that binds reasoning to its prefix and drops none by itself."""
    abilities = Abilities(binds_prefix=True)
    script = [Reply(calls=[Call("listing", {"number": number})], thinking=f"thought {number}") for number in range(14)]
    async with talk(tmp_path, [*script, "done"], tools=[listing], otherwise="yes", abilities=abilities) as it:
        clock = with_clock(it)
        await it.say("look at all of them")
        assert "thought 13" in str(it.bodies[-1]["messages"])
        clock.now += 3_600
        await it.say("I am back")
        assert "thought 13" not in str(it.bodies[-1]["messages"])
        assert any(record.cause.startswith("reasoning") for record in it.records(EditRecord))
        assert_prefix_law(it)
