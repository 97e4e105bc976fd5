"""What docs/compaction.md shows is so: its settings, its figures, its commands, its program."""

from __future__ import annotations

import re
import sys
from dataclasses import fields
from pathlib import Path

import anyio
import pytest

from runtime import Receipt, cli
from runtime.channels.receipts import lacking, result_line, saving
from runtime.compaction.breaker import GROWTH, MOST
from runtime.compaction.parts import PARTS
from runtime.compaction.timing import Marks
from runtime.config import load_config
from runtime.config.schema import CompactionConfig
from runtime.providers.base import Price
from runtime.session.entries import CompactionRecord, Entry
from runtime.shelf.receipts import receipt_lines
from tests.shell import shell_in

PAGE = (Path(__file__).parents[1] / "docs" / "compaction.md").read_text(encoding="utf-8")
TALK, TABLE = re.findall(r"^```text\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """The program chooses its own."""
    return "asyncio"


def receipt(
    before: int, after: int, folded: int, cost: float, *dropped: str, reason: str = "asked"
) -> CompactionRecord:
    return CompactionRecord(
        timing="manual", reason=reason, strategy="summary", result="done", before=before, after=after, folded=folded,
        cost=cost, dropped=dropped,
    )  # fmt: skip


def test_the_settings_are_what_holds_without_them(tmp_path: Path) -> None:
    (settings,) = re.findall(r"^```toml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    user = tmp_path / "user.toml"
    user.write_text(settings, encoding="utf-8")
    assert load_config(tmp_path, {}, user_file=user).compaction == CompactionConfig()
    assert set(re.findall(r"^(\w+) =", settings, re.MULTILINE)) == set(CompactionConfig.model_fields)


def test_the_figures_are_those_of_the_code() -> None:
    """Marks, what stays, the breaker, the parts, the fields of a receipt."""
    marks = Marks()
    assert f"{marks.block:.0%}".replace("%", " %") in PAGE and f"{marks.idle:.0%}".replace("%", " %") in PAGE
    assert f"({marks.messages})" in PAGE and f"At most {marks.keep} messages" in PAGE
    assert f"{marks.keep_tokens:,} tokens" in PAGE and (MOST, GROWTH) == (3, 0.1)
    assert f"seven parts: {', '.join(part.heading.lower() for part in PARTS)}." in PAGE and len(PARTS) == 7
    assert all(f"`{field.name}`" in PAGE for field in fields(Receipt))


def test_the_words_of_a_receipt_are_those_of_the_page() -> None:
    shown = receipt(48_000, 9_100, 212, 0.0214, "MW-7", "12.50", '"never on Fridays"')
    price = Price(plain=3.0, output=15.0, cache_read=0.3, cache_write_5m=3.75, cache_write_1h=6.0)
    lines = TALK.splitlines()
    assert lines[2].startswith(result_line(receipt(48_000, 9_100, 212, 0.0)))
    assert lines[3] == saving(shown, price)
    assert lines[4] == lacking(shown.dropped, 862)


def test_the_table_is_as_it_is_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runtime.shelf.receipts.when", lambda at: at)
    rows = (
        (412, "11-28 09:12", receipt(171_000, 31_000, 188, 0.0709, *"abcde", reason="full")),
        (862, "12-01 17:40", receipt(48_000, 9_100, 212, 0.0214, *"abc")),
    )
    told = receipt_lines([(Entry(number, None, at, record), record) for number, at, record in rows], 80)
    assert list(told) == TABLE.splitlines()


async def test_the_program_runs_as_it_stands(tmp_path: Path) -> None:
    (program,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    (printed,) = re.findall(r"^prints `(.*?)`", PAGE, re.MULTILINE)
    shell = shell_in(tmp_path)
    command = [sys.executable, "-W", "error", "-c", program]
    done = await anyio.run_process(command, cwd=shell.home, env=shell.environ, check=False)
    assert (done.returncode, done.stderr.decode(), done.stdout.decode()) == (0, "", f"{printed}\n")


def test_the_commands_are_some(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Each option of `inspect` that is named exists."""
    monkeypatch.setenv("COLUMNS", "120")
    with pytest.raises(SystemExit):
        cli.main(["inspect", "--help"])
    told = capsys.readouterr().out
    commands = re.findall(r"^    moonwake inspect SESSION (.*)$", PAGE, re.MULTILINE)
    assert len(commands) == 3
    assert all(option in told for command in commands for option in re.findall(r"--\w+", command))


async def test_who_asks_once_is_told_that_room_is_made(tmp_path: Path) -> None:
    """On standard error; the answer stands alone."""
    shell = shell_in(tmp_path)
    script = tmp_path / "long.txt"
    script.write_text("@otherwise\n" + "word " * 600 + "\n", encoding="utf-8")
    small = {"MOONWAKE_COMPACTION__STRATEGY": "blank", "MOONWAKE_COMPACTION__BLOCK": "0.01"}
    small["MOONWAKE_COMPACTION__IDLE"] = "0.01"
    command = ("run", "--model", f"script:{script}", "--session", "long")
    for _ in range(3):
        done = await shell(*command, "The bed MW-7 is wide.", **small)
        assert done.code == 0, done.err
    assert "The model's window is nearly full: the conversation is cleared from its view …" in done.err
    assert "Room was made: " in done.err and "word" in done.out and "Room was made" not in done.out
