"""One ledger, one process: what is refused, what is counted, what is told."""

from __future__ import annotations

import os
import sqlite3
from dataclasses import replace
from math import inf, nan
from pathlib import Path

import anyio
import pytest

from governors.messages import Usage
from runtime.ledger import AgentCaps, Before, Caps, LedgerUnusable, NoLimits, Reservation, SpendingLimit
from tests.ledger.books import DAY, NOON, WHO, Clock, assert_sound, day_total, ended, ledger, totals

USAGE = Usage(plain=100, cache_read=900, output=20)
MODEL = "anthropic/claude"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "ledger.sqlite"


async def test_the_difference_comes_back_when_a_call_is_settled(path: Path) -> None:
    """A call holds its worst case while it is under way, and counts at what it did cost after."""
    book = ledger(path, Caps(day=1.0))
    taken = await book.reserve(WHO, MODEL, 0.75)
    assert day_total(path) == (0, 750_000_000)
    assert await book.settle(taken, 0.25, USAGE) == ()
    assert day_total(path) == (250_000_000, 0)
    await book.close()


async def test_a_call_over_a_cap_is_refused_with_the_numbers(path: Path) -> None:
    """The text names the cap, what is spent, what is reserved, what the call may cost, and what to do."""
    book = ledger(path, Caps(day=1.0))
    await book.settle(await book.reserve(WHO, MODEL, 0.5), 0.25, USAGE)
    await book.reserve(WHO, MODEL, 0.3)
    with pytest.raises(SpendingLimit) as refused:
        await book.reserve(WHO, MODEL, 0.5)
    text = str(refused.value)
    assert text.startswith("The cap of $1.00 a day leaves $0.4500: $0.2500 is spent, $0.3000 is reserved")
    assert "this call to anthropic/claude may cost up to $0.5000. Nothing was sent." in text
    assert "Raise spend.day in your own moonwake.toml, wait until midnight, local time, or take a cheaper" in text
    assert day_total(path) == (250_000_000, 300_000_000)
    await book.reserve(WHO, MODEL, 0.45)  # just what is left
    await book.close()


@pytest.mark.parametrize(
    ("caps", "setting"),
    [
        (Caps(day=1.0), "spend.day"),
        (Caps(month=1.0), "spend.month"),
        (Caps(session=1.0), "spend.session"),
        (Caps(turn=1.0), "spend.turn"),
        (Caps(agents={"ada": AgentCaps(day=1.0)}), "spend.agents.ada.day"),
        (Caps(agents={"ada": AgentCaps(month=1.0)}), "spend.agents.ada.month"),
    ],
)
async def test_each_cap_holds_for_what_it_names(path: Path, caps: Caps, setting: str) -> None:
    """Other turns, sessions, agents, days and months are other accounts."""
    clock = Clock()
    book = ledger(path, caps, clock)
    await book.reserve(WHO, MODEL, 1.0)
    with pytest.raises(SpendingLimit, match=setting):
        await book.reserve(WHO, MODEL, 0.01)
    others = {
        "spend.turn": (replace(WHO, turn=9), NOON),
        "spend.session": (replace(WHO, session="s2"), NOON),
        "spend.agents.ada.day": (replace(WHO, agent="bob"), NOON),
        "spend.agents.ada.month": (replace(WHO, agent="bob"), NOON),
        "spend.day": (WHO, NOON + DAY),
        "spend.month": (WHO, NOON + 31 * DAY),
    }
    who, clock.at = others[setting]
    await book.reserve(who, MODEL, 1.0)
    assert_sound(path)
    await book.close()


async def test_a_call_of_unknown_price_is_refused_where_a_cap_is_set(path: Path) -> None:
    """The text says how to give the price; amounts that are none are no price."""
    book = ledger(path, Caps(month=1.0))
    for most in (None, nan, inf, -1.0):
        with pytest.raises(SpendingLimit, match=r'(?s)not known.*\[models."own/x"\]\nprice = ') as refused:
            await book.reserve(WHO, "own/x", most)
        assert "your own moonwake.toml" in str(refused.value)
    await book.settle(await book.reserve(WHO, "local/smollm2", 0.0), 0.0, USAGE)  # what costs nothing is always free
    await book.close()


async def test_a_warning_comes_once_for_a_cap_and_a_period(path: Path) -> None:
    """At four fifths; in another process nobody is told again; another day begins anew."""
    clock = Clock()
    book = ledger(path, Caps(day=1.0), clock)

    async def spend(amount: float) -> tuple[str, ...]:
        return await book.settle(await book.reserve(WHO, MODEL, amount), amount, USAGE)

    assert await spend(0.79) == ()
    assert await spend(0.02) == ("81 % of the cap of $1.00 a day is spent: $0.8100 (spend.day).",)
    assert await spend(0.01) == ()
    await book.close()
    book = ledger(path, Caps(day=1.0), clock)
    assert await spend(0.01) == ()
    clock.at += DAY
    assert len(await spend(0.9)) == 1
    await book.close()


async def test_a_call_over_midnight_counts_for_the_day_it_left_on(path: Path) -> None:
    """What it held is given back on that day, though the clock has turned; a clock set back counts on."""
    clock = Clock(NOON + DAY / 2 - 60)
    book = ledger(path, Caps(day=1.0, month=2.0), clock)
    taken = await book.reserve(WHO, MODEL, 0.8)
    clock.at += 120
    await book.settle(await book.reserve(WHO, MODEL, 0.8), 0.6, USAGE)
    await book.settle(taken, 0.5, USAGE)
    assert (day_total(path), day_total(path, "2026-12-02")) == ((500_000_000, 0), (600_000_000, 0))
    clock.at -= 120
    with pytest.raises(SpendingLimit, match=r"leaves \$0\.5000"):
        await book.reserve(WHO, MODEL, 0.6)
    assert_sound(path)
    await book.close()


@pytest.mark.parametrize(
    ("cost", "usage"),
    [
        (nan, USAGE),
        (-0.1, USAGE),
        (inf, USAGE),
        (0.1, Usage(plain=-5)),
        (0.1, Usage(output=10**30, reasoning=-1)),
        (0.6, Usage(plain=10**18)),
    ],
)
async def test_a_report_that_cannot_be_true_is_counted_at_the_worst_case(path: Path, cost: float, usage: Usage) -> None:
    """And said; no total is harmed by it."""
    book = ledger(path, Caps(day=1.0))
    (told,) = await book.settle(await book.reserve(WHO, MODEL, 0.5), cost, usage)
    assert "counted at its worst case" in told
    assert day_total(path) == (500_000_000, 0)
    await book.close()


async def test_what_nobody_knows_stays_at_its_worst_case(path: Path) -> None:
    """A call that was broken off may have been billed; one that was refused was not."""
    book = ledger(path, Caps(day=1.0))
    await book.settle(await book.reserve(WHO, MODEL, 0.5), None, None)
    await book.settle(await book.reserve(WHO, MODEL, 0.5), 0.0, None)
    assert day_total(path) == (500_000_000, 0)
    await book.close()


async def test_without_caps_nothing_is_written_before_a_call_and_all_of_it_later(path: Path) -> None:
    """Not even the file is made; a cap that is set later counts it."""
    book = ledger(path)
    for _ in range(3):
        taken = await book.reserve(WHO, MODEL, 0.5)
        assert await book.settle(taken, 0.25, USAGE) == ()
    assert not path.exists()
    await book.close()
    assert day_total(path) == (750_000_000, 0)
    assert_sound(path)
    capped = ledger(path, Caps(day=1.0))
    with pytest.raises(SpendingLimit, match="is spent"):
        await capped.reserve(WHO, MODEL, 0.26)
    await capped.close()


async def test_a_cap_of_another_agent_costs_a_call_nothing(path: Path) -> None:
    """No cap that holds for it: it is written down later."""
    book = ledger(path, Caps(agents={"bob": AgentCaps(day=0.0)}))
    await book.settle(await book.reserve(WHO, MODEL, None), None, USAGE)
    assert not path.exists()
    with pytest.raises(SpendingLimit):
        await book.reserve(replace(WHO, agent="bob"), MODEL, 0.01)
    await book.close()


async def test_what_a_dead_process_held_stays_counted_until_the_log_tells(path: Path) -> None:
    """It is never given back by itself, and settled once."""
    dead = ledger(path, Caps(day=1.0), process=ended)
    await dead.reserve(WHO, MODEL, 0.5)
    await dead.reserve(WHO, MODEL, 0.25)
    await dead.close()
    book = ledger(path, Caps(day=1.0))
    with pytest.raises(SpendingLimit):
        await book.reserve(WHO, MODEL, 0.5)
    lost = sorted(await book.lost(), key=lambda each: each.most or 0)
    assert [(each.spender, each.model, each.most) for each in lost] == [(WHO, MODEL, 0.25), (WHO, MODEL, 0.5)]
    for _ in range(2):
        await book.reconcile(lost[1], 0.1, USAGE)
    assert day_total(path) == (100_000_000, 250_000_000)
    assert_sound(path)
    await book.close()


async def test_what_a_living_process_holds_is_not_lost(path: Path) -> None:
    book = ledger(path, Caps(day=1.0))
    await book.reserve(WHO, MODEL, 0.5)
    other = ledger(path, Caps(day=1.0), process=ended)
    assert await other.lost() == ()
    await book.close()
    await other.close()


async def test_a_cancelled_reservation_holds_nothing(path: Path) -> None:
    """Whoever is stopped while it waits has nothing to settle."""
    book = ledger(path, Caps(day=1.0))
    with anyio.CancelScope() as scope:
        scope.cancel()
        await book.reserve(WHO, MODEL, 0.5)
    assert day_total(path) == (0, 0)
    await book.close()


async def test_calls_at_once_share_transactions_and_no_cent(path: Path) -> None:
    """Forty ask for a tenth of the cap each: ten get it."""
    book = ledger(path, Caps(day=1.0))
    got: list[Reservation] = []
    refused: list[SpendingLimit] = []

    async def call() -> None:
        try:
            got.append(await book.reserve(WHO, MODEL, 0.1))
        except SpendingLimit as error:
            refused.append(error)

    async with anyio.create_task_group() as group:
        for _ in range(40):
            group.start_soon(call)
    assert (len(got), len(refused)) == (10, 30)
    assert day_total(path) == (0, 1_000_000_000)
    await book.close()


def broken(path: Path, how: str) -> None:
    path.parent.mkdir(parents=True)
    match how:
        case "damaged":
            path.write_bytes(b"no database, " * 1_000)
        case "another's":
            connection = sqlite3.connect(path)
            connection.execute("CREATE TABLE totals (scope, key)")
            connection.close()
        case "newer":
            connection = sqlite3.connect(path)
            connection.execute("PRAGMA application_id = 1299152718")
            connection.execute("PRAGMA user_version = 9")
            connection.close()
        case "a folder":
            path.mkdir()


@pytest.mark.parametrize("how", ["damaged", "another's", "newer", "a folder"])
async def test_an_unusable_file_stops_calls_where_caps_are_set_and_none_else(path: Path, how: str) -> None:
    """Closed in doubt; the file is left as it is."""
    broken(path, how)
    before = None if path.is_dir() else path.read_bytes()
    capped = ledger(path, Caps(day=1.0))
    with pytest.raises(LedgerUnusable, match=r"Nothing was sent\. Mend it, or move it away") as refused:
        await capped.reserve(WHO, MODEL, 0.1)
    assert str(path) in str(refused.value)
    free = ledger(path)
    taken = await free.reserve(WHO, MODEL, 0.1)
    assert await free.settle(taken, 0.1, USAGE) == ()
    await free.flush()
    told = await free.settle(await free.reserve(WHO, MODEL, 0.1), 0.1, USAGE)
    assert "is not written into the spend ledger" in told[0]
    assert path.is_dir() or path.read_bytes() == before
    await capped.close()
    await free.close()


async def test_a_file_that_is_removed_is_made_anew_and_what_is_settled_counts(path: Path) -> None:
    """Even by a process that has it open."""
    book = ledger(path, Caps(day=1.0))
    taken = await book.reserve(WHO, MODEL, 0.5)
    path.unlink()
    await book.settle(taken, 0.25, USAGE)
    assert day_total(path) == (250_000_000, 0)
    path.unlink()
    await book.settle(await book.reserve(WHO, MODEL, 1.0), 0.25, USAGE)
    assert_sound(path)
    await book.close()


async def test_what_logs_know_from_before_the_ledger_is_counted_once(path: Path) -> None:
    """Calls that the ledger counted itself are not counted by the log again."""
    clock = Clock()
    free = ledger(path, Caps(), clock)
    await free.settle(await free.reserve(WHO, MODEL, 0.5), 0.25, USAGE)
    await free.close()
    book = ledger(path, Caps(day=1.0), clock)
    logged = [Before(WHO, MODEL, NOON - 60, 0.5, USAGE), Before(WHO, MODEL, NOON, 0.25, USAGE)]
    assert await book.misses(WHO.workspace)
    for _ in range(2):
        await book.count_before(WHO.workspace, logged)
    assert not await book.misses(WHO.workspace)
    assert day_total(path) == (750_000_000, 0)
    assert_sound(path)
    await book.close()


async def test_how_caps_stand(path: Path) -> None:
    """Only those that hold for who asks."""
    book = ledger(path, Caps(day=1.0, turn=0.5, agents={"bob": AgentCaps(day=9.0)}))
    await book.settle(await book.reserve(WHO, MODEL, 0.2), 0.1, USAGE)
    await book.reserve(WHO, MODEL, 0.2)
    left = await book.left(WHO)
    assert [(each.setting, each.cap, each.spent, each.held) for each in left] == [
        ("spend.turn", 0.5, 0.1, 0.2),
        ("spend.day", 1.0, 0.1, 0.2),
    ]
    assert left[1].left == pytest.approx(0.7)
    await book.close()


async def test_the_file_is_private_and_names_may_hold_anything(path: Path) -> None:
    odd = replace(WHO, workspace="/home/\udcff", session="a\nb", agent="ä")
    book = ledger(path, Caps(day=1.0))
    await book.settle(await book.reserve(odd, "x/\udc80", 0.1), 0.1, USAGE)
    await book.close()
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert len(totals(path)) == 6


async def test_old_turns_are_forgotten_on_another_day(path: Path) -> None:
    """Totals of turns that no cap will ask for do not pile up."""
    clock = Clock()
    book = ledger(path, Caps(day=1.0), clock)
    await book.settle(await book.reserve(WHO, MODEL, 0.1), 0.1, USAGE)
    clock.at += DAY
    await book.settle(await book.reserve(replace(WHO, turn=9), MODEL, 0.1), 0.1, USAGE)
    assert [key.rsplit("\n", 1)[-1] for scope, key in totals(path) if scope == "turn"] == ["9"]
    await book.close()


async def test_without_a_ledger_all_is_allowed() -> None:
    free = NoLimits()
    assert await free.settle(await free.reserve(WHO, MODEL, None), None, None) == ()


async def test_a_file_that_cannot_be_written_is_said_to_be_so(path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write anywhere")
    path.parent.mkdir(mode=0o500)
    book = ledger(path, Caps(day=1.0))
    with pytest.raises(LedgerUnusable, match="cannot be"):
        await book.reserve(WHO, MODEL, 0.1)
