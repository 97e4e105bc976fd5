"""Why a cache was missed, against a provider that knows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from governors.messages import Usage
from runtime.inspecting import misses_of, summary_of
from runtime.providers.base import CacheTerms, ModelInfo
from runtime.providers.scripted import Scripted
from runtime.session.entries import Entry, OutcomeRecord, Record, RequestRecord
from tests.inspecting.scenarios import SCENARIOS, agreement, play

EXPECTED = {
    "steady": [],
    "expired": ["expired"],
    "cold_edit": ["expired"],
    "edits_and_heads": ["head"],
    "user_edit": ["edit"],
    "redacted": ["redact"],
    "tools_change": ["tool change"],
    "model_change": ["model change", "expired"],
    "undone": ["expired"],
    "evicted": ["provider"],
    "one_slot": ["branch switch"],
    "stopped": ["edit"],
}


@pytest.mark.parametrize("name", SCENARIOS)
async def test_each_miss_has_the_cause_that_its_provider_knows(name: str, tmp_path: Path) -> None:
    run = await play(name, tmp_path)
    assert list(dict.fromkeys(run.told)) == EXPECTED[name]  # how many hangs on the size of the prompt
    right, lost = agreement(run)
    assert right >= 0.95 * lost


async def test_what_was_lost_is_what_the_provider_did_not_read(tmp_path: Path) -> None:
    run = await play("expired", tmp_path)
    usages = run.provider.usages
    assert [(miss.expected, miss.read) for miss in run.misses.misses] == [
        (usages[1].prompt, 0),
        (usages[3].prompt, 0),
    ]
    summary = summary_of(run.misses)
    assert summary.lost == usages[1].prompt + usages[3].prompt
    assert summary.could == sum(usage.prompt for usage in usages[:-1])
    first = run.misses.misses[0]
    assert first.cost == pytest.approx(first.lost * (3.75 - 0.3) / 1e6)


async def test_a_prompt_under_the_least_that_is_kept_says_so(tmp_path: Path) -> None:
    run = await play("evicted", tmp_path, least=1_000_000)
    assert run.told == ["too short", "too short"]


# --- on entries made by hand


def info(**changes: object) -> ModelInfo:
    return replace(Scripted().model(), cache=CacheTerms(least=0), **changes)  # type: ignore[arg-type] # fields


class Made:
    """A log of requests, one after the other, a minute apart."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []

    def add(self, record: Record, at: str | None = None) -> int:
        number = len(self.entries) + 1
        parent = number - 1 or None
        self.entries.append(Entry(number, parent, at or f"2026-11-30T18:{number % 60:02d}:00.000Z", record))
        return number

    def call(self, usage: Usage | None, *, cause: str | None = None, at: str | None = None, **fields: object) -> int:
        given = {"purpose": "turn", "model": "m", "wire": "anthropic", "blocks": 3, **fields}
        request = RequestRecord(provider="p", prefix="", forecast=1, budget=1, **given)  # type: ignore[arg-type] # fields
        number = self.add(request, at)
        self.add(OutcomeRecord(request=number, stop="stop", usage=usage, cause=cause), at)
        return number

    def causes(self, **changes: object) -> list[str]:
        return [miss.cause for miss in misses_of(self.entries, {"p/m": info(**changes)}).misses]


WARM = Usage(cache_read=1_000, cache_write_5m=10)
COLD = Usage(cache_write_5m=1_010)


def test_another_level_of_thinking_begins_the_messages_anew() -> None:
    made = Made()
    made.call(WARM)
    made.call(COLD, thinking="high")
    assert made.causes() == ["thinking"]


def test_a_step_of_very_many_results_is_further_than_the_provider_looks_back() -> None:
    made = Made()
    made.call(WARM, blocks=10)
    made.call(COLD, blocks=90)
    assert made.causes() == ["look-back"]


def test_providers_that_count_in_steps_lose_nothing_worth_a_name() -> None:
    made = Made()
    made.call(WARM)
    made.call(Usage(cache_read=900, plain=200))
    assert made.causes() == ["rounding"]


def test_a_prefix_that_moved_without_a_reason_is_not_named() -> None:
    made = Made()
    made.call(WARM)
    made.call(COLD, cause="unexplained")
    assert made.causes() == ["unexplained"]
    assert summary_of(misses_of(made.entries, {})).named == 0.0


def test_an_extension_is_named_that_changed_the_messages() -> None:
    made = Made()
    made.call(WARM)
    made.call(COLD, cause="hook:shorten")
    assert made.causes() == ["hook:shorten"]


def test_a_warming_keeps_what_would_have_expired() -> None:
    """A miss after a warming is not for want of time; without it, it is."""
    for purpose, cause in (("warming", "provider"), (None, "expired")):
        made = Made()
        made.call(WARM, at="2026-11-30T18:00:00Z")
        if purpose is not None:
            made.call(WARM, purpose=purpose, at="2026-11-30T18:04:50Z")
        made.call(COLD, at="2026-11-30T18:08:00Z")
        assert made.causes() == [cause]


def test_a_cache_that_was_kept_for_longer_than_asked_is_missed_for_another_reason() -> None:
    made = Made()
    made.call(WARM, at="2026-11-30T18:00:00Z")
    made.call(Usage(cache_read=600, cache_write_5m=500), cause="edit", at="2026-11-30T18:30:00Z")
    assert made.causes() == ["edit"]


def test_a_loss_without_a_known_price_has_no_cost() -> None:
    made = Made()
    made.call(WARM)
    made.call(COLD)
    (miss,) = misses_of(made.entries, {"p/m": None}).misses
    assert miss.cost is None and summary_of(misses_of(made.entries, {})).cost is None


def test_a_log_whose_times_cannot_be_read_still_tells() -> None:
    made = Made()
    made.call(WARM, at="long ago")
    made.call(COLD, at="today")
    assert made.causes() == ["provider"]
