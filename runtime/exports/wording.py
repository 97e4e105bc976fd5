"""How exports word times, sizes, money and calls, and how they show what could disturb a reader. Pure."""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import Any

from governors.messages import UNFINISHED, Document, Image, Text, Usage
from governors.scrub import scrub

from .transcript import Answer, Called, Said, Transcript

_RETURNS = re.compile("\r\n?")
_CONTROLS = re.compile("[\0-\x08\x0b-\x1f\x7f]")
_STEERING = re.compile("[\x80-\x9f\u202a-\u202e\u2066-\u2069]")  # C1 codes, and what turns the writing direction
_LONGEST_VALUE = 60
_MAIN = ("path", "command", "pattern", "name", "query", "url")  # what names a call best


def visible(text: str) -> str:
    """`text` with each control character as the picture of it, so that none acts on whoever shows it."""
    text = _RETURNS.sub("\n", scrub(text))
    text = _CONTROLS.sub(lambda found: chr(0x2400 + ord(found[0])) if found[0] != "\x7f" else "\u2421", text)
    return _STEERING.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", text)


def one_line(text: str, limit: int = 120) -> str:
    """`text` on one line, in at most `limit` characters."""
    flat = " ".join(visible(text[: 8 * limit]).split())
    return flat if len(flat) <= limit else flat[: limit - 1].rstrip() + "…"


def moment(at: str) -> str:
    """A time of the log for people: `2026-11-30 18:00:01 UTC`; as it stands when it is no time."""
    try:
        found = datetime.fromisoformat(at)
    except ValueError:
        return one_line(at, 40)
    zone = found.strftime("%z")
    return found.strftime("%Y-%m-%d %H:%M:%S") + (" UTC" if zone in ("+0000", "") else f" {zone}")


def dollars(cost: float) -> str:
    """`$0.0042`, `$1.37`."""
    return f"${cost:.4f}" if 0 < cost < 0.1 else f"${cost:.2f}"


def cost_line(cost: float | None) -> str:
    return "unknown" if cost is None else dollars(cost)


def tokens(usage: Usage) -> str:
    """`1,234 in (80 % from cache), 56 out`."""
    cached = f" ({100 * usage.cache_read // usage.prompt} % from cache)" if usage.cache_read and usage.prompt else ""
    return f"{usage.prompt:,} in{cached}, {usage.output:,} out"


def plural(count: int, noun: str, many: str | None = None) -> str:
    return f"{count:,} {noun if count == 1 else many or noun + 's'}"


def call_title(call: Called) -> str:
    """A call in a few words: `read_file notes.md`, `grep TODO path=src`."""
    tool = one_line(call.tool, 64)
    try:
        parsed: Any = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError):
        return f"{tool} {one_line(call.arguments, _LONGEST_VALUE)}".rstrip()
    if not isinstance(parsed, dict):
        parsed = {"arguments": parsed}
    main = next((key for key in _MAIN if isinstance(parsed.get(key), str)), None)
    told = [] if main is None else [_value(parsed.pop(main))]
    return " ".join([tool, *told, *(f"{one_line(key, 30)}={_value(value)}" for key, value in parsed.items())])


def _value(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return one_line(text, _LONGEST_VALUE) or '""'


def arguments(call: Called) -> str:
    """The arguments of a call, laid out when they are JSON."""
    try:
        return json.dumps(json.loads(call.arguments or "{}"), ensure_ascii=False, indent=2)
    except (ValueError, RecursionError):
        return call.arguments


def outcome(call: Called) -> str:
    """How a call went, in a few words."""
    if not call.complete:
        return "cut off, never run"
    if call.answer is None:
        return "its result stands further down" if call.answered else "no result"
    return result_size(call.answer)


def result_size(answer: Answer) -> str:
    """How much a tool gave back, and how long it took."""
    text = "".join(part.text for part in answer.content if isinstance(part, Text))
    lines = text.strip("\n").count("\n") + 1
    size = plural(lines, "line") if text.strip() else "no text"
    pictures = sum(isinstance(part, Image) for part in answer.content)
    documents = sum(isinstance(part, Document) for part in answer.content)
    told = ["failed"] if answer.is_error else []
    told.append(size)
    told += [plural(pictures, "picture")] if pictures else []
    told += [plural(documents, "document")] if documents else []
    told += [f"{answer.seconds:.1f} s"] if answer.seconds is not None else []
    return ", ".join(told)


def speaker(said: Said) -> str:
    """Who said it: `You`, or the model."""
    return "You" if said.who == "user" else one_line(said.model or "model", 60)


def details(said: Said) -> tuple[str, ...]:
    """What a reader may want to know of a message beside its words."""
    told = ["joined a running turn"] if said.steered else []
    if said.stop in UNFINISHED:
        told.append(f"did not finish ({said.stop})")
    elif said.stop == "length":
        told.append("cut off at the output limit")
    told += [dollars(said.cost)] if said.cost else []
    return (*told, *(one_line(tag) for tag in said.tags))


def facts(shown: Transcript) -> tuple[tuple[str, str], ...]:
    """What stands at the top of an export: pairs of a name and a value."""
    header = shown.header
    origin = header.origin or {}
    told = [("session", header.id), ("agent", header.agent), ("created", moment(header.created))]
    told += [("channel", header.channel)] if header.channel else []
    if origin.get("kind") == "fork":
        told.append(("forked from", f"{origin.get('session')}, entry {origin.get('entry')}"))
    elif origin:
        told.append((f"{origin.get('kind', 'origin')}", str(origin.get("format") or origin.get("path") or "")))
    told += [("models", ", ".join(shown.models))] if shown.models else []
    if shown.usage.total:
        told += [("tokens", tokens(shown.usage)), ("cost", cost_line(shown.cost))]
    told += [("tags", ", ".join(shown.tags))] if shown.tags else []
    state = [name for name, on in (("pinned", shown.pinned), ("archived", shown.archived)) if on]
    told += [("state", ", ".join(state))] if state else []
    told += [("redacted", plural(shown.redacted, "entry", "entries"))] if shown.redacted else []
    told += [("branches", str(len(shown.branches)))] if len(shown.branches) > 1 else []
    told += [("damage", "; ".join(shown.problems))] if shown.problems else []
    return tuple((name, one_line(value, 300)) for name, value in told)
