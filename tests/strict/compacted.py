"""What both vendors refuse of their own compactions: how one is asked for, and how it comes back (A11, O4).

Field names and refusals are those of the official SDKs' types.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .anthropic_message import bad
from .refusal import Refused

BETA = "compact-2026-09-04"


def check_blocks(
    body: Mapping[str, Any], betas: frozenset[str], made: Mapping[str, Mapping[str, Any]], last_blocks: list[Any]
) -> None:
    """Of a request to Anthropic. `made` are the blocks that the host gave, by signature."""
    found = [
        (position, index, block)
        for position, message in enumerate(body["messages"])
        for index, block in enumerate(message["content"] if isinstance(message["content"], list) else ())
        if block.get("type") == "compaction"
    ]
    asked = body.get("compaction")
    if (found or asked is not None) and BETA not in betas:
        raise bad("compaction: Extra inputs are not permitted")
    if asked is not None:
        if set(asked) - {"type", "instructions"} or asked.get("type") != "summarize":
            raise bad("compaction.type: Input should be 'summarize'")
        if body.get("context_management") is not None:
            raise bad("compaction: cannot be combined with context_management")
        if any(block.get("type") == "tool_use" for block in last_blocks):
            raise bad("compaction_incomplete_turn")
    if len(found) > 1:
        raise bad("compaction_block_ambiguous")
    for position, index, block in found:
        if (position, index) != (0, 0):
            raise bad("compaction_block_misplaced")
        given = made.get(str(block.get("signature")))
        if given is None:
            raise bad("compaction_signature_invalid")
        if block.get("content") != given["content"]:
            raise bad("compaction_content_mismatch")
        if block.get("tool_changes") != given["tool_changes"]:
            raise bad("compaction_tool_changes_mismatch")


def begins_compacted(body: Mapping[str, Any]) -> bool:
    """Whether what follows stands after a compaction of the vendor's: then its reasoning is bound to nothing before."""
    content = body["messages"][0]["content"]
    return isinstance(content, list) and bool(content) and content[0].get("type") == "compaction"


def block_events(
    block: Mapping[str, Any], usage: Mapping[str, Any], message: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    """An answer that is a compaction and nothing else."""
    yield {"type": "message_start", "message": message}
    begun = {**block, "content": None}
    yield {"type": "content_block_start", "index": 0, "content_block": begun}
    told = {"type": "compaction_delta", "content": block["content"], "encrypted_content": None}
    yield {"type": "content_block_delta", "index": 0, "delta": told}
    yield {"type": "content_block_stop", "index": 0}
    yield {"type": "message_delta", "delta": {"stop_reason": "compaction", "stop_sequence": None}, "usage": dict(usage)}
    yield {"type": "message_stop"}


def check_items(items: list[Any], made: Mapping[str, str]) -> None:
    """Of a request to OpenAI. `made` says of each encrypted content that the host gave for which model it was."""
    for index, item in enumerate(items):
        where = f"input[{index}]"
        if item.get("type") == "compaction_trigger" and index != len(items) - 1:
            raise _refused(f"Invalid '{where}': a compaction trigger must be the final input item.")
        if item.get("type") == "compaction":
            if set(item) - {"type", "encrypted_content", "id"}:
                raise _refused(f"Unknown parameter: '{where}'.")
            if item.get("encrypted_content") not in made:
                raise _refused(f"The encrypted content for item {where} could not be verified.")


def _refused(text: str) -> Refused:
    return Refused(400, "invalid_request_error", text, param="input", code=None)
