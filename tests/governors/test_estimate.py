"""Estimates: what was measured stays, what is new is bounded, and a single error of a host changes little."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median

import pytest
from builders import reply
from hypothesis import given
from hypothesis import strategies as st

from governors.estimate import HIGHEST, SHORTFALL, Anchor, Estimator
from governors.estimate_count import Count, message_count
from governors.messages import AssistantMessage, StopReason, Usage
from governors.tokens import MESSAGE_FRAME, ByteCounter, Counter

RECORDED = json.loads((Path(__file__).parent.parent / "data/tokens/real_usage.json").read_text())
FAMILY = 1.45


class Words:
    """A counter that costs nothing to set up."""

    key = "words"

    def count(self, text: str) -> int:
        return len(text.split())


COUNTER: Counter = Words()


def answered(prompt: int, output: int = 50, *, stop: StopReason = "stop", text: str = "ok") -> AssistantMessage:
    return reply(text, stop=stop, usage=Usage(plain=prompt, output=output))


def conversation(ratios: list[float], *, size: int = 1_000, start: Estimator | None = None) -> tuple[Estimator, Count]:
    """An estimator that saw additions of `size` tokens, each with a ratio of its own; and the count of all of them."""
    estimator = start or Estimator(FAMILY, COUNTER.key)
    request, real = Count(), 0
    for ratio in ratios:
        request += Count(size, frames=MESSAGE_FRAME)
        real += round(size * ratio)
        estimator = estimator.observe(answered(real), request, COUNTER)
        request += Count(MESSAGE_FRAME, known=50, frames=MESSAGE_FRAME)
        real += 50
    return estimator, request


ratios = st.lists(st.floats(0.7, 4.0), min_size=0, max_size=24)
counts = st.builds(Count, st.integers(0, 200_000), st.integers(0, 50_000), st.integers(0, 500), st.integers(0, 20_000))


def test_without_usage_the_family_bounds() -> None:
    """The first request of a model: all is scaled, but what is measured or a picture."""
    estimator = Estimator(FAMILY, COUNTER.key)
    assert estimator.estimate(Count(1_000, known=10, pictures=5)) == 1_465
    assert estimator.reserve(Count(1_000)) == 1_450


def test_bytes_need_no_factor() -> None:
    """No token is shorter than a byte."""
    assert Estimator(FAMILY, ByteCounter.key).estimate(Count(1_000)) == 1_000


@given(
    seen=ratios,
    counted=st.integers(100, 100_000),
    ratio=st.floats(0.7, 6.0),
    cached=st.floats(0, 1),
    output=st.integers(1, 9_000),
)
def test_with_nothing_new_the_estimate_is_the_usage(
    seen: list[float], counted: int, ratio: float, cached: float, output: int
) -> None:
    """Cached parts included, and whatever was learned before."""
    estimator = Estimator(FAMILY, COUNTER.key, chunks=tuple(seen))
    prompt, read = int(counted * ratio), int(counted * ratio * cached)
    answer = reply("ok", usage=Usage(plain=prompt - read, cache_read=read, output=output))
    sent = Count(counted)
    after = estimator.observe(answer, sent, COUNTER)
    total = sent + message_count(answer, COUNTER, None)
    assert after.estimate(total) == prompt + output
    assert after.estimate(total + Count(5)) > prompt + output


@given(seen=ratios, request=counts, added=counts)
def test_more_text_is_never_cheaper(seen: list[float], request: Count, added: Count) -> None:
    """With an anchor and without."""
    estimator, before = conversation(seen)
    for each in (estimator, estimator.moved()):
        longer = before + request
        assert each.estimate(longer) <= each.estimate(longer + added)
        assert each.reserve(longer) <= each.reserve(longer + added)
        assert each.reserve(longer) >= max(each.estimate(longer), longer.scaled(FAMILY))


@given(seen=ratios, prompt=st.integers(0, 10**9), size=st.integers(1, 100_000))
def test_fault_one_absurd_usage_explodes_the_factor(seen: list[float], prompt: int, size: int) -> None:
    """It moves a bound at most to what was seen before it, and no lower than what was seen before it."""
    before, request = conversation(seen)
    after = before.observe(answered(prompt), request + Count(size, frames=MESSAGE_FRAME), COUNTER)
    known = [*before.whole, *before.chunks]
    highest = max([FAMILY, *known]) * 1.05
    lowest = min([FAMILY, *known])
    assert lowest <= after.bound <= highest
    assert lowest <= after.fresh_bound <= highest


@pytest.mark.parametrize("prompt", [10, 400_000])
def test_fault_an_absurd_usage_is_an_anchor(prompt: int) -> None:
    """A host that reports a tenth or ten times of what was sent is not believed; the bound holds instead."""
    estimator, request = conversation([1.2] * 6)
    request += Count(1_000, frames=MESSAGE_FRAME)
    after = estimator.observe(answered(prompt), request, COUNTER)
    assert after.anchor is None
    assert after.estimate(request) == request.scaled(after.bound)
    assert Estimator(FAMILY, COUNTER.key).observe(answered(10), Count(1_000), COUNTER).anchor is None


@pytest.mark.parametrize("truth", [0.7, 1.0, 1.24, 1.43, 4.0, 6.0])
def test_fault_a_clamped_factor_never_reaches_the_truth(truth: float) -> None:
    """The anchored estimate is right from the second request on, the bound after a few."""
    first, request = conversation([truth])
    assert first.estimate(request) == round(1_000 * truth) + 50
    learned = conversation([truth] * 6)[0]
    assert truth <= learned.bound <= truth * 1.06
    assert truth <= learned.fresh_bound <= truth * 1.06


def test_fault_measured_is_overwritten_by_an_estimate() -> None:
    """80k are measured, our count says 101k: what is new is added to what is measured."""
    sent = Count(101_000, frames=600)
    estimator = Estimator(1.0, COUNTER.key).observe(answered(80_000), sent, COUNTER)
    follow_up = sent + Count(MESSAGE_FRAME, 50, MESSAGE_FRAME) + Count(200, frames=MESSAGE_FRAME)
    assert estimator.estimate(follow_up) == 80_250


def test_fault_after_a_cut_a_high_estimate_cuts_again() -> None:
    """After a head the anchor is stale, but what the tokenizer does is known: no jump to the family's factor."""
    estimator, request = conversation([1.2] * 8)
    assert estimator.moved().estimate(Count(10_000)) < 10_000 * 1.2 * 1.06
    assert estimator.moved().anchor is None
    moved = estimator.moved()
    assert moved.moved() is moved
    assert estimator.estimate(request) < request.scaled(estimator.bound)


@given(seen=ratios, ratio=st.floats(0.7, 4.0), added=counts)
def test_sizes_one_by_one_are_no_less_than_the_whole(seen: list[float], ratio: float, added: Count) -> None:
    """What a cut is planned with covers what was measured, so that a cut that has to come is found."""
    estimator, request = conversation([*seen, ratio])
    longer = request + added
    density = estimator.density(longer)
    assert density >= estimator.bound
    assert longer.scaled(density) >= estimator.estimate(longer)
    assert estimator.moved().density(Count(100)) * 100 <= estimator.moved().estimate(Count(100)) + 1
    assert estimator.density(Count()) == estimator.bound


def test_additions_alone_teach_a_bound() -> None:
    """Of a list that a head has shortened, no request's size is known: the densest seen twice, with the margin."""
    bound = Estimator(FAMILY, COUNTER.key, chunks=(1.1, 1.2, 1.3, 1.2, 1.1, 1.2, 1.2, 1.3)).bound
    assert bound == pytest.approx(1.3 * 1.05)
    assert Estimator(FAMILY, COUNTER.key, chunks=(1.1,) * 7).bound == FAMILY


def test_a_stale_anchor_is_ignored() -> None:
    """A request with less of anything than the anchored one cannot begin with it."""
    estimator, request = conversation([1.2] * 8)
    assert estimator.anchor is not None
    for shorter in (request - Count(1), request - Count(known=1)):
        assert estimator.estimate(shorter) == estimator.moved().estimate(shorter)
    assert Anchor(5, Count(10)).fresh(Count(12, 3)) == Count(2, 3)
    assert Anchor(5, Count(10)).fresh(Count(9, 3)) is None


def test_a_dense_text_after_many_thin_ones_is_covered() -> None:
    """Learned from English; then a Chinese text as large as all before: at most 2 % under."""
    estimator, request = conversation([1.13] * 8)
    assert estimator.anchor is not None
    real = estimator.anchor.tokens + 8_000 * 1.43
    assert estimator.estimate(request + Count(8_000, frames=MESSAGE_FRAME)) >= real * (1 - SHORTFALL)


def test_a_reply_without_usage_teaches_nothing() -> None:
    """And an earlier anchor stays good."""
    estimator, request = conversation([1.2] * 3)
    assert estimator.observe(reply("ok"), request, COUNTER) is estimator
    assert estimator.observe(answered(0), request, COUNTER) is estimator


def test_an_aborted_reply_anchors_its_prompt_alone() -> None:
    """The prompt was real; the reply is not sent again."""
    sent = Count(1_000, frames=MESSAGE_FRAME)
    estimator = Estimator(FAMILY, COUNTER.key).observe(answered(1_200, 70, stop="aborted"), sent, COUNTER)
    assert estimator.anchor == Anchor(1_200, sent)


def test_another_way_of_counting_begins_anew() -> None:
    """Ratios to bytes say nothing of ratios to tokens."""
    by_bytes = Estimator(FAMILY, ByteCounter.key, whole=(0.25,) * 8, chunks=(0.25,) * 8)
    after = by_bytes.observe(answered(1_200), Count(1_000, frames=MESSAGE_FRAME), COUNTER)
    assert (after.unit, after.whole, after.family) == ("words", (1.2,), FAMILY)
    low = Estimator(FAMILY, ByteCounter.key).observe(answered(250), Count(1_000, frames=6), ByteCounter())
    assert low.anchor is not None


def test_frames_and_pictures_teach_nothing() -> None:
    """Their cost is a guess: a talk of one-word messages or pictures must not lower the bound for texts."""
    for new in (Count(20, frames=18), Count(1_000, frames=6, pictures=4_784)):
        estimator, request = Estimator(FAMILY, COUNTER.key), Count()
        for turn in range(100):
            request += new
            estimator = estimator.observe(answered(12 * (turn + 1) + request.counted // 2, 0), request, COUNTER)
        assert estimator.chunks == ()
        assert estimator.bound == FAMILY


def test_small_additions_are_summed_up() -> None:
    """A hundred tokens are too few for a ratio; six times a hundred are enough."""
    estimator, _ = conversation([1.2] * 6, size=100)
    assert (estimator.chunks, estimator.pending) == ((), 500)
    assert len(conversation([1.2] * 7, size=100)[0].chunks) == 1


def test_reasoning_left_out_by_the_provider_teaches_nothing() -> None:
    """The next prompt is smaller than the last one: no ratio, but an anchor."""
    estimator, request = conversation([1.2] * 2)
    assert estimator.anchor is not None
    longer = request + Count(600, frames=MESSAGE_FRAME)
    after = estimator.observe(answered(estimator.anchor.tokens - 10), longer, COUNTER)
    assert after.chunks == estimator.chunks
    assert after.anchor is not None


def test_after_a_cut_only_additions_are_learned() -> None:
    """The list counts less than was sent: not the ratio of the whole, however large."""
    estimator = Estimator(FAMILY, COUNTER.key)
    estimator = estimator.observe(answered(90_000), Count(1_000, frames=6), COUNTER, complete=False)
    covered = Count(1_000, frames=6) + Count(MESSAGE_FRAME, 50, MESSAGE_FRAME)
    after = estimator.observe(answered(91_250), covered + Count(1_000, frames=6), COUNTER, complete=False)
    assert after.whole == ()
    assert after.chunks == (1.2,)


@pytest.mark.parametrize("name", sorted(RECORDED))
def test_real_sessions_stay_within_their_targets(name: str) -> None:
    """Sizes of two real sessions: anchored at most 2 % under with a median below 1 %, else never under."""
    estimator = Estimator(FAMILY, COUNTER.key)
    fixed: Count | None = None
    errors, after_learning = [], []
    for counted, known, frames, prompt, output, moved, aborted in RECORDED[name]:
        if fixed is None:
            fixed = Count(known=prompt - Count(counted).scaled(FAMILY))
        request = fixed + Count(counted, known, frames)
        if moved:
            estimator = estimator.moved()
        if estimator.anchor is not None:
            errors.append(estimator.estimate(request) / prompt - 1)
        after_learning.append(estimator.moved().estimate(request) / prompt - 1)
        assert Estimator(FAMILY, COUNTER.key).estimate(request) >= prompt
        assert estimator.reserve(request) >= prompt
        answer = answered(prompt, output, stop="aborted" if aborted else "stop")
        estimator = estimator.observe(answer, request, COUNTER)
    assert len(errors) > 400
    assert min(errors) >= -SHORTFALL
    assert median(map(abs, errors)) < 0.01
    assert min(after_learning) >= 0
    assert median(after_learning) < 0.06  # by the family's factor: 0.10 and 0.14
    assert 1.2 < estimator.bound < 1.35 < HIGHEST
