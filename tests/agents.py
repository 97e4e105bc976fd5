"""A runtime on a temporary workspace with a scripted model, and a few ways to look at what happened."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from governors.wire import WIRES
from governors.wire.encoded import roll
from runtime.agent.agent import Agent
from runtime.app import Runtime
from runtime.events import Event, MessageRecorded, ReplyRecorded, ToolFinished, ToolStarted
from runtime.inspecting import calls_of
from runtime.providers.scripted import Script, Scripted
from runtime.session.entries import Entry, RequestRecord
from runtime.session.opening import read_log
from runtime.session.tree import Tree
from runtime.tools.base import Tool

Kind = TypeVar("Kind")


@dataclass
class Talk:
    """An agent, its scripted model, and the runtime that both live in."""

    runtime: Runtime
    agent: Agent
    model: Scripted

    async def say(self, text: str, **options: Any) -> list[Event]:
        return [event async for event in self.agent.send(text, **options)]

    @property
    def log(self) -> Path:
        return self.agent.session.path

    def on_disk(self) -> tuple[Entry, ...]:
        return read_log(self.log).entries

    def records(self, kind: type[Kind]) -> list[Kind]:
        return [entry.record for entry in self.on_disk() if isinstance(entry.record, kind)]

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [dict(request.body) for request in self.model.requests]


@asynccontextmanager
async def talk(
    workspace: Path,
    script: Iterable[Script] = (),
    *,
    tools: Sequence[Tool] = (),
    session: str | None = None,
    otherwise: Script | None = None,
    settings: dict[str, Any] | None = None,
    prefix_law: bool = True,
    hooks: Sequence[object] = (),
    **model: Any,
) -> AsyncIterator[Talk]:
    """A conversation with a scripted model. At its end, all that was sent is held to the prefix law, unless the test
    breaks the log on purpose (`prefix_law=False`)."""
    scripted = Scripted(script, otherwise=otherwise)
    chosen = scripted.chosen(**model)
    overrides = {"tools.exec": "off", "compaction.strategy": "off", **(settings or {})}
    opened = Runtime.open(workspace, model=chosen, tools=tools, hooks=hooks, settings=overrides, environ={})
    async with opened as runtime:
        agent = await runtime.supervisor.agent("assistant", session)
        it = Talk(runtime, agent, scripted)
        yield it
    if prefix_law:
        assert_prefix_law(it)


def of(kind: type[Kind], events: Iterable[object]) -> list[Kind]:
    return [event for event in events if isinstance(event, kind)]


def acknowledged(event: Event) -> int | None:
    """The entry that an event promises to be on disk, or the intent's reply for a started call."""
    match event:
        case MessageRecorded(entry=entry) | ReplyRecorded(entry=entry) | ToolFinished(entry=entry):
            return entry
        case ToolStarted(call=(reply, _)):
            return reply
        case _:
            return None


def assert_prefix_law(talk: Talk) -> None:
    """Each request's blocks extend those of the one before it on its branch, unless its outcome names the cause.

    The one before is the newest request of a turn for the same model and wire; what the log says of its blocks is
    compared with the body that the model got, so that the log is held to the truth as well.
    """
    if not talk.log.exists():
        return  # nothing was said
    tree, bodies = Tree(talk.on_disk()), _blocks_by_prefix(talk)
    for call in calls_of(tree.entries):
        if call.request.purpose != "turn":
            continue
        assert call.cause != "unexplained", f"the prefix of request {call.id} moved, and nothing says why"
        blocks = bodies.get(call.request.prefix)
        before = _chain_before(tree, call.entry)
        if blocks is None or call.outcome is None:
            continue  # of an earlier life of the session, or the program ended before it left
        assert call.request.blocks == len(blocks)
        if before is None:
            assert call.cause is None
            continue
        digests = [digest.hex() for digest in roll(b"", blocks)]
        extends = len(digests) >= before.blocks and digests[before.blocks - 1] == before.prefix
        assert extends == (call.cause is None), f"request {call.id}: cause {call.cause}, extends {extends}"


def _blocks_by_prefix(talk: Talk) -> dict[str, list[bytes]]:
    """The blocks of the bodies that the model got, by their hash; each must be in the log, if one session asked."""
    wires = [(WIRES[request.model.wire], dict(request.body)) for request in talk.model.requests]
    found = {wire.prefix_hash(body): wire.prefix_blocks(body) for wire, body in wires}
    if len(list(talk.log.parent.glob("*.jsonl"))) == 1:
        assert set(found) <= {record.prefix for record in talk.records(RequestRecord)}, "a request is not in the log"
    return found


def _chain_before(tree: Tree, entry: Entry) -> RequestRecord | None:
    request = entry.record
    assert isinstance(request, RequestRecord)
    for each in reversed(tree.branch_to(entry.parent)):
        record = each.record
        if isinstance(record, RequestRecord) and record.purpose == "turn":
            same = (record.provider, record.model, record.wire) == (request.provider, request.model, request.wire)
            if same:
                return record
    return None
