"""The script of the skill `spreadsheet`, run as an agent runs it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from runtime.workspace import shipped_path

SALES = "region;amount;note\nNorth;1.234,50;a\nSouth;10,00;b\nNorth;(5,25);\nSouth;x;c\nSouth;10,00;b\nEast\n"


def table(folder: Path, text: bytes, *options: str) -> str:
    (folder / "t.csv").write_bytes(text)
    script = shipped_path("skills") / "spreadsheet" / "scripts" / "table.py"
    done = subprocess.run([sys.executable, script, "t.csv", *options], cwd=folder, capture_output=True, check=False)
    return (done.stdout + done.stderr).decode()


def test_it_finds_out_what_a_file_is(tmp_path: Path) -> None:
    """Separator, decimal comma, gaps, what is no number, rows that are too short, doubles."""
    said = table(tmp_path, SALES.encode())
    assert "6 rows, 3 columns" in said
    assert "separator ';', decimal ','" in said
    assert "4 numbers, 1 not (such as 'x')" in said
    assert "the first is row 7" in said
    assert "1 rows are doubles" in said


def test_it_sums_exactly_and_says_what_it_left_out(tmp_path: Path) -> None:
    said = table(tmp_path, SALES.encode(), "--group", "region", "--sum", "amount")
    assert "North\t2\t1229.25\nSouth\t3\t20.00\n" in said
    assert "all\t6\t1249.25" in said
    assert "2 rows have no number" in said


def test_it_reads_what_spreadsheets_write(tmp_path: Path) -> None:
    """Marks at the beginning, old encodings, line breaks in cells; faults are one sentence."""
    assert "a: 1 filled" in table(tmp_path, "\ufeffa,b\n1,2\n".encode())
    assert "utf-16" in table(tmp_path, "a\tb\n1\t2\n".encode("utf-16"))
    assert "'Käse' 1x" in table(tmp_path, "a,b\nKäse,2\n".encode("cp1252"))
    assert "2 rows, 2 columns" in table(tmp_path, b'a,b\n1,"x, y\nz"\n2,q\n')
    assert table(tmp_path, b"") == "t.csv is empty\n"
    assert "There are: a, b" in table(tmp_path, b"a,b\n1,2\n", "--group", "c")
