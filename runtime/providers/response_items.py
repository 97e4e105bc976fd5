"""The output items of one reply of the Responses API, as its events tell of them. Pure.

An event belongs to the newest item at its `output_index`, else to the one with its `item_id`, else to the newest of its
kind: llama.cpp sends no index, and some gateways a new id with each event.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from governors.messages import AssistantPart, StopReason, Text, Thinking, ToolCall
from governors.scrub import scrub

from .assemble import Joiner, Piece, make_call, with_ids
from .base import CallPiece, TextPiece, ThinkingPiece

#: Kinds of text: those of a message, and those of reasoning.
TEXT, REFUSAL, SUMMARY, REASONING = "output_text", "refusal", "summary_text", "reasoning_text"
_KINDS = {TEXT: "message", REFUSAL: "message", SUMMARY: "reasoning", REASONING: "reasoning"}


@dataclass(slots=True)
class _Item:
    """One output item. `texts` are by kind and place; `call` is which call of the reply it is."""

    kind: str
    id: str = ""
    call_id: str = ""
    name: str = ""
    call: int = -1
    phase: str | None = None
    encrypted: str | None = None
    done: bool = False
    texts: dict[tuple[str, int], Joiner] = field(default_factory=dict)
    arguments: Joiner = field(default_factory=Joiner)


class ResponseItems:
    """The items so far, in the order in which they came."""

    def __init__(self) -> None:
        self._items: list[_Item] = []
        self._places: dict[int, _Item] = {}
        self._calls = 0
        self._shown: set[type[TextPiece] | type[ThinkingPiece]] = set()

    @property
    def refused(self) -> bool:
        """Whether the model said that it will not."""
        return any(kind == REFUSAL for item in self._items for kind, _ in item.texts)

    def content(self, stop: StopReason) -> tuple[AssistantPart, ...]:
        """What a reply that ended so holds."""
        return _without_repeats([part for item in self._items for part in _parts(item, stop)])

    def begin(self, told: Mapping[str, Any], index: Any = None) -> Iterator[Piece]:
        """An item that begins, with what it begins with."""
        identity, kind = string(told, "id"), string(told, "type")
        known = self._places.get(index) if isinstance(index, int) else None
        if known is None or known.kind != kind or known.done or (identity and known.id and known.id != identity):
            known = self._add(kind, index, identity)
            if kind == "function_call":
                known.name = string(told, "name")
                yield CallPiece(known.call, known.name, "")
        yield from self._fill(known, told)

    def complete(self, told: Mapping[str, Any], index: Any) -> Iterator[Piece]:
        """An item that is finished: what of it was not told yet, and its seal."""
        item = self._find(string(told, "type"), index, string(told, "id"))
        item.done = True
        yield from self._fill(item, told)
        item.encrypted = string(told, "encrypted_content") or item.encrypted

    def reconcile(self, output: Any) -> Iterator[Piece]:
        """The items of the finished response: each is the one of its id, else the first of its kind that is left."""
        waiting = list(self._items)
        for told in output if isinstance(output, list) else ():
            if not isinstance(told, Mapping):
                continue
            kind, identity, call_id = string(told, "type"), string(told, "id"), string(told, "call_id").strip()
            same = [item for item in waiting if item.kind == kind and (not call_id or item.call_id in ("", call_id))]
            item = next((each for each in same if identity and each.id == identity), same[0] if same else None)
            if item is None:
                yield from self.begin(told)
            else:
                waiting.remove(item)
                yield from self._fill(item, told)

    def text(self, event: Mapping[str, Any], kind: str, place: int, text: str, *, whole: bool) -> Iterator[Piece]:
        """A piece of a text, or the `whole` of it."""
        if text:
            item = self._find(_KINDS[kind], event.get("output_index"), string(event, "item_id"))
            yield from (self._settle_text if whole else self._show)(item, kind, place, text)

    def arguments(self, event: Mapping[str, Any], told: Any, *, whole: bool) -> list[Piece]:
        """A piece of a call's arguments, or the `whole` of them."""
        item = self._find("function_call", event.get("output_index"), string(event, "item_id"))
        if whole:
            return _settle_arguments(item, told)
        return _argue(item, told) if isinstance(told, str) else []

    def _find(self, kind: str, index: Any, identity: str) -> _Item:
        """The item that an event is of; a new one where its beginning was not told."""
        place = self._places.get(index) if isinstance(index, int) else None
        if place is not None and place.kind == kind:
            return place
        same = [item for item in self._items if item.kind == kind]
        found = next((item for item in same if identity and item.id == identity), None)
        if found is None and same and not same[-1].done and (place is not None or not isinstance(index, int)):
            found = same[-1]
        return found or self._add(kind, index, identity)

    def _add(self, kind: str, index: Any, identity: str) -> _Item:
        item = _Item(kind, identity)
        if kind == "function_call":
            item.call = self._calls
            self._calls += 1
        self._items.append(item)
        if isinstance(index, int):
            self._places[index] = item
        return item

    def _fill(self, item: _Item, told: Mapping[str, Any]) -> Iterator[Piece]:
        """What an item says of itself, where it is not known yet."""
        item.id = item.id or string(told, "id")
        item.call_id = item.call_id or string(told, "call_id").strip()
        item.name = item.name or string(told, "name")
        item.phase = item.phase or string(told, "phase") or None
        item.encrypted = item.encrypted or string(told, "encrypted_content") or None
        if item.kind == "function_call":
            yield from _settle_arguments(item, told.get("arguments"))
        for part in ("summary", "content"):
            listed = told.get(part)
            for place, each in enumerate(listed if isinstance(listed, list) else ()):
                if isinstance(each, Mapping):
                    kind = TEXT if each.get("type") == "text" else string(each, "type")
                    text = string(each, "refusal" if kind == REFUSAL else "text")
                    yield from self._settle_text(item, kind, place, text)

    def _settle_text(self, item: _Item, kind: str, place: int, whole: str) -> Iterator[Piece]:
        """All of a text: what of it did not come piece by piece."""
        known = item.texts.get((kind, place))
        have, whole = known.text() if known is not None else "", scrub(whole)
        if whole.startswith(have):
            yield from self._show(item, kind, place, whole[len(have) :])

    def _show(self, item: _Item, kind: str, place: int, text: str) -> Iterator[Piece]:
        thinks = kind in (SUMMARY, REASONING)
        if not text or _KINDS.get(kind) != item.kind:
            return
        if thinks and any(other != kind for other, _ in item.texts):
            return  # a server that tells both the reasoning and its summary: the first to come is shown and kept
        make = ThinkingPiece if thinks else TextPiece
        joiner = item.texts.setdefault((kind, place), Joiner())
        fresh = not joiner.length
        if shown := joiner.add(text):
            if fresh and make in self._shown:
                yield make("\n\n")  # as the message joins them: for the eye, texts are paragraphs of their own
            self._shown.add(make)
            yield make(shown)


def _argue(item: _Item, text: str) -> list[Piece]:
    piece = item.arguments.add(text)
    return [CallPiece(item.call, item.name, piece)] if piece else []


def _settle_arguments(item: _Item, whole: Any) -> list[Piece]:
    if isinstance(whole, Mapping):
        whole = json.dumps(whole, ensure_ascii=False)
    if not isinstance(whole, str) or not whole:
        return []
    have, whole = item.arguments.text(), scrub(whole)
    if whole.startswith(have):
        return _argue(item, whole[len(have) :])
    item.arguments = Joiner()
    item.arguments.add(whole)
    return []


def _parts(item: _Item, stop: StopReason) -> Iterator[AssistantPart]:
    texts = [text for joiner in item.texts.values() if (text := joiner.text())]
    if item.kind == "message":
        yield from (Text(text, item.phase) for text in texts)
    elif item.kind == "function_call":
        yield make_call(item.call_id, item.name, item.arguments.text(), stop)
    elif item.kind == "reasoning" and (texts or item.encrypted):
        yield from (Thinking(text) for text in texts[:-1])
        yield Thinking(texts[-1] if texts else "", item.encrypted)


def _without_repeats(parts: list[AssistantPart]) -> tuple[AssistantPart, ...]:
    """Identical calls collapse and calls without an id get one, each at its place."""
    calls = iter(with_ids(part for part in parts if isinstance(part, ToolCall)))
    named = [next(calls) if isinstance(part, ToolCall) else part for part in parts]
    first = {part: place for place, part in reversed(list(enumerate(named))) if isinstance(part, ToolCall)}
    return tuple(part for place, part in enumerate(named) if not isinstance(part, ToolCall) or first[part] == place)


def string(source: Mapping[str, Any], key: str) -> str:
    value = source.get(key)
    return value if isinstance(value, str) else ""
