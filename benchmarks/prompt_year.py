"""A year of changes to files, skills and tools, and what telling a model of them costs.

    python benchmarks/prompt_year.py [--edits 1000] [--seed 1]

Random edits, each followed by some model calls of a conversation that grows. After each edit the sections that the log
shows are compared with what was written (`prompt_world.py` knows it by marks of its own), with a builder that has seen
nothing before, and with a replay of all entries. Any difference ends the run.

The bill is that of a plain cache: a call reads the prefix that it shares with the call before at 0.1, and writes the
rest at 1.25 of the plain price; the cache never goes cold, output is the same for all and left out. A token is four
bytes. At 150,000 tokens a head cuts the conversation to its newest 30,000, for all policies at the same call:

- patches: what changed goes to the tail, a head folds it in; tools are defined where they come in.
- patches, array grows: the same on a wire that cannot define tools later, so that the array at the front grows.
- patches, array kept: as the first, but removed tools stay in the array at heads, and new ones come last.
- folding: the prompt and the tools at the front are always the newest.
- frozen: nothing is ever told; what the conversation costs by itself.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.prompt_world import World, marks_in
from governors.messages import ToolSpec
from runtime.agent.system import changes
from runtime.prompt.pressure import keep_shown, room_of, shed
from runtime.sections import LEFT_OUT, Sections, patch_text, replay
from runtime.session.entries import SystemRecord
from runtime.session.view.sections import SystemState, state_of

READ, WRITE = 0.1, 1.25
LIMIT, KEPT, SUMMARY = 150_000, 30_000, 1_500  # tokens
LARGE, SMALL = 200_000, 12_000  # windows that the simulation switches between

Block = tuple[str, int]


def tokens(text: str) -> int:
    return len(text.encode()) // 4 + 1


def block(text: str) -> Block:
    return text, tokens(text)


def tool_blocks(tools: Sequence[ToolSpec]) -> list[Block]:
    return [block(json.dumps([tool.name, tool.description, dict(tool.parameters)])) for tool in tools]


@dataclass(slots=True)
class Bill:
    """What a policy has paid, in plain tokens; `written` are the tokens that were not read from the cache."""

    paid: float = 0.0
    written: int = 0
    size: int = 0
    sent: list[Block] = field(default_factory=list)

    def call(self, blocks: list[Block]) -> None:
        same = 0
        for old, new in zip(self.sent, blocks, strict=False):
            if old != new:
                break
            same += new[1]
        self.size = sum(size for _, size in blocks)
        self.written += self.size - same
        self.paid += READ * same + WRITE * (self.size - same)
        self.sent = blocks


class Conversation:
    """What stands behind the prompt: messages for everybody, patches for those who are told by patches."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._entries: list[tuple[Block, bool]] = []
        self._count = 0

    def grow(self) -> None:
        self._count += 1
        self._entries.append(((f"message {self._count}", self._chance.randint(60, 2_400)), False))

    def patch(self, text: str) -> None:
        self._entries.append((block(text), True))

    def cut(self) -> None:
        """A head: a summary and the newest messages stay, the patches go into the baseline."""
        kept: list[tuple[Block, bool]] = []
        size = 0
        for entry, is_patch in reversed(self._entries):
            size += entry[1]
            if size > KEPT:
                break
            kept += [] if is_patch else [(entry, False)]
        self._entries = [((f"summary at {self._count}", SUMMARY), False), *reversed(kept)]

    def blocks(self, patches: bool) -> list[Block]:
        return [entry for entry, is_patch in self._entries if patches or not is_patch]


class Year:
    """One session over one world. `run` makes edits; afterwards `bills`, `kinds`, `hits` and `heads` tell of them."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.world = World(folder, seed)
        self.builder = self.world.builder()
        self.chance = random.Random(seed + 1)
        self.conversation = Conversation(self.chance)
        self.bills = {
            name: Bill() for name in ("patches", "patches, array grows", "patches, array kept", "folding", "frozen")
        }
        self.kinds: Counter[str] = Counter()
        self.hits = self.heads = self.patched = self.calls = self.shed = 0
        self.window = LARGE
        self.state = SystemState()
        self._log: list[SystemRecord] = []
        self._told()
        self.first = self.baseline = self.state
        self.array = self.state.offered

    def run(self, edits: int) -> None:
        for _ in range(edits):
            self.kinds[self.world.step()] += 1
            if self.chance.random() < 0.6:
                self.world.rest()
            if self.chance.random() < 0.03:
                self.window = SMALL if self.window == LARGE else LARGE
            self._told()
            for _ in range(self.chance.randint(1, 6)):
                self._call()

    def _told(self) -> None:
        """What the agent does before a step, and whether what it told is so."""
        world, before = self.world, self._shown()
        names = [tool.name for tool in world.specs]
        prompt = self.builder.build("terminal", names)
        desired, _ = keep_shown(prompt.sections, prompt.failed, before)
        told = shed(desired, room_of(self.window), before, names)
        records = changes(self.state if self._log else None, told.sections, world.specs)
        for record in records:
            self._log.append(record)
            self.state = self.state.patched(record)
            if len(self._log) > 1:
                self.patched += 1
                self.conversation.patch(_patch(record))
        self.shed += bool(told.left_out)
        self._check(before, told.left_out)
        again = self.builder.build("terminal", names)
        self.hits += again.sections is prompt.sections
        assert again.sections == prompt.sections == world.builder().build("terminal", names).sections

    def _shown(self) -> Sections:
        return self.state.sections if self._log else ()

    def _check(self, before: Sections, left_out: Sequence[str]) -> None:
        """The sections that the log shows are what was written, and nothing else."""
        expected = self.world.expected({section.name: marks_in(section.text) for section in before})
        shown = {section.name: marks_in(section.text) for section in self.state.sections}
        bare = {"identity", "skills", "runtime", LEFT_OUT}  # may stand there without a mark
        for name in {*expected, *shown} - set(left_out):
            assert name in bare or name in shown, f"{name} is not shown"
            assert name not in shown or shown[name] == expected.get(name, frozenset()), f"{name}: {shown[name]}"
        assert not set(left_out) & set(shown)
        assert (LEFT_OUT in shown) == bool(left_out)
        assert {tool.name: tool for tool in self.state.tools} == {tool.name: tool for tool in self.world.specs}
        assert replay(record.sections for record in self._log) == self.state.sections

    def _call(self) -> None:
        self.calls += 1
        self.conversation.grow()
        if self.bills["patches"].size > LIMIT:
            self.heads += 1
            self.conversation.cut()
            on = {tool.name: tool for tool in self.state.tools}
            kept = [on.pop(tool.name, tool) for tool in self.array]
            self.array = (*kept, *on.values())
            self.baseline = self.state = state_of(self.state.baseline)  # complete: nothing older is needed
            assert self.state.sections == replay(record.sections for record in self._log)
        tail, bare = self.conversation.blocks(patches=True), self.conversation.blocks(patches=False)
        base = [block(self.baseline.text)]
        newest = [block(section.text) for section in self.state.sections]
        offered = sorted(self.state.tools, key=lambda tool: tool.name)
        self.bills["patches"].call([*tool_blocks(self.baseline.tools), *base, *tail])
        self.bills["patches, array grows"].call([*tool_blocks(self.state.offered), *base, *tail])
        self.bills["patches, array kept"].call([*tool_blocks(self.array), *base, *tail])
        self.bills["folding"].call([*tool_blocks(offered), *newest, *bare])
        self.bills["frozen"].call([*tool_blocks(self.first.tools), block(self.first.text), *bare])


def _patch(record: SystemRecord) -> str:
    """What a patch brings to the tail, the definitions of new tools among it."""
    tools = [text for text, _ in tool_blocks(record.tools_added)]
    return "\n\n".join([patch_text(record.sections), *tools, *record.tools_removed])


def report(year: Year) -> None:
    frozen = year.bills["frozen"]
    print(
        f"{sum(year.kinds.values()):,} edits, {year.patched:,} patches, {year.calls:,} calls, {year.heads} heads; "
        f"{year.hits:,} second builds hit; sections were left out {year.shed} times; what was shown was always right"
    )
    print(", ".join(f"{kind.replace('_', ' ')} {count}" for kind, count in year.kinds.most_common()))
    print(f"{'policy':24}{'billed':>16}{'written':>16}{'re-billed':>16}{'of folding':>12}")
    folded = year.bills["folding"].written - frozen.written
    for name, bill in year.bills.items():
        more = bill.written - frozen.written
        print(f"{name:24}{bill.paid:16,.0f}{bill.written:16,}{more:16,}{more / folded:12.1%}")
    print("tokens; re-billed: written beyond what the conversation alone has written")


def main() -> None:
    parser = argparse.ArgumentParser(description="What a year of changes to a prompt costs.")
    parser.add_argument("--edits", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        year = Year(Path(name), options.seed)
        year.run(options.edits)
        report(year)


if __name__ == "__main__":
    main()
