"""Coding sessions without their text: one JSON object a line, sizes and times only.

A prompt of c characters holds `base_tokens + tokens_per_char * c` tokens. Events stand in order, `t` in seconds from
the start: `request` (a call that sends all before it), `user`, `assistant`, `thinking`, `tool_call`, `tool_result`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .trace import WORTH_A_STUB, Call, Item, Trace

STUB_CHARACTERS = 60


def is_segment(line: Mapping[str, Any]) -> bool:
    return {"base_tokens", "tokens_per_char", "events"} <= line.keys()


def read_segment(line: Mapping[str, Any]) -> Trace:
    """The trace of one segment. Raises `KeyError`, `TypeError` or `ValueError` when the line has another shape."""
    share = float(line["tokens_per_char"])
    return Trace(str(line["id"]), round(line["base_tokens"]), tuple(_calls(line["events"], share)))


def _calls(events: list[Mapping[str, Any]], share: float) -> Iterator[Call]:
    items: list[Item] = []
    request: tuple[float, tuple[Item, ...], str | None] | None = None
    rests = True
    for event in events:
        if event["k"] == "request":
            if request is not None:
                yield Call(request[0], request[1], rests, request[2])
            request, items, rests = (float(event["t"]), tuple(items), event.get("model")), [], True
            continue
        rests = rests and event["k"] != "tool_call"
        items.append(_item(event, share))
    if request is not None:
        yield Call(request[0], request[1], rests, request[2])


def _item(event: Mapping[str, Any], share: float) -> Item:
    characters = int(event["chars"])
    if event["k"] == "tool_result" and characters > WORTH_A_STUB:
        return Item(round(characters * share), round(STUB_CHARACTERS * share))
    return Item(round(characters * share), boundary=event["k"] == "user")
