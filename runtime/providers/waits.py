"""How long a provider asks to wait: in headers, in the body, or in words. Pure.

A figure that is no number, or further off than a day, comes from a broken server or clock: it counts as none, or as a
day.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime
from math import isfinite
from typing import Any

LONGEST = 86_400.0  # seconds

_IN_WORDS = re.compile(
    r"(?:try again|retry) (?:in|after) (?=\d)(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+(?:\.\d+)?) ?(ms|s|seconds?)\b)?",
    re.IGNORECASE,
)


def asked_wait(headers: Mapping[str, str], fields: Mapping[str, Any], message: str, now: float) -> float | None:
    """Seconds to wait; `fields` is the error object of the body, `message` its words, `now` seconds since 1970."""
    told = retry_after(headers, now)
    return told or _in_fields(fields) or _in_words(message) or told


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds to wait, from `retry-after-ms` or `Retry-After` (seconds or a date, RFC 9110 10.2.3)."""
    lower = {key.lower(): value.strip() for key, value in headers.items()}
    for name, seconds in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            return _bounded(float(lower[name]) * seconds)
        except (KeyError, ValueError):
            continue
    try:
        moment = parsedate_to_datetime(lower.get("retry-after", ""))
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return _bounded(moment.timestamp() - now)
    except (ValueError, TypeError, OverflowError):
        return None


def _in_fields(fields: Mapping[str, Any]) -> float | None:
    """Gemini tells the wait in the body: `details[].retryDelay`, such as `34s`."""
    details = fields.get("details")
    for each in details if isinstance(details, list) else ():
        told = each.get("retryDelay") if isinstance(each, Mapping) else None
        if isinstance(told, str) and re.fullmatch(r"\d+(\.\d+)?s", told):
            return _bounded(float(told[:-1]))
    return None


def _in_words(message: str) -> float | None:
    """As OpenAI and Groq write it: `Please try again in 1m2.5s`."""
    found = _IN_WORDS.search(message)
    if found is None:
        return None
    hours, minutes, rest, unit = found.groups()
    if not (hours or minutes or rest):
        return None
    seconds = float(rest or 0) * (0.001 if unit == "ms" else 1.0)
    return _bounded(3_600.0 * float(hours or 0) + 60.0 * float(minutes or 0) + seconds)


def _bounded(seconds: float) -> float | None:
    return min(LONGEST, max(0.0, seconds)) if isfinite(seconds) else None
