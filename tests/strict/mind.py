"""The model behind the strict servers: from a seed, replies as models give them, the odd ones too.

Only what a model does is here (text, thinking, calls, how it ends); a server turns it into its protocol.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

#: Odd arguments: what models wrote where an object was asked for.
ODD = ("", "{", "[1]", "null", '{"size": "\\ud83d"}', '{"size": 3, "size": 4}', '"text"', '{"deep": [[[[{}]]]]}')


@dataclass(frozen=True, slots=True)
class Said:
    """A text of the reply."""

    text: str


@dataclass(frozen=True, slots=True)
class Thought:
    """Reasoning; `hidden` comes only encrypted."""

    text: str
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class Called:
    """`arguments` is JSON text, as the model wrote it."""

    id: str
    name: str
    arguments: str


Part = Said | Thought | Called


@dataclass(frozen=True, slots=True)
class Answer:
    """`end`: stop, calls, length, refusal, or broken (the connection breaks)."""

    parts: tuple[Part, ...]
    end: str = "stop"

    @property
    def size(self) -> int:
        """Tokens, about."""
        return sum(len(getattr(part, "text", "") or getattr(part, "arguments", "")) for part in self.parts) // 4 + 5


class Mind:
    """One model's mind. `wild`: it writes odd arguments, repeats ids, and breaks off."""

    def __init__(self, seed: int, *, wild: bool = True, ids: str = "") -> None:
        self._random = Random(f"mind {seed}")
        self._wild = wild
        self._made = 0
        self._ids = ids or self._random.choice(("unique", "unique", "each turn", "odd"))
        self._calls_left = self._random.randint(0, 4)

    def answer(self, tools: Sequence[str], *, thinks: bool, fresh: bool, can_call: bool = True) -> Answer:
        """What it says next. `fresh`: a person has just spoken."""
        random = self._random
        if fresh:
            self._calls_left = random.choice((0, 0, 1, 1, 2, 3, 5))
            if self._ids == "each turn":
                self._made = 0
        parts: list[Part] = []
        if thinks and random.random() < 0.8:
            for _ in range(random.choice((1, 1, 1, 2))):
                parts.append(Thought(self._text(random.choice((0, 20, 200))), hidden=random.random() < 0.15))
        if self._wild and random.random() < 0.06:
            return self._odd_end(parts)
        if tools and can_call and self._calls_left > 0:
            self._calls_left -= 1
            if random.random() < 0.5:
                parts.append(Said(self._text(40)))
            calls = [self._call(tools) for _ in range(random.choice((1, 1, 2, 3, 5)))]
            if len(calls) > 1 and self._wild and random.random() < 0.15:
                calls[-1] = Called(calls[0].id, calls[-1].name, calls[-1].arguments)
            if thinks and len(calls) > 1 and random.random() < 0.3:  # it thinks between its calls
                return Answer((*parts, calls[0], Thought(self._text(30)), *calls[1:]), "calls")
            return Answer((*parts, *calls), "calls")
        parts.append(Said(self._text(random.choice((5, 60, 400)))))
        return Answer(tuple(parts))

    def _odd_end(self, parts: list[Part]) -> Answer:
        kind = self._random.choice(("length", "length", "refusal", "broken", "only thinking", "blank"))
        if kind == "only thinking" and parts:
            return Answer(tuple(parts), "length")
        if kind == "blank":
            return Answer((*parts, Said(self._random.choice((" ", "\n\n", "\u200b")))))
        end = kind if kind in ("length", "refusal", "broken") else "stop"
        return Answer((*parts, Said(self._text(50))), end)

    def _call(self, tools: Sequence[str]) -> Called:
        random = self._random
        self._made += 1
        name = random.choice(list(tools))
        arguments = json.dumps({"size": random.choice((0, 1, 30, 300, 3000)), "seed": random.randrange(1000)})
        if self._wild and random.random() < 0.08:
            arguments = random.choice(ODD)
        if self._wild and random.random() < 0.03:
            name = random.choice(("no_such_tool", "functions.work", "a b", "x" * 80))
        return Called(self._id(), name, arguments)

    def _id(self) -> str:
        if self._ids == "each turn":
            return f"call_{self._made}"
        if self._ids == "odd":
            return self._random.choice(
                (f"functions.work:{self._made}", "", f"x{self._made}" + "y" * 70, "1", f"é{self._made}")
            )
        return f"call_{self._random.randrange(16**12):012x}"

    def _text(self, length: int) -> str:
        words = ("one", "zwei", "trois", "四", "пять", "😀", "so", "the", "log", "is", "true", "<|endoftext|>", "\n")
        return " ".join(self._random.choice(words) for _ in range(length // 4)) if length else ""
