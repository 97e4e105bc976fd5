"""Requests of one growing conversation, message by message.

An `Encoder` gives what a wire's functions give for the whole list (`body`, `mark_cache`, `check`, `prefix_hash`), and
the finished bytes. Laws:
- A message is encoded, written, hashed and checked once. A request with one new message costs that message and a
  join of the bytes that stand.
- What may yet change is not settled: a step that has not all its results, and on hosts that want the roles in turn
  the newest message. It is worked out for each request, from what is kept with the messages.
- Only appending is possible. After an edit, a cut or a change of model a new `Encoder` is made; what the messages
  keep makes that quick.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..messages import Message, ToolResult, ToolSpec
from .base import Abilities, Payload, Violation
from .checking import MessageRules
from .compaction_items import Compacting
from .encoded import Encoded, cache_key, dump_bytes, roll, roll_messages
from .protocol import Wire

#: Messages at the end that a wire may put cache marks on: more than it looks at.
_WINDOW = 64

_SYSTEM_ROLES = ("system", "developer")
_MERGED_ROLES = ("user", "assistant")


class Encoder:
    """The requests of one conversation to one model. `max_output` is in tokens, `thinking` a level of thinking. With
    `compacting` it is one request, for the provider's own compaction (`close`).

    Raises `ValueError` for a level that there is none of.
    """

    def __init__(
        self,
        wire: Wire,
        *,
        system: str,
        tools: Sequence[ToolSpec],
        abilities: Abilities,
        model: str,
        max_output: int,
        thinking: str | None = None,
        compacting: Compacting | None = None,
    ) -> None:
        self._wire, self._way = wire, wire.stepwise
        self._abilities, self._model = abilities, model
        self._max_output, self._thinking = max_output, thinking
        self._compacting = compacting
        self._lead = wire.encode((), system=system, tools=tools, abilities=abilities, model=model)
        leading = self._lead.pop(self._way.part)
        self._written: dict[str, tuple[Any, bytes]] = {}
        self._items: list[Encoded] = []
        self._raws: list[bytes] = []
        self._digests = list(roll(b"", wire.prefix_blocks(self._lead)))
        begins = wire.prefix_blocks({**self._lead, self._way.part: leading}) if abilities.cache_key else ()
        self._key = cache_key(begins) if abilities.cache_key else None
        self._results: list[ToolResult] = []
        self._newest: Encoded | None = None  # on hosts that want the roles in turn: what the next may join
        self._opened = False
        self._rules = self._checked = self._way.rules(self._head([]), abilities)
        self._ahead: tuple[list[Encoded], MessageRules] | None = None  # the check of what is not settled
        for message in leading:
            self._settle(message)

    def append(self, messages: Iterable[Message]) -> None:
        """Take the messages that follow. They are repaired ones (see `governors.repair`)."""
        for message in messages:
            if isinstance(message, ToolResult):
                self._results.append(message)
                continue
            if self._results:
                self._end_step()
            for encoded in self._way.encode_unit(message, self._abilities, self._model):
                self._add(encoded)

    def close(self) -> None:
        """Put what asks for a compaction at the end, where this request is for one; nothing can follow."""
        if self._results:
            self._end_step()
        for message in self._compacting.closing if self._compacting else ():
            self._add(message)

    @property
    def prefix(self) -> str:
        """The wire's `prefix_hash` of the request as it stands."""
        digests = self._open_digests() or self._digests
        return digests[-1].hex() if digests else ""

    @property
    def blocks(self) -> int:
        """How many blocks `prefix` covers."""
        return len(self._digests) + len(self._open_digests())

    def prefix_at(self, blocks: int) -> str:
        """The rolling hash over the first `blocks` blocks. Raises `IndexError` when there are not so many."""
        settled = len(self._digests)
        if blocks == 0:
            return ""
        return (self._digests[blocks - 1] if blocks <= settled else self._open_digests()[blocks - settled - 1]).hex()

    def violations(self) -> tuple[Violation, ...]:
        """The wire's `check` of the request as it stands."""
        tail = self._tail()
        return self._check_ahead(tail).violations(under=self._check_head(tail))

    def body(self, ttl: str | None = None) -> Payload:
        """The request with its cache marks. Its messages are shared with the encoder: nobody changes them."""
        start, near = self._window()
        marked = self._wire.mark_cache(self._head(near), ttl, self._key)
        return {**marked, self._way.part: self._items[:start] + marked[self._way.part]}

    def to_bytes(self, ttl: str | None = None) -> bytes:
        """The request with its cache marks as JSON in UTF-8. Raises `ValueError` for what cannot be JSON.

        `ttl` is the lifetime to ask the cache for, as `mark_cache` takes it.
        """
        start, near = self._window()
        opening, raws, closing = [], self._raws[:start], b""
        for key, value in self._wire.mark_cache(self._head(near), ttl, self._key).items():
            if key == self._way.part:
                new = zip(near, value, strict=True)
                raws += [item.raw if item is given else item.raw_marked(given) for item, given in new]
                opening.append(dump_bytes(key) + b":[")
                closing = b"]"
            else:
                opening.append(dump_bytes(key) + b":" + self._write(key, value) + b",")
        front, back = b"{" + b"".join(opening), closing + b"}"
        if not raws:
            return front + back
        raws[0] = front + raws[0]  # so that the long text is copied once, by the join
        raws[-1] += back
        return b",".join(raws)

    def _end_step(self) -> None:
        step = self._encoded_results()
        self._results = []
        checked, self._ahead = self._ahead, None
        if checked is None or self._in_turn or len(checked[0]) != len(step) or any(map(_differ, checked[0], step)):
            for message in step:
                self._add(message)
            return
        self._opened = True
        self._rules = checked[1].merge()
        for message in step:
            self._keep(message)

    def _encoded_results(self) -> Sequence[Encoded]:
        return self._way.encode_unit(tuple(self._results), self._abilities, self._model)

    def _add(self, message: Encoded) -> None:
        role = message.get("role")
        if not self._opened and role not in _SYSTEM_ROLES:
            self._opened = True
            opens = role == "assistant" and not self._way.opens(message)
            opening = self._way.opening(self._abilities) if opens else None
            if opening is not None:
                self._add(opening)
        if not self._in_turn:
            self._part(self._items[-1] if self._items else None, message)
            self._settle(message)
            return
        joined = self._joined(self._newest, message)
        if joined is None:
            if self._newest is not None:
                self._settle(self._newest)
                self._part(self._newest, message)
            joined = message
        self._newest = joined

    def _part(self, before: Encoded | None, after: Encoded) -> None:
        """Settle what has to stand between two neighbours."""
        if before is None or self._way.between is None:
            return
        filler = self._way.between(before, after, self._abilities)
        if filler is not None:
            self._settle(filler)

    @property
    def _in_turn(self) -> bool:
        return self._abilities.strict_alternation and self._way.merge is not None

    def _joined(self, before: Encoded | None, after: Encoded) -> Encoded | None:
        """Both as one message, where the host demands that."""
        merge = self._way.merge if self._abilities.strict_alternation else None
        if merge is None or before is None or before.get("role") != after.get("role"):
            return None
        return merge(before, after) if before.get("role") in _MERGED_ROLES else None

    def _settle(self, message: Encoded) -> None:
        self._keep(message)
        self._rules.feed(message)

    def _keep(self, message: Encoded) -> None:
        self._items.append(message)
        self._raws.append(message.raw)
        before = self._digests[-1] if self._digests else b""
        self._digests += message.rolled(before, self._way.split)

    def _tail(self) -> list[Encoded]:
        """The messages that are not settled."""
        tail = [] if self._newest is None else [self._newest]
        if self._results:
            for message in self._encoded_results():
                joined = self._joined(tail[-1] if tail else None, message)
                tail[-1:] = [joined] if joined is not None else [*tail[-1:], message]
        return tail

    def _open_digests(self) -> list[bytes]:
        before = self._digests[-1] if self._digests else b""
        return list(roll_messages(before, self._tail(), self._way.split))

    def _window(self) -> tuple[int, list[Encoded]]:
        """The messages that marks may stand on, and the place of the first of them."""
        near = self._items[-_WINDOW:]
        return len(self._items) - len(near), near + self._tail()

    def _head(self, near: Sequence[Encoded]) -> Payload:
        body = self._wire.body(
            {**self._lead, self._way.part: near},
            model=self._model,
            max_output=self._max_output,
            abilities=self._abilities,
            thinking=self._thinking,
        )
        if self._compacting is None or not self._compacting.fields:
            return body
        return {**self._compacting.fields, **body}

    def _check_ahead(self, tail: list[Encoded]) -> MessageRules:
        """The check with the messages that are not settled."""
        if not tail:
            return self._rules
        rules = self._rules.fork()
        for message in tail:
            rules.feed(message)
        self._ahead = (tail, rules)
        return rules

    def _check_head(self, tail: list[Encoded]) -> MessageRules:
        """The check of the parts beside the messages: one of them, thinking, hangs on how the messages end."""
        head = self._head([*self._items[-2:], *tail])
        del head[self._way.part]
        if head != self._checked.head:
            self._checked = self._way.rules(head, self._abilities)
        return self._checked

    def _write(self, key: str, value: Any) -> bytes:
        """The bytes of a part beside the messages, kept for the long ones, which hardly ever change."""
        if key not in self._lead:
            return dump_bytes(value)
        kept = self._written.get(key)
        if kept is None or kept[0] != value:
            kept = self._written[key] = (value, dump_bytes(value))
        return kept[1]


def _differ(one: object, other: object) -> bool:
    return one is not other


def encode_bytes(
    messages: Iterable[Message],
    *,
    wire: Wire,
    system: str,
    tools: Sequence[ToolSpec],
    abilities: Abilities,
    model: str,
    max_output: int,
    thinking: str | None = None,
) -> bytes:
    """The finished body for `messages`, with cache marks, as JSON in UTF-8. What is kept with messages is used."""
    encoder = Encoder(
        wire,
        system=system,
        tools=tools,
        abilities=abilities,
        model=model,
        max_output=max_output,
        thinking=thinking,
    )
    encoder.append(messages)
    return encoder.to_bytes()
