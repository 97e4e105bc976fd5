"""The page that specifies the session file: its examples are what the code reads and writes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import get_args

from runtime.session.entries import LeafRecord, Record
from runtime.session.format.codec import encode_entry
from runtime.session.format.reading import read_session
from runtime.session.names import file_name
from runtime.session.store import ENDING
from runtime.session.tree import Tree
from runtime.session.typed import NAME

PAGE = (Path(__file__).parents[2] / "docs" / "session-format.md").read_text()
EXAMPLES = "".join(re.findall(r"```json\n(.*?)```", PAGE, flags=re.DOTALL))


def test_the_examples_are_one_valid_file() -> None:
    """Nothing in them is broken or torn, and the leaf ends where the last `leaf` line put it."""
    reading = read_session(EXAMPLES.encode())
    assert (reading.broken, reading.torn, reading.unterminated) == ((), None, False)
    leaf = next(entry.record.leaf for entry in reversed(reading.entries) if isinstance(entry.record, LeafRecord))
    assert [entry.id for entry in Tree(reading.entries).branch()][-4:] == [leaf, 22, 23, 25]


def test_there_is_an_example_of_every_type() -> None:
    """Also of one that this version does not know."""
    shown = {type(entry.record) for entry in read_session(EXAMPLES.encode()).entries}
    assert shown == set(get_args(Record))


def test_the_examples_are_written_as_the_code_writes_them() -> None:
    """Defaults left out, fields in order."""
    lines = EXAMPLES.splitlines()[1:]
    entries = read_session(EXAMPLES.encode()).entries
    untils = [json.loads(line).get("until") for line in lines]
    assert [
        encode_entry(entry, until).decode().rstrip("\n") for entry, until in zip(entries, untils, strict=True)
    ] == lines


def test_every_field_of_every_type_is_named() -> None:
    """A reader can look up each of them, or read it off an example."""
    words = set(re.findall(r"\w+", PAGE))
    missing = [
        f"{record.type}.{field}"
        for record in get_args(Record)
        for field in record.__dataclass_fields__
        if field not in words | {"start", "raw"}  # `from` in the file; the whole line
    ]
    assert not missing


def test_the_names_on_the_page_are_those_that_files_get() -> None:
    """Of devices, and of all that lies beside a session."""
    page = " ".join(PAGE.split())
    assert "`con` is `%63on.jsonl`" in page and file_name("con") + ENDING == "%63on.jsonl"
    devices = ("con", "prn", "aux", "nul", "com0", "com9", "lpt0", "lpt9")
    assert all(f"`{name}`" in page and file_name(name) != name for name in devices)
    assert "200 bytes" in page and len(file_name("a" * 200)) == 200
    for name in (".lock", ".new", ".erasing-", ".torn-", ".broken-", ".damaged", ".journals/", "blobs/.lock", NAME):
        assert name in page
