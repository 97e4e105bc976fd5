"""A random conversation through a whole runtime, over loopback: real log, real providers, a strict server.

`hold(seed, wire, folder)` is one conversation; the same seed is the same conversation. People interrupt, steer, undo,
retry, take out, switch models, think more or less; files and tools change under them; windows are large or small.
"""

from __future__ import annotations

import base64
import struct
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

import anyio

from governors.messages import Image, Text
from runtime import tool
from runtime.agent.agent import Agent
from runtime.app import Runtime
from runtime.errors import MoonwakeError, ToolError
from runtime.events import Event, ToolStarted, TurnFinished
from runtime.providers.base import ChosenModel
from runtime.session.entries import EditRecord, HeadRecord, MessageRecord, OutcomeRecord, SettingRecord
from runtime.session.opening import read_log
from runtime.tools.base import Tool, ToolOutput
from runtime.tools.toolset import Toolset

from ..servers import Connection, Seen, serve
from .mind import Mind
from .models import Opened, hosts_for, models_for

WIRES = ("anthropic", "openai_chat", "openai_responses")
LEVELS = ("off", "low", "medium", "high", "max")
OURS = ("work", "fail", "picture", "wait", "late", "extra")


@dataclass(slots=True)
class Report:
    """What came of a conversation. `wrong` is what should not have happened; it should be empty."""

    seed: int
    done: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


async def hold(
    seed: int,
    wire: str,
    folder: Path,
    *,
    turns: int = 9,
    vendor: str | None = None,
    small: int | None = None,
    **abilities: Any,
) -> Report:
    """One conversation on `wire`; with `vendor`, all of it with that host. `abilities` differ from the catalog's.

    `small` is the window of all hosts (tokens), whatever the catalog believes.
    """
    report, random = Report(seed), Random(f"{wire} {seed}")
    mind = Mind(seed, wild=random.random() < 0.8)
    gentle = random.random() < 0.7  # the account may ask that thinking is dropped and not refused
    hosts = hosts_for(mind, gentle)
    if small is not None:
        for host in hosts.values():
            host.window = small

    async def handle(seen: Seen, connection: Connection) -> None:
        await next(host for path, host in hosts.items() if path in seen.path).handle(seen, connection)

    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(serve(handle))
        models = models_for(
            wire, server.url, random, vendor, abilities if gentle else {"drop_block": False, **abilities}
        )
        settings = {"tools.exec": "off", "tools.network": False, "tools.disabled": _fewer(random)}
        opened = Runtime.open(folder, model=models[0].chosen, tools=tools_of(random), settings=settings, environ={})
        runtime = await stack.enter_async_context(opened)
        for model in models[1:]:
            stack.push_async_callback(model.chosen.provider.close)
        agent = await runtime.supervisor.agent("assistant")
        await _Person(agent, models, random, folder, report).talk(turns)
        path = agent.session.path
    for host in {id(host): host for host in hosts.values()}.values():
        report.wrong += [f"refused: {each}" for each in host.refusals]
        report.done.update(requests=host.asked, overflows=host.overflows, dropped=sum(host.dropped))
    entries = read_log(path).entries if path.exists() else ()
    report.done.update(heads=sum(isinstance(entry.record, HeadRecord) for entry in entries))
    report.done.update(edits=sum(isinstance(entry.record, EditRecord) for entry in entries))
    causes = {entry.record.cause for entry in entries if isinstance(entry.record, OutcomeRecord)}
    if report.done["dropped"] and not causes - {None}:
        report.wrong.append("thinking was dropped although nothing moved the prefix")
    report.done["conversations"] += 1
    return report


def _fewer(random: Random) -> list[str]:
    names = ("write_file", "edit_file", "list_dir", "grep", "skill", "recall", "read_file")
    return [name for name in names if random.random() < 0.6]


def png(width: int, height: int) -> Image:
    """A grey picture that is one."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    lines = (b"\0" + b"\x80" * width) * height
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    raw = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")
    return Image("image/png", base64.b64encode(raw).decode(), width, height)


def tools_of(random: Random) -> list[Tool]:
    """Tools that give back what tools give back. `size` comes from the model."""

    @tool
    def work(size: int = 0, seed: int = 0) -> str:
        """Work.

        Args:
            size: How much.
            seed: Which.
        """
        odd = ("", "\ud83d", "é\x00", "ok ")[seed % 4]
        return odd + "the result of work " * (size // 19)

    @tool
    def fail(size: int = 0, seed: int = 0) -> str:
        """Fail."""
        raise ToolError(("it failed " * (size // 10)) if size else "")

    @tool
    def picture(size: int = 1, seed: int = 0) -> ToolOutput:
        """Draw."""
        shown = [png(max(1, size), 1 + seed % 5) for _ in range(1 + seed % 3)]
        words = (Text("a picture"),) if seed % 2 else ()
        return ToolOutput((*words, *shown), is_error=seed % 7 == 0)

    @tool
    async def wait(size: int = 0, seed: int = 0) -> str:
        """Wait a moment."""
        for _ in range(5 + seed % 50):
            await anyio.lowlevel.checkpoint()
        return ""

    return [work, fail, picture, wait]


@tool
def late(size: int = 0, seed: int = 0) -> str:
    """Came late."""
    return "late"


@tool
def extra(size: int = 0, seed: int = 0) -> str:
    """Came later."""
    return "extra"


@dataclass(slots=True)
class _Person:
    agent: Agent
    models: Sequence[Opened]
    random: Random
    folder: Path
    report: Report

    async def talk(self, turns: int) -> None:
        habits: list[tuple[Callable[[], Any], int]] = [
            (self._switch, 2), (self._think, 2), (self._files, 3), (self._tools, 2),
            (self._undo, 2), (self._retry, 1), (self._take_out, 1), (self._release, 1),
        ]  # fmt: skip
        does, weights = zip(*habits, strict=True)
        for _ in range(turns):
            if self.random.random() < 0.5:
                (habit,) = self.random.choices(does, weights)
                self.report.done[habit.__name__.strip("_")] += 1
                try:
                    await habit()
                except MoonwakeError as error:
                    self.report.done["not possible"] += 1
                    if "fault" in str(error):
                        self.report.wrong.append(str(error))
            await self._say()
        await self.agent.rest()

    async def _say(self) -> None:
        random = self.random
        text = random.choice(("hello", "go on", "", " ", "\ud800 broken", "a long story " * 300, "<b>&amp;</b>", "yes"))
        content: list[Text | Image] = [Text(text)]
        if random.random() < 0.15:
            content += [png(random.choice((1, 40, 2100, 9000)), 2) for _ in range(random.choice((1, 1, 3, 12)))]
        await self._follow(self.agent.send(content), random.choice((None, None, None, "stop", "steer", "queue")))

    async def _follow(self, events: Any, meanwhile: str | None) -> None:
        """Follow a turn; `meanwhile` is done as its first call begins."""
        self.report.done["turns"] += 1
        async with anyio.create_task_group() as group:
            async for event in events:
                self._judge(event)
                if isinstance(event, ToolStarted) and meanwhile is not None:
                    self.report.done[meanwhile] += 1
                    if meanwhile == "stop":
                        group.start_soon(self.agent.stop)
                    else:
                        group.start_soon(self._add, meanwhile == "queue")
                    meanwhile = None
        await self.agent.rest()

    async def _add(self, queue: bool) -> None:
        async for event in self.agent.send("and one thing more", queue=queue):
            self._judge(event)

    def _judge(self, event: Event) -> None:
        if isinstance(event, TurnFinished):
            self.report.done[f"ended {event.stop}"] += 1
            error = event.error or ""
            if "fault in Moonwake" in error or "cannot be sent" in error or "rule" in error:
                self.report.wrong.append(error)

    async def _switch(self) -> None:
        await self.agent.switch_model(self.random.choice(self.models).chosen)

    async def _think(self) -> None:
        await self.agent.session.append(SettingRecord(name="thinking", value=self.random.choice(LEVELS)))

    async def _files(self) -> None:
        name = self.random.choice(("AGENTS.md", "memory/MEMORY.md", "SOUL.md", "skills/sew/SKILL.md"))
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        words = f"Rule {self.random.randrange(100)}: " + "be kind. " * self.random.choice((1, 40))
        front = "---\nname: sew\ndescription: About sewing.\n---\n" if name.startswith("skills") else ""
        path.write_text(front + words)

    async def _tools(self) -> None:
        given = self.agent.equipment
        kept = [each for each in given.toolset if each.spec.name not in ("late", "extra")]
        kept = [reworded(each, self.random) for each in kept]
        more = [each for each in (late, extra) if self.random.random() < 0.5]
        self.agent.equipment = replace(given, toolset=Toolset([*kept, *more]))

    async def _undo(self) -> None:
        await self.agent.branches.undo(self.random.choice((1, 1, 2)))

    async def _retry(self) -> None:
        if any(isinstance(entry.record, MessageRecord) for entry in self.agent.session.branch()):
            chosen: ChosenModel | None = self.random.choice((None, self.random.choice(self.models).chosen))
            await self._follow(self.agent.branches.retry(chosen), None)

    async def _take_out(self) -> None:
        said = [e.id for e in self.agent.session.branch() if isinstance(e.record, MessageRecord)]
        if said:
            entry = self.random.choice(said)
            await (self.agent.marks.omit(entry) if self.random.random() < 0.7 else self.agent.marks.redact(entry))

    async def _release(self) -> None:
        stream = await self.agent.release()
        if stream is not None:
            await self._follow(stream, None)


def reworded(one: Tool, random: Random) -> Tool:
    """Now and then `one` as a server describes it after an update."""
    if one.spec.name != "work" or random.random() < 0.6:
        return one
    return replace(one, spec=replace(one.spec, description=f"Work, version {random.randrange(9)}."))
