"""What a hook changed of a request's body, as operations of JSON Patch, and the body with them. Pure.

Laws: `changed(before, changes_between(hook, before, after))` equals `after`; `changed` shares with the old body what it
does not change, and never writes into it; the order of keys is the old one's, new keys come last, so that bytes can be
made again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from governors.wire.base import Payload

from ..session.entries import PayloadChange


def changes_between(hook: str, before: Any, after: Any) -> tuple[PayloadChange, ...]:
    """The operations that make `after` of `before`. Both are JSON values."""
    return tuple(_between(hook, before, after, ""))


def changed(body: Mapping[str, Any], changes: Iterable[PayloadChange]) -> Payload:
    """`body` after `changes`. Raises `ValueError` for an operation that does not fit it."""
    value: Any = dict(body)
    for change in changes:
        steps = [step.replace("~1", "/").replace("~0", "~") for step in change.path.split("/")[1:]]
        value = _applied(value, steps, change)
    if not isinstance(value, dict):
        raise ValueError("the body of a request is a JSON object")
    return value


def _between(hook: str, before: Any, after: Any, path: str) -> Iterator[PayloadChange]:
    if isinstance(before, dict) and isinstance(after, dict):
        yield from _keys(hook, before, after, path)
    elif isinstance(before, list) and isinstance(after, list):
        yield from _items(hook, before, after, path)
    elif type(before) is not type(after) or before != after:
        yield PayloadChange(hook=hook, op="replace", path=path, value=after)


def _keys(hook: str, before: Mapping[str, Any], after: Mapping[str, Any], path: str) -> Iterator[PayloadChange]:
    for key in before:
        if key not in after:
            yield PayloadChange(hook=hook, op="remove", path=f"{path}/{_escaped(key)}")
    for key, value in after.items():
        if key in before:
            yield from _between(hook, before[key], value, f"{path}/{_escaped(key)}")
        else:
            yield PayloadChange(hook=hook, op="add", path=f"{path}/{_escaped(key)}", value=value)


def _items(hook: str, before: Sequence[Any], after: Sequence[Any], path: str) -> Iterator[PayloadChange]:
    """What is alike at both ends stays; of the rest, item by item, and then what there is more or less."""
    lead = _alike(before, after)
    tail = min(_alike(before[::-1], after[::-1]), min(len(before), len(after)) - lead)
    old, new = before[lead : len(before) - tail], after[lead : len(after) - tail]
    shared = min(len(old), len(new))
    for index in range(shared):
        yield from _between(hook, old[index], new[index], f"{path}/{lead + index}")
    for _ in old[shared:]:
        yield PayloadChange(hook=hook, op="remove", path=f"{path}/{lead + shared}")
    for index in range(shared, len(new)):
        yield PayloadChange(hook=hook, op="add", path=f"{path}/{lead + index}", value=new[index])


def _alike(one: Sequence[Any], other: Sequence[Any]) -> int:
    count = 0
    for left, right in zip(one, other, strict=False):
        if not _same(left, right):
            break
        count += 1
    return count


def _same(one: Any, other: Any) -> bool:
    """Whether two JSON values are one: `1`, `1.0` and `true` are three."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return type(one) is type(other) and bool(one == other)


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def _applied(value: Any, steps: Sequence[str], change: PayloadChange) -> Any:
    if not steps:
        return change.value
    step, rest = steps[0], steps[1:]
    try:
        if isinstance(value, dict):
            return _in_object(value, step, rest, change)
        if isinstance(value, list):
            return _in_list(value, int(step), rest, change)
    except (KeyError, IndexError, ValueError) as error:
        raise ValueError(f"{change.op} {change.path} does not fit the body of this request") from error
    raise ValueError(f"{change.op} {change.path} does not fit the body of this request")


def _in_object(value: Mapping[str, Any], key: str, rest: Sequence[str], change: PayloadChange) -> dict[str, Any]:
    new = dict(value)
    if rest:
        new[key] = _applied(new[key], rest, change)
    elif change.op == "remove":
        del new[key]
    else:
        new[key] = change.value
    return new


def _in_list(value: Sequence[Any], index: int, rest: Sequence[str], change: PayloadChange) -> list[Any]:
    new = list(value)
    if rest:
        new[index] = _applied(new[index], rest, change)
    elif change.op == "remove":
        del new[index]
    elif change.op == "add":
        new.insert(index, change.value)
    else:
        new[index] = change.value
    return new
