"""The provider's own compaction on strict servers: made, sent back, resumed, forked, undone, read on another wire."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from governors.wire.compaction_items import UNREADABLE
from runtime import tool
from runtime.agent.agent import Agent
from runtime.agent.compacting import Receipt
from runtime.app import Runtime
from runtime.channels import entry_lines
from runtime.events import CompactionFinished, Event, TurnFinished
from runtime.session.entries import CompactionRecord, HeadRecord, MessageRecord, RequestRecord
from runtime.session.moving.forking import fork_tree
from runtime.session.opening import read_log
from tests.servers import Connection, Seen, Server, serve
from tests.strict.mind import Answer, Called, Mind, Said, Thought
from tests.strict.models import Opened, hosts_for, opened

LONG = "word " * 200
SUMMARY = "They spoke of order_0 to order_9."
MODELS = [("anthropic", "claude-opus-5-5"), ("anthropic", "claude-sonnet-5"), ("openai", "gpt-6.1-sol")]
MODELS += [("openai", "gpt-6.2-sol")]


@tool(read_only=True)
def look(number: int) -> str:
    """Look at something.

    Args:
        number: Which.
    """
    return f"result {number} {LONG}"


class Steady(Mind):
    """It says the same each time, after some thinking, and calls `look` so many times a turn."""

    calls = 0

    def answer(self, tools: Any, *, thinks: bool, fresh: bool, can_call: bool = True) -> Answer:
        thought = (Thought("I think of it"),) if thinks else ()
        if fresh:
            self._calls_left = self.calls
        if self._calls_left and "look" in tools:
            self._calls_left -= 1
            self._made += 1
            return Answer((*thought, Called(f"call_{self._made}", "look", f'{{"number": {self._made}}}')), "calls")
        return Answer((*thought, Said(LONG)))


@dataclass
class Stage:
    """A conversation with real providers on strict servers."""

    runtime: Runtime
    agent: Agent
    hosts: dict[str, Any]
    server: Server
    mind: Steady

    async def say(self, text: str) -> list[Event]:
        return [event async for event in self.agent.send(text)]

    async def said(self, turns: int) -> None:
        for number in range(turns):
            (finished,) = [e for e in await self.say(f"Note order_{number}.") if isinstance(e, TurnFinished)]
            assert finished.error is None, finished.error

    async def by_hand(self, focus: str | None = None) -> Receipt:
        return await self.agent.compactions.by_hand(focus)

    def records(self, kind: type[Any]) -> list[Any]:
        return [e.record for e in read_log(self.agent.session.path).entries if isinstance(e.record, kind)]

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [json.loads(seen.body) for seen in self.server.seen]

    def assert_none_refused(self) -> None:
        for host in self.hosts.values():
            assert host.refusals == []


@asynccontextmanager
async def stage(
    folder: Path,
    provider: str,
    model: str,
    session: str | None = None,
    kept: Stage | None = None,
    strategy: str = "provider",
    **abilities: Any,
) -> AsyncIterator[Stage]:
    mind = kept.mind if kept else Steady(1, wild=False)
    hosts = kept.hosts if kept else hosts_for(mind, True)
    hosts["/v1/messages"].summary = SUMMARY

    async def handle(seen: Seen, connection: Connection) -> None:
        await next(host for path, host in hosts.items() if path in seen.path).handle(seen, connection)

    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(serve(handle))
        chosen = served(server, provider, model, **abilities)
        settings = {"tools.exec": "off", "tools.network": False, "compaction.strategy": strategy}
        runtime = await stack.enter_async_context(
            Runtime.open(folder, model=chosen.chosen, tools=[look], settings=settings, environ={})
        )
        agent = await runtime.supervisor.agent("assistant", session)
        yield Stage(runtime, agent, hosts, server, mind)


def served(server: Server, provider: str, model: str, **abilities: Any) -> Opened:
    """A model as the catalog knows it at its own address, with a small window."""
    home = {"anthropic": {"inline_tools": True}, "openai": {"developer_role": True, "system_anywhere": True}}[provider]
    able = {**home, "compaction": provider, **abilities}
    wire = "anthropic" if provider == "anthropic" else "openai_responses"
    return opened(provider, model, server.url, abilities=able, window=10_000, max_output=1_000, wire=wire)


def part_of(body: dict[str, Any]) -> list[Any]:
    return list(body.get("messages") or body["input"])


def is_asked(body: dict[str, Any]) -> bool:
    """Whether a body asks for a compaction."""
    return "compaction" in body or part_of(body)[-1].get("type") == "compaction_trigger"


def begins_compacted(body: dict[str, Any]) -> bool:
    """Whether the first thing after instructions is a compaction."""
    first = next(each for each in part_of(body) if each.get("role") not in ("system", "developer"))
    inner = first["content"][0] if first.get("role") == "assistant" else first
    return bool(inner.get("type") == "compaction")


@pytest.mark.parametrize(("provider", "model"), MODELS)
async def test_before_a_turn_it_takes_the_place_of_what_goes(tmp_path: Path, provider: str, model: str) -> None:
    """By itself, with nothing refused; what is kept stands after it, its reasoning too; the cost is in the receipt."""
    async with stage(tmp_path, provider, model) as it:
        await it.said(40)
        it.assert_none_refused()
        heads, receipts = it.records(HeadRecord), it.records(CompactionRecord)
        assert heads and all(each.result == "done" and each.strategy == "provider" for each in receipts), receipts
        assert all(head.item is not None and head.placement == "first" for head in heads)
        assert all(receipt.cost for receipt in receipts)
        assert begins_compacted(it.bodies[-1])
        if provider == "anthropic":
            assert heads[-1].summary == SUMMARY
        else:
            assert heads[-1].summary == UNREADABLE
        asked = next(place for place, body in enumerate(it.bodies) if is_asked(body))
        before, body = part_of(it.bodies[asked - 1]), part_of(it.bodies[asked])
        shared = len(body) - (provider == "openai")
        assert without_marks(body[:shared]) == without_marks(before[:shared]), "it reads the warm prefix"
        assert "compaction" in {record.purpose for record in it.records(RequestRecord)}


def without_marks(messages: list[Any]) -> str:
    return re.sub(r", 'cache_control': \{[^}]*\}", "", str(messages))


@pytest.mark.parametrize(("provider", "model"), MODELS)
async def test_inside_a_turn_the_turn_goes_on(tmp_path: Path, provider: str, model: str) -> None:
    """The user's words and whole steps stand after it."""
    async with stage(tmp_path, provider, model) as it:
        it.mind.calls = 45
        events = await it.say('Look at it all, and "never stop".')
        it.assert_none_refused()
        (finished,) = [event for event in events if isinstance(event, TurnFinished)]
        assert finished.error is None
        done = [event for event in events if isinstance(event, CompactionFinished)]
        assert done and all(event.result == "done" for event in done), done
        sent = [each for each in part_of(it.bodies[-1]) if each.get("role") not in ("system", "developer")]
        assert "never stop" in str(sent[:2])
        alone = model == "gpt-6.2-sol"  # its reasoning is bound to what goes, so that no step stays
        assert begins_compacted(it.bodies[-1]) != alone and (not alone or sent[1]["type"] == "compaction")


@pytest.mark.parametrize(("provider", "model"), MODELS[::2])
async def test_it_is_resumed_forked_and_undone(tmp_path: Path, provider: str, model: str) -> None:
    """Read from the log it goes back as it came; undone, all is in view; a fork has it too."""
    async with stage(tmp_path, provider, model) as it:
        await it.said(12)
        receipt = await it.by_hand()
        assert receipt.result == "done", receipt.why
        await it.say("And now?")
        sent = part_of(it.bodies[-1])
    async with stage(tmp_path, provider, model, it.agent.session.id, it) as again:
        await again.say("Still there?")
        resumed = part_of(again.bodies[-1])
        assert without_marks(resumed[: len(sent)]) == without_marks(sent)
        session = again.agent.session
        fork = await fork_tree(again.runtime.supervisor.store, session.header, session.tree, None, session.blobs)
        forked = await again.runtime.supervisor.agent("assistant", fork)
        [event async for event in forked.send("In the fork?")]
        assert begins_compacted(again.bodies[-1])
        for _ in range(3):
            await again.agent.branches.undo()
        await again.say("Once more.")
        assert not begins_compacted(again.bodies[-1]) and "order_0" in str(again.bodies[-1])
        again.assert_none_refused()


@pytest.mark.parametrize(("provider", "model", "other"), [(*MODELS[0], MODELS[2]), (*MODELS[2], MODELS[0])])
async def test_another_wire_reads_its_words(tmp_path: Path, provider: str, model: str, other: tuple[str, str]) -> None:
    """And none of its bytes; back at home the item is sent again."""
    async with stage(tmp_path, provider, model) as it:
        await it.said(12)
        assert (await it.by_hand()).result == "done"
        home, away = it.agent.model, served(it.server, *other).chosen
        await it.agent.switch_model(away)
        await it.say("You there?")
        item = it.records(HeadRecord)[-1].item
        assert not begins_compacted(it.bodies[-1]) and "encrypted_content" not in str(part_of(it.bodies[-1])[:2])
        assert (SUMMARY if provider == "anthropic" else UNREADABLE) in str(it.bodies[-1]) and item is not None
        await it.agent.switch_model(home)
        await it.say("And you?")
        assert begins_compacted(it.bodies[-1])
        it.assert_none_refused()
        await away.provider.close()


async def test_what_the_user_wants_is_told(tmp_path: Path) -> None:
    """As instructions, or as the last words before the trigger."""
    for provider, model in MODELS[::2]:
        async with stage(tmp_path / provider, provider, model) as it:
            await it.said(12)
            assert (await it.by_hand("the prices")).result == "done"
            assert is_asked(it.bodies[-1]) and "eep above all: the prices" in str(it.bodies[-1])
            it.assert_none_refused()


async def test_without_the_ability_it_fails_and_says_so(tmp_path: Path) -> None:
    """No other strategy takes its place, and no call is made for it."""
    async with stage(tmp_path, *MODELS[0], compaction="") as it:
        await it.said(12)
        asked = len(it.bodies)
        receipt = await it.by_hand()
        assert receipt.result == "failed" and "compaction.strategy" in receipt.why and len(it.bodies) == asked
        assert not it.records(HeadRecord)


async def test_an_empty_compaction_changes_nothing(tmp_path: Path) -> None:
    """The session is as before, and the receipt says why."""
    async with stage(tmp_path, *MODELS[0]) as it:
        await it.said(12)
        it.hosts["/v1/messages"].summary = " "
        receipt = await it.by_hand()
        assert receipt.result == "failed" and "empty" in receipt.why and not it.records(HeadRecord)
        await it.say("Go on.")
        it.assert_none_refused()


@pytest.mark.parametrize(("provider", "model"), MODELS[::2])
async def test_a_cut_carries_it_on(tmp_path: Path, provider: str, model: str) -> None:
    """It stays the first of all; a conversation that is cleared has none."""
    async with stage(tmp_path, provider, model, strategy="off") as it:
        await it.said(12)
        assert (await it.agent.compactions.by_hand(None, "provider")).result == "done"
        await it.said(40)
        made, *cuts = it.records(HeadRecord)
        assert cuts and all(head.item == made.item and head.summary == made.summary for head in cuts)
        assert begins_compacted(it.bodies[-1])
        assert (await it.agent.compactions.by_hand(None, "blank")).result == "done"
        await it.say("Afresh.")
        assert it.records(HeadRecord)[-1].item is None and not begins_compacted(it.bodies[-1])
        it.assert_none_refused()


async def test_what_was_redacted_takes_the_item_along(tmp_path: Path) -> None:
    """Nobody can see what it holds: no cut carries it on, and no reader is shown it."""
    async with stage(tmp_path, *MODELS[2], strategy="off") as it:
        await it.said(12)
        receipt = await it.agent.compactions.by_hand(None, "provider")
        assert receipt.head is not None
        entries = read_log(it.agent.session.path).entries
        first = next(e.id for e in entries if isinstance(e.record, MessageRecord))
        await it.agent.marks.redact(first)
        await it.said(40)
        made, *cuts = it.records(HeadRecord)
        assert made.item is not None and cuts and all(head.item is None for head in cuts)
        assert not begins_compacted(it.bodies[-1])
        head = next(entry for entry in entries if entry.id == receipt.head)
        shown = entry_lines.veiled(head, {first}, {head.id}).record
        assert isinstance(shown, HeadRecord) and shown.item is None
        it.assert_none_refused()
