"""Overflows that a provider puts into no numbers: what is tried, what is kept of them, and that none ends a session."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime import Reply
from runtime.agent.fit import Fit, fit_setting, is_blind, known_fit, learn
from runtime.events import HistoryCut, Notice, TurnFinished
from runtime.providers.base import Problem, Request
from runtime.providers.scripted import Scripted
from runtime.session.entries import HeadRecord, OutcomeRecord, RequestRecord, SettingRecord
from tests.agents import Talk, of, talk
from tests.agents_again import assert_every_request_is_made_again

TOO_LARGE = Problem("overflow", "Your input exceeds the context window of this model.", 400)
WINDOW = 50_000


@dataclass
class Server:
    """Refuses what has more than `most` bytes, and the calls in `alarms`, counted from 0, whatever they have."""

    most: int = 10**9
    alarms: set[int] = field(default_factory=set)
    sizes: list[int] = field(default_factory=list)

    def __call__(self, request: Request) -> Reply:
        self.sizes.append(len(request.content))
        refused = len(self.sizes) - 1 in self.alarms or self.sizes[-1] > self.most
        return Reply(error=TOO_LARGE) if refused else Reply("well " * 300)

    async def talk(self, it: Talk, text: str = "word " * 300) -> TurnFinished:
        (finished,) = of(TurnFinished, await it.say(text))
        return finished


def fit_of(it: Talk) -> Fit:
    return known_fit(it.agent.model, it.agent.room.standing().settings)


async def test_a_false_alarm_in_a_short_session_does_not_end_it(tmp_path: Path) -> None:
    """One such answer took a quarter of what was asked for ever; then nothing fitted any more."""
    server = Server(alarms={0})
    async with talk(tmp_path, otherwise=server, window=WINDOW) as it:
        finished = await server.talk(it, "hello")
        assert finished.error is not None and "exceeds the context window" in finished.error
        assert fit_of(it).window == WINDOW
        assert len(server.sizes) == 1, "no smaller request could be made"
        assert (await server.talk(it, "and now?")).error is None
        assert fit_of(it).window == WINDOW


async def test_what_is_no_larger_than_what_was_answered_is_sent_again(tmp_path: Path) -> None:
    """A call that is retried with a shorter message, say: nothing has to go for it."""
    server = Server(alarms={3})
    async with talk(tmp_path, otherwise=server, window=WINDOW) as it:
        for _ in range(3):
            await server.talk(it)
        await it.agent.branches.undo()
        events = await it.say("shorter")
        assert of(TurnFinished, events)[0].error is None
        assert "sent again" in of(Notice, events)[0].text and "smaller" not in of(Notice, events)[0].text
        refused, sent = it.records(RequestRecord)[3:]
        assert refused.prefix == sent.prefix
        assert not it.records(HeadRecord) and not it.records(SettingRecord)


@pytest.mark.parametrize("wire", ["anthropic", "openai_chat", "openai_responses"])
async def test_a_window_that_nobody_told_is_found_and_kept(tmp_path: Path, wire: str) -> None:
    server = Server(most=40_000)
    async with talk(tmp_path, otherwise=server, window=WINDOW, wire=wire) as it:
        for _ in range(40):
            assert (await server.talk(it)).error is None
        refused = [size for size in server.sizes if size > server.most]
        assert len(refused) == 2, "the second says the same as the first"
        assert fit_of(it).firm and fit_of(it).window < WINDOW
        assert len(it.records(HeadRecord)) > 2
        assert_every_request_is_made_again(it)


async def test_a_false_alarm_in_a_long_session_takes_no_window(tmp_path: Path) -> None:
    server = Server(alarms={6})
    async with talk(tmp_path, otherwise=server, window=WINDOW) as it:
        cuts = 0
        for _ in range(14):
            events = await it.say("word " * 300)
            assert of(TurnFinished, events)[0].error is None
            cuts += len(of(HistoryCut, events))
        assert cuts == 1, "for the request that was called too large"
        assert fit_of(it) == Fit(WINDOW, fit_of(it).factor, refused=fit_of(it).refused)
        assert server.sizes[-1] > server.sizes[6], "later ones are as large"
        assert_every_request_is_made_again(it)


async def test_a_lesson_that_stays_gives_way_where_nothing_fits_by_it(tmp_path: Path) -> None:
    server = Server()
    async with talk(tmp_path, otherwise=server, window=WINDOW) as it:
        await server.talk(it, "hello")
        factor = it.agent.model.info.token_factor
        lesson = Fit(1_000, factor, 1_400, WINDOW, firm=True)
        await it.agent.session.append(SettingRecord(name=fit_setting(it.agent.model), value=lesson.as_setting()))
        assert fit_of(it) == lesson
        assert (await server.talk(it)).error is None
        assert fit_of(it) == Fit(WINDOW, factor, 1_400)


async def test_what_a_lesson_cannot_help_is_refused_with_the_numbers_of_the_whole_window(tmp_path: Path) -> None:
    async with talk(tmp_path, otherwise=Server(), window=4_000) as it:
        lesson = Fit(1_000, it.agent.model.info.token_factor, 1_400, 4_000, firm=True)
        await it.agent.session.append(SettingRecord(name=fit_setting(it.agent.model), value=lesson.as_setting()))
        (finished,) = of(TurnFinished, await it.say("word " * 5_000))
        assert finished.error is not None and "window of 4,000" in finished.error
        assert not it.records(RequestRecord)


async def test_a_lesson_on_trial_is_over_with_the_next_answer_if_its_own_was_stopped(tmp_path: Path) -> None:
    server, never = Server(alarms={6}), anyio.Event()

    def answer(request: Request) -> Reply:
        reply = server(request)
        return Reply("well", hold=never.wait) if len(server.sizes) == 8 else reply

    async with talk(tmp_path, otherwise=answer, window=WINDOW) as it:
        for _ in range(6):
            await server.talk(it)
        async with anyio.create_task_group() as group:
            group.start_soon(it.say, "word " * 300)
            with anyio.fail_after(20):
                while len(server.sizes) < 8:
                    await anyio.wait_all_tasks_blocked()
                await anyio.wait_all_tasks_blocked()
            await it.agent.stop()
        assert fit_of(it).on_trial and fit_of(it).window < WINDOW
        await server.talk(it, "go on")
        assert not fit_of(it).on_trial and fit_of(it).window == WINDOW
        assert [each.problem is None for each in it.records(OutcomeRecord)][6:] == [False, True, True]


SIZES = st.integers(1, 60_000)
PROBLEMS = st.builds(
    lambda window, prompt: Problem("overflow", "", 400, window=window, prompt=prompt),
    st.none() | SIZES,
    st.none() | SIZES,
)


@given(st.lists(st.tuples(PROBLEMS, SIZES, SIZES, st.booleans()), max_size=6))
def test_a_blind_lesson_never_takes_what_was_believed(steps: list[tuple[Problem, int, int, bool]]) -> None:
    """Without it the window is what numbers said, and what is known survives the log."""
    model = Scripted().chosen(window=WINDOW)
    fit, told = known_fit(model, {}), WINDOW
    for problem, size, answered, over in steps:
        if not is_blind(fit, problem, size) and problem.window:
            told = min(told, problem.window)
        fit = learn(fit, problem, size, answered)
        fit = fit.relaxed() if over else fit
        kept = known_fit(model, {fit_setting(model): fit.as_setting()})
        assert kept.as_setting() == fit.as_setting()
        assert 0 < fit.window <= fit.relaxed().window <= WINDOW
        assert not over or (not fit.before and not fit.firm)
    assert fit.relaxed().window >= min(told, 256)


def test_a_second_refusal_counts_unless_such_a_size_was_answered() -> None:
    fit = Fit(WINDOW, 1.2)
    first = learn(fit, TOO_LARGE, 10_000)
    assert first == Fit(7_500, 1.2, 10_000, WINDOW) and first.on_trial
    again = learn(first.relaxed(), TOO_LARGE, 12_000, answered=9_000)
    assert again == Fit(9_000, 1.2, 12_000, WINDOW, firm=True)
    assert not learn(first.relaxed(), TOO_LARGE, 12_000, answered=11_000).firm
    assert learn(fit, TOO_LARGE, 10_000, answered=12_000).on_trial
