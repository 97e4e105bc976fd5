"""Conversations that grow, with everything that goes wrong in them, from a seed.

Every real result says which call it belongs to, so that a test can tell whether it was put in the right place:
`Story.truth` holds for each text what may be claimed of it. Three kinds:

- `unique`: every call has an id of its own; results come late, before their call, twice, or never.
- `restarted`: the calls of every reply are call_0, call_1, ...; results come in any order within their step, and in
  a story some twice or some never (both in one cannot be told apart).
- `wild`: anything at all; nothing is claimed of who answers what.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from governors.messages import (
    AssistantMessage,
    AssistantPart,
    Image,
    Message,
    StopReason,
    SystemPatch,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    ToolSpec,
    Usage,
    UserMessage,
    UserPart,
)

TOOLS = ("read_file", "exec", "grep", "write_file", "unheard_of")
KINDS = ("unique", "unique", "restarted", "wild")
_IDS = ("call_0", "call_0", "call_1", " call_0 ", "abcdefghi", "call_0-2-0", "", "   ", "t" * 65, "x:0", "half\ud800")
_ARGUMENTS = ('{"n": %d}', '{"n": %d, "path": "x"}')
_BROKEN = ("", "null", "[1]", '{"recap": "', '{"n": NaN}', '{"text": "\\ud99c"}', '{"text": "two\nlines"}')
_TEXTS = ("", " ", "\n\t", "ok", "日本語", "<|endoftext|>", "high \ud83d", "\ude00 low", "yes", "a longer text " * 20)
_STOPS: tuple[StopReason, ...] = ("error", "aborted", "deferred", "refused", "length")


@dataclass(slots=True)
class Story:
    """`messages` in the order in which they came. `truth`: the text of a real result -> the number of its call."""

    kind: str
    doubles: bool = True
    messages: list[Message] = field(default_factory=list)
    truth: dict[str, int] = field(default_factory=dict)


def tool_specs(random: Random) -> list[ToolSpec]:
    """None, or those that the conversations know, the first ones bulky."""
    if random.random() < 0.4:
        return []
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    names = sorted(TOOLS[: random.randint(2, 4)])
    return [ToolSpec(name, "Does it.", schema, read_only=name != "exec", bulky=name != "write_file") for name in names]


def story(random: Random, length: int, *, model: str | None, wire: str) -> Story:
    """A conversation of at least `length` messages."""
    told = Story(random.choice(KINDS), random.random() < 0.5)
    tell = _wild if told.kind == "wild" else _step
    late: list[Message] = []
    number = 0
    while len(told.messages) < length:
        if random.random() < 0.25 or not told.messages:
            told.messages.append(_user(random))
        elif random.random() < 0.05:
            told.messages.append(SystemPatch(random.choice(_TEXTS)))
        elif random.random() < 0.2:
            told.messages.append(_reply(random, [Text(_text(random))], "stop", model, wire))
        else:
            number = tell(random, told, number, late, model, wire)
        while late and random.random() < 0.3:
            told.messages.append(late.pop(random.randrange(len(late))))
    return told


def batches(random: Random, messages: Sequence[Message]) -> list[list[Message]]:
    """`messages` as they may arrive: one by one, step by step, or many at once."""
    most = random.choice((1, 2, 4, 12))
    parts: list[list[Message]] = []
    start = 0
    while start < len(messages):
        end = start + random.randint(1, most)
        parts.append(list(messages[start:end]))
        start = end
    return parts


def _step(random: Random, told: Story, number: int, late: list[Message], model: str | None, wire: str) -> int:
    """A reply with calls, and its results as far as they come in time."""
    count = random.choice((1, 1, 1, 2, 3))
    restarted = told.kind == "restarted"
    calls: list[AssistantPart] = []
    results: list[Message] = []
    broken = random.random() < 0.1
    for each in range(count):
        number += 1
        name = random.choice(TOOLS)
        identity = f"call_{each}" if restarted else f"id_{number}"
        complete = not (broken and each == count - 1)
        calls.append(ToolCall(identity, name, random.choice(_ARGUMENTS) % number, complete))
        results.append(_result(random, told, identity, name, number))
        if random.random() < 0.1 and (told.doubles or not restarted):
            results.append(results[-1])
        if random.random() < 0.1 and not restarted:
            late.append(results.pop())
    stop: StopReason = random.choice(_STOPS) if broken else "tool_use"
    thinking = [Thinking(_text(random), random.choice((None, f"signed{number}")))] if random.random() < 0.3 else []
    reply = _reply(random, [*thinking, *calls], stop, model, wire)
    if random.random() < 0.3:
        random.shuffle(results)
    if random.random() < 0.1 and results and not (told.doubles and restarted):
        results.pop()
    between: list[Message] = [_user(random)] if random.random() < 0.1 and not restarted else []
    before = [results.pop(0)] if results and random.random() < 0.05 and not restarted else []
    cut = random.randint(0, len(results))
    told.messages += [*before, reply, *results[:cut], *between, *results[cut:]]
    return number


def _wild(random: Random, told: Story, number: int, late: list[Message], model: str | None, wire: str) -> int:
    """A reply or a result that fits nothing in particular."""
    number += 1
    if random.random() < 0.5:
        result = _result(random, told, random.choice(_IDS), random.choice((*TOOLS, "", "to\ud800ol")), number)
        told.messages.append(result)
        if random.random() < 0.2:
            late.append(result)
        return number
    parts: list[AssistantPart] = []
    for _ in range(random.randint(0, 4)):
        arguments = random.choice((*_ARGUMENTS, *_BROKEN))
        arguments = arguments % number if "%" in arguments else arguments
        name, complete = random.choice((*TOOLS, "", "na\ud800me")), random.random() < 0.85
        signature = random.choice((None, None, "sig", "si\ud800gned"))
        parts.append(
            random.choice(
                (
                    Text(random.choice(_TEXTS)),
                    Thinking(random.choice(_TEXTS), signature),
                    ToolCall(random.choice(_IDS), name, arguments, complete, signature),
                    ToolCall(random.choice(_IDS), name, arguments, complete),
                )
            )
        )
    stop = random.choice(("stop", "tool_use", "tool_use", *_STOPS))
    told.messages.append(_reply(random, parts, stop, model, wire))
    return number


def _reply(
    random: Random, parts: Sequence[AssistantPart], stop: StopReason, model: str | None, wire: str
) -> AssistantMessage:
    return AssistantMessage(tuple(parts), stop, random.choice((model, model, "another")), random.choice((wire, None)))


def _result(random: Random, told: Story, identity: str, tool: str, number: int) -> ToolResult:
    text = f"result {number} " + _filler(random)
    told.truth[text] = number
    parts: list[UserPart] = [Text(text)]
    if random.random() < 0.1:
        parts.append(_image(random))
    if random.random() < 0.02:
        parts = []
    stand_in = told.kind == "wild" and random.random() < 0.1
    return ToolResult(identity, tool, tuple(parts), random.random() < 0.1, stand_in)


def _user(random: Random) -> UserMessage:
    parts: list[UserPart] = [Text(_text(random)) for _ in range(random.choice((0, 1, 1, 1, 2)))]
    parts += [_image(random) for _ in range(random.choice((0, 0, 0, 0, 1, 2)))]
    return UserMessage(tuple(parts))


def _image(random: Random) -> Image:
    return Image(
        "image/png", f"iVBORw0KGgo{random.randrange(10**6):06}==", *random.choice(((None, None), *[(60, 50)] * 9))
    )


def _text(random: Random) -> str:
    return random.choice(_TEXTS) + random.choice(("", f" {random.randrange(10**6)}"))


def _filler(random: Random) -> str:
    return random.choice(("", "x" * 40, "lines\n" * 100, "much text " * random.randint(60, 400), "日本\ud800 " * 100))


def usage_of(random: Random, tokens: int) -> Usage | None:
    """What a provider may say of a prompt that we hold for one of `tokens`."""
    return random.choice((None, Usage(plain=int(tokens * random.uniform(0.5, 1.0)), output=5), Usage(plain=9 * tokens)))


def number_of(call: ToolCall) -> int | None:
    """The number of a call of a story."""
    try:
        value = json.loads(call.arguments)
    except ValueError:
        return None
    return value.get("n") if isinstance(value, dict) else None
