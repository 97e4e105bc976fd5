"""The command that makes room: /compact."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType

import anyio.to_thread

from governors.tokens import load_vocabulary

from ..agent.agent import Agent
from ..agent.compacting import Receipt, breaker_at, reason_for, surveyed
from ..agent.states import State
from ..compaction.breaker import GROWTH, MOST
from ..events import CompactionStarted
from ..session.entries import CompactionRecord
from .receipts import lacking, result_line, saving, why
from .seat import Act, Seat, tell
from .wording import plural, tokens

_TINY = "A model as small as this one seldom manages a summary; the oldest messages are cut when there is need."
_UNDO = "undo"


async def compact(seat: Seat, argument: str) -> None:
    if argument.lower() == _UNDO:
        await seat.agent.branches.undo_head()
        await seat.settle()
        seat.audience.moved(seat.agent)
        await tell_unheaded(seat)
        return
    if seat.occupied or seat.agent.state is State.COMPACT:
        tell(seat, "Room is being made already. Ctrl-C or /stop ends that; /compact begins anew then.", "warning")
        return
    await seat.agent.stop()
    await seat.settle()
    seat.meanwhile(partial(_compact, seat, argument or None))


async def _compact(seat: Seat, focus: str | None) -> None:
    agent, audience = seat.agent, seat.audience
    await anyio.to_thread.run_sync(load_vocabulary)
    desk = agent.desk()
    strategy = desk.strategy if desk.strategy != "off" else "summary"
    mine = {"agent": agent.name, "session": agent.session.id}
    audience.happened(CompactionStarted(timing="manual", reason="asked", strategy=strategy, **mine))
    try:
        receipt = await agent.compactions.by_hand(focus)
    finally:
        audience.moved(agent)  # its state, size and cost are other ones now
    _tell(seat, agent, receipt)


def _tell(seat: Seat, agent: Agent, receipt: Receipt) -> None:
    entry = None if receipt.entry is None else agent.session.tree.get(receipt.entry)
    record = entry.record if entry is not None else None
    if receipt.result == "nothing":
        tell(
            seat, f"There is nothing to sum up: the {tokens(receipt.before)} tokens of a request are what has to stay."
        )
    elif not isinstance(record, CompactionRecord):  # nothing came to be recorded
        tell(seat, "Stopped. No room was made; nothing has changed.")
    elif receipt.result == "failed":
        tell(seat, f"No room was made: {why(record)} Nothing has changed.", "error")
        tiny = agent.model.info.profile == "tiny"
        tell(seat, _TINY if tiny else "/compact tries again, /model NAME lets another model try, /new begins anew.")
    else:
        price, undo = agent.model.info.price, "/undo takes it back."
        told = (saving(record, price), lacking(record.dropped, receipt.entry), undo)
        bare = CompactionRecord(
            timing=record.timing, reason=record.reason, strategy=record.strategy, result="done",
            before=record.before, after=record.after, folded=record.folded, cost=0.0 if told[0] else record.cost,
        )  # fmt: skip  # what follows it names the rest
        summary = f" /show {receipt.head} shows it." if record.strategy != "blank" else ""
        tell(seat, "\n".join(filter(None, (result_line(bare) + summary, *told))))


async def tell_unheaded(seat: Seat) -> None:
    """Tell that a compaction was taken back, and when it would be made again at once."""
    text = "The model sees again what was out of its view. The next /undo takes back the last turn."
    tell(seat, text)
    agent = seat.agent
    desk = agent.desk()
    if not desk.compacts():
        return
    await anyio.to_thread.run_sync(load_vocabulary)
    here = await surveyed(desk, None)
    if reason_for(desk, here, "before_turn") is not None:
        mark = round(desk.marks.block * here.budget)
        again = f"That is {tokens(here.tokens)} tokens, above the mark of {tokens(mark)}"
        tell(seat, f"{again}: the next message makes room again. `compaction.strategy` turns that off.", "warning")


async def room_lines(agent: Agent) -> str:
    """From when on room is made, and why it is not made by itself."""
    desk = agent.desk()
    here = await surveyed(desk, None)
    if not desk.compacts():
        off = "is off" if desk.strategy == "off" else "is too much for a model this small"
        return f"Making room by summing up {off}: over {here.budget:,} tokens the oldest messages are cut."
    block, idle = (round(mark * here.budget) for mark in (desk.marks.block, desk.marks.idle))
    text = f"Room is made from {block:,} tokens on, while nobody talks from {idle:,}."
    breaker = breaker_at(desk, here)
    if not breaker.open:
        return text
    grown = breaker.tokens + round(GROWTH * here.budget)
    return (
        f"{text}\nThat brought nothing {plural(max(MOST, breaker.misses), 'time')} in a row, and is not tried by "
        f"itself until you have spoken and {grown:,} tokens are reached, or another model answers. /compact tries it "
        "now."
    )


COMPACT_ACTS: Mapping[str, Act] = MappingProxyType({"/compact": compact})
