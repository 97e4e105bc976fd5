"""Reads the arguments of a call as the model wrote them. Pure.

Laws: every JSON object parses to itself; no strict prefix of one parses (a call that was cut off in the stream
must not run on half its arguments). Two slips of models are repaired, as they have one reading only: a backslash
that opens no JSON escape (`"C:\\path"` or a regex `\\d` written with one backslash) stands for itself, and a raw
line break inside a string is a line break.
"""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

from ..errors import ToolError

_AROUND = 30  # characters shown on each side of a fault
_ESCAPE = re.compile(r'\\(?P<valid>["\\/bfnrt]|u[0-9a-fA-F]{4})?')


def parse_arguments(text: str) -> dict[str, Any]:
    """The JSON object in `text`; empty text is an object without members. Raises `ToolError` for all else."""
    if not text.strip():
        return {}
    try:
        value = _decoder.decode(text)
    except json.JSONDecodeError as first:
        repaired = _ESCAPE.sub(lambda escape: escape[0] if escape["valid"] else "\\\\", text)
        if repaired == text:
            raise _broken(text, first) from None
        try:
            value = _decoder.decode(repaired)
        except json.JSONDecodeError:
            raise _broken(text, first) from None
        except (ValueError, RecursionError) as error:
            raise _unusable(error) from None
    except (ValueError, RecursionError) as error:
        raise _unusable(error) from None
    if not isinstance(value, dict):
        raise ToolError(
            f'the arguments must be one JSON object, like {{"name": "value"}}, not {_kind(value)}; nothing was run. '
            "Send the call again"
        )
    return value


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


# `strict=False` lets raw line breaks and tabs stand inside strings.
_decoder = json.JSONDecoder(strict=False, parse_constant=_no_constant)


def _broken(text: str, error: json.JSONDecodeError) -> ToolError:
    position = error.pos
    before = text[max(0, position - _AROUND) : position]
    after = text[position : position + _AROUND]
    cut_off = " It seems to have been cut off before its end." if _ends_open(text, error) else ""
    return ToolError(
        f"the arguments are broken JSON: {error.msg} at character {position} of {len(text)}, here: "
        f"{before}⟨here⟩{after}.{cut_off} Nothing was run. Send the whole call again, with one complete JSON object"
    )


def _ends_open(text: str, error: json.JSONDecodeError) -> bool:
    return error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string")


def _unusable(error: Exception) -> ToolError:
    why = "they are nested too deeply" if isinstance(error, RecursionError) else str(error)
    return ToolError(f"the arguments cannot be read as JSON: {why}. Nothing was run. Send the call again")


def _kind(value: object) -> str:
    if value is None:
        return "null"
    return {bool: "a boolean", str: "a string", list: "an array"}.get(type(value), "a number")
