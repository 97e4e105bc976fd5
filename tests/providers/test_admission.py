"""Who may ask a provider, in what order, and when: fairness, limits a minute, and reopening after a refusal."""

from __future__ import annotations

import random
from collections import Counter
from heapq import heappop, heappush
from itertools import count
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.providers.admission import MINUTE, Admission, Limits, Place

CALLS = st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 40)), min_size=1, max_size=60)


def test_a_hundred_waiting_calls_cost_another_session_one_of_them() -> None:
    """Sessions take turns."""
    line = Admission(Limits(concurrency=1))
    many = [line.ask("busy", 0) for _ in range(100)]
    one = line.ask("quiet", 0)
    (first,) = line.admit(0.0)
    assert first is many[0]
    line.leave(first)
    (second,) = line.admit(0.0)
    assert second is one


@given(CALLS, st.integers(1, 5))
def test_turns_are_taken_and_each_session_keeps_its_order(calls: list[tuple[str, int]], concurrency: int) -> None:
    """While a session waits, no other one gets two calls through more than it does."""
    line = Admission(Limits(concurrency=concurrency))
    asked = [line.ask(session, tokens) for session, tokens in calls]
    order: list[Place] = []
    while admitted := line.admit(0.0):
        order += admitted
        for place in admitted:
            line.leave(place)
    assert len(order) == len(calls)
    for session in "abcd":
        mine = [place for place in asked if place.session == session]
        assert [place for place in order if place.session == session] == mine
        passed: Counter[str] = Counter()
        left = len(mine)
        for place in order:
            passed[place.session] += 1
            left -= place.session == session
            if left:
                assert all(number <= passed[session] + 1 for number in passed.values())


@given(CALLS)
def test_how_many_go_before_is_told_rightly(calls: list[tuple[str, int]]) -> None:
    """As many as are then let through before it."""
    line = Admission(Limits(concurrency=1))
    asked = [line.ask(session, tokens) for session, tokens in calls]
    told = {place: line.ahead_of(place) for place in asked}
    for number in range(len(told)):
        (place,) = line.admit(0.0)
        assert told[place] == number
        line.leave(place)


@given(
    CALLS,
    st.none() | st.integers(1, 6),
    st.none() | st.integers(1, 60),
    st.lists(st.floats(0, 90), min_size=1, max_size=20),
    st.lists(st.none() | st.integers(-5, 200), min_size=1, max_size=20),
)
def test_no_minute_sees_more_than_the_limits(
    calls: list[tuple[str, int]],
    requests: int | None,
    tokens: int | None,
    pauses: list[float],
    used: list[int | None],
) -> None:
    """Whatever the calls turn out to have taken; a call larger than a minute goes alone, and all of them go at last."""
    line = Admission(Limits(requests_per_minute=requests, tokens_per_minute=tokens))
    now, sent = 0.0, []
    for number, (session, size) in enumerate(calls):
        line.ask(session, size)
        now += pauses[number % len(pauses)]
        for place in line.admit(now):
            sent.append((now, place))
            line.leave(place, used[number % len(used)])
    while line.next is not None:
        wait = line.wait(now)
        assert 0 < wait <= MINUTE + 1e-6
        now += wait
        admitted = line.admit(now)
        assert admitted, "it is waited no longer than need be"
        sent += [(now, place) for place in admitted]
    assert len(sent) == len(calls)
    for start, _ in sent:
        minute = [place for at, place in sent if start <= at < start + MINUTE - 1e-3]
        assert requests is None or len(minute) <= requests
        if tokens is not None and len(minute) > 1:
            known = sum(place.tokens for place in minute)
            late = max((used_ or 0) for used_ in used)  # what became known only after others had gone
            assert known <= tokens + max(0, late) * len(minute) or known <= tokens


@given(CALLS, st.integers(1, 60))
def test_no_minute_sees_more_tokens_than_expected(calls: list[tuple[str, int]], tokens: int) -> None:
    """With sizes that are what they were expected to be, exactly."""
    line = Admission(Limits(tokens_per_minute=tokens))
    for session, size in calls:
        line.ask(session, size)
    now, sent = 0.0, []
    while line.next is not None:
        sent += [(now, place) for place in line.admit(now)]
        now += line.wait(now) if line.next is not None else 0.0
    for start, _ in sent:
        minute = [place.tokens for at, place in sent if start <= at < start + MINUTE - 1e-3]
        assert sum(minute) <= tokens or [size for size in minute if size] == [max(minute)]


def test_a_refusal_closes_for_all_and_one_goes_first() -> None:
    """Not before the time that was named; the others follow as answers come."""
    line = Admission()
    first = line.ask("a", 0)
    line.admit(0.0)
    others = [line.ask("b", 0) for _ in range(20)]
    line.refused(first, rate=True, retry_after=10.0, now=0.0, chance=0.0)
    line.leave(first)
    assert line.admit(9.9) == []
    assert line.wait(0.0) == pytest.approx(10.0)
    assert line.admit(10.0) == others[:1]
    assert line.admit(10.5) == []
    line.answered(others[0])
    assert line.admit(10.5) == others[1:3]


def test_refusals_that_were_under_way_count_once() -> None:
    """Ten calls that are refused together are one refusal; the pause doubles only when the next try is refused too."""
    line = Admission()
    for _ in range(10):
        line.ask("a", 0)
    for place in line.admit(0.0):
        line.refused(place, rate=True, retry_after=None, now=0.0, chance=0.0)
        line.leave(place)
    assert line.closed_for(0.0) == 1.0
    line.ask("a", 0)
    (again,) = line.admit(1.0)
    line.refused(again, rate=True, retry_after=None, now=1.0, chance=0.0)
    assert line.closed_for(1.0) == 2.0


def test_an_overloaded_provider_is_asked_by_half_as_many() -> None:
    """Without a time it is not closed: one request that always breaks a server must not stop the others."""
    line = Admission()
    for _ in range(200):
        line.ask("a", 0)
    places = line.admit(0.0)
    for place in places[:10]:
        line.refused(place, rate=False, retry_after=None, now=0.0, chance=0.0)
    for place in places:
        line.leave(place)
    for _ in range(200):
        line.ask("a", 0)
    assert len(line.admit(0.0)) == 100


def test_a_slow_first_word_holds_nobody_back() -> None:
    """What was not refused within two seconds was taken."""
    line = Admission()
    first = line.ask("a", 0)
    line.admit(0.0)
    line.refused(first, rate=True, retry_after=0.0, now=0.0, chance=0.0)
    line.leave(first)
    for _ in range(7):
        line.ask("a", 0)
    assert [len(line.admit(now)) for now in (0.0, 1.0, 2.0, 3.0, 4.0)] == [1, 0, 2, 0, 2]


class Host:
    """A provider that takes so many requests a window of ten seconds, and names the window's end to all others."""

    def __init__(self, takes: int) -> None:
        self.takes = takes
        self.taken: Counter[int] = Counter()
        self.refused = 0
        self.rush: Counter[int] = Counter()  # requests by tenths of a second

    def ask(self, now: float) -> float | None:
        """None: taken; else how long to wait."""
        self.rush[int(now * 10)] += 1
        window = int(now // 10)
        if self.taken[window] < self.takes:
            self.taken[window] += 1
            return None
        self.refused += 1
        return 10.0 * (window + 1) - now


def crowd(host: Host, calls: int, *, gated: bool, seed: int = 1) -> float:
    """`calls` sessions ask at once and try again when they are told to; seconds until all have their answer."""
    line, chance = Admission(), random.Random(seed).random
    agenda: list[tuple[float, int, str, Place | None]] = []
    number = count()

    def later(at: float, what: str, place: Place | None = None) -> None:
        heappush(agenda, (at, next(number), what, place))

    done, now = 0, 0.0
    for _ in range(calls):
        later(0.0, "ask")
    while done < calls:
        now, _, what, place = heappop(agenda)
        if what == "ask":
            place = line.ask(str(next(number)), 0)
            sent = [place] if not gated else line.admit(now)
        elif what == "answer":
            assert place is not None
            done += 1
            if gated:
                line.answered(place)
                line.leave(place)
            sent = line.admit(now) if gated else []
        else:
            sent = line.admit(now) if gated else []
        for each in sent:
            wait = host.ask(now)
            if wait is None:
                later(now + 0.2, "answer", each)
                continue
            if gated:
                line.refused(each, rate=True, retry_after=wait, now=now, chance=chance())
                line.leave(each)
            later(now + wait + chance(), "ask")
        if gated and (wait := line.wait(now)) < inf:
            later(now + wait, "look")
    return now


def test_those_who_wait_do_not_all_come_at_once() -> None:
    """A thousand sessions and a host that takes fifty requests in ten seconds: the rush at each reopening, and the
    requests made in vain, with the gate and without."""
    gated, alone = Host(50), Host(50)
    with_gate, without = crowd(gated, 1_000, gated=True), crowd(alone, 1_000, gated=False)
    after = {host: max(number for tenth, number in host.rush.items() if tenth >= 100) for host in (gated, alone)}
    assert alone.refused > 9_000 and after[alone] > 80
    assert gated.refused < 60, "one or two at each reopening"
    assert after[gated] < 40
    assert with_gate <= without * 1.2
