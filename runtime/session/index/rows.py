"""What a session is as a row of the index, and back.

Pure. Law: `seen_of(row_of(place, seen))` is `seen`; a row that is not what was written raises `Damaged`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

from ..entries import Header
from .following import Mark, Seen, look_of
from .indexing import Facts
from .listing import SessionInfo, iso, milliseconds
from .schema import COLUMNS, Damaged

#: Between the names in one column, and around them, so that one can be looked for.
SEPARATOR = "\n"


def row_of(place: tuple[str, str], seen: Seen) -> tuple[Any, ...]:
    """The values of `COLUMNS`, and the seal."""
    mark, header, facts = seen.mark, seen.header, seen.facts
    began = milliseconds(header.created) or 0
    row = (
        *(*place, look_of(mark.stamp) if mark.settled else None, *mark.stamp, int(mark.settled), seen.skipped),
        *(mark.offset, mark.check, mark.tail, int(mark.whole)),
        *(header.id, header.agent, header.created, header.channel),
        *(None if header.origin is None else json.dumps(header.origin), _kind(header)),
        *(facts.said, facts.title, _joined(facts.models), _joined(facts.tags)),
        *(int(facts.pinned), int(facts.archived), _number(facts.cost)),
        *(facts.messages, facts.calls),
        *(_text(facts.leaf), _text(facts.newest), _text(facts.hidden)),
        began if facts.said is None else facts.said,
    )
    return (*row, _seal(row))


def seen_of(row: Sequence[Any]) -> Seen:
    """The session of a row (`COLUMNS` and the seal). Raises `Damaged`."""
    raw = _checked(row)
    origin = raw["origin"]
    return Seen(
        mark=Mark(
            stamp=(raw["inode"], raw["size"], raw["mtime"], raw["ctime"]),
            settled=bool(raw["settled"]),
            offset=raw["read_to"],
            check=raw["checked"],
            tail=raw["tail"],
            whole=bool(raw["whole"]),
        ),
        header=Header(
            id=raw["id"],
            agent=raw["agent"],
            created=raw["created"],
            channel=raw["channel"],
            origin=None if origin is None else json.loads(origin),
        ),
        facts=Facts(
            said=raw["said"],
            title=raw["title"],
            models=_parted(raw["models"]),
            tags=_parted(raw["tags"]),
            pinned=bool(raw["pinned"]),
            archived=bool(raw["archived"]),
            cost=raw["cost"],
            messages=raw["messages"],
            calls=raw["calls"],
            leaf=None if raw["leaf"] is None else int(raw["leaf"]),
            newest=int(raw["newest"]),
            hidden=int(raw["hidden"]),
        ),
        skipped=raw["skipped"],
    )


def info_of(row: Sequence[Any], root: Path) -> SessionInfo:
    """The session of a row as a list shows it. Raises `Damaged`."""
    seen = seen_of(row)
    header, facts, stamp = seen.header, seen.facts, seen.mark.stamp
    return SessionInfo(
        id=header.id,
        agent=header.agent,
        created=header.created,
        path=root / row[0] / row[1],
        changed=stamp[2] / 1e9,
        size=stamp[1],
        said=None if facts.said is None else iso(facts.said),
        title=facts.title or (facts.tags[0] if facts.tags else ""),
        channel=header.channel,
        models=facts.models,
        tags=facts.tags,
        pinned=facts.pinned,
        archived=facts.archived,
        cost=facts.cost,
        messages=facts.messages,
        calls=facts.calls,
        origin=header.origin,
    )


def _number(cost: float | None) -> float | None:
    return None if cost is None or math.isnan(cost) else float(cost)  # SQLite has no NaN


def _kind(header: Header) -> str:
    kind = "own" if header.origin is None else header.origin.get("kind")
    return kind if isinstance(kind, str) else ""


def _checked(row: Sequence[Any]) -> dict[str, Any]:
    *values, seal = row
    if len(values) != len(COLUMNS) or _seal(tuple(values)) != seal:
        raise Damaged("a row of the index is not what was written")
    return dict(zip(COLUMNS, values, strict=True))


def _seal(row: tuple[Any, ...]) -> int:
    return crc32(repr(row).encode("utf-8", "surrogatepass"))


def _joined(names: tuple[str, ...]) -> str:
    return "".join(f"{SEPARATOR}{name}" for name in names) + SEPARATOR if names else ""


def _parted(text: str) -> tuple[str, ...]:
    return tuple(text.strip(SEPARATOR).split(SEPARATOR)) if text else ()


def _text(number: int | None) -> str | None:
    """Ids of foreign files may be larger than the integers of SQLite."""
    return None if number is None else str(number)
