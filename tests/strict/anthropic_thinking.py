"""What the Messages API refuses of thinking that is sent back: signatures, the latest reply, and what it is bound to.

`Produced` is what the server remembers of thinking that it signed: the model, the text, and a digest of what stood
before it (system prompt, tools, every earlier block, cache marks aside).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .anthropic_message import bad
from .claude import Claude
from .compacted import begins_compacted

LATEST = (
    "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. These blocks must "
    "remain as they were in the original response."
)


@dataclass(frozen=True, slots=True)
class Produced:
    model: str
    text: str
    before: str
    reply: tuple[str, ...]  # the signatures of its reply, in order


@dataclass(slots=True)
class Read:
    """What was read of a request that is fine. `dropped`: thinking that no longer stands where it was produced."""

    blocks: list[bytes]
    marks: list[tuple[int, bool]]
    digest: str
    dropped: list[str] = field(default_factory=list)


def listed(message: Mapping[str, Any]) -> list[Any]:
    """The blocks of a message; a text is one."""
    content = message["content"]
    return content if isinstance(content, list) else [{"type": "text", "text": content}]


def digest_of(blocks: list[bytes]) -> str:
    return hashlib.sha256(b"\n".join(blocks)).hexdigest()


def check_thinking(
    body: Mapping[str, Any], messages: list[Any], claude: Claude, produced: Mapping[str, Produced], read: Read
) -> None:
    """Signatures, the latest reply, and what thinking is bound to."""
    if not claude.checks_signatures:
        return
    place = len(read.blocks) - sum(len(listed(message)) for message in messages)
    gentle = ((body.get("thinking") or {}).get("block_binding") or {}).get("prefix_mismatch_behavior") == "drop_block"
    broken = False
    off = (body.get("thinking") or {}).get("type") == "disabled"  # then thinking is not shown to the model at all
    newest = max((at for at, message in enumerate(messages) if message["role"] == "assistant"), default=-1)
    for position, message in enumerate(messages):
        content = listed(message)
        before = digest_of(read.blocks[:place])
        place += len(content)
        if message["role"] != "assistant":
            continue
        signed = []
        for index, block in enumerate(content):
            kind = block["type"]
            if kind not in ("thinking", "redacted_thinking"):
                continue
            where = f"messages.{position}.content.{index}"
            signature = block.get("data") if kind == "redacted_thinking" else block.get("signature")
            origin = produced.get(signature) if isinstance(signature, str) else None
            if origin is None or origin.model != body["model"] or block.get("thinking", "") != origin.text:
                raise bad(f"{where}: Invalid `signature` in `thinking` block")
            signed.append(signature)
            if claude.binds and not off and not begins_compacted(body) and (broken or origin.before != before):
                broken = True
                if not gentle:
                    raise bad(f"{where}: this `thinking` block is bound to a different conversation")
                read.dropped.append(where)
        if position == newest and signed and tuple(signed) != produced[signed[0]].reply:
            raise bad(f"messages.{position}.content.0: {LATEST}")
    _starts_with_thinking(body, messages, newest)


def _starts_with_thinking(body: Mapping[str, Any], messages: list[Any], newest: int) -> None:
    """With a budget, a reply whose calls are being answered must begin with thinking."""
    if (body.get("thinking") or {}).get("type") != "enabled" or newest < 0:
        return
    after = messages[newest + 1]["content"] if newest + 1 < len(messages) else []
    answering = isinstance(after, list) and any(block["type"] == "tool_result" for block in after)
    last_user = messages[-1] is messages[newest + 1] if answering else False
    kind = messages[newest]["content"][0]["type"] if isinstance(messages[newest]["content"], list) else "text"
    if last_user and kind not in ("thinking", "redacted_thinking"):
        raise bad(
            f"messages.{newest}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `{kind}`. When "
            "`thinking` is enabled, a final `assistant` message must start with a thinking block"
        )
