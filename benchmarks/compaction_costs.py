"""What the request for a summary costs at the end of the warm prefix, against one that tells the conversation anew.

    python benchmarks/compaction_costs.py [FOLDER] [--windows 64000,128000,200000] [--turns 100] [--no-model]

Two parts:

- The embedded model, where it is there: `--turns` short turns on windows of 2,048 and 4,096 tokens, in which no error
  may reach the user; after ten of them the summary is asked for warm (by hand) and fresh, and the tokens that the
  server itself read from its cache are compared.
- The recorded sessions in FOLDER (`coding-sessions.jsonl.gz`): room is made each time when a prompt
  reaches 85 % of a window. Warm, what the call before held is read at 0.1 of a plain token, unless its five minutes
  are over; fresh, all of it is plain. The summary has 1,500 tokens, 20,000 stay word for word; sessions in which that
  leaves too little room are left out. In money: $3 a million
  plain tokens, $15 a million written.

The exit code is 1 when an overflow reached the user.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import anyio

if __package__ in (None, ""):  # run as a file
    sys.path.insert(0, str(Path(__file__).parents[1]))

from governors.messages import Text, Usage
from governors.tokens import TiktokenCounter, load_vocabulary
from runtime import Runtime
from runtime.agent.agent import Agent
from runtime.agent.summarising import PURPOSE
from runtime.events import TurnFinished
from runtime.providers.base import ChosenModel
from runtime.providers.local import Local, is_installed
from runtime.providers.weights import find_model
from runtime.replay import Trace, read_traces
from runtime.session.entries import Entry, HeadRecord, MessageRecord, OutcomeRecord, RequestRecord
from runtime.session.opening import read_log
from tests.agents import of

_ASK, _SUMMARY, _KEPT, _NOTES = 450, 1_500, 20_000, 60  # tokens
_PLAIN, _WRITTEN, _READ = 3e-6, 15e-6, 0.1  # dollars a token, dollars a token, of a plain one
_FIVE_MINUTES = 300.0
_QUESTIONS = ("Name a colour.", "Name a fruit.", "What is two and two?", "Name a river.", "Is water wet?")


@dataclass
class Bill:
    """Of the summaries in some sessions: dollars."""

    summaries: int = 0
    cold: int = 0
    warm: float = 0.0
    fresh: float = 0.0


def replayed(traces: list[Trace], window: int) -> Bill:
    """What the summaries would have cost, each way."""
    bill = Bill()
    for trace in traces:
        after = trace.base + _SUMMARY + min(_KEPT, window // 4)
        if after > 0.65 * window:  # the breaker would soon be open
            continue
        size, before, last = trace.base, 0, None
        for call in trace.calls:
            size += sum(item.tokens for item in call.items)
            if size >= 0.85 * window:
                held = before if last is not None and (not trace.timed or call.at - last < _FIVE_MINUTES) else 0
                bill.summaries += 1
                bill.cold += not held
                bill.warm += (size - held + _READ * held + _ASK) * _PLAIN + _SUMMARY * _WRITTEN
                bill.fresh += (size - trace.base + _NOTES + _ASK) * _PLAIN + _SUMMARY * _WRITTEN
                size = after
            before, last = size, call.at
    return bill


async def warm_and_fresh(runtime: Runtime, agent: Agent, local: Local, window: int) -> None:
    """Ask for a summary at the end of the warm prefix, then in a request of its own, and print what was cached."""
    model = agent.model
    agent.model = ChosenModel(replace(local.model_info(), max_output=32), local)  # its beginning is enough
    await agent.compactions.by_hand(strategy="summary")
    agent.model = model
    entries = read_log(agent.session.path).entries
    asked = {each.id for each in entries if isinstance(each.record, RequestRecord) and each.record.purpose == PURPOSE}
    said = [
        "".join(part.text for part in each.record.content if isinstance(part, Text))
        for each in entries
        if isinstance(each.record, MessageRecord)
    ]
    other = await runtime.supervisor.agent("assistant", "fresh")
    async for _ in other.send("Sum this up.\n" + "\n".join(said)[-window:]):
        pass
    for name, usage in (
        ("warm", usages(entries, asked)),
        ("fresh", usages(read_log(other.session.path).entries)),
    ):
        first = next((each for each in usage if each is not None), None)
        if first is not None:
            print(f"  {name}: {first.cache_read:,} of {first.prompt:,} tokens were read from the cache")


def usages(entries: Sequence[Entry], requests: set[int] | None = None) -> list[Usage | None]:
    """Of the answers to `requests` (None: to all)."""
    outcomes = [each.record for each in entries if isinstance(each.record, OutcomeRecord)]
    return [each.usage for each in outcomes if requests is None or each.request in requests]


async def embedded(weights: Path, folder: Path, window: int, turns: int) -> int:
    """Talk with the embedded model; the errors that reached the user."""
    began, local = time.perf_counter(), Local(weights, window=window, threads=1)
    model = ChosenModel(replace(local.model_info(), max_output=16), local)
    errors: list[str] = []
    try:
        async with Runtime.open(folder, model=model, environ={}) as runtime:
            agent = await runtime.supervisor.agent("assistant", "long")
            for turn in range(turns):
                text = f"{_QUESTIONS[turn % len(_QUESTIONS)]} This is question {turn}."
                (end,) = of(TurnFinished, [event async for event in agent.send(text)])
                errors += [end.error] if end.error else []
                if turn == min(turns, 10) - 1:
                    await warm_and_fresh(runtime, agent, local, window)
            entries = read_log(agent.session.path).entries
            problems = [e.record.problem for e in entries if isinstance(e.record, OutcomeRecord) and e.record.problem]
            overflows = sum(problem.get("kind") == "overflow" for problem in problems)
            heads = sum(isinstance(each.record, HeadRecord) for each in entries)
            print(
                f"embedded model, window {window:,}: {turns} turns, {len(errors)} errors reached the user, "
                f"{overflows} overflows at the server, {heads} heads, {time.perf_counter() - began:.0f} s"
            )
    finally:
        await local.close()
    for error in dict.fromkeys(errors):
        print(f"  {error}")
    return len(errors)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--windows", default="64000,128000,200000")
    parser.add_argument("--turns", type=int, default=100)
    parser.add_argument("--no-model", action="store_true")
    given = parser.parse_args()
    wrong = 0
    weights = find_model() if is_installed() and not given.no_model else None
    if weights is None:
        print("the embedded model is left out: it is not here, or not wanted")
    else:
        for window in (2_048, 4_096):
            with tempfile.TemporaryDirectory() as folder:
                wrong += anyio.run(embedded, weights, Path(folder), window, given.turns)
    if given.folder is not None:
        load_vocabulary()
        traces = read_traces([given.folder / "coding-sessions.jsonl.gz"], TiktokenCounter())
        for window in map(int, given.windows.split(",")):
            bill = replayed(traces, window)
            share = 1 - bill.warm / bill.fresh if bill.fresh else 0.0
            print(
                f"{len(traces)} recorded sessions, window {window:,}: {bill.summaries} summaries, {bill.cold} of them "
                f"cold: ${bill.warm:.2f} warm, ${bill.fresh:.2f} fresh, {share:.0%} saved"
            )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
