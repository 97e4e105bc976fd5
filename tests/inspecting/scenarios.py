"""Conversations in which a cache is missed for every reason there is, with a provider that knows why."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path

from runtime import Call, Reply, Tool, tool
from runtime.inspecting import Misses, calls_of, misses_of
from runtime.providers.base import CacheTerms, ChosenModel, ModelInfo
from runtime.session.entries import Entry
from runtime.tools.toolset import Toolset
from tests.agents import Talk
from tests.caching import Caching, Clock, by_clock, caching_talk


@tool(bulky=True, read_only=True)
def listing(number: int) -> str:
    """Give a long listing.

    Args:
        number: Which one.
    """
    return f"listing {number}\n" + "\n".join(f"entry {number}-{line} of a long listing" for line in range(40))


@tool
def later(what: str) -> str:
    """Do something that could not be done before.

    Args:
        what: What to do.
    """
    return what


@dataclass(frozen=True)
class Run:
    """A scenario that was played: what its provider knew, and what the log says."""

    provider: Caching
    misses: Misses
    entries: tuple[Entry, ...]
    known: dict[str, ModelInfo | None]

    @property
    def told(self) -> list[str]:
        """The cause of each miss."""
        return [miss.cause for miss in self.misses.misses]


Scenario = Callable[[Talk, Caching], Awaitable[None]]


def listings(count: int) -> list[Call]:
    return [Call("listing", {"number": number}) for number in range(count)]


async def steady(it: Talk, provider: Caching) -> None:
    provider.add(*listings(3), "done")
    for text in ("look", "and now?", "go on"):
        await it.say(text)
        provider.clock.now += 60


async def expired(it: Talk, provider: Caching) -> None:
    for gap in (10, 400, 20, 7_200, 5):
        await it.say("are you there? " + "words " * 200)
        provider.clock.now += gap


async def cold_edit(it: Talk, provider: Caching) -> None:
    provider.add(*listings(14), "done", "welcome back")
    await it.say("look at all of them")
    provider.clock.now += 7_200
    await it.say("I am back")


async def edits_and_heads(it: Talk, provider: Caching) -> None:
    provider.add(*listings(40), "done")
    await it.say("look at all of them")
    await it.say("and?")


async def user_edit(it: Talk, provider: Caching) -> None:
    for text in ("one " * 300, "two " * 300, "three"):
        await it.say(text)
    first = it.agent.session.branch()[0]
    user = next(e for e in it.agent.session.branch() if e.record.type == "message" and e.id > first.id)
    await it.agent.marks.omit(user.id)
    await it.say("and now?")


async def redacted(it: Talk, provider: Caching) -> None:
    for text in ("the code is 4711 " * 50, "two " * 300, "three"):
        await it.say(text)
    secret = next(e for e in it.agent.session.branch() if e.record.type == "message")
    await it.agent.marks.redact(secret.id)
    await it.say("and now?")


async def tools_change(it: Talk, provider: Caching) -> None:
    await it.say("hello " * 300)
    given = it.agent.equipment
    tools = [*given.toolset, later]
    it.agent.equipment = replace(given, toolset=Toolset(tools))
    await it.say("and now?")
    await it.say("and then?")


async def model_change(it: Talk, provider: Caching) -> None:
    await it.say("hello " * 300)
    first = it.agent.model
    other = ChosenModel(replace(first.info, id="other"), provider)
    await it.agent.switch_model(other)
    await it.say("and you?")
    await it.agent.switch_model(first)
    await it.say("back to you")
    provider.clock.now += 4_000
    await it.say("still there?")


async def undone(it: Talk, provider: Caching) -> None:
    for text in ("one " * 300, "two " * 300, "three"):
        await it.say(text)
    await it.agent.branches.undo(2)
    await it.say("another two")
    provider.clock.now += 4_000
    await it.say("another three")
    await it.agent.branches.undo(1)
    await it.say("a third one")


async def evicted(it: Talk, provider: Caching) -> None:
    await it.say("hello " * 300)
    provider.evict()
    await it.say("still there?")
    await it.say("and now?")


async def one_slot(it: Talk, provider: Caching) -> None:
    for text in ("one " * 300, "two " * 300, "three"):
        await it.say(text)
    await it.agent.branches.undo(1)
    provider.evict()  # by what the other branch wrote
    await it.say("another three")


async def stopped(it: Talk, provider: Caching) -> None:
    """An edit moves the prefix of a request that is refused: the next one pays for it."""
    for text in ("one " * 300, "two " * 300):
        await it.say(text)
    first = next(e for e in it.agent.session.branch() if e.record.type == "message")
    await it.agent.marks.omit(first.id)
    provider.add(Reply(error="overloaded", usage=None))
    provider.silent = True
    await it.say("three")
    provider.silent = False
    await it.say("four")


SCENARIOS: dict[str, Scenario] = {
    each.__name__: each
    for each in (
        steady,
        expired,
        cold_edit,
        edits_and_heads,
        user_edit,
        redacted,
        tools_change,
        model_change,
        undone,
        evicted,
        one_slot,
        stopped,
    )
}
_WINDOWS = {"edits_and_heads": 9_000}


async def play(name: str, folder: Path, least: int = 0) -> Run:
    """Play the scenario `name` in a workspace in `folder`."""
    provider = Caching(Clock(), least=least)
    tools: list[Tool] = [listing]
    window = _WINDOWS.get(name, 200_000)
    async with caching_talk(folder, provider, tools=tools, session=name, window=window) as it:
        await SCENARIOS[name](it, provider)
        entries = by_clock(it)
        info = replace(it.agent.model.info, cache=CacheTerms(least=least))
        known: dict[str, ModelInfo | None] = {"scripted/scripted": info, "scripted/other": info}
        return Run(provider, misses_of(entries, known), tuple(entries), known)


#: What a provider knows of a miss, and the causes that say the same.
SAME = {
    "expired": {"expired"},
    "evicted": {"provider", "branch switch"},
    "too short": {"too short"},
    "moved": {"edit", "head", "redact", "tool change", "system folded"},
}


def agreement(run: Run) -> tuple[int, int]:
    """The tokens lost whose cause is what the provider knows of them, and all that were lost."""
    calls = [call.id for call in calls_of(run.entries) if call.request.purpose == "turn"]
    truth = dict(zip(calls, run.provider.truth, strict=True))
    right = lost = 0
    for miss in run.misses.misses:
        known = truth[miss.entry]
        agrees = miss.cause in SAME[known] if known is not None else miss.cause == "model change"
        right += miss.lost if agrees else 0
        lost += miss.lost
    return right, lost


__all__ = ["SCENARIOS", "Run", "agreement", "play"]
