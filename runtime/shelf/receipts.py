"""`moonwake inspect --compactions`: how room was made in a session, from its receipts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TypeAlias

from ..channels.receipts import receipt_text
from ..channels.wording import dollars, plural, tokens
from ..errors import MoonwakeError
from ..exports.veil import veiled
from ..inspecting import added
from ..session.entries import CompactionRecord, Entry
from .base import Shelf, columns, put, put_json, say
from .inspecting import when
from .printing import table

_Receipts: TypeAlias = Sequence[tuple[Entry, CompactionRecord]]


def inspect_compactions(on: Shelf, wanted: str, entry: int | None, *, as_json: bool) -> int:
    """Print the receipts of a session, one a line; with `entry` that one whole. What is redacted is not told."""
    _, reading = on.read(wanted)
    receipts: _Receipts = [
        (each, each.record) for each in veiled(reading.entries) if isinstance(each.record, CompactionRecord)
    ]
    if entry is not None:
        receipts = [(each, record) for each, record in receipts if each.id == entry] or _none(receipts, entry)
    if as_json:
        put_json({"compactions": [{"entry": each.id, "at": each.at, **asdict(record)} for each, record in receipts]})
    elif entry is not None:
        put([receipt_text(receipts[0][1])])
    elif receipts:
        put(receipt_lines(receipts, columns()))
    else:
        say("no room was made in this session")
    return 0


def _none(receipts: _Receipts, entry: int) -> _Receipts:
    near = sorted((each.id for each, _ in receipts), key=lambda each: abs(each - entry))[:3]
    named = f"the nearest are {', '.join(map(str, sorted(near)))}" if near else "there is none in this session"
    raise MoonwakeError(f"entry {entry} is no receipt of a compaction; {named}")


def receipt_lines(receipts: _Receipts, width: int) -> Iterator[str]:
    """A table of receipts and their sum, in at most `width` columns (80 are enough)."""
    head = ("entry", "made", "for", "before", "after", "msgs", "cost", "result")
    yield from table([head, *(_row(each, record) for each, record in receipts)], width, frozenset({0, 3, 4, 5, 6}))
    done = [record for _, record in receipts if record.result == "done"]
    cost = added(record.cost for _, record in receipts)
    went = sum(record.before - record.after for record in done)
    price = ", at an unknown price" if cost is None else f", for {dollars(cost)}" if cost else ""
    yield f"{plural(len(receipts), 'attempt')}, {len(done)} done: {tokens(went)} tokens went out of view in all{price}"


def _row(entry: Entry, record: CompactionRecord) -> tuple[str, ...]:
    cost = "?" if record.cost is None else dollars(record.cost) if record.cost else ""
    if record.result == "done":
        result = f"lacks {len(record.dropped)}" if record.dropped else "done"
    else:
        result = record.why or record.result
    done = record.result == "done"
    sizes = (tokens(record.before), *((tokens(record.after), str(record.folded)) if done else ("", "")))
    why = f"{record.reason}, mid-turn" if record.timing == "mid_turn" else record.reason
    return str(entry.id), when(entry.at), why, *sizes, cost, result
