"""The command about money: /cost."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import anyio.to_thread

from ..agent.branches import whole
from ..errors import MoonwakeError
from ..inspecting import calls_of, misses_of
from ..ledger import Left, Spender, SpendLedger
from ..providers.base import ModelInfo
from ..session.entries import Entry
from .cost_lines import Bill, cost_lines, last_turn
from .reducer import Line
from .seat import Act, Seat, tell


async def cost(seat: Seat, argument: str) -> None:
    agent = seat.agent
    session = await whole(agent.session)
    entries, branch, info = tuple(session.tree.entries), tuple(session.branch()), agent.model.info
    turn, bill = await anyio.to_thread.run_sync(_bill, entries, branch, {f"{info.provider}/{info.id}": info})
    workspace = str(agent.equipment.workspace)
    who = Spender(agent=session.agent, session=session.id, turn=turn, purpose="turn", workspace=workspace)
    today, caps = await _standing(seat, who)
    columns = shutil.get_terminal_size((80, 24)).columns
    seat.audience.show(Line("plain", cost_lines(replace(bill, today=today, caps=caps), columns)))


def _bill(entries: Sequence[Entry], branch: Sequence[Entry], known: Mapping[str, ModelInfo]) -> tuple[int | None, Bill]:
    calls = calls_of(entries)
    turn, own = last_turn(branch, calls)
    misses = {miss.entry: miss for miss in misses_of(entries, known).misses}
    return turn, Bill(own, misses, calls)


async def _standing(seat: Seat, who: Spender) -> tuple[float | None, tuple[Left, ...]]:
    """What was spent today, and how the caps stand; what is wrong with the ledger is told."""
    ledger = seat.agent.equipment.ledger
    if not isinstance(ledger, SpendLedger):
        return None, ()
    try:
        return await ledger.today(), await ledger.left(who)
    except MoonwakeError as error:
        tell(seat, str(error))
        return None, ()


COST_ACTS: Mapping[str, Act] = MappingProxyType({"/cost": cost})
