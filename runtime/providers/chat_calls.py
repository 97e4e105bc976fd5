"""Tool calls out of a Chat Completions stream, as servers really send them. Pure.

The protocol sends a call's id and name once and then pieces of its arguments, told apart by `index`. Servers also
send every call at index 0, no index, no id, the name late, the id with every piece, one id for several calls, or
the whole list anew each time. The rules, in order of trust:

1. A known id at the same or no index is the same call. At a new index it is another call if it brings a name.
2. A new id at a used index is another call.
3. Without an id the index decides; without either, a name opens a call and its absence continues the last.
   At a used place a named entry without an id is another call only if the arguments there are already whole
   and differ.
4. An entry that repeats its id or name and begins with all that is there is a snapshot: it replaces.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from governors.messages import StopReason, ToolCall

from .assemble import Joiner, collapse, is_object, make_call, with_ids
from .base import CallPiece


@dataclass(slots=True)
class _Scan:
    """Whether brackets and quotes are closed, kept up to date piece by piece: parsing each time would be quadratic."""

    depth: int = 0
    quoted: bool = False
    escaped: bool = False
    begun: bool = False

    def feed(self, text: str) -> None:
        for char in text:
            if self.escaped:
                self.escaped = False
            elif self.quoted:
                self.escaped = char == "\\"
                self.quoted = char != '"'
            elif char == '"':
                self.quoted = True
            elif char in "{[":
                self.depth += 1
                self.begun = True
            elif char in "}]":
                self.depth -= 1

    @property
    def closed(self) -> bool:
        return self.begun and not self.quoted and self.depth <= 0


@dataclass(slots=True)
class _Draft:
    number: int
    id: str = ""
    name: str = ""
    arguments: Joiner = field(default_factory=Joiner)
    scan: _Scan = field(default_factory=_Scan)
    pieces: list[str] = field(default_factory=list)  # as they came, in case a snapshot was none
    snapshots: bool = False

    @property
    def text(self) -> str:
        return self.arguments.text()

    @property
    def whole(self) -> bool:
        """Whether the arguments are an object, so that nothing more belongs to it."""
        return self.scan.closed and is_object(self.text)

    def add(self, arguments: str) -> str:
        piece = self.arguments.add(arguments)
        self.scan.feed(piece)
        return piece

    def replace(self, arguments: str) -> None:
        self.arguments, self.scan = Joiner(), _Scan()
        self.add(arguments)

    def final(self) -> str:
        """The arguments; if what was taken for snapshots does not parse and the pieces joined do, those."""
        if self.snapshots and not is_object(self.text):
            joined = Joiner()
            joined.add("".join(self.pieces))
            if is_object(joined.text()):
                return joined.text()
        return self.text


@dataclass(slots=True)
class ChatCalls:
    """The calls of one reply."""

    _drafts: list[_Draft] = field(default_factory=list)
    _at: dict[int, _Draft] = field(default_factory=dict)  # index on the wire -> its newest call

    def __bool__(self) -> bool:
        return any(draft.name or draft.text for draft in self._drafts)

    def feed(self, entries: list[Any]) -> list[CallPiece]:
        """The pieces to show, for the `tool_calls` of one chunk."""
        shown: list[CallPiece] = []
        for entry in entries:
            if isinstance(entry, Mapping):
                shown.extend(self._entry(entry))
        return shown

    def finish(self, stop: StopReason) -> tuple[ToolCall, ...]:
        """The calls; identical repeats collapse, one without id gets one."""
        whole = (draft for draft in self._drafts if draft.name or draft.text.strip())
        return collapse(with_ids(make_call(each.id, each.name, each.final(), stop) for each in whole))

    def _entry(self, entry: Mapping[str, Any]) -> list[CallPiece]:
        function = entry.get("function")
        function = function if isinstance(function, Mapping) else {}
        id = str(entry.get("id") or "").strip()
        name = function.get("name")
        name = name if isinstance(name, str) else ""
        arguments = function.get("arguments")
        if arguments is None:
            arguments = ""
        elif not isinstance(arguments, str):
            arguments = json.dumps(arguments, ensure_ascii=False)  # sent as an object, so whole
        index = entry.get("index")
        index = index if isinstance(index, int) and not isinstance(index, bool) else None
        draft = self._find(index, id, name, arguments) or self._open()
        if index is not None:
            self._at[index] = draft
        return _merge(draft, id, name, arguments)

    def _open(self) -> _Draft:
        draft = _Draft(number=len(self._drafts))
        self._drafts.append(draft)
        return draft

    def _find(self, index: int | None, id: str, name: str, arguments: str) -> _Draft | None:
        """The call that this entry continues; None: it opens one."""
        here = self._at.get(index) if index is not None else None
        if id:
            if here is not None and here.id in ("", id):
                return None if _is_another(here, id, name, arguments) else here
            known = next((draft for draft in reversed(self._drafts) if draft.id == id), None)
            if known is not None and (index is None or not name):
                return known
            return None
        if index is not None:
            return None if here is not None and _is_another(here, id, name, arguments) else here
        if not name:
            return self._drafts[-1] if self._drafts else None
        return next((draft for draft in self._drafts if _is_resent(draft, name, arguments)), None)


def _is_another(here: _Draft, id: str, name: str, arguments: str) -> bool:
    """Whether a named entry is not the call at its place, but the next one sent at that index."""
    if not name or not here.whole:
        return False
    if id and id == here.id:
        return name != here.name
    return name != here.name or (bool(arguments) and arguments != here.text)


def _is_resent(draft: _Draft, name: str, arguments: str) -> bool:
    """Whether an entry with neither id nor index is this call in a list that is sent whole each time."""
    return not draft.id and draft.name == name and bool(draft.text) and arguments.startswith(draft.text)


def _merge(draft: _Draft, id: str, name: str, arguments: str) -> list[CallPiece]:
    had_id, had_name = draft.id, draft.name
    repeated = bool((id and id == had_id) or (name and name == had_name))
    draft.id = draft.id or id
    draft.name = _merge_names(draft, name)
    piece = _add(draft, arguments, repeated) if arguments else ""
    if piece or (draft.name and not had_name):
        return [CallPiece(draft.number, draft.name, piece)]
    return []


def _add(draft: _Draft, arguments: str, repeated: bool) -> str:
    """Takes more arguments; gives what of them is new."""
    snapshot = bool(draft.pieces) and arguments.lstrip().startswith("{") and _is_snapshot(draft, arguments, repeated)
    draft.pieces.append(arguments)
    if not snapshot:
        return draft.add(arguments)
    before = draft.text
    draft.snapshots = True
    draft.replace(arguments)
    return arguments[len(before) :] if arguments.startswith(before) else ""


def _is_snapshot(draft: _Draft, arguments: str, repeated: bool) -> bool:
    if draft.whole:  # an object after a whole object cannot be a piece of it
        return True
    return repeated and 0 < draft.arguments.length <= len(arguments) and arguments.startswith(draft.text)


def _merge_names(draft: _Draft, name: str) -> str:
    """A name may come late, again, longer than before, or in pieces before the arguments begin."""
    if not name or name == draft.name:
        return draft.name
    if not draft.name or name.startswith(draft.name):
        return name
    return draft.name if draft.arguments else draft.name + name
