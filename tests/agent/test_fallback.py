"""Another model steps in where the settings name one, and the session goes on as if nothing had been."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from runtime import Call, Reply, tool
from runtime.app import Runtime
from runtime.errors import ModelUnavailable
from runtime.events import Notice, ReplyRecorded, TurnFinished
from runtime.providers.base import ChosenModel
from runtime.providers.scripted import Script, Scripted
from runtime.session.entries import MessageRecord, OutcomeRecord, RequestRecord
from tests.agents import Talk, assert_prefix_law, of, talk
from tests.agents_again import bytes_of


@tool(read_only=True)
def look(where: str) -> str:
    """Look somewhere.

    Args:
        where: At what.
    """
    return f"seen: {where}"


@asynccontextmanager
async def standby(
    folder: Path, first: list[Script], *others: Scripted, refusal: bool = False, wire: str = "anthropic", **model: Any
) -> AsyncIterator[Talk]:
    """A conversation whose model is followed by `others`, named `second`, `third` ..."""
    names = ("second", "third")
    given = [other.chosen(id=name, **{"wire": wire, **model}) for name, other in zip(names, others, strict=False)]

    def opener(model: ChosenModel) -> Any:
        async def opened() -> ChosenModel:
            return model

        return opened

    async with talk(folder, first, tools=[look], wire=wire, prefix_law=False) as it:
        it.agent.equipment = replace(
            it.agent.equipment, fallbacks=tuple(map(opener, given)), fallback_on_refusal=refusal
        )
        yield it


def models(it: Talk) -> list[str]:
    return [record.model for record in it.records(RequestRecord)]


async def test_the_next_model_answers_for_the_rest_of_the_turn(tmp_path: Path) -> None:
    other = Scripted([Call("look", {"where": "up"}), "the sky", "never"])
    async with standby(tmp_path, [Reply(error="overloaded"), "I am back"], other) as it:
        events = await it.say("what is there?")
        (finished,) = of(TurnFinished, events)
        assert (finished.text, finished.error, finished.steps) == ("the sky", None, 2)
        (notice,) = of(Notice, events)
        assert "scripted/second answers for the rest of this turn" in notice.text
        (finished,) = of(TurnFinished, await it.say("and now?"))
        assert finished.text == "I am back"
        assert models(it) == ["scripted", "second", "second", "scripted"]
        assert [record.cause for record in it.records(OutcomeRecord)] == [None] * 4
        assert [r.model for r in it.records(MessageRecord) if r.role == "assistant"] == ["second", "second", "scripted"]


@pytest.mark.parametrize("kind", ["overloaded", "rate_limited", "network"])
async def test_what_may_pass_lets_another_model_in(tmp_path: Path, kind: Any) -> None:
    async with standby(tmp_path, [Reply(error=kind)], Scripted(["here"])) as it:
        assert of(TurnFinished, await it.say("hello"))[0].text == "here"


@pytest.mark.parametrize("kind", ["bad_request", "auth", "unknown"])
async def test_what_stays_wrong_does_not(tmp_path: Path, kind: Any) -> None:
    other = Scripted(["here"])
    async with standby(tmp_path, [Reply(error=kind)], other) as it:
        assert of(TurnFinished, await it.say("hello"))[0].error is not None
        assert not other.requests


async def test_nobody_steps_in_once_something_was_shown(tmp_path: Path) -> None:
    other = Scripted(["here"])
    async with standby(tmp_path, [Reply("half of", error="network")], other) as it:
        events = await it.say("hello")
        assert of(TurnFinished, events)[0].error is not None and not other.requests
        assert [reply.text for reply in of(ReplyRecorded, events)] == ["half of"]


@pytest.mark.parametrize("wished", [True, False])
async def test_a_refusal_lets_another_in_only_where_that_is_wished(tmp_path: Path, wished: bool) -> None:
    async with standby(tmp_path, [Reply(stop="refused")], Scripted(["here"]), refusal=wished) as it:
        (finished,) = of(TurnFinished, await it.say("hello"))
        assert (finished.text == "here") == wished == (finished.error is None)


async def test_each_is_tried_once_and_then_the_turn_ends(tmp_path: Path) -> None:
    second, third = Scripted([Reply(error="network")]), Scripted([Reply(error="rate_limited")])
    async with standby(tmp_path, [Reply(error="overloaded"), "back"], second, third) as it:
        (finished,) = of(TurnFinished, await it.say("hello"))
        assert finished.error is not None and "rate_limited" in finished.error
        assert models(it) == ["scripted", "second", "third"]
        assert of(TurnFinished, await it.say("again"))[0].text == "back"


async def test_one_that_cannot_be_opened_is_told_and_passed_over(tmp_path: Path) -> None:
    async def missing() -> ChosenModel:
        raise ModelUnavailable("no key is set")

    async with standby(tmp_path, [Reply(error="overloaded")], Scripted(["here"])) as it:
        given = it.agent.equipment
        it.agent.equipment = replace(given, fallbacks=(missing, *given.fallbacks))
        events = await it.say("hello")
        assert of(TurnFinished, events)[0].text == "here"
        assert "no key is set" in of(Notice, events)[0].text


WIRES = ["anthropic", "openai_chat", "openai_responses"]


@pytest.mark.parametrize(("mine", "other"), list(permutations(WIRES, 2)) + [(wire, wire) for wire in WIRES])
async def test_what_is_foreign_never_reaches_the_other_model(tmp_path: Path, mine: str, other: str) -> None:
    """Its reasoning, signatures and ids; the scripted models refuse what their wire's rules refuse."""
    strange = Reply("I look", [Call("look", {"where": "up"}, id="call|with:odd/id")], thinking="a secret thought")
    second = Scripted([Call("look", {"where": "down"}), "done"])
    async with standby(tmp_path, [strange, Reply(error="overloaded"), "mine again"], second, wire=mine) as it:
        model = second.chosen(id="second", wire=other)

        async def opened() -> ChosenModel:
            return model

        it.agent.equipment = replace(it.agent.equipment, fallbacks=(opened,))
        (finished,) = of(TurnFinished, await it.say("what is there?"))
        assert (finished.text, finished.error) == ("done", None)
        sent = str([request.body for request in second.requests])
        assert "I look" in sent and "secret thought" not in sent and "scripted-signature" not in sent
        (finished,) = of(TurnFinished, await it.say("and now?"))
        assert finished.text == "mine again"
        assert [record.cause for record in it.records(OutcomeRecord)] == [None] * 5
        assert bytes_of(it.bodies[-1]) == it.model.requests[-1].content


async def test_the_settings_name_them(tmp_path: Path) -> None:
    first = Scripted([Reply(error="overloaded")])
    settings = {"tools.exec": "off", "fallbacks": ["openai/gpt-none"]}
    async with Runtime.open(tmp_path, model=first, settings=settings, environ={}) as runtime:
        agent = await runtime.supervisor.agent("assistant")
        it = Talk(runtime, agent, first)
        events = await it.say("hello")
        assert (
            "A fallback cannot be used" in of(Notice, events)[0].text and "OPENAI_API_KEY" in of(Notice, events)[0].text
        )
        assert of(TurnFinished, events)[0].error is not None
    assert_prefix_law(it)
