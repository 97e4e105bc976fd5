"""Records from plain JSON values, fast where a line is exactly as this version writes it.

The fast way is made once for each type from its fields. Laws: it takes what has precisely the declared shape and gives
what pydantic would give; anything else (a coercion, an unknown part, a wrong type) raises `Unusual`, and pydantic
decides and finds the words.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, field, fields, is_dataclass, make_dataclass
from functools import cache
from typing import Any, Final, Literal, TypeAlias, Union, cast, get_args, get_origin, get_type_hints

from pydantic import TypeAdapter, ValidationError

from governors.messages import Document, Image, Text, Thinking, ToolCall

PART_TYPES: Final[dict[type, str]] = {
    Text: "text",
    Image: "image",
    Document: "document",
    Thinking: "thinking",
    ToolCall: "call",
}
_PARTS: Final[dict[str, type]] = {name: part for part, name in PART_TYPES.items()}
_LARGEST = 2.0**63  # a float from here on may be an integer that orjson could not hold

_Convert: TypeAlias = Callable[[Any], Any]
#: (attribute, types whose values are taken as they are, what makes the value otherwise).
_Field: TypeAlias = tuple[str, frozenset[type], _Convert | None]


class Unusual(Exception):
    """A value that is not exactly of the declared shape; it may be right all the same."""


class WrongShape(ValueError):
    """A value that cannot be what it should be; the text says where and why."""


def exact(kind: type, raw: Mapping[str, Any], renamed: Mapping[str, str] | None = None) -> Any:
    """The `kind` that `raw` describes. Raises `Unusual`; `TypeError` when a field is missing."""
    known, twin = _known(kind)
    values = {}
    for key, value in raw.items():
        found = known.get(renamed.get(key, key) if renamed else key)
        if found is None:
            continue  # a later version's
        name, plain, convert = found
        if type(value) in plain:
            values[name] = value
        elif convert is None:
            raise Unusual
        else:
            values[name] = convert(value)
    made = twin(**values)
    made.__class__ = kind
    return made


@cache
def twin_of(kind: type) -> type[Any]:
    """A class with the fields and slots of the frozen dataclass `kind`, whose objects become `kind`s when their
    `__class__` is set: a frozen `__init__` goes through `object.__setattr__` for every field and takes five times as
    long. Where an interpreter does not allow that, it is `kind` itself."""
    made: list[tuple[str, Any, Any]] = []
    for each in fields(cast("Any", kind)):
        default: dict[str, Any] = {"default": each.default} if each.default is not MISSING else {}
        if each.default_factory is not MISSING:
            default = {"default_factory": each.default_factory}
        made.append((each.name, Any, field(init=each.init, kw_only=each.kw_only, **default)))
    twin: type[Any] = make_dataclass(f"{kind.__name__}Twin", made, slots=True, eq=False, repr=False)
    try:
        object.__new__(twin).__class__ = kind
    except TypeError:
        return kind
    return twin


def checked(kind: type, raw: Mapping[str, Any]) -> Any:
    """The `kind` that `raw` describes, as pydantic reads it. Raises `WrongShape`."""
    content = raw.get("content")
    if isinstance(content, list):
        raw = {**raw, "content": tuple(_checked_part(part) for part in content)}
    try:
        return _adapter(kind).validate_python(dict(raw))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(step) for step in first["loc"])
        raise WrongShape(f"its {where or 'shape'} is wrong: {first['msg']}") from None


def _checked_part(raw: Any) -> Any:
    kind = _PARTS.get(str(raw.get("type"))) if isinstance(raw, dict) else None
    if kind is None:
        raise WrongShape(f"its content holds a part of unknown type ({str(raw)[:60]})")
    return checked(kind, {key: value for key, value in raw.items() if key != "type"})


@cache
def _adapter(kind: type[Any]) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


@cache
def _known(kind: type) -> tuple[dict[str, _Field], type[Any]]:
    hints, declared = get_type_hints(kind), fields(cast("Any", kind))
    return {each.name: (each.name, *_shape(hints[each.name])) for each in declared if each.init}, twin_of(kind)


def _shape(hint: Any) -> tuple[frozenset[type], _Convert | None]:
    """The types whose values `hint` takes as they are, and what makes the others."""
    if get_origin(hint) in (Union, types.UnionType):
        options = get_args(hint)
        parts = tuple(option for option in options if option in PART_TYPES)
        if parts:
            return frozenset(), _part_of(parts)
        shapes = [_shape(option) for option in options]
        converts = [convert for _, convert in shapes if convert is not None]
        assert len(converts) < 2, f"{hint} cannot be told apart by type"
        return frozenset().union(*(plain for plain, _ in shapes)), converts[0] if converts else None
    if hint in (str, int, bool, float, type(None)):
        return frozenset({hint}), None
    return frozenset(), _conversion(hint)


def _conversion(hint: Any) -> _Convert:
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any:
        return _json
    if origin is Literal:
        return _one_of(arguments)
    if origin is tuple and arguments[-1] is ...:
        return _many(arguments[0])
    if origin is tuple:
        return _integers(len(arguments))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _mapping(arguments[1])
    assert is_dataclass(hint), f"no shape is known for {hint}"
    return _dataclass(hint)


def _json(value: Any) -> Any:
    """A JSON value as it is, unless a number in it may have been too large for the parser."""
    kind = type(value)
    if kind is float:
        if not -_LARGEST < value < _LARGEST:
            raise Unusual
    elif kind is dict:
        for each in value.values():
            _json(each)
    elif kind is list:
        for each in value:
            _json(each)
    return value


def _one_of(words: tuple[Any, ...]) -> _Convert:
    known = {word: word for word in words}

    def convert(value: Any) -> Any:
        if type(value) is not str or value not in known:
            raise Unusual
        return known[value]

    return convert


def _many(hint: Any) -> _Convert:
    plain, make = _shape(hint)

    def convert(value: Any) -> Any:
        if type(value) is not list:
            raise Unusual
        if make is not None:
            return tuple([make(each) for each in value])
        if not all(type(each) in plain for each in value):
            raise Unusual
        return tuple(value)

    return convert


def _integers(count: int) -> _Convert:
    def convert(value: Any) -> Any:
        if type(value) is not list or len(value) != count or not all(type(each) is int for each in value):
            raise Unusual
        return tuple(value)

    return convert


def _mapping(hint: Any) -> _Convert:
    plain, make = _shape(hint)

    def convert(value: Any) -> Any:
        if type(value) is not dict:
            raise Unusual
        if make is not None:
            return _json(value)
        if not all(type(each) in plain for each in value.values()):
            raise Unusual
        return value

    return convert


def _dataclass(kind: Any) -> _Convert:
    def convert(value: Any) -> Any:
        if type(value) is not dict:
            raise Unusual
        return exact(kind, value)

    return convert


def _part_of(kinds: tuple[type, ...]) -> _Convert:
    """One part of a content, by its `type`."""
    known = {PART_TYPES[kind]: kind for kind in kinds}

    def convert(value: Any) -> Any:
        if type(value) is not dict:
            raise Unusual
        kind = known.get(value.get("type"))  # type: ignore[arg-type]  # whatever it is, it is not there
        if kind is None:
            raise Unusual
        if kind is Text and len(value) == 2 and type(text := value.get("text")) is str:
            return Text(text)  # nearly all parts
        return exact(kind, value)

    return convert
