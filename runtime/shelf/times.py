"""What a person means by `--since` and `--until`. Pure: the time that it is comes in."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from ..errors import MoonwakeError

_AGE = re.compile(r"(\d{1,6})\s*(h|d|w)")
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_HOURS = {"h": 1, "d": 24, "w": 168}


def moment_asked(text: str, now: datetime) -> datetime:
    """A date, a time (without a zone: local), or an age such as `7d`. Raises `MoonwakeError`."""
    age = _AGE.fullmatch(text.strip().lower())
    try:
        if age is not None:
            return now - timedelta(hours=int(age[1]) * _HOURS[age[2]])
        found = datetime.fromisoformat(text.strip())
    except (ValueError, OverflowError):
        raise MoonwakeError(
            f"{text!r} is no time: give a date (2026-11-30), a time (2026-11-30T18:00), or an age (12h, 7d, 4w)"
        ) from None
    return found if found.tzinfo is not None else found.replace(tzinfo=now.tzinfo)


def moment_asked_until(text: str, now: datetime) -> datetime:
    """The same for an end: a day counts as a whole. Raises `MoonwakeError`."""
    found = moment_asked(text, now)
    return found + timedelta(days=1) if _DAY.fullmatch(text.strip()) else found
