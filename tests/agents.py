"""A runtime on a temporary workspace with a scripted model, and a few ways to look at what happened."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from governors.wire import WIRES
from runtime.agent.agent import Agent
from runtime.app import Runtime
from runtime.events import Event, MessageRecorded, ReplyRecorded, ToolFinished, ToolStarted
from runtime.providers.scripted import Script, Scripted
from runtime.session.entries import Entry, RequestRecord
from runtime.session.opening import read_log
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
    **model: Any,
) -> AsyncIterator[Talk]:
    scripted = Scripted(script, otherwise=otherwise)
    chosen = scripted.chosen(**model)
    overrides = {"tools.exec": "off", **(settings or {})}
    async with Runtime.open(workspace, model=chosen, tools=tools, settings=overrides, environ={}) as runtime:
        agent = await runtime.supervisor.agent("assistant", session)
        yield Talk(runtime, agent, scripted)


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
    """Each request's blocks extend those of the one before, unless its outcome names the cause."""
    causes = [entry.record.cause for entry in talk.on_disk() if entry.record.type == "outcome"]
    assert len(causes) == len(talk.model.requests)
    blocks = [WIRES[request.model.wire].prefix_blocks(dict(request.body)) for request in talk.model.requests]
    for earlier, later, cause in zip(blocks, blocks[1:], causes[1:], strict=False):
        extends = later[: len(earlier)] == earlier
        assert extends == (cause is None), cause
        assert cause != "unexplained"
    assert [request.blocks for request in talk.records(RequestRecord)] == [len(each) for each in blocks]
