"""Long conversations on small windows: every request fits, and what goes out of view is said in the log."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from governors.messages import AssistantMessage
from runtime import Call, Reply, tool
from runtime.agent.fit import known_fit
from runtime.events import HistoryCut, Notice, RequestSent, TurnFinished
from runtime.providers.base import Finished, Problem, Request, StreamEvent
from runtime.providers.scripted import Scripted
from runtime.session.entries import HeadRecord, OutcomeRecord, RequestRecord, SettingRecord
from tests.agents import assert_prefix_law, of, talk

WIRES = pytest.mark.parametrize("wire", ["anthropic", "openai_chat"])


@tool
def lines(count: int) -> str:
    """Give many lines.

    Args:
        count: How many.
    """
    return "\n".join(f"line {number} of the long output" for number in range(count))


def texts(body: dict[str, Any]) -> str:
    return str(body["messages"])


@WIRES
async def test_forty_turns_on_a_small_window_all_fit(tmp_path: Path, wire: str) -> None:
    script: list[Any] = []
    for number in range(40):
        script += [Reply("", [Call("lines", {"count": 30})]), f"answer {number}. Shall I go on?"]
    async with talk(tmp_path, script, tools=[lines], wire=wire, window=6_000) as it:
        cuts = 0
        for number in range(40):
            events = await it.say(f"question number {number}")
            assert of(TurnFinished, events)[0].error is None
            assert of(TurnFinished, events)[0].text == f"answer {number}. Shall I go on?"
            assert all(request.tokens <= request.budget for request in of(RequestSent, events))
            assert f"question number {number}" in texts(it.bodies[-1])
            cuts += len(of(HistoryCut, events))
        assert_prefix_law(it)
        heads = it.records(HeadRecord)
        assert cuts == len(heads) > 2
        assert len(heads) < 20, "a cut must make room for more than the next call"
        assert [head.generation for head in heads] == list(range(1, len(heads) + 1))


@WIRES
async def test_one_turn_that_is_longer_than_the_window_keeps_its_task(tmp_path: Path, wire: str) -> None:
    """FAULT 92: the task is the last user message of the prompt and falls out of the kept tail."""
    script: list[Any] = [Reply("", [Call("lines", {"count": 40})]) for _ in range(25)]
    async with talk(tmp_path, [*script, "done"], tools=[lines], wire=wire, window=6_000) as it:
        events = await it.say("count the beans in the jar")
        assert of(TurnFinished, events)[0].text == "done"
        assert all("count the beans in the jar" in texts(body) for body in it.bodies)
        assert all(texts(body).count("Earlier steps of this turn") <= 1 for body in it.bodies)
        assert "Earlier steps of this turn" in texts(it.bodies[-1])
        assert_prefix_law(it)


async def test_a_short_answer_keeps_the_question_it_replies_to(tmp_path: Path) -> None:
    """FAULT 56: 'yes' is kept, the question it answers is dropped."""
    filler = "word " * 2_500
    async with talk(tmp_path, [Reply(filler + "Shall I create the file now?"), "created"], window=4_500) as it:
        await it.say("think about it")
        await it.say("yes")
        last = texts(it.bodies[-1])
        assert "Shall I create the file now?" in last
        assert len(last) < len(filler)
        assert "yes" in last


async def test_a_message_that_cannot_fit_is_refused_with_the_numbers_and_the_next_turn_works(tmp_path: Path) -> None:
    async with talk(tmp_path, ["fine"], window=4_000) as it:
        finished = of(TurnFinished, await it.say("word " * 5_000))[0]
        assert finished.error is not None
        assert "cannot fit" in finished.error and "4,000" in finished.error
        assert not it.bodies
        assert of(TurnFinished, await it.say("a short one"))[0].text == "fine"
        assert "word word" not in texts(it.bodies[0])


@WIRES
async def test_an_overflow_that_the_provider_reports_is_answered_by_fitting(tmp_path: Path, wire: str) -> None:
    """FAULT 61: the estimate is too low, and the server counts more."""
    script = [f"answer {number} " + "word " * 200 for number in range(30)]
    async with talk(tmp_path, script, wire=wire, window=4_000) as it:
        real = it.agent.model.info
        # We think that the window is larger than it is; the model's own server knows better.
        from dataclasses import replace

        believed = replace(it.agent.model, info=replace(real, window=8_000, max_output=500))

        class Server:
            name = "scripted"

            def stream(self, request: Any) -> Any:
                return it.model.stream(replace(request, model=real))

        it.agent.model = replace(believed, provider=Server())  # type: ignore[arg-type] # only stream is used
        notices: list[Notice] = []
        for number in range(30):
            events = await it.say(f"question {number}")
            assert of(TurnFinished, events)[0].error is None
            notices += of(Notice, events)
        assert 1 <= len(notices) <= 2, "it learns the window once"
        learned = [record for record in it.records(SettingRecord) if record.name.startswith("fit:")]
        assert learned[-1].value["window"] == 4_000
        overflows = [record for record in it.records(OutcomeRecord) if record.problem]
        assert all(record.problem["kind"] == "overflow" for record in overflows if record.problem)


async def test_what_an_overflow_taught_is_known_after_a_restart(tmp_path: Path) -> None:
    async with talk(tmp_path, ["one"], session="fit") as it:
        await it.say("hello")
        await it.agent.session.append(
            SettingRecord(name="fit:scripted/scripted", value={"window": 6_000, "factor": 1.5})
        )
    async with talk(tmp_path, ["two"], session="fit") as it:
        events = await it.say("again")
        assert of(RequestSent, events)[0].budget < 6_000


class Unclear(Scripted):
    """A server that refuses without a word what is over its real window."""

    def __init__(self, most: int) -> None:
        super().__init__(otherwise="well")
        self.most = most

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[AsyncIterator[StreamEvent]]:
        async with super().stream(request) as events, aclosing(self._answered(events, request)) as answered:
            yield answered

    async def _answered(
        self, events: AsyncIterator[StreamEvent], request: Request
    ) -> AsyncGenerator[StreamEvent, None]:
        if len(request.content) > self.most:
            self.requests.append(request)
            yield Finished(AssistantMessage((), "error"), Problem("bad_request", "invalid request.", 400))
            return
        async for event in events:
            yield event


async def test_an_unclear_refusal_near_the_window_is_taken_for_an_overflow_once(tmp_path: Path) -> None:
    model = Unclear(most=1_000_000)
    async with talk(tmp_path, window=8_000) as it:
        it.agent.model = model.chosen(window=8_000, max_output=200)
        it.agent.equipment = replace(it.agent.equipment, margin=64)
        while not model.requests or it.records(RequestRecord)[-1].forecast < 7_300:
            await it.say("a word or two of it " * 20)
        model.most = len(model.requests[-1].content) - 400
        (finished,) = of(TurnFinished, await it.say("and?"))
        assert (finished.error, finished.text) == (None, "well")
        assert [record.name for record in it.records(SettingRecord) if record.name.startswith("fit:")]
        sizes = [len(request.content) for request in model.requests[-2:]]
        assert sizes[1] < sizes[0]


async def test_a_false_alarm_near_the_window_does_not_loop_and_teaches_nothing(tmp_path: Path) -> None:
    model = Unclear(most=1_000_000)
    async with talk(tmp_path, window=8_000) as it:
        it.agent.model = model.chosen(window=8_000, max_output=200)
        it.agent.equipment = replace(it.agent.equipment, margin=64)
        while not model.requests or it.records(RequestRecord)[-1].forecast < 7_300:
            await it.say("a word or two of it " * 20)
        sent, model.most = len(model.requests), 0
        (finished,) = of(TurnFinished, await it.say("and?"))
        assert finished.error is not None and "invalid request" in finished.error
        assert len(model.requests) == sent + 2
        assert known_fit(it.agent.model, it.agent.room.standing().settings).window == 8_000
        model.most = 1_000_000
        (finished,) = of(TurnFinished, await it.say("once more"))
        assert finished.error is None
