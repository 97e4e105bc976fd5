"""Whether a record comes back from its line as it is, told from its values alone, without decoding the line.

Pure. Decoding takes as long as encoding, and nearly all records come back equal: those whose values have exactly the
types that their fields declare, text without lone surrogates, finite numbers, and no list or dict (whoever handed it
in could change it later). Law: where `reads_back` says yes, decoding gives the same record; where it says no, it may
or may not (whoever asks decodes then, and sees).
"""

from __future__ import annotations

import math
import types
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from governors.messages import Document, Image

from ..entries import Blob, ExtensionRecord, Record, ResultRecord, UnknownRecord

_WIDEST = 2**63
_LONGEST_INLINE = 16_384  # characters; longer pictures, documents and outputs may become files of their own
_LONGEST_TEXT = 65_536

Check = Callable[[Any], bool]


def reads_back(record: Record) -> bool:
    """Whether decoding the line of `record` surely gives `record` again."""
    if isinstance(record, UnknownRecord):
        return False
    if isinstance(record, (ResultRecord, ExtensionRecord)) and record.whole is not None:
        return False
    kind: Any = type(record)
    return _check(kind)(record)


def _text(value: Any) -> bool:
    if type(value) is not str or len(value) >= _LONGEST_TEXT:
        return False
    if value.isascii():
        return True
    try:
        value.encode()
    except UnicodeEncodeError:  # a surrogate
        return False
    return True


def _integer(value: Any) -> bool:
    return type(value) is int and -_WIDEST < value < _WIDEST


def _number(value: Any) -> bool:
    return type(value) is float and math.isfinite(value)


def _truth(value: Any) -> bool:
    return type(value) is bool


def _none(value: Any) -> bool:
    return value is None


def _json(value: Any) -> bool:
    return value is None or _truth(value) or _text(value) or _integer(value) or _number(value)


def _empty(value: Any) -> bool:
    return type(value) is dict and not value


def _nothing(value: Any) -> bool:
    return False


_PLAIN: dict[Any, Check] = {
    str: _text,
    int: _integer,
    float: _number,
    bool: _truth,
    type(None): _none,
    Any: _json,
    Blob: _nothing,
}


@cache
def _check(kind: Any) -> Check:
    """A function that tells whether a value has exactly the type `kind`, all the way down."""
    if kind in _PLAIN:
        return _PLAIN[kind]
    origin, inside = get_origin(kind), get_args(kind)
    if origin is Literal:
        return lambda value: type(value) is str and value in inside
    if origin in (Union, types.UnionType):
        return _either(inside)
    if origin is tuple:
        return _sequence(inside)
    if origin in (Mapping, dict):
        return _empty
    return _shape(kind) if isinstance(kind, type) and hasattr(kind, "__dataclass_fields__") else _nothing


def _either(kinds: tuple[Any, ...]) -> Check:
    shapes = {kind: _check(kind) for kind in kinds if isinstance(kind, type)}
    others = tuple(_check(kind) for kind in kinds if not isinstance(kind, type))

    def check(value: Any) -> bool:
        known = shapes.get(type(value))
        return known(value) if known is not None else any(other(value) for other in others)

    return check


def _sequence(kinds: tuple[Any, ...]) -> Check:
    if len(kinds) == 2 and kinds[1] is Ellipsis:
        each = _check(kinds[0])
        return lambda value: type(value) is tuple and all(map(each, value))
    several = tuple(_check(kind) for kind in kinds)
    return lambda value: (
        type(value) is tuple
        and len(value) == len(several)
        and all(check(part) for check, part in zip(several, value, strict=True))
    )


def _shape(kind: type[Any]) -> Check:
    hints = get_type_hints(kind)
    checks = tuple((each.name, _check(hints[each.name])) for each in fields(kind) if each.init)

    def check(value: Any) -> bool:
        if type(value) is not kind:
            return False
        if kind in (Image, Document) and len(value.data) >= _LONGEST_INLINE:
            return False
        return all(fits(getattr(value, name)) for name, fits in checks)

    return check
