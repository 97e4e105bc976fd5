"""What the Messages API refuses in one message, whatever stands around it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from .claude import Claude
from .refusal import Refused, picture_problem, pixels

BLOCKS = {
    "user": {"text", "image", "document", "tool_result"},
    "assistant": {"text", "thinking", "redacted_thinking", "tool_use", "compaction"},
    "system": {"text", "tool_addition", "tool_removal"},
}
IDENTITY = re.compile(r"[a-zA-Z0-9_-]{1,64}")
NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
MOST_PICTURE = 5 * 1024 * 1024  # of base64


def bad(text: str) -> Refused:
    return Refused(400, "invalid_request_error", text)


def check_message(message: Any, where: str) -> None:
    content, role = message.get("content"), message["role"]
    if set(message) - {"role", "content", "clear_at"}:
        raise bad(f"{where}: Extra inputs are not permitted")
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    if not isinstance(content, list) or not content:
        raise bad(f"{where}: all messages must have non-empty content except for the optional final assistant message")
    results_over = False
    for index, block in enumerate(content):
        place, kind = f"{where}.content.{index}", block.get("type")
        if kind not in BLOCKS[role]:
            raise bad(f"{place}: Input tag '{kind}' found using 'type' does not match any of the expected tags")
        if kind == "tool_result" and results_over:
            raise bad(f"{place}: `tool_result` blocks must come before any other block of the message")
        results_over = results_over or kind != "tool_result"
        check_block(block, place)
    if role == "assistant" and content[-1]["type"] in ("thinking", "redacted_thinking"):
        raise bad(f"{where}: The final block in an assistant message cannot be `thinking`.")


def check_block(block: Mapping[str, Any], place: str) -> None:
    match block["type"]:
        case "text":
            if not isinstance(block.get("text"), str) or not block["text"]:
                raise bad(f"{place}.text: text content blocks must be non-empty")
            if not block["text"].strip():
                raise bad(f"{place}.text: text content blocks must contain non-whitespace text")
        case "tool_use":
            if not IDENTITY.fullmatch(str(block.get("id"))):
                raise bad(f"{place}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'")
            if not NAME.fullmatch(str(block.get("name"))):
                raise bad(f"{place}.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'")
            if not isinstance(block.get("input"), dict):
                raise bad(f"{place}.tool_use.input: Input should be a valid dictionary")
        case "tool_result":
            _result(block, place)
        case "image":
            _picture(block, place)
        case "thinking" | "redacted_thinking" if block.get("cache_control"):
            raise bad(f"{place}.thinking.cache_control: Extra inputs are not permitted")


def _result(block: Mapping[str, Any], place: str) -> None:
    content = block.get("content")
    if isinstance(content, str):
        content = [{"type": "text", "text": content}] if content else []
    if content is not None and not content:
        raise bad(f"{place}.tool_result: content cannot be empty")
    for index, part in enumerate(content or ()):
        if part.get("type") not in ("text", "image", "document"):
            raise bad(f"{place}.tool_result.content.{index}: Input tag '{part.get('type')}' does not match")
        if block.get("is_error") and part["type"] != "text":
            raise bad(f'{place}.tool_result: all content must be type "text" if "is_error" is true')
        check_block(part, f"{place}.tool_result.content.{index}")


def _picture(block: Mapping[str, Any], place: str) -> None:
    source = block["source"]
    problem = picture_problem(source.get("data"), source.get("media_type"))
    if problem is not None:
        raise bad(f"{place}.image.source.base64: {problem}")
    if len(source["data"]) > MOST_PICTURE:
        size = len(source["data"])
        raise bad(f"{place}.image.source.base64: image exceeds 5 MB maximum: {size} bytes > {MOST_PICTURE} bytes")


def check_pictures(messages: list[Any], claude: Claude) -> None:
    shown = [part for part in _parts(messages) if part.get("type") == "image"]
    if len(shown) > claude.most_pictures:
        raise bad(f"messages: at most {claude.most_pictures} images are allowed in a request, got {len(shown)}")
    most = 2000 if len(shown) > 20 else 8000
    for part in shown:
        if max(pixels(part["source"]["data"])) > most:
            many = " for many-image requests" if most == 2000 else ""
            raise bad(f"messages: At least one of the image dimensions exceed max allowed size{many}: {most} pixels")


def _parts(messages: list[Any]) -> Iterator[dict[str, Any]]:
    for message in messages:
        for block in message["content"] if isinstance(message["content"], list) else ():
            yield block
            if block.get("type") == "tool_result" and isinstance(block.get("content"), list):
                yield from block["content"]
