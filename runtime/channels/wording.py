"""How calls, sizes, times and money are worded in a conversation. Pure; everything comes out clean and on one line."""

from __future__ import annotations

import json
from typing import Any

from .sanitize import clean, one_line

_LONGEST_VALUE = 60
_MAIN = ("path", "command", "pattern", "name", "query", "url")  # what names a call best, shown without its key


def call_title(tool: str, arguments: str) -> str:
    """A call in a few words: `read_file notes.md`, `grep TODO path=src`."""
    try:
        parsed: Any = json.loads(arguments or "{}")
    except (ValueError, RecursionError):
        return f"{one_line(tool, 64)} {one_line(arguments, _LONGEST_VALUE)}".rstrip()
    if not isinstance(parsed, dict):
        parsed = {"arguments": parsed}
    main = next((key for key in _MAIN if isinstance(parsed.get(key), str)), None)
    words = [one_line(tool, 64)]
    if main is not None:
        words.append(_value(parsed.pop(main)))
    words.extend(f"{one_line(key, 30)}={_value(value)}" for key, value in parsed.items())
    return " ".join(words)


def _value(value: Any) -> str:
    if not isinstance(value, str):
        return one_line(json.dumps(value, ensure_ascii=False), _LONGEST_VALUE)
    lines = value.strip("\n").count("\n") + 1
    if lines > 1 and len(value) > _LONGEST_VALUE:
        return f"({lines} lines)"
    return one_line(value, _LONGEST_VALUE) or '""'


def result_size(text: str) -> str:
    """How much a tool gave back: `no output`, `1 line`, `120 lines`."""
    if text.strip() in ("", "(no output)"):
        return "no output"
    lines = text.strip("\n").count("\n") + 1
    return "1 line" if lines == 1 else f"{lines:,} lines"


def first_line(text: str, limit: int = 200) -> str:
    """The first line of `text` that says something."""
    return next((one_line(line, limit) for line in clean(text[:10_000]).splitlines() if line.strip()), "")


def seconds(value: float) -> str:
    """`0.1 s`, `12 s`, `2 min 5 s`."""
    if value < 9.95:
        return f"{max(0.0, value):.1f} s"
    whole = round(value)
    return f"{whole} s" if whole < 60 else f"{whole // 60} min {whole % 60} s"


def whole_seconds(value: float) -> str:
    """A running time, which should not flicker: `3 s`, `1 min 2 s`."""
    whole = max(0, int(value))
    return f"{whole} s" if whole < 60 else f"{whole // 60} min {whole % 60} s"


def tokens(count: int) -> str:
    """`950`, `1.2k`, `128k`, `1M`."""
    if count < 1_000:
        return str(count)
    if count < 999_500:
        return f"{count / 1_000:.1f}k" if count < 9_950 else f"{count / 1_000:.0f}k"
    return f"{count / 1_000_000:.1f}".removesuffix(".0") + "M"


def dollars(cost: float) -> str:
    """`$0.0042`, `$1.37`."""
    return f"${cost:.4f}" if 0 < cost < 0.1 else f"${cost:.2f}"


def retried(why: str, delay: float, attempt: int) -> str:
    """Why a call waits `delay` seconds, and for which attempt; attempt 1 waits for its turn."""
    if attempt <= 1:
        return one_line(why)
    return f"{one_line(why).rstrip('.')}. Attempt {attempt} in {seconds(delay)}."


def plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
