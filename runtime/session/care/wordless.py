"""Parts of entries, as they stand in lines, without the words that somebody put there. Pure.

Laws: what a part is stays, so that every reader goes on reading it; done again it changes nothing.
"""

from __future__ import annotations

import json
from typing import Any

ERASED = "[erased]"

#: The fields of a part that are nobody's words, by its type. The name of a document is somebody's.
NO_WORDS = {
    "call": ("type", "id", "name"),
    "image": ("type", "media_type"),
    "document": ("type", "media_type", "pages"),
}


def arguments_of(text: str) -> Any:
    """What a call was given."""
    try:
        return json.loads(text)
    except ValueError:
        return None


def without_words(part: Any) -> Any:
    """A part of a content: of a call, what was called and under which id stays. Whether a text said anything stays."""
    kind = part.get("type")
    if kind == "call":
        kept = {name: part[name] for name in ("type", "id", "name") if name in part}
        return {**kept, "arguments": "{}", **({"complete": part["complete"]} if "complete" in part else {})}
    if kind == "thinking":
        return {"type": "thinking", "text": ""}
    text = part.get("text") if kind == "text" else None
    return {"type": "text", "text": text if isinstance(text, str) and not text.strip() else ERASED}


def without_value(change: Any) -> Any:
    """What a hook changed of a body, without the words that it put there."""
    if not isinstance(change, dict) or not _has_words(change.get("value")):
        return change
    return {**change, "value": ERASED}


def _has_words(value: Any) -> bool:
    if isinstance(value, dict | list):
        return bool(value)
    return isinstance(value, str)
