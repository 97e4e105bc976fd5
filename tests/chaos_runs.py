"""One small session with a chaotic provider, its spending capped, and what must hold of it: `run(seed, folder)`.

The same seed is the same script, the same faults and the same caps. Laws:
- Each turn ends once, in an answer or an error in words; after the chaos the next turn is answered.
- What was shown of an answer is what was recorded of it, and shown once.
- Each request has one outcome, the log is sound, and what was sent obeys its wire.
- The ledger holds nothing at the end, agrees with the log, and is not past a cap. What the calls really cost is no more
  than it counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

import anyio
import anyio.lowlevel

from governors.messages import Usage
from runtime import Call, Reply, Runtime, Scripted, tool
from runtime.events import Event, ReplyRecorded, Retrying, TextDelta, TurnFinished, TurnStarted
from runtime.ledger import Caps, Spender, SpendLedger, charge_of
from runtime.providers.base import Provider, Request
from runtime.providers.chaos import RATES, Chaos
from runtime.providers.gate import Gate, Gated
from runtime.providers.retry import RetryingProvider
from runtime.reckoning.bills import Bill, bills_of
from runtime.session.care.verify import verify
from runtime.session.entries import OutcomeRecord, RequestRecord
from runtime.session.format.blobs import FolderBlobs
from runtime.session.opening import read_log

TURNS = 3
WIRES = ("anthropic", "openai_chat", "openai_responses")
_CENT = 1e-8  # dollars: sums of amounts differ by less


@tool(read_only=True)
async def look(place: str) -> str:
    """Look somewhere.

    Args:
        place: Where to.
    """
    return f"nothing at {place}"


@tool
async def put(place: str, thing: str = "a stone") -> str:
    """Put something somewhere.

    Args:
        place: Where to.
        thing: What.
    """
    return f"{thing} is at {place} now"


@dataclass
class Time:
    """A clock that only moves when somebody sleeps."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        await anyio.lowlevel.checkpoint()


@dataclass
class Mind:
    """What the model says: some calls, then an answer. `took` is what each call to it really took."""

    random: Random
    took: list[Usage] = field(default_factory=list)
    calm: bool = False
    steps: int = 0

    def __call__(self, request: Request) -> Reply:
        random, self.steps = self.random, self.steps + 1
        text = " ".join(random.choices(["well", "moon", "é🙂", "and so", "\n"], k=random.randrange(0, 12)))
        calls = []
        if not self.calm and random.random() < 0.5 and self.steps < 8:
            for _ in range(random.randrange(1, 4)):
                place = {"place": f"the {random.choice(['hill', 'lake'])} {random.randrange(100)}"}
                calls.append(Call(random.choice(["look", "put"]), place))
        text = text.strip() or ("" if calls else "nothing")
        usage = Usage(plain=max(1, request.tokens), output=1 + len(text.encode()) // 4 + 12 * len(calls))
        self.took.append(usage)
        return Reply(text, calls, usage=usage)


@dataclass
class Run:
    """What came of a seed."""

    seed: int
    figures: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)

    def must(self, holds: bool, what: str) -> None:
        if not holds:
            self.violations.append(what)


class Switch:
    """Goes to `rough`, or to `calm` once it is turned."""

    def __init__(self, rough: Provider, calm: Provider) -> None:
        self.rough, self.calm, self.turned = rough, calm, False
        self.name = calm.name

    @asynccontextmanager
    async def stream(self, request: Request):  # type: ignore[no-untyped-def]  # as Provider.stream
        async with (self.calm if self.turned else self.rough).stream(request) as events:
            yield events

    async def warm(self) -> None:
        return

    async def close(self) -> None:
        return


async def run(seed: int, folder: Path) -> Run:
    """`folder` is where the workspace lies; it may be that of other runs."""
    it, random, time = Run(seed), Random(f"{seed}/caps"), Time()
    mind = Mind(Random(f"{seed}/mind"))
    scripted = Scripted(otherwise=mind)
    chaos = Chaos(
        scripted,
        seed=seed,
        rates={fault: rate * random.choice([0.5, 1, 2.5]) for fault, rate in RATES.items()},
        sleep=time.sleep,
    )
    switch = Switch(chaos, scripted)
    gate = Gate(now=time, sleep=time.sleep, random=random.random)
    provider = RetryingProvider(Gated(switch, gate), sleep=time.sleep, random=random.random)
    tight = random.random() < 0.4
    caps = Caps(
        session=random.uniform(0.05, 0.6) if tight else 1_000.0, turn=random.uniform(0.05, 0.3) if tight else None
    )
    ledger = SpendLedger(folder / f"ledger-{seed}.sqlite", caps)
    chosen = replace(scripted.chosen(wire=WIRES[seed % len(WIRES)]), provider=provider)
    settings = {"tools.exec": "off"}
    opened = Runtime.open(folder, model=chosen, tools=[look, put], settings=settings, environ={}, ledger=ledger)
    async with opened as runtime:
        agent = await runtime.supervisor.agent("assistant", f"seed-{seed}")
        for number in range(TURNS):
            mind.steps = 0
            it.figures["turns"] += 1
            _hold_turn(it, [event async for event in agent.send(f"Turn {number}: what is there?")], f"turn {number}")
        switch.turned = mind.calm = True
        events = [event async for event in agent.send("And now?")]
        _hold_turn(it, events, "the calm turn")
        end = next(event for event in events if isinstance(event, TurnFinished))
        capped = end.error is not None and "$" in end.error
        it.must(end.error is None or (tight and capped), f"after the chaos a turn fails: {end.error}")
        path = agent.session.path
        spender = Spender(agent="assistant", session=agent.session.id, turn=None, purpose="turn", workspace=str(folder))
        await _hold_books(it, path, ledger, spender, scripted, mind)
    it.must((gate.admission.running, gate.admission.waiting) == (0, 0), "somebody still stands at the gate")
    it.figures["faults"] += sum(chaos.made.values())
    return it


def _hold_turn(it: Run, events: Sequence[Event], turn: str) -> None:
    ends = [event for event in events if isinstance(event, TurnFinished)]
    it.must(len(ends) == 1 and events[-1] is ends[-1], f"{turn} ended {len(ends)} times")
    shown = ""
    for event in events:
        match event:
            case TextDelta(text=text):
                shown += text
            case ReplyRecorded(text=text):
                it.must(shown == text, f"{turn}: {shown!r} was shown, {text!r} is recorded")
                shown = ""
            case Retrying():
                it.figures["retries"] += 1
                it.must(not shown, f"{turn}: {shown!r} was shown, and the call is made again")
    it.must(not shown, f"{turn}: {shown!r} was shown, and is nowhere")
    for end in ends:
        it.figures["answers" if end.error is None else "errors"] += 1
        it.must(end.error is None or (len(end.error) > 10 and "Traceback" not in end.error), f"{turn}: {end.error!r}")
        it.must(end.saved, f"{turn}: it is not saved")
        it.must(sum(isinstance(each, TurnStarted) for each in events) == 1, f"{turn}: it did not begin once")


async def _hold_books(
    it: Run, path: Path, ledger: SpendLedger, spender: Spender, scripted: Scripted, mind: Mind
) -> None:
    log = read_log(path)
    problems = verify(path, FolderBlobs(path.parents[2] / "blobs")).of("error")
    it.must(not problems, f"the log is not sound: {problems}")
    requests = [entry.id for entry in log.entries if isinstance(entry.record, RequestRecord)]
    outcomes = Counter(entry.record.request for entry in log.entries if isinstance(entry.record, OutcomeRecord))
    it.must(outcomes == Counter(requests), f"requests {requests}, outcomes {dict(outcomes)}")
    it.figures["calls"] += len(requests)
    total = next(left for left in await ledger.left(spender) if left.setting == "spend.session")
    it.must(total.held == 0, f"the ledger still holds ${total.held}")
    it.must(total.spent <= total.cap, f"${total.spent} are spent of a cap of ${total.cap}")
    least = most = 0.0
    stops = {entry.record.request: entry.record for entry in log.entries if isinstance(entry.record, OutcomeRecord)}
    for bill in bills_of(log.header, log.entries):
        low, high = _counted(bill, stops[bill.entry])
        least, most = least + low, most + high
    agrees = least - _CENT <= total.spent <= most + _CENT
    it.must(agrees, f"the ledger says ${total.spent}, the log between ${least} and ${most}")
    price = scripted.model().price
    assert price is not None
    truth = sum(price.cost(usage) for usage in mind.took)
    it.figures["made to the model"] += len(mind.took)
    it.must(truth <= total.cap + _CENT, f"the calls really cost ${truth}, and the cap is ${total.cap}")
    it.must(truth <= total.spent + _CENT, f"the calls really cost ${truth}, and ${total.spent} are counted")


def _counted(bill: Bill, outcome: OutcomeRecord) -> tuple[float, float]:
    """The least and the most (US dollars) that the ledger may count a call of the log at."""
    reserved = bill.reserved or 0.0
    match bill.state:
        case "refused":
            return 0.0, 0.0
        case "billed" if outcome.stop in ("aborted", "error"):
            return 0.0, reserved
        case "billed":
            amount = charge_of(reserved, bill.cost, outcome.usage).amount or 0.0
            return amount, amount
        case "unpriced":
            return reserved, reserved
        case _:
            return 0.0, reserved
