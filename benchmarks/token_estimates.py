"""How near the token estimates come to what providers really counted, on recorded sessions of pi.

    python benchmarks/token_estimates.py FOLDER [--family 1.45]

FOLDER holds pi session files (`.jsonl` or `.jsonl.gz`, formats 1 and 3) with text and usage. Each request is estimated
before its usage is looked at, in four ways:

    anchored    the last reply's usage, and what is new since
    learned     without an anchor, by what this session's usage taught so far
    elsewhere   without an anchor, by what other files of the same family of models taught, and nothing else
    family      without an anchor, by the family's factor alone: the upper bound that reservations start from

System prompt and tools are not recorded: their size is fitted from the first usage. Errors are a percentage of the
real prompt; `under` is the worst estimate below it, `over` the worst above it.
Targets: anchored at most 2 % under, with a median below 1 %; family never under.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any

from governors.estimate import Estimator
from governors.estimate_count import Count, messages_count
from governors.messages import (
    UNFINISHED,
    AssistantMessage,
    AssistantPart,
    Message,
    StopReason,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
    UserMessage,
)
from governors.tokens import TiktokenCounter, load_vocabulary, scaled

WAYS = ("anchored", "learned", "elsewhere", "family")
STOPS: dict[str, StopReason] = {"toolUse": "tool_use", "length": "length", "aborted": "aborted", "error": "error"}
COUNTER = TiktokenCounter()


@dataclass(frozen=True)
class Cut:
    """A compaction: messages before the entry `first` gave way to `summary`."""

    first: int
    summary: str


@dataclass
class Replay:
    """What came out: errors by the way of estimating, and the estimator as the session left it."""

    errors: dict[str, list[float]] = field(default_factory=lambda: {way: [] for way in WAYS})
    estimator: Estimator | None = None
    models: str = ""  # the family of its models: the first word of their name


def session(path: Path) -> list[tuple[int, Message | Cut]] | None:
    """The messages and cuts of a pi session by the index of their line; None when it is something else."""
    raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    entries = [json.loads(line) for line in raw.decode().split("\n") if line.strip()]
    if not entries or entries[0].get("type") != "session" or "cwd" not in entries[0]:
        return None
    places = {entry["id"]: index for index, entry in enumerate(entries) if "id" in entry}
    return [(index, item) for index, entry in enumerate(entries) if (item := _item(entry, places)) is not None]


def _item(entry: dict[str, Any], places: dict[str, int]) -> Message | Cut | None:
    if entry["type"] == "compaction":
        first = entry.get("firstKeptEntryIndex")
        return Cut(places[entry["firstKeptEntryId"]] if first is None else first, entry["summary"])
    return _message(entry["message"]) if entry["type"] == "message" else None


def _message(plain: dict[str, Any]) -> Message | None:
    content = plain.get("content", ())
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    match plain["role"]:
        case "user":
            return UserMessage(_texts(parts))
        case "toolResult":
            return ToolResult(plain["toolCallId"], plain["toolName"], _texts(parts), plain["isError"])
        case "bashExecution":
            return UserMessage((Text(f"Ran `{plain['command']}`\n```\n{plain['output']}\n```"),))
        case "assistant":
            stop = STOPS.get(plain["stopReason"], "stop")
            reply = AssistantMessage(tuple(_part(part) for part in parts), stop, plain["model"])
            return replace(reply, usage=_usage(plain.get("usage") or {}))
    return None


def _texts(parts: list[dict[str, Any]]) -> tuple[Text, ...]:
    return tuple(Text(part["text"]) for part in parts if part["type"] == "text")


def _part(part: dict[str, Any]) -> AssistantPart:
    if part["type"] == "text":
        return Text(part["text"])
    if part["type"] == "thinking":
        return Thinking(part["thinking"], part.get("thinkingSignature"))
    arguments = json.dumps(part["arguments"], ensure_ascii=False, separators=(",", ":"))
    return ToolCall(part["id"], part["name"], arguments)


def _usage(plain: dict[str, Any]) -> Usage:
    return Usage(
        plain=plain.get("input", 0),
        cache_read=plain.get("cacheRead", 0),
        cache_write_5m=plain.get("cacheWrite", 0),
        output=plain.get("output", 0),
        reasoning=plain.get("reasoning", 0) or 0,
    )


def requests(items: list[tuple[int, Message | Cut]]) -> Iterator[tuple[list[Message], AssistantMessage, bool]]:
    """Each request that has a usage: what was sent, the reply, and whether a cut came since the last one."""
    context: list[Message] = []
    moved = False
    for index, item in items:
        if isinstance(item, Cut):
            kept = [each for at, each in items if item.first <= at < index and not isinstance(each, Cut)]
            summary = UserMessage((Text(f"<summary>\n{item.summary}\n</summary>"),))
            context = [summary, *(each for each in kept if _sent(each))]
            moved = True
            continue
        if isinstance(item, AssistantMessage) and item.usage is not None and item.usage.prompt > 0:
            yield context, item, moved
            moved = False
        if _sent(item):
            context = [*context, item]


def _sent(message: Message) -> bool:
    return not (isinstance(message, AssistantMessage) and message.stop in UNFINISHED)


def replay(items: list[tuple[int, Message | Cut]], family: float, taught: Estimator | None) -> Replay:
    done = Replay()
    known = Estimator(family, COUNTER.key)
    fixed: Count | None = None
    for context, reply, moved in requests(items):
        assert reply.usage is not None
        messages, real = messages_count(context, COUNTER, reply.model), reply.usage.prompt
        if fixed is None:
            fixed = Count(known=max(real - messages.known - scaled(messages.counted, family), 0))
            done.models = (reply.model or "").split("-")[0]
        request = fixed + messages
        known = known.moved() if moved else known
        guesses = {
            "anchored": known.estimate(request) if known.anchor else None,
            "learned": known.moved().estimate(request),
            "elsewhere": taught.moved().estimate(request) if taught else None,
            "family": Estimator(family, COUNTER.key).estimate(request),
        }
        for way, guess in guesses.items():
            if guess is not None:
                done.errors[way].append((guess - real) / real * 100)
        known = known.observe(reply, request, COUNTER)
    done.estimator = known
    return done


def taught_by(others: list[Replay], family: float) -> Estimator:
    """What several sessions taught together: their ratios, in the order of the files."""
    whole = tuple(ratio for other in others if other.estimator for ratio in other.estimator.whole)
    chunks = tuple(ratio for other in others if other.estimator for ratio in other.estimator.chunks)
    return Estimator(family, COUNTER.key, whole=whole, chunks=chunks)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--family", type=float, default=1.45, help="the catalog's factor for the recorded models")
    options = parser.parse_args()
    load_vocabulary()
    paths = sorted(path for path in options.folder.iterdir() if path.name.endswith((".jsonl", ".jsonl.gz")))
    sessions = {path.name: items for path in paths if (items := session(path)) is not None}
    if not sessions:
        sys.exit(f"{options.folder} holds no pi session files (.jsonl or .jsonl.gz).")
    print(f"{'file':32} {'way':10} {'requests':>8} {'median':>8} {'under':>8} {'over':>8}")
    alone = {name: replay(items, options.family, None) for name, items in sessions.items()}
    pooled = Replay()
    for name, items in sessions.items():
        others = [other for each, other in alone.items() if each != name and other.models == alone[name].models]
        done = replay(items, options.family, taught_by(others, options.family) if others else None)
        show(name, done)
        for way, errors in done.errors.items():
            pooled.errors[way] += errors
    show("all", pooled)


def show(name: str, done: Replay) -> None:
    for way, errors in done.errors.items():
        if errors:
            middle = median(abs(error) for error in errors)
            under, over = max(0.0, -min(errors)), max(0.0, max(errors))
            print(f"{name:32} {way:10} {len(errors):8} {middle:7.2f}% {under:7.2f}% {over:7.2f}%")
    if done.estimator is not None:
        print(f"{name:32} learned bound {done.estimator.bound:.3f}, for additions {done.estimator.fresh_bound:.3f}")


if __name__ == "__main__":
    main()
