"""What a provider's own compaction is asked for with, and how what it made goes back (A11, O4).

An item is opaque: it goes back as it came, first of all messages, to whoever can read it. Everyone else reads the
content of its message. Laws:
- What goes back is a function of the item alone; what the protocol has no place for on the way in is left out.
- On Anthropic the block is a message of the assistant's; on OpenAI an item without its id, as nothing is stored there.

Field names: the types of the official SDKs (anthropic 2.14, `compaction`; openai 3.57, `compaction_trigger`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..messages import CompactionItem, Text, UserMessage
from ..scrub import scrub
from .base import Abilities, Payload
from .common import dump, scrub_json
from .encoded import Encoded

KIND = "compaction"

#: What goes back of an item, on each wire.
FIELDS: Mapping[str, tuple[str, ...]] = {
    "anthropic": ("type", "content", "encrypted_content", "signature", "tool_changes"),
    "openai_responses": ("type", "encrypted_content"),
}

#: Wires on which nothing may stand before an item (A11); on the others users' words may (O4).
ALWAYS_FIRST = frozenset({"anthropic"})

#: What other models read of an item that holds no readable text.
UNREADABLE = (
    "[What was said before was folded by the provider's own compaction, which only models of its vendor can read. "
    "It can be read back with the tool `recall`.]"
)

_FOCUS = "What was said up to here is about to be compacted. Keep above all: {focus}"


@dataclass(frozen=True, slots=True)
class Compacting:
    """How a request asks for a compaction: `fields` of its body, and messages at its end."""

    fields: Payload = field(default_factory=dict)
    closing: tuple[Encoded, ...] = ()


def ask_anthropic(instructions: str | None) -> Compacting:
    """Instructions take the place of the provider's own."""
    asked = {} if instructions is None else {"instructions": scrub(instructions)}
    return Compacting({"compaction": {"type": "summarize", **asked}})


def ask_openai(focus: str | None) -> Compacting:
    """The trigger rather than `/responses/compact`: it extends the warm prefix by one item, over the same address, and
    its answer streams. It takes no instructions, so a focus is said before it."""
    trigger = Encoded({"type": "compaction_trigger"})
    if focus is None:
        return Compacting(closing=(trigger,))
    text = {"type": "input_text", "text": scrub(_FOCUS.format(focus=focus))}
    return Compacting(closing=(Encoded({"type": "message", "role": "user", "content": [text]}), trigger))


def is_readable(item: CompactionItem | None, wire: str, abilities: Abilities) -> bool:
    """Whether a model on `wire` can read `item`."""
    return item is not None and item.wire == wire and bool(item.vendor) and item.vendor == abilities.compaction


def given_back(message: UserMessage, wire: str, abilities: Abilities) -> dict[str, Any] | None:
    """The item of `message` as it goes back; None where its content goes instead."""
    item = message.item
    if item is None or not is_readable(item, wire, abilities):
        return None
    try:
        read = json.loads(item.payload)
    except ValueError:
        return None
    if not isinstance(read, dict) or read.get("type") != KIND:
        return None
    kept = {name: read[name] for name in FIELDS[wire] if read.get(name) is not None}
    return kept if scrub_json(kept) == kept else None


def read_item(given: Mapping[str, Any], wire: str, vendor: str) -> UserMessage:
    """The message that `given`, an item in a payload, stands for."""
    content = given.get("content")
    text = content if isinstance(content, str) and content.strip() else UNREADABLE
    return UserMessage((Text(text),), item=CompactionItem(vendor, wire, dump(dict(given))))
