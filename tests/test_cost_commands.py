"""`moonwake cost` as a person or a script uses it: the logs are the truth, whatever became of the ledger."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from rich.cells import cell_len

from governors.messages import Text, Usage
from runtime import cli
from runtime.ledger import Caps, Spender, SpendLedger
from runtime.reckoning import bills_of
from runtime.reckoning.logs import reckon
from runtime.reckoning.sums import summed
from runtime.session.entries import Entry, Header, MessageRecord, OutcomeRecord, Record, RequestRecord
from runtime.session.format.codec import encode_entry, encode_header
from runtime.session.opening import read_log
from runtime.shelf.cost_lines import bar
from runtime.shelf.costs import period_asked
from runtime.workspace import init_workspace

NOW = datetime.now(UTC)
USAGE = Usage(plain=100, cache_read=800, cache_write_5m=100, output=50, reasoning=10)
Command = Callable[..., tuple[int, str, str]]


def asked(purpose: str = "turn", model: str = "claude-sonnet-5", reserved: float | None = None) -> RequestRecord:
    provider = "anthropic" if model.startswith("claude") else "mine"
    wire = "anthropic" if provider == "anthropic" else "openai_chat"
    return RequestRecord(
        purpose=purpose, provider=provider, model=model, wire=wire, prefix="", forecast=1, budget=9, blocks=1,
        reserved=reserved,
    )  # fmt: skip


def session(folder: Path, header: Header, *records: Record, day: str = "") -> Path:
    """A session file with `records`, a minute apart, on `day` (None: today)."""
    start = day or NOW.strftime("%Y-%m-%d")
    entries = [
        Entry(number, number - 1 or None, f"{start}T00:{number:02}:00.000Z", record)
        for number, record in enumerate(records, 1)
    ]
    path = folder / ".moonwake" / "sessions" / header.agent / f"{header.id}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(encode_header(header) + b"".join(map(encode_entry, entries)))
    return path


def outcome(request: int, cost: float | None, usage: Usage | None = USAGE, kind: str = "") -> OutcomeRecord:
    problem = {"kind": kind, "text": "no"} if kind else None
    return OutcomeRecord(request=request, stop="error" if kind else "stop", usage=usage, cost=cost, problem=problem)


def header(name: str, agent: str = "assistant", **origin: object) -> Header:
    return Header(id=name, agent=agent, created="2026-11-30T18:00:00Z", origin=origin or None)


def said(text: str) -> MessageRecord:
    return MessageRecord(role="user", content=(Text(text),))


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Two sessions of two agents, a fork and an import."""
    init_workspace(tmp_path)
    for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    garden = (said('the "request" of beans'), asked(), outcome(2, 0.5), asked("warming"), outcome(4, 0.01))
    session(tmp_path, header("garden"), *garden)
    session(tmp_path, header("twig", kind="fork", session="garden", entry=5), *garden, asked(), outcome(6, 0.25))
    session(
        tmp_path,
        header("attic", "ada"),
        *(said("hm"), asked(model="odd"), outcome(2, None), asked(reserved=0.75), asked()),
        outcome(5, None, None, "rate_limited"),
        asked("compaction"),
        outcome(7, 2.0),
        day="2026-10-02",
    )
    own = MessageRecord(role="assistant", content=(Text("ok"),), stop="stop", model="gpt-5", usage=USAGE)
    session(
        tmp_path, header("old", kind="import", format="pi"), said("hi"), own, said("on"), asked(), outcome(4, 1.0), own
    )
    yield tmp_path
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def moonwake(house: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    def run(*words: str) -> tuple[int, str, str]:
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            cli.main(["cost", *words, "-w", str(house)])
        out, err = capsys.readouterr()
        return int(end.value.code or 0), out, err

    return run


def groups(moonwake: Command, *words: str) -> dict[str, tuple[float, int]]:
    code, out, _ = moonwake(*words, "--json")
    assert code == 0
    return {each["key"]: (round(each["cost"], 6), each["calls"]) for each in json.loads(out)["groups"]}


def test_costs_by_whatever_they_have_in_common(moonwake: Command) -> None:
    """A fork pays for what is its own, an import for what was asked here."""
    today = NOW.strftime("%Y-%m-%d")
    assert groups(moonwake) == {today: (1.76, 4)}
    everything = ("--last", "all")
    assert groups(moonwake, *everything, "--by", "month") == {"2026-10": (2.0, 4), today[:7]: (1.76, 4)}
    assert groups(moonwake, *everything, "--by", "agent") == {"ada": (2.0, 4), "assistant": (1.76, 4)}
    assert groups(moonwake, *everything, "--by", "kind") == {
        "compaction": (2.0, 1), "chat": (1.75, 6), "warming": (0.01, 1),
    }  # fmt: skip
    sessions = {"attic": (2.0, 4), "old": (1.0, 1), "garden": (0.51, 2), "twig": (0.25, 1)}
    assert groups(moonwake, *everything, "--by", "session") == sessions
    assert groups(moonwake, *everything, "--by", "model") == {
        "anthropic/claude-sonnet-5": (3.76, 7), "mine/odd": (0.0, 1),
    }  # fmt: skip
    assert groups(moonwake, *everything, "--agent", "ada", "--by", "session") == {"attic": (2.0, 4)}


def test_what_is_not_in_the_sum_is_said(moonwake: Command) -> None:
    """Unknown prices, calls without an outcome, and what other programs paid for; an error costs nothing."""
    _, out, err = moonwake("--last", "all", "--by", "session")
    text = " ".join(out.split())
    assert "$3.76 in 8 calls: 4.8k tokens read" in text
    assert "1 call to models without a known price (mine/odd)" in text
    assert "1 call that ended before the provider told the cost; at most $0.75 was reserved" in text
    assert "Imported sessions hold 1 reply that other programs paid for (1.0k tokens in, 50 out)" in text
    assert "The cache saved" in text and not err
    assert 'the "request" of beans' in out


@pytest.mark.parametrize("columns", [40, 60, 80, 120])
@pytest.mark.parametrize("by", ["day", "session", "model", "kind"])
def test_the_table_fits(moonwake: Command, monkeypatch: pytest.MonkeyPatch, columns: int, by: str) -> None:
    """In whatever columns there are."""
    monkeypatch.setenv("COLUMNS", str(columns))
    _, out, _ = moonwake("--last", "all", "--by", by)
    assert out and all(cell_len(line) <= columns for line in out.splitlines()), out


def test_a_span_is_what_a_person_means_by_it() -> None:
    """Days are whole, an end day too; hours are hours."""
    now = datetime(2026, 12, 1, 15, 30, tzinfo=UTC)

    def span(since: str | None, until: str | None, last: str | None) -> tuple[str, str]:
        found = period_asked(since, until, last, now)
        begin, end = ("" if each is None else f"{each:%m-%d %H:%M}" for each in (found.since, found.until))
        return begin, end

    assert span(None, None, None) == ("11-02 00:00", "")
    assert span(None, None, "7d") == ("11-25 00:00", "")
    assert span(None, None, "12h") == ("12-01 03:30", "")
    assert span("2026-11-01", "2026-11-30", None) == ("11-01 00:00", "12-01 00:00")
    assert span(None, None, "all") == ("", "")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--last", "week"), "give hours, days or weeks"),
        (("--last", "7d", "--since", "3d"), "give one of them"),
        (("--since", "soon"), "is no time"),
        (("--by", "workspace"), "needs --everywhere"),
        (("--everywhere", "--by", "session"), "does not know sessions"),
    ],
)
def test_what_cannot_be_asked_is_said(moonwake: Command, words: tuple[str, ...], told: str) -> None:
    code, _, err = moonwake(*words)
    assert code and told in " ".join(err.replace("│", " ").split())


def test_a_workspace_without_calls_says_so(house: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    init_workspace(tmp_path / "empty")
    with pytest.raises(SystemExit):
        cli.main(["cost", "-w", str(tmp_path / "empty"), "--last", "all"])
    assert capsys.readouterr().out == "No model was asked since the beginning.\n"


def test_what_cannot_be_read_is_told_and_the_rest_counted(moonwake: Command, house: Path) -> None:
    """A damaged line, a file that is no session."""
    folder = house / ".moonwake" / "sessions" / "assistant"
    (folder / "none.jsonl").write_bytes(b"nothing\n")
    with (folder / "garden.jsonl").open("ab") as file:
        file.write(b'{"id":9,"type":"outcome","request":\n')
    assert groups(moonwake)[NOW.strftime("%Y-%m-%d")] == (1.76, 4)
    _, _, err = moonwake()
    assert "none.jsonl" in err and "1 lines" not in err
    assert "cannot be read (moonwake sessions verify)" in err


async def test_the_ledger_tells_of_all_workspaces(house: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And caps are shown as they stand."""
    ledger = SpendLedger(house / "XDG_STATE_HOME" / "moonwake" / "ledger.sqlite", Caps(day=2.0))
    for workspace in ("/a", "/b", "/b"):
        who = Spender(agent="ada", session="s", turn=None, purpose="turn", workspace=workspace)
        await ledger.settle(await ledger.reserve(who, "m/x", 0.5), 0.25, USAGE)
    await ledger.close()
    config = house / "XDG_CONFIG_HOME" / "moonwake" / "moonwake.toml"
    config.parent.mkdir(parents=True)
    config.write_text("[spend]\nday = 2.0\n", encoding="utf-8")
    with pytest.raises(SystemExit):
        cli.main(["cost", "--everywhere", "--by", "workspace", "-w", str(house)])
    out = capsys.readouterr().out
    assert [line.split()[:3] for line in out.splitlines()[3:5]] == [["/b", "$0.50", "2"], ["/a", "$0.25", "1"]]
    assert "Cap of $2.00 a day: $0.75 spent (38 %)." in out


def test_files_that_were_not_written_since_are_not_opened(house: Path) -> None:
    """A year of sessions is not read for a week."""
    path = house / ".moonwake" / "sessions" / "ada" / "attic.jsonl"
    os.utime(path, (1.0, 1.0))
    path.chmod(0o000)
    found = reckon(house / ".moonwake" / "sessions", None, NOW.timestamp() - 86_400)
    assert found.unread == () and {bill.session for bill in found.bills} == {"garden", "twig", "old"}


def test_bills_of_a_log_are_those_of_its_lines(house: Path) -> None:
    """Reading only the lines that tell of calls finds what reading all of them does."""
    for path in (house / ".moonwake" / "sessions").rglob("*.jsonl"):
        reading = read_log(path)
        assert reading.header is not None
        own = [bill for bill in reckon(house / ".moonwake" / "sessions").bills if bill.session == reading.header.id]
        assert own == list(bills_of(reading.header, reading.entries))


def test_a_sum_is_exact() -> None:
    """Ten dimes are a dollar."""
    calls = [Entry(2 * n + 1, None, "2026-12-01T00:00:00Z", asked()) for n in range(10)]
    ends = [Entry(2 * n + 2, None, "2026-12-01T00:00:01Z", outcome(2 * n + 1, 0.1)) for n in range(10)]
    entries = sorted([*calls, *ends], key=lambda entry: entry.id)
    assert summed(bills_of(header("x"), entries)).cost == 1.0


def test_a_bar_is_as_long_as_its_share() -> None:
    assert [bar(share, 4) for share in (0.0, 0.001, 0.5, 0.53, 1.0)] == ["", "▏", "██", "██▏", "████"]
