"""The ledger is kept true by the logs: what was spent before it, and what became of calls whose process died."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from governors.messages import Usage
from runtime import Reply, Runtime
from runtime.config import load_config
from runtime.errors import ConfigError
from runtime.ledger import AgentCaps, Caps, Reservation, Spender, SpendingLimit, SpendLedger
from runtime.providers.base import Price
from runtime.providers.scripted import Scripted
from runtime.reckoning.keeping import became, caps_of, ledger_path, make_ledger, make_true
from runtime.session.entries import Record, RequestRecord
from runtime.workspace import open_workspace
from tests.agents import talk
from tests.ledger.books import ended
from tests.test_cost_commands import asked, header, outcome, session

DEAR = Price(plain=100.0, output=100.0, cache_read=10.0, cache_write_5m=125.0, cache_write_1h=200.0)


def environ(folder: Path, **more: str) -> dict[str, str]:
    return {
        "MOONWAKE_LEDGER": str(folder / "state" / "ledger.sqlite"),
        "MOONWAKE_CONFIG": str(folder / "u.toml"),
        **more,
    }


async def test_what_logs_know_counts_for_caps_that_are_new_and_for_a_ledger_that_was_removed(tmp_path: Path) -> None:
    """Opening a workspace counts its logs, once."""
    workspace = open_workspace(tmp_path / "w")
    now = "2026-12-01"
    session(workspace.root, header("garden"), asked(), outcome(1, 0.5), day=now)
    path = tmp_path / "ledger.sqlite"
    for _ in range(2):
        ledger = SpendLedger(path, Caps(month=1.0), now=lambda: 1_796_126_400.0)
        for _ in range(2):
            await make_true(ledger, workspace)
        assert ledger.standing()[0].spent == 0.5
        await ledger.close()
        path.unlink()


def lost_call(workspace: Path, most: float = 0.75) -> Reservation:
    who = Spender(agent="assistant", session="garden", turn=1, purpose="turn", workspace=str(workspace))
    return Reservation(id=5, spender=who, model="anthropic/claude-sonnet-5", most=most, at=0.0, day="1970-01-01")


@pytest.mark.parametrize(
    ("end", "found"),
    [
        ([outcome(1, 0.5)], 0.5),
        ([outcome(1, None, None, "overloaded")], None),  # refused: it cost nothing
        ([], "unknown"),
        ([outcome(1, None, None, "network")], "unknown"),
    ],
)
def test_a_lost_call_is_found_in_its_log(tmp_path: Path, end: list[Record], found: object) -> None:
    """By model, purpose, amount and time; only an outcome tells what it came to."""
    session(tmp_path, header("garden"), asked(reserved=0.75), *end, day="2026-12-01")
    bill = became(lost_call(tmp_path))
    assert ("unknown" if bill is None else bill.cost) == found
    assert became(lost_call(tmp_path, most=0.5)) is None
    late = replace(lost_call(tmp_path), at=4e9)
    assert became(late) is None
    assert became(lost_call(tmp_path / "gone")) is None


async def test_a_call_of_a_dead_process_is_settled_when_a_runtime_opens(tmp_path: Path) -> None:
    """By what the log of its session says, and never sooner."""
    workspace = open_workspace(tmp_path / "w")
    env = environ(tmp_path)
    dead = SpendLedger(ledger_path(env), Caps(day=1.0), process=ended)
    taken = await dead.reserve(lost_call(workspace.root).spender, "anthropic/claude-sonnet-5", 0.75)
    await dead.close()
    day = datetime.fromtimestamp(taken.at + 86_400, UTC).strftime("%Y-%m-%d")
    for records, held in (((asked(reserved=0.75),), 0.75), ((asked(reserved=0.75), outcome(1, 0.25)), 0.0)):
        session(workspace.root, header("garden"), *records, day=day)
        async with Runtime.open(workspace.root, model=Scripted([]), environ=env, settings={"spend.day": 1.0}):
            ledger = make_ledger(load_config(workspace.root, env, {"spend.day": 1.0}), env)
            (left,) = ledger.standing()
            assert left.held == held
    assert left.spent == 0.25


async def test_a_turn_over_the_cap_is_refused_and_the_session_stays_usable(tmp_path: Path) -> None:
    """Nothing is sent, nothing is spent, and the next message is heard."""
    async with talk(tmp_path, ["One.", "Two."], settings={"spend.turn": 0.001}, price=DEAR) as it:
        with pytest.raises(SpendingLimit, match="Nothing was sent"):
            await it.agent.equipment.ledger.reserve(
                Spender(agent="assistant", session="x", turn=1, purpose="turn", workspace=""), "m", 0.5
            )
        events = await it.say("hello")
        assert any("The cap of $0.0010 a turn leaves" in str(event) for event in events)
        assert not it.model.requests
        records = [entry.record for entry in it.agent.session.branch()]
        assert not any(isinstance(record, RequestRecord) for record in records)


async def test_a_turn_under_the_cap_settles_at_what_it_did_cost(tmp_path: Path) -> None:
    """The log and the ledger say the same."""
    usage = Usage(plain=100, output=20)
    script = [Reply("One.", usage=usage), Reply("Two.", usage=usage)]
    async with talk(tmp_path, script, settings={"spend.day": 50.0}, price=DEAR) as it:
        ledger = it.agent.equipment.ledger
        assert isinstance(ledger, SpendLedger)
        before = await ledger.today()
        await it.say("hello")
        await it.say("again")
        assert await ledger.today() - before == pytest.approx(2 * DEAR.cost(usage))
        assert [each.held for each in ledger.standing()] == [0.0]
        requests = [e.record.reserved for e in it.agent.session.branch() if isinstance(e.record, RequestRecord)]
        assert all(reserved is not None and reserved > DEAR.cost(usage) for reserved in requests)


def settings(folder: Path, user: str, project: str = "", **variables: str) -> Caps:
    (folder / "u.toml").write_text(user, encoding="utf-8")
    (folder / "moonwake.toml").write_text(project, encoding="utf-8")
    return caps_of(load_config(folder, environ(folder, **variables)))


def test_a_project_tightens_caps_and_never_loosens_them(tmp_path: Path) -> None:
    """The user's variables may."""
    user = "[spend]\nday = 5\nturn = 1\n[spend.agents.ada]\nday = 0.5\n"
    assert settings(tmp_path, user) == Caps(day=5.0, turn=1.0, agents={"ada": AgentCaps(day=0.5)})
    project = "[spend]\nday = 9\nturn = 0.5\nsession = 2\n[spend.agents.ada]\nday = 3\nmonth = 1\n"
    tight = Caps(day=5.0, turn=0.5, session=2.0, agents={"ada": AgentCaps(day=0.5, month=1.0)})
    assert settings(tmp_path, user, project) == tight
    assert settings(tmp_path, user, project, MOONWAKE_SPEND__DAY="7").day == 7.0
    assert not settings(tmp_path, "").any


@pytest.mark.parametrize("what", ["price = { plain = 0, output = 0 }", "token_factor = 0.5"])
def test_a_project_cannot_make_calls_cheaper_than_the_user_counts_them(tmp_path: Path, what: str) -> None:
    """With caps of the user's it would loosen them; without, it says what it knows."""
    project = f'[models."anthropic/x"]\n{what}\n'
    settings(tmp_path, "", project)
    settings(tmp_path, "", "[spend]\nday = 1\n" + project)
    with pytest.raises(ConfigError, match="which a project may not loosen"):
        settings(tmp_path, "[spend]\nday = 5\n", project)
    with pytest.raises(ConfigError, match="which a project may not loosen"):
        settings(tmp_path, "", project, MOONWAKE_SPEND__DAY="5")


@pytest.mark.parametrize("wrong", ["day = -1", "day = nan", 'day = "5"', "week = 3"])
def test_a_cap_is_an_amount(tmp_path: Path, wrong: str) -> None:
    with pytest.raises(ConfigError):
        settings(tmp_path, f"[spend]\n{wrong}\n")
