"""The ledger of this user, kept true by the logs: they tell what was spent before it, and what became of lost calls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path

import anyio.to_thread

from ..config import Config, user_config_file
from ..errors import MoonwakeError
from ..ledger import AgentCaps, Before, Caps, Reservation, Spender, SpendLedger
from ..session.format.codec import BadLine
from ..session.names import file_name
from ..workspace import Workspace
from .bills import Bill, bills_of
from .logs import ENDING, read_calls, reckon

_SAME = 1e-9  # dollars: two amounts that differ by less are one
_CLOCK = 1.0  # seconds that the time of an entry may be before that of its reservation


def ledger_path(environ: Mapping[str, str]) -> Path:
    """Where the ledger lies: `MOONWAKE_LEDGER`, else in the user's state folder."""
    if named := environ.get("MOONWAKE_LEDGER"):
        return Path(named).expanduser()
    from platformdirs import user_state_path

    return user_state_path("moonwake", appauthor=False) / "ledger.sqlite"


def caps_of(config: Config) -> Caps:
    """The caps that the settings name."""
    spend = config.spend
    agents = {name: AgentCaps(day=own.day, month=own.month) for name, own in spend.agents.items()}
    return Caps(day=spend.day, month=spend.month, session=spend.session, turn=spend.turn, agents=agents)


def make_ledger(config: Config, environ: Mapping[str, str]) -> SpendLedger:
    """The ledger with the caps of `config`; its file is not opened yet."""
    user_file = str(user_config_file(environ))

    def where(setting: str) -> str:
        place = config.origin_of(setting)
        return user_file if place.layer in ("default", "user") else place.where

    return SpendLedger(ledger_path(environ), caps_of(config), where=where)


async def make_true(ledger: SpendLedger, workspace: Workspace) -> None:
    """With caps: count what the logs of `workspace` know and the ledger does not, and settle what lost calls did cost.

    Raises `LedgerUnusable`.
    """
    if not ledger.caps.any:
        return
    root = str(workspace.root)
    if await ledger.misses(root):
        found = await anyio.to_thread.run_sync(reckon, workspace.sessions)
        await ledger.count_before(root, [_before(root, bill) for bill in found.bills if bill.state == "billed"])
    for lost in await ledger.lost():
        bill = await anyio.to_thread.run_sync(partial(became, lost))
        if bill is not None:
            await ledger.reconcile(lost, bill.cost if bill.state == "billed" else 0.0, bill.usage)


def became(lost: Reservation) -> Bill | None:
    """What the session's log says of a call whose process has ended; None while it does not tell what it did cost."""
    who = lost.spender
    try:
        path = Workspace(Path(who.workspace)).sessions / file_name(who.agent) / f"{file_name(who.session)}{ENDING}"
        header, entries, _ = read_calls(path)
    except (OSError, BadLine, ValueError, MoonwakeError):
        return None
    return match(lost, bills_of(header, entries))


def match(lost: Reservation, bills: Iterable[Bill]) -> Bill | None:
    """The bill of the call that `lost` was reserved for, where it is known what it came to. Pure."""
    for bill in bills:
        same = (bill.model, bill.purpose) == (lost.model, lost.spender.purpose) and bill.reserved is not None
        if same and bill.at >= lost.at - _CLOCK and abs((bill.reserved or 0.0) - (lost.most or 0.0)) < _SAME:
            return bill if bill.state in ("billed", "refused") else None
    return None


def _before(root: str, bill: Bill) -> Before:
    spender = Spender(agent=bill.agent, session=bill.session, turn=None, purpose=bill.purpose, workspace=root)
    return Before(spender, bill.model, bill.at, bill.cost, bill.usage)
