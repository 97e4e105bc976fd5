"""Short builders for conversations: `user("hi"), reply(call("read_file", path="x")), result("call_1", "text")`."""

from __future__ import annotations

import json
from typing import Any

from governors.messages import (
    AssistantMessage,
    AssistantPart,
    Document,
    Image,
    StopReason,
    SystemPatch,
    Text,
    ToolCall,
    ToolResult,
    UserMessage,
    UserPart,
)


def user(*parts: str | UserPart) -> UserMessage:
    """A user's message; texts become text parts."""
    return UserMessage(tuple(Text(part) if isinstance(part, str) else part for part in parts))


def reply(*parts: str | AssistantPart, stop: StopReason | None = None, **fields: Any) -> AssistantMessage:
    """A model's reply; `stop` follows from whether it calls tools."""
    content = tuple(Text(part) if isinstance(part, str) else part for part in parts)
    called = any(isinstance(part, ToolCall) for part in content)
    return AssistantMessage(content, stop or ("tool_use" if called else "stop"), **fields)


def call(name: str = "read_file", id: str = "call_1", *, complete: bool = True, **arguments: Any) -> ToolCall:
    """A call of the tool `name` with keyword arguments."""
    return ToolCall(id, name, json.dumps(arguments), complete)


def result(id: str = "call_1", *parts: str | UserPart, tool: str = "read_file", is_error: bool = False) -> ToolResult:
    """The result of the call `id`; by default it says `result of ID`."""
    content = tuple(Text(part) if isinstance(part, str) else part for part in parts or (f"result of {id}",))
    return ToolResult(id, tool, content, is_error)


def patch(text: str = "Tools are off now.") -> SystemPatch:
    return SystemPatch(text)


def document(
    name: str = "report.pdf", pages: int | None = 3, text: str | None = "Read out of it.", data: str = "JVBERi0="
) -> Document:
    return Document("application/pdf", data, name, pages, text)


def image(width: int | None = None, height: int | None = None, data: str = "iVBORw0KGgo=") -> Image:
    return Image("image/png", data, width, height)
