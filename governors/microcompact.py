"""Old bulky tool output becomes one line; an oversized result is cut when it is born.

A stub is a function of the result alone: the tool, the size, the first characters, and a handle under which the whole
can be read back. The handle is a hash of the content, as who uses this library alone has no entry ids.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from dataclasses import replace

from .documents import document_name
from .messages import Document, Image, Message, Text, ToolResult, UserMessage, UserPart, remember
from .scrub import scrub

#: Tools whose old output is worth little, for callers that bring no `ToolSpec`s that say so themselves.
BULKY_TOOLS = frozenset({"read_file", "exec", "grep", "list_dir", "web_fetch", "web_search"})
#: Characters. A shorter result costs hardly more than its stub.
LEAST_SIZE = 500
_SHOWN = 80  # characters of the beginning in a stub
_NAMED = 64  # characters of a tool's name
_HANDLE = 12  # hex digits: one pair in 10^6 results collides with a chance of 1 in 500
_STUB_MARK = "left out; recall "


def handle_of(content: tuple[UserPart, ...]) -> str:
    """The handle of a result's content: equal content, equal handle."""
    digest = hashlib.sha256()
    for part in content:
        match part:
            case Text(text=data):
                kind = "t"
            case Image(data=data):
                kind = "i"
            case _:
                kind, data = "d", part.data or part.text or ""
        digest.update(f"{kind}{len(data)}:".encode())
        digest.update(data.encode("utf-8", "replace"))
    return digest.hexdigest()[:_HANDLE]


def text_handle(text: str) -> str:
    """The handle of a text that was cut when it was born."""
    return handle_of((Text(text),))


def stub(result: ToolResult) -> ToolResult:
    """`result` as one line; made once. A stub's own stub is itself."""
    if is_stub(result):
        return result

    def make() -> ToolResult:
        line = (Text(stub_text(result)),)
        return ToolResult(result.call_id, result.tool, line, result.is_error, result.stand_in, result.origin)

    return remember(result, "stub", make)


def stub_text(result: ToolResult) -> str:
    text = scrub(result.text)
    images = sum(1 for part in result.content if isinstance(part, Image))
    names = ", ".join(document_name(part)[:_NAMED] for part in result.content if isinstance(part, Document))
    size = f"{len(text):,} characters" + (f" and {images} images" if images else "")
    size += f" and {names}" if names else ""
    shown = " ".join(text[: 4 * _SHOWN].split())[:_SHOWN]
    return f"[{scrub(result.tool)[:_NAMED] or 'tool'} result, {size}, {_STUB_MARK}{handle_of(result.content)}: {shown}]"


def is_stub(result: ToolResult) -> bool:
    first = result.content[0] if len(result.content) == 1 else None
    return isinstance(first, Text) and len(first.text) < LEAST_SIZE and _STUB_MARK in first.text


def is_bulky(message: Message, tools: Collection[str] | None = None) -> bool:
    """Whether `message` is a result that a stub may stand for; `tools` are the names of the bulky tools."""
    if not isinstance(message, ToolResult) or message.stand_in:
        return False
    if message.tool not in (BULKY_TOOLS if tools is None else tools):
        return False
    return remember(message, "large", lambda: _is_large(message))


def _is_large(result: ToolResult) -> bool:
    return sum(len(part.text) if isinstance(part, Text) else LEAST_SIZE + 1 for part in result.content) > LEAST_SIZE


def cut_at_birth(text: str, limit: int) -> str:
    """`text` within `limit` characters: head and tail stay, and between them a line says how much is left out and
    under which handle the whole can be read. `text` itself when it is short enough."""
    if len(text) <= limit:
        return text
    line = f"\n\n[… {{}} of {len(text):,} characters {_STUB_MARK}{text_handle(text)} …]\n\n"
    kept = max(0, limit - len(line) - len(f"{len(text):,}"))
    head, tail = kept * 2 // 3, kept - kept * 2 // 3
    return text[:head] + line.format(f"{len(text) - head - tail:,}") + (text[-tail:] if tail else "")


def image_stub(image: Image) -> Text:
    """What stands for a picture that was left out because there were too many."""
    size = f" of {image.width}x{image.height} pixels" if image.width and image.height else ""
    return Text(f"[an earlier image ({image.media_type}){size}, left out: too many images]")


def without_images(message: Message, count: int) -> Message:
    """`message` with its first `count` images replaced; made once for each count."""
    if not isinstance(message, (UserMessage, ToolResult)) or count <= 0:
        return message

    def make() -> Message:
        left = count
        parts: list[UserPart] = []
        for part in message.content:
            if isinstance(part, Image) and left > 0:
                left -= 1
                parts.append(image_stub(part))
            else:
                parts.append(part)
        if isinstance(message, UserMessage):
            return replace(message, content=tuple(parts))
        return ToolResult(
            message.call_id, message.tool, tuple(parts), message.is_error, message.stand_in, message.origin
        )

    return remember(message, f"without_images/{count}", make)


def images_in(message: Message) -> int:
    if not isinstance(message, (UserMessage, ToolResult)):
        return 0
    return sum(1 for part in message.content if isinstance(part, Image))
