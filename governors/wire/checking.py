"""What the wires' checkers share: violations, shapes, text that cannot be sent, and the running state of a check.

A checker takes any value, also one that no encoder would make, and answers with violations. It never raises.
A check is a fold: `MessageRules` is fed with one message after another, so that checking a request with one new
message costs that message.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Self, TypeVar

from .base import Abilities, Violation
from .common import is_clean
from .encoded import Encoded, dump_bytes

#: The rule named when a payload does not have the protocol's shape at all.
SHAPE = "SHAPE"

#: Nesting beyond which JSON parsers give up.
MOST_NESTING = 400

#: Bad values to list before the rest are passed over.
MOST_LISTED = 50


def refused(rule: str, where: str, problem: str) -> Violation:
    """A violation that makes the provider refuse the request."""
    return Violation(rule, "E", where, problem)


def misshapen(where: str, wanted: str, value: Any) -> Violation:
    """A violation of the protocol's shape."""
    return refused(SHAPE, where, f"should be {wanted} and is {_name(value)}")


def _name(value: Any) -> str:
    if value is None:
        return "null"
    return {dict: "an object", list: "a list", str: "text", bool: "a boolean"}.get(type(value), type(value).__name__)


def measure(value: Any, where: str) -> tuple[int, list[Violation]]:
    """The bytes that `value` takes, and whatever keeps it from being JSON in UTF-8: lone surrogates (C1), NaN,
    foreign types."""
    try:
        return len(value.raw if isinstance(value, Encoded) else dump_bytes(value)), []
    except (ValueError, TypeError, RecursionError):  # UnicodeEncodeError is a ValueError
        return 0, list(_search(value, where)) or [refused(SHAPE, where, "cannot be written as JSON")]


def _search(payload: Any, top: str) -> Iterator[Violation]:
    listed = 0
    waiting = [(top, payload, 0)]
    while waiting and listed < MOST_LISTED:
        where, value, depth = waiting.pop()
        problem = _problem(where, value, depth)
        if problem is not None:
            listed += 1
            yield problem
        elif isinstance(value, dict):
            for key, item in value.items():
                if isinstance(key, str) and not is_clean(key):
                    listed += 1
                    yield refused("C1", where, f"the key {key!r} holds a lone surrogate")
                waiting.append((f"{key}" if where == "payload" else f"{where}.{key}", item, depth + 1))
        elif isinstance(value, list | tuple):
            waiting += [(f"{where}[{index}]", item, depth + 1) for index, item in enumerate(value)]


def _problem(where: str, value: Any, depth: int) -> Violation | None:
    if depth > MOST_NESTING:
        return refused(SHAPE, where[:200], f"is nested more than {MOST_NESTING} deep")
    if isinstance(value, str):
        return None if is_clean(value) else refused("C1", where, "holds a lone surrogate, which UTF-8 cannot hold")
    if isinstance(value, float) and not math.isfinite(value):
        return refused(SHAPE, where, f"is {value}, which is not JSON")
    if value is None or isinstance(value, bool | int | float | dict | list | tuple):
        return None
    return misshapen(where, "a JSON value", value)


def text_of(value: Any) -> str:
    """`value` when it is text, else the empty text."""
    return value if isinstance(value, str) else ""


class Names:
    """Ids seen so far. A fork sees those of its original and keeps its own to itself."""

    __slots__ = ("_below", "_own")

    def __init__(self, below: Names | frozenset[str] = frozenset()) -> None:
        self._below = below
        self._own: set[str] = set()

    def __contains__(self, name: str) -> bool:
        return name in self._own or name in self._below

    def add(self, name: str) -> None:
        self._own.add(name)

    def merged(self) -> Names:
        """The original of this fork, with all that the fork has."""
        assert isinstance(self._below, Names), "only a fork has an original"
        self._below._own |= self._own
        return self._below


class MessageRules(ABC):
    """The running state that every wire's check has: what was found, sizes, and the pairing of calls and results.

    Which rule a call without result, or a result without call, breaks is known only at the end: the other half may
    stand where it must not. So both are kept (`unanswered`, `unasked`) until `violations` is asked for.
    """

    part: ClassVar[str] = "messages"

    def __init__(self, head: Mapping[str, Any], abilities: Abilities) -> None:
        self.head = {key: value for key, value in head.items() if key != self.part}
        self.abilities = abilities
        self.head_bytes, self.top = measure(self.head, "payload")
        self.found: list[Violation] = []
        self.position = 0
        self.bytes = 0
        self.images = 0
        self.calls = Names()
        self.answered = Names()
        self.results = Names()
        self.waiting: dict[str, str] = {}
        self.unanswered: list[tuple[str, str]] = []
        self.unasked: list[tuple[str, str]] = []

    def feed(self, message: Any) -> None:
        size, problems = measure(message, f"{self.part}[{self.position}]")
        self.found += problems
        self.found += self.take(message, f"{self.part}[{self.position}]")
        self.bytes += size + 1
        self.position += 1

    @abstractmethod
    def take(self, message: Any, where: str) -> Iterator[Violation]:
        """The rules that the next message breaks."""

    @abstractmethod
    def ending(self) -> Iterator[Violation]:
        """The rules that a request breaks which ends here. Changes nothing."""

    def fork(self) -> Self:
        """A copy, to be fed with messages that may yet change. Costs nothing that grows with the request."""
        forked = duplicate(self)
        forked.found = list(self.found)
        forked.calls, forked.answered, forked.results = Names(self.calls), Names(self.answered), Names(self.results)
        forked.waiting = dict(self.waiting)
        forked.unanswered, forked.unasked = list(self.unanswered), list(self.unasked)
        return forked

    def merge(self) -> Self:
        """This fork in place of its original, which is not to be used any more."""
        self.calls, self.answered, self.results = self.calls.merged(), self.answered.merged(), self.results.merged()
        return self

    def violations(self, under: MessageRules | None = None) -> tuple[Violation, ...]:
        """The rules broken by a request that ends here; `under` the head of another check, if given."""
        head = under or self
        return (*head.top, *self.found, *self.ending(), *self._over_limits(head.head_bytes))

    def _over_limits(self, head_bytes: int) -> Iterator[Violation]:
        able = self.abilities
        for where, what, count, most in (
            (self.part, "messages", self.position, able.max_messages),
            (self.part, "images", self.images, able.max_images),
            ("payload", "bytes", head_bytes + self.bytes, able.max_body_bytes),
        ):
            if count > most:
                yield refused("A12", where, f"{count:,} {what}; this model takes at most {most:,} in a request")

    def image_too_large(self, where: str, data: Any) -> Iterator[Violation]:
        """Count an image; A12 when its base64 text is over the limit."""
        self.images += 1
        if isinstance(data, str) and len(data) > self.abilities.max_image_bytes:
            most = self.abilities.max_image_bytes
            yield refused("A12", where, f"an image of {len(data):,} bytes; this model takes at most {most:,}")

    def document_refused(self, where: str, data: Any) -> Iterator[Violation]:
        """A12 for a document that this model does not take; `data` is its base64 text. How many pages it has does not
        show."""
        most = self.abilities.max_document_bytes
        if not self.abilities.documents:
            yield refused("A12", where, "a document; this model takes none")
        elif not isinstance(data, str) or not data:
            yield refused("A12", where, "a document without data")
        elif len(data) > most:
            yield refused("A12", where, f"a document of {len(data):,} bytes; this model takes at most {most:,}")


Copied = TypeVar("Copied")


def duplicate(state: Copied) -> Copied:
    """A shallow copy; `copy.copy` takes ten times as long."""
    made = object.__new__(type(state))
    made.__dict__.update(state.__dict__)
    return made


def check_whole(payload: Any, rules: type[MessageRules], abilities: Abilities) -> tuple[Violation, ...]:
    """The rules that a whole payload breaks: its head, then message by message."""
    if not isinstance(payload, dict):
        return (misshapen("payload", "an object", payload),)
    running = rules(payload, abilities)
    messages = payload.get(rules.part)
    if not isinstance(messages, list):
        return (*running.top, misshapen(rules.part, "a list", messages))
    for message in messages:
        running.feed(message)
    return running.violations()


def unsorted_tools(names: list[str]) -> Iterator[Violation]:
    """C6: tools in another order than by name. A hint: one that came later in the conversation stands at the end."""
    for index in range(1, len(names)):
        if names[index - 1] > names[index]:
            problem = f"{names[index]!r} stands after {names[index - 1]!r}; sorted tools keep the cache warm"
            yield Violation("C6", "$", f"tools[{index}]", problem)
            return
