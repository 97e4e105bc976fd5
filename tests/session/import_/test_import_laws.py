"""Whatever happened to a file: it is imported with a true report, or refused; what comes out is legal."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runtime.errors import SessionError
from runtime.session.import_ import look_at, read_file

from .prefixes import as_on_disk, wrong
from .samples import FILES, SAMPLES

JUNK: list[Any] = [None, True, 0, -1, 1.5, "", "x", [], {}, [None], {"a": 1}, "\ud800", 10**30, [{"type": "text"}]]
LINES: dict[str, list[bytes]] = {
    **{name: [json.dumps(line).encode() for line in lines] for name, lines in SAMPLES.items()},
    **{path.name: gzip.decompress(path.read_bytes()).splitlines() for path in FILES},
}


def damage(random: Random, lines: list[bytes]) -> list[bytes]:
    """A part of a file with a few lines dropped, doubled, swapped, cut, shuffled or changed."""
    first = random.randrange(len(lines))
    lines = lines[: random.randrange(2)] + lines[first : first + random.randrange(3, 50)]
    for _ in range(random.randrange(6)):
        if not lines:
            break
        place, other = random.randrange(len(lines)), random.randrange(len(lines))
        match random.randrange(8):
            case 0:
                del lines[place]
            case 1:
                lines.insert(other, lines[place])
            case 2:
                lines[place], lines[other] = lines[other], lines[place]
            case 3:
                lines[place] = lines[place][: random.randrange(len(lines[place]) + 1)]
            case 4:
                random.shuffle(lines)
            case 5:
                lines[place] = random.randbytes(20)
            case _:
                lines[place] = changed(random, lines[place])
    return lines


def changed(random: Random, line: bytes) -> bytes:
    """A line with a value in it that is of another type, gone, or another's."""
    try:
        value = json.loads(line)
    except ValueError:
        return line
    within = value
    while isinstance(within, dict | list) and within:
        keys: list[Any] = list(within) if isinstance(within, dict) else list(range(len(within)))
        key = random.choice(keys)
        if not isinstance(within[key], dict | list) or random.random() < 0.3:
            if random.random() < 0.3:
                del within[key]
            else:
                within[key] = random.choice(JUNK)
            break
        within = within[key]
    return json.dumps(value).encode()


@pytest.mark.parametrize("name", LINES)
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32))
def test_damaged_files_are_imported_with_a_true_report(tmp_path: Path, name: str, seed: int) -> None:
    """Nothing is raised but a refusal; every line is told of; what comes out is legal wherever it goes on from."""
    random = Random(seed)
    path = tmp_path / "session.jsonl"
    path.write_bytes(b"\n".join(damage(random, LINES[name])) + random.choice([b"", b"\n"]))
    try:
        found, report = read_file(look_at(path))
    except SessionError:
        return
    assert report.unexplained == ()
    assert report.carried.keys().isdisjoint(report.left)
    for each in found[:2]:
        entries = as_on_disk(each.entries)
        assert len(entries) == len(each.entries)
        assert list(wrong(entries, every=7)) == []


@pytest.mark.parametrize("name", SAMPLES)
def test_every_prefix_of_a_file_with_everything_is_legal(tmp_path: Path, name: str) -> None:
    """On every wire; and so is every file that was cut off after a line."""
    for length in range(1, len(LINES[name]) + 1):
        path = tmp_path / "session.jsonl"
        path.write_bytes(b"\n".join(LINES[name][:length]))
        try:
            found, report = read_file(look_at(path))
        except SessionError:
            continue
        assert report.unexplained == ()
        assert list(wrong(as_on_disk(found[0].entries), every=1 if length == len(LINES[name]) else 1000)) == []
