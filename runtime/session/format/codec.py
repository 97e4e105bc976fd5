"""Entries to lines and back. Lines are JSON objects, UTF-8, one an entry; defaults are left out.

Laws: `decode_entry(encode_entry(entry))` is the entry, but for what JSON in UTF-8 cannot hold (lone surrogates become
U+FFFD, infinities and NaN null); a line of an unknown type decodes to an `UnknownRecord`; a wrong line raises
`BadLine` that says why. With a store for blobs the same holds, but that a result's `whole` may come back as a `Blob`.
A batch is all or nothing: its ids follow each other, and each of its lines but the last carries `until`, the id of
the last.

Lines that are as this version writes them take a fast way (orjson, `shapes.exact`); all others are read by the
standard library and pydantic, which have the last word. orjson refuses lone surrogates, NaN and the like by itself.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from typing import Any, Final, TypeGuard, get_args

import orjson

from governors.scrub import may_hide_surrogate, scrub

from ..entries import FORMAT_VERSION, Entry, Header, HeadRecord, Record, UnknownRecord
from .blobs import BlobStore
from .large import Shelf, put_back, take_out
from .shapes import PART_TYPES, Unusual, WrongShape, checked, exact, twin_of

_RECORDS: Final[dict[str, type]] = {record.type: record for record in get_args(Record) if record is not UnknownRecord}
_RENAMED = {"start": "from"}  # a head's `from` is a keyword in Python
_RESTORED = {name: attribute for attribute, name in _RENAMED.items()}
_PLACE = ("id", "parent", "at", "type", "until")
_ENTRY = twin_of(Entry)
_BLOB = b'"blob"'  # no text holds these bytes: a quotation mark in it is escaped
_PASS = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_SUBCLASS


class BadLine(ValueError):
    """A line that is not an entry; the text says what is wrong with it."""


def encode_entry(entry: Entry, until: int | None = None, blobs: BlobStore | None = None) -> bytes:
    """The line of `entry`, newline included; large content goes to `blobs`, where there are some.

    Raises `OSError` when a blob cannot be kept.
    """
    record = entry.record
    if isinstance(record, UnknownRecord):
        body = dict(record.raw)
    else:
        body = {"type": record.type, **_plain_fields(record, rename=True)}
        if blobs is not None:
            take_out(record, body, blobs)
    place: dict[str, Any] = {"id": entry.id, "parent": entry.parent, "at": entry.at}
    if until is not None and until != entry.id:
        place["until"] = until
    return _line({**place, **body})


def encode_batch(entries: Sequence[Entry], blobs: BlobStore | None = None) -> bytes:
    """The lines of a batch, bound together so that a torn one is seen as a whole. Raises `OSError` for blobs."""
    return b"".join(encode_entry(entry, entries[-1].id, blobs) for entry in entries)


def decode_batch(lines: bytes, blobs: BlobStore | None = None) -> tuple[Entry, ...]:
    """The entries of whole lines. Raises `BadLine`."""
    shelf = Shelf(blobs)
    return tuple(decode_entry(line, shelf)[0] for line in lines.split(b"\n") if line)


def encode_header(header: Header) -> bytes:
    place = {"type": header.type, "version": header.version, "id": header.id}
    optional = {"channel": header.channel, "origin": header.origin}
    told = {name: value for name, value in optional.items() if value is not None}
    return _line({**place, "agent": header.agent, "created": header.created, **told})


def decode_header(line: bytes) -> Header:
    """The header. Raises `BadLine`, also for a newer version of the format."""
    raw = _object(line.removeprefix(b"\xef\xbb\xbf"))  # some editors put a byte order mark there
    if raw.get("type") != "session":
        raise BadLine(f"the first line is not a session header (its type is {raw.get('type')!r})")
    version = raw.get("version")
    if not _is_id(version):
        raise BadLine(f"the session's format version is {version!r}, not a positive integer")
    if version > FORMAT_VERSION:
        raise BadLine(f"the session has format version {version}; this Moonwake reads up to {FORMAT_VERSION}")
    header: Header = _checked(Header, raw)
    return header


def decode_entry(line: bytes, blobs: Shelf | BlobStore | None = None) -> tuple[Entry, int | None]:
    """The entry of a line and, inside a batch, the id of the batch's last entry. Raises `BadLine`.

    A `Shelf` also tells which blobs were missing.
    """
    shelf = blobs if isinstance(blobs, Shelf) else Shelf(blobs)
    try:
        return _fast(line, shelf)
    except (Unusual, orjson.JSONDecodeError, TypeError):  # TypeError: a field is missing
        return _thorough(line, shelf)


def _fast(line: bytes, shelf: Shelf) -> tuple[Entry, int | None]:
    """The entry of a line that is just as this version writes it. Raises `Unusual` and others: see above."""
    raw = orjson.loads(line)
    if type(raw) is not dict:
        raise Unusual
    take = raw.pop
    identity, parent, at, until = take("id", None), take("parent", None), take("at", None), take("until", None)
    kind = _RECORDS.get(take("type", None))
    if kind is None or type(identity) is not int or identity < 1 or type(at) is not str:
        raise Unusual
    if parent is not None and (type(parent) is not int or parent < 1):
        raise Unusual
    if until is not None and (type(until) is not int or until <= identity):
        raise Unusual
    if _BLOB in line:
        put_back(raw, shelf)
    entry: Any = _ENTRY(identity, parent, at, exact(kind, raw, _RESTORED if kind is HeadRecord else None))
    entry.__class__ = Entry
    return entry, until


def _thorough(line: bytes, shelf: Shelf) -> tuple[Entry, int | None]:
    raw = _object(line)
    identity, parent, at, kind, until = (raw.get(key) for key in _PLACE)
    if not _is_id(identity):
        raise BadLine(f"its id is {identity!r}, not a positive integer")
    if parent is not None and not _is_id(parent):
        raise BadLine(f"its parent is {parent!r}, not an entry id or null")
    if until is not None and not (_is_id(until) and until > identity):
        raise BadLine(f"its batch lasts until {until!r}, which is not the id of a later entry")
    if not isinstance(at, str) or not isinstance(kind, str):
        raise BadLine("it has no time (`at`) or no `type`")
    body = {key: value for key, value in raw.items() if key not in _PLACE}
    if kind not in _RECORDS:
        return Entry(identity, parent, at, UnknownRecord(raw={"type": kind, **body})), until
    put_back(body, shelf)
    record = _checked(_RECORDS[kind], {_RESTORED.get(key, key): value for key, value in body.items()})
    return Entry(identity, parent, at, record), until


def _is_id(value: Any) -> TypeGuard[int]:
    return type(value) is int and value >= 1  # a bool is no number here


def _checked(kind: type, raw: Mapping[str, Any]) -> Any:
    try:
        return checked(kind, raw)
    except WrongShape as problem:
        raise BadLine(str(problem)) from None


def _line(value: Mapping[str, Any]) -> bytes:
    try:
        return orjson.dumps(value, option=_PASS | orjson.OPT_APPEND_NEWLINE)
    except TypeError:  # a lone surrogate, a large integer, a key that is no string, or what JSON cannot hold at all
        pass
    try:
        text = _dumps(value)
    except ValueError:  # an infinity or NaN
        text = _dumps(json.loads(json.dumps(value), parse_constant=lambda _: None))
    return scrub(text).encode() + b"\n"


def _dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _object(line: bytes) -> dict[str, Any]:
    try:
        text = line.decode()
        raw = json.loads(text, parse_constant=lambda _: None)
        if may_hide_surrogate(text):
            raw = json.loads(scrub(_dumps(raw)))
    except UnicodeDecodeError as error:
        raise BadLine(f"it is not UTF-8 (byte {error.start})") from None
    except (ValueError, RecursionError) as error:  # ValueError: also a number of thousands of digits
        raise BadLine(f"it is not JSON ({error})") from None
    if not isinstance(raw, dict):
        raise BadLine(f"it is a JSON {type(raw).__name__}, not an object")
    return raw


@cache
def _fields(kind: type[Any]) -> tuple[Field[Any], ...]:
    return tuple(each for each in fields(kind) if each.init)


def _plain_fields(value: Any, *, rename: bool = False) -> dict[str, Any]:
    """The fields of a dataclass that differ from their defaults, as JSON-ready values."""
    plain: dict[str, Any] = {}
    kind: Any = type(value)
    for each in _fields(kind):
        content = getattr(value, each.name)
        default = each.default if each.default_factory is MISSING else each.default_factory()
        if content == default and type(content) is type(default):
            continue
        plain[_RENAMED.get(each.name, each.name) if rename else each.name] = _plain(content)
    return plain


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        plain = _plain_fields(value)
        kind = PART_TYPES.get(type(value))
        return {"type": kind, **plain} if kind else plain
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, (tuple, list)):
        return [_plain(each) for each in value]
    return value


__all__ = ["BadLine", "decode_batch", "decode_entry", "decode_header", "encode_batch", "encode_entry", "encode_header"]
