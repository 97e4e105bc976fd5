"""Entries to lines and back. Lines are JSON objects, UTF-8, one an entry; defaults are left out.

Laws: `decode_entry(encode_entry(entry))` is the entry, but for what JSON in UTF-8 cannot hold (lone surrogates become
U+FFFD, infinities and NaN null); a line of an unknown type decodes to an `UnknownRecord`; a wrong line raises
`BadLine` that says why. A batch is all or nothing: its ids follow each other, and each of its lines but the last
carries `until`, the id of the last.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from typing import Any, TypeGuard, get_args

from pydantic import TypeAdapter, ValidationError

from governors.messages import Image, Text, Thinking, ToolCall
from governors.scrub import may_hide_surrogate, scrub

from .entries import FORMAT_VERSION, Entry, Header, Record, UnknownRecord

_PART_TYPES: dict[type, str] = {Text: "text", Image: "image", Thinking: "thinking", ToolCall: "call"}
_PARTS: dict[str, type] = {name: part for part, name in _PART_TYPES.items()}
_RECORDS: dict[str, type] = {record.type: record for record in get_args(Record) if record is not UnknownRecord}
_RENAMED = {"start": "from"}  # a head's `from` is a keyword in Python
_RESTORED = {name: attribute for attribute, name in _RENAMED.items()}
_PLACE = ("id", "parent", "at", "type", "until")


class BadLine(ValueError):
    """A line that is not an entry; the text says what is wrong with it."""


def encode_entry(entry: Entry, until: int | None = None) -> bytes:
    """The line of `entry`, newline included."""
    record = entry.record
    if isinstance(record, UnknownRecord):
        body = dict(record.raw)
    else:
        body = {"type": record.type, **_plain_fields(record, rename=True)}
    place: dict[str, Any] = {"id": entry.id, "parent": entry.parent, "at": entry.at}
    if until is not None and until != entry.id:
        place["until"] = until
    return _line({**place, **body})


def encode_batch(entries: Sequence[Entry]) -> bytes:
    """The lines of a batch, bound together so that a torn one is seen as a whole."""
    return b"".join(encode_entry(entry, until=entries[-1].id) for entry in entries)


def decode_batch(lines: bytes) -> tuple[Entry, ...]:
    """The entries of whole lines. Raises `BadLine`."""
    return tuple(decode_entry(line)[0] for line in lines.split(b"\n") if line)


def encode_header(header: Header) -> bytes:
    place = {"type": header.type, "version": header.version, "id": header.id}
    optional = {"channel": header.channel, "origin": header.origin}
    told = {name: value for name, value in optional.items() if value is not None}
    return _line({**place, "agent": header.agent, "created": header.created, **told})


def decode_header(line: bytes) -> Header:
    """The header. Raises `BadLine`, also for a newer version of the format."""
    raw = _object(line)
    if raw.get("type") != "session":
        raise BadLine(f"the first line is not a session header (its type is {raw.get('type')!r})")
    version = raw.get("version")
    if not _is_id(version):
        raise BadLine(f"the session's format version is {version!r}, not a positive integer")
    if version > FORMAT_VERSION:
        raise BadLine(f"the session has format version {version}; this Moonwake reads up to {FORMAT_VERSION}")
    header: Header = _validated(Header, raw)
    return header


def decode_entry(line: bytes) -> tuple[Entry, int | None]:
    """The entry of a line and, inside a batch, the id of the batch's last entry. Raises `BadLine`."""
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
        record: Record = UnknownRecord(raw={"type": kind, **body})
    else:
        restored = {_RESTORED.get(key, key): value for key, value in body.items()}
        record = _validated(_RECORDS[kind], restored)
    return Entry(identity, parent, at, record), until


def _is_id(value: Any) -> TypeGuard[int]:
    return type(value) is int and value >= 1  # a bool is no number here


def _line(value: Mapping[str, Any]) -> bytes:
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
def _adapter(kind: type[Any]) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


@cache
def _fields(kind: type[Any]) -> tuple[Field[Any], ...]:
    return tuple(each for each in fields(kind) if each.init)


def _validated(kind: type, raw: Mapping[str, Any]) -> Any:
    try:
        return _adapter(kind).validate_python(_restore_parts(raw))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(step) for step in first["loc"])
        raise BadLine(f"its {where or 'shape'} is wrong: {first['msg']}") from None


def _restore_parts(raw: Mapping[str, Any]) -> dict[str, Any]:
    content = raw.get("content")
    if not isinstance(content, list):
        return dict(raw)
    return {**raw, "content": tuple(_part(part) for part in content)}


def _part(raw: Any) -> Any:
    kind = _PARTS.get(str(raw.get("type"))) if isinstance(raw, dict) else None
    if kind is None:
        raise BadLine(f"its content holds a part of unknown type ({str(raw)[:60]})")
    return _validated(kind, {key: value for key, value in raw.items() if key != "type"})


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
        kind = _PART_TYPES.get(type(value))
        return {"type": kind, **plain} if kind else plain
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, (tuple, list)):
        return [_plain(each) for each in value]
    return value


__all__ = ["BadLine", "decode_batch", "decode_entry", "decode_header", "encode_batch", "encode_entry", "encode_header"]
