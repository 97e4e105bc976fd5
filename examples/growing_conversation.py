"""A governor and an economy over a conversation that grows: what is edited, when, and why; then the same once more from
what was stored.

The clock, the model and its tools are simulated, so that it runs anywhere: python examples/growing_conversation.py
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from pydantic import TypeAdapter

from governors import Abilities, Action, Budget, Decision, Economy, Governor, Moment, Prices, load_vocabulary
from governors.messages import AssistantMessage, Message, Text, ToolCall, ToolResult, ToolSpec, Usage, UserMessage

MODEL, SYSTEM, BUDGET = "any-model", "You read files.", Budget(window=48_000, max_output=2_000)
TOOLS = (ToolSpec("read_file", "Read a file.", {"type": "object"}, bulky=True),)
STORED = TypeAdapter(tuple[Decision, ...])
PAUSES = {4: 2 * 3_600.0}  # after the fourth turn somebody has lunch; seconds


def governor(decisions: tuple[Decision, ...] = ()) -> Governor:
    abilities = Abilities(images=True)  # of the model: pictures are off by default
    return Governor(BUDGET, abilities=abilities, system=SYSTEM, tools=TOOLS, decisions=decisions, model=MODEL)


def script() -> Iterator[tuple[float, Message, AssistantMessage]]:
    """For each call: the seconds since the one before, what is new, and the reply to it."""
    for turn in range(1, 9):
        new: Message = UserMessage((Text(f"Turn {turn}: read the next six files."),))
        wait = PAUSES.get(turn - 1, 60.0)
        for number in range(6):
            call = ToolCall(f"call_{turn}_{number}", "read_file", f'{{"path": "{turn}/{number}.txt"}}')
            yield wait, new, AssistantMessage((call,), stop="tool_use", model=MODEL)
            lines = "\n".join(f"line {line} of file {turn}/{number}" for line in range(120))
            new, wait = ToolResult(call.id, call.name, (Text(lines),)), 8.0
        yield wait, new, AssistantMessage((Text("All read."),), model=MODEL)


def converse() -> tuple[list[Message], list[Decision], tuple[Message, ...]]:
    """All messages, all decisions, and the last request that was sent."""
    governing, economy = governor(), Economy(Prices())
    history: list[Message] = []
    kept: list[Decision] = []
    sent: tuple[Message, ...] = ()
    new: list[Message] = []
    now = 0.0
    for wait, arrived, reply in script():
        now += wait
        new.append(arrived)
        economy = economy.came(now, rested=isinstance(arrived, UserMessage))
        governed = governing.step(new, cache=Moment(economy, now))
        kept += governed.decisions  # make them durable here, before the request leaves
        assert governed.economy is not None  # as one was handed in
        prompt, cached = governed.report.after, held(economy, now, governed.decisions)
        economy = governed.economy.sent(now, prompt, written=max(0, prompt - cached))
        assert economy.cache is not None  # as a request was sent
        tell(now, prompt, economy.cache.lifetime, governed.report.actions)
        history += new
        sent = tuple(governed.messages)
        # A real reply brings its own usage: it tells how large requests really are.
        new = [replace(reply, usage=Usage(cache_read=cached, cache_write_5m=max(0, prompt - cached)))]
    return history, kept, sent


def held(economy: Economy, now: float, decisions: Sequence[Decision]) -> int:
    """About how many tokens of the request the cache still holds: after an edit the front alone, here nothing."""
    cold = economy.cache is None or economy.cache.cold(now)
    return 0 if cold or decisions or economy.cache is None else economy.cache.tokens


def tell(now: float, prompt: int, lifetime: int, actions: Sequence[Action]) -> None:
    print(f"{now:>8,.0f} s {prompt:>7,} tokens, to be kept for {lifetime} s")
    for action in actions:
        money = f" (to save the price of {action.money:,.0f} plain tokens)" if action.money is not None else ""
        print(f"           {action.governor}: {action.what}, because {action.why}: {action.tokens:,} tokens{money}")


if __name__ == "__main__":
    load_vocabulary()
    history, kept, sent = converse()
    stored = STORED.dump_json(tuple(kept))
    again = governor(STORED.validate_json(stored)).step(history)
    assert tuple(again.messages) == sent
    assert not again.decisions
    print(f"{len(kept)} decisions stored in {len(stored):,} bytes; from them the same {len(sent)} messages again")
