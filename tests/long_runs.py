"""Conversations of many turns that are compacted on their way, from a seed, with facts planted in what the user says.

A fact has a key, by which it is asked for later, and a value, which must not be lost: it is in view, in a summary, or
found by `recall` and by the search. `run` holds the laws of a long conversation; `Run.violations` says what broke.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import orjson

from runtime import tool
from runtime.compaction.parts import PARTS
from runtime.events import Event, HistoryCut, ToolFinished, TurnFinished
from runtime.inspecting import calls_of
from runtime.providers.base import Request
from runtime.providers.scripted import Call, Reply
from runtime.session.entries import CompactionRecord, OutcomeRecord, RequestRecord
from tests.agents import Talk, of, talk

_NAMES = ("Velmora", "Quintrell", "Osgarde", "Tamsin", "Brackwell", "Iridane", "Lowmoor", "Fenwick")
# fmt: off
_WORDS = (
    "river", "stone", "ledger", "winter", "market", "letter", "garden", "engine", "harbour", "copper", "signal",
    "meadow", "window", "number", "paper", "question", "answer", "maybe", "because", "however", "little", "bigger",
    "moon", "table", "folder", "record", "always", "never", "about", "which",
)
# fmt: on
_ASKED = "Write the summary now"
_VALUE = re.compile(r"(?:name|figure|choice|rule)_\d+_\w+")


@dataclass(frozen=True, slots=True)
class Fact:
    """What the user said once: `said` in the turn `turn`. `key` is what it is asked by, `value` what must be known."""

    turn: int
    key: str
    value: str
    said: str


#: Whether a summary keeps a fact, which so many summaries kept before.
Keeps = Callable[[str, int], bool]


def keeping_all(fact: str, times: int) -> bool:
    return True


def forgetful(fact: str, times: int) -> bool:
    """Every third fact is lost at once, every other one after two summaries."""
    number = int(fact.split("_")[1])
    return number % 3 != 0 and (number % 2 == 0 or times < 2)


@dataclass
class Run:
    """What came of a seed."""

    seed: int
    figures: Counter[str] = field(default_factory=Counter)
    sizes: list[int] = field(default_factory=list)  # bytes of the log, after each tenth of the turns
    grown: list[float] = field(default_factory=list)  # shares of the budget, between two compactions
    violations: list[str] = field(default_factory=list)

    def must(self, holds: bool, what: str) -> None:
        if not holds:
            self.violations.append(what)


def planted(random: Random, count: int, turns: int) -> dict[int, Fact]:
    """`count` facts of four kinds, each in a turn of its own."""
    facts = {}
    for number, turn in enumerate(sorted(random.sample(range(turns), count))):
        tag = f"{random.choice(_NAMES)}{random.randrange(1_000, 9_999)}"
        kind = ("name", "figure", "choice", "rule")[number % 4]
        key, value = f"subject {number} of the {kind}s", f"{kind}_{number}_{tag}"
        said = {
            "name": f"Remember: {key} is called {value}.",
            "figure": f"Note that {key} comes to {value}.",
            "choice": f"We decided on {key}: {value}, because it is the cheapest.",
            "rule": f'From now on, about {key}, "always write {value} first".',
        }[kind]
        facts[turn] = Fact(turn, key, value, said)
    return facts


@tool(read_only=True)
def look(number: int, size: int = 500) -> str:
    """Look at something.

    Args:
        number: Which.
        size: How much there is, in characters.
    """
    return f"look {number}: " + words(Random(number), size // 7)


def words(random: Random, count: int) -> str:
    return " ".join(random.choices(_WORDS, k=count))


class Mind:
    """The scripted model: it calls tools, answers, and sums up; its summaries keep the facts that `keeps` says."""

    def __init__(self, random: Random, keeps: Keeps = keeping_all) -> None:
        self.random, self.keeps = random, keeps
        self._seen = Counter[str]()
        self.lost: list[str] = []  # by summaries, in order
        self.ask: str | None = None  # what to recall in this turn
        self._left = 0

    def turn(self) -> None:
        self._left = self.random.choice([0, 0, 1, 1, 2, 4])

    def answer(self, request: Request) -> str | Reply | Call:
        if _ASKED in last_text(request):
            return self._summary(request)
        if self.ask is not None:
            what, self.ask = self.ask, None
            return Call("recall", {"what": what})
        if self._left > 0:
            self._left -= 1
            many = self.random.choice([1, 1, 2, 3])
            calls = [
                Call("look", {"number": self.random.randrange(10**6), "size": self.random.choice([80, 400, 3_000])})
                for _ in range(many)
            ]
            return Reply(words(self.random, self.random.choice([0, 12])), calls)
        return words(self.random, self.random.choice([3, 40, 150]))

    def _summary(self, request: Request) -> str:
        text = orjson.dumps(items(request)).decode()
        known = list(dict.fromkeys(_VALUE.findall(text)))
        kept = [fact for fact in known if self.keeps(fact, self._seen[fact])]
        self._seen.update(kept)
        self.lost += [fact for fact in known if fact not in kept]
        told = {part.heading: "none" for part in PARTS} | {"Facts": "\n".join(kept) or "none", "State": "It goes on."}
        return "\n\n".join(f"## {heading}\n{body}" for heading, body in told.items())


def last_text(request: Request) -> str:
    """What the newest message of a request says."""
    content = items(request)[-1].get("content", "")
    return content if isinstance(content, str) else str(content[-1].get("text", ""))


def items(request: Request) -> list[dict[str, Any]]:
    """The messages of a request, as its wire names them."""
    body = dict(request.body)
    found: list[dict[str, Any]] = body["input"] if "input" in body else body["messages"]
    return found


async def run(
    seed: int,
    folder: Path,
    *,
    turns: int,
    facts: int = 200,
    window: int = 32_000,
    keeps: Keeps = keeping_all,
    **model: Any,
) -> Run:
    """One conversation of `turns` turns in a workspace under `folder`, held to the laws."""
    it, random = Run(seed), Random(seed)
    told, mind = planted(random, facts, turns), Mind(random, keeps)
    settings = {"compaction.strategy": "summary"}
    async with talk(
        folder, otherwise=mind.answer, settings=settings, window=window, tools=[look], prefix_law=False, **model
    ) as each:
        for number in range(turns):
            fact = told.get(number)
            mind.turn()
            chat = f"Turn {number}. " + words(random, random.choice([4, 30, 120]))
            _hold_turn(it, await each.say(chat if fact is None else f"{chat} {fact.said}"), f"turn {number}")
            each.model.requests[:-1] = []  # they would fill the memory
            if (number + 1) % max(1, turns // 10) == 0:
                it.sizes.append(each.log.stat().st_size)
        _hold_log(it, each)
        lost = _hold_facts(it, each, list(told.values()), mind)
        await _hold_reading_back(it, each, lost, mind)
    return it


def _hold_turn(it: Run, events: list[Event], turn: str) -> None:
    (end,) = of(TurnFinished, events)
    it.figures["turns"] += 1
    it.figures["cuts without a summary"] += len(of(HistoryCut, events))
    it.must(end.error is None, f"{turn} ended in an error: {end.error}")


def _hold_log(it: Run, each: Talk) -> None:
    """No overflow, nothing illegal, nothing over budget, room that lasts, and a log that grows with the turns alone."""
    entries = each.on_disk()
    records = [entry.record for entry in entries]
    problems = Counter(
        str(record.problem.get("kind")) for record in records if isinstance(record, OutcomeRecord) and record.problem
    )
    it.figures["overflows"], it.figures["illegal requests"] = problems["overflow"], problems["bad_request"]
    it.must(not problems, f"calls ended in problems: {dict(problems)}")
    requests = [record for record in records if isinstance(record, RequestRecord)]
    it.figures["requests"] = len(requests)
    over = [record for record in requests if record.forecast > record.budget]
    it.must(not over, f"{len(over)} requests were over budget")
    it.must(
        all(call.cause != "unexplained" for call in calls_of(entries) if call.request.purpose == "turn"),
        "a prefix moved, and nothing says why",
    )
    receipts = [record for record in records if isinstance(record, CompactionRecord)]
    done = [record for record in receipts if record.result == "done"]
    it.figures["compactions"], it.figures["failed"] = len(done), len(receipts) - len(done)
    it.must(bool(done) and len(done) == len(receipts), f"{len(done)} of {len(receipts)} compactions were made")
    budget = requests[-1].budget
    for before, after in pairwise(done):
        it.grown.append((after.before - before.after) / budget)
    it.must(all(share >= 0.2 for share in it.grown), f"made again after {min(it.grown, default=1):.2f} of the budget")
    _hold_size(it)


def _hold_size(it: Run) -> None:
    steps = [later - before for before, later in zip([0, *it.sizes], it.sizes, strict=False)]
    half = len(steps) // 2
    if half:
        first, second = sum(steps[:half]) / half, sum(steps[half:]) / len(steps[half:])
        it.must(second < 1.25 * first, f"the log grows faster: {first:,.0f}, then {second:,.0f} bytes a tenth")
        it.figures["bytes a turn, first half"] = round(sum(steps[:half]) / (it.figures["turns"] * half / len(steps)))
        it.figures["bytes a turn, second half"] = round(
            sum(steps[half:]) / (it.figures["turns"] * len(steps[half:]) / len(steps))
        )


def _hold_facts(it: Run, each: Talk, told: list[Fact], mind: Mind) -> list[Fact]:
    """Each fact is in view, or a receipt names it; those that are not in view."""
    view = orjson.dumps(items(each.model.requests[-1])).decode()
    named = {name for record in each.records(CompactionRecord) for name in record.dropped}
    out = [fact for fact in told if fact.value not in view]
    it.figures["facts"], it.figures["facts in view"] = len(told), len(told) - len(out)
    it.figures["facts named as dropped"] = sum(_is_named(fact, named) for fact in told)
    for fact in out:
        it.must(_is_named(fact, named), f"{fact.value} went out of view, and no receipt names it")
    lost = set(mind.lost)
    it.figures["facts lost by summaries"] = len(lost)
    for fact in told:  # what a summary lost is out of view unless the fact's own words are still there
        if fact.value in lost and fact in out:
            it.must(_is_named(fact, named), f"a summary lost {fact.value}, and no receipt names it")
    return out


def _is_named(fact: Fact, named: set[str]) -> bool:
    return any(fact.value in name for name in named)


async def _hold_reading_back(it: Run, each: Talk, lost: list[Fact], mind: Mind) -> None:
    """What is out of view is found by the model's own tool, and by the search over sessions."""
    for fact in lost:
        mind.ask = fact.key
        events = await each.say("Look that up.")
        found = [event.text for event in of(ToolFinished, events) if event.tool == "recall"]
        it.figures["facts recalled"] += 1
        it.must(fact.value in str(found), f"recall does not find {fact.value}")
        each.model.requests[:-1] = []
    await each.runtime.supervisor.store.update_index()
    store = each.runtime.supervisor.store
    finds = {fact.value: await store.ask(lambda fact=fact: store.search(f'"{fact.key}"')) for fact in lost}  # type: ignore[misc]
    for value, found_by in finds.items():
        it.must(bool(found_by), f"the search does not find {value}")
    it.figures["facts searched"] += len(finds)
