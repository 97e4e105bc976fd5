"""Changes of tools inside a conversation on the Anthropic wire, read back to patches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..messages import Message, SystemPatch, ToolChange, ToolSpec
from .anthropic_cache import unmarked
from .anthropic_tools import CHANGES
from .base import CannotDecode
from .common import NO_REPLY, untagged


class ToolReader:
    """Reads the changes of one conversation in order: what a name means hangs on what was defined before."""

    def __init__(self, tools: Any) -> None:
        self._waiting: dict[str, ToolSpec] = {}  # declared and deferred: offered when they are first referred to
        self._defined: set[str] = set()
        for tool in tools if isinstance(tools, list) else ():
            if isinstance(tool, Mapping) and tool.get("defer_loading"):
                self._waiting[str(tool.get("name") or "")] = _spec(tool)
            elif isinstance(tool, Mapping):
                self._defined.add(str(tool.get("name") or ""))

    def are_in(self, message: Any) -> bool:
        """Whether `message` changes tools."""
        return isinstance(message, Mapping) and message.get("role") == "system" and any(map(_is_change, _list(message)))

    def read(self, messages: list[Message], message: Mapping[str, Any], where: str) -> SystemPatch:
        """The patch that makes the change; its words are taken off `messages` where they stand just before."""
        added: list[ToolSpec] = []
        changed: list[ToolSpec] = []
        back: list[str] = []
        removed: list[str] = []
        texts: list[str] = []
        for index, block in enumerate(_list(message)):
            place = f"{where}.content[{index}]"
            if not isinstance(block, Mapping):
                raise CannotDecode(f"{place} is not an object but {type(block).__name__}")
            if block.get("type") == "text":
                texts.append(str(block.get("text") or ""))
                continue
            tool = block.get("tool") if _is_change(block) else None
            kind = tool.get("type") if isinstance(tool, Mapping) else None
            if not isinstance(tool, Mapping) or kind not in ("tool_reference", "tool_definition"):
                raise CannotDecode(f"{place} is no change of a tool that can be read here")
            if kind == "tool_definition":
                spec = _spec(tool.get("definition"))
                # Once one has changed, those that follow keep their place after it.
                (changed if changed or spec.name in self._defined else added).append(spec)
                self._defined.add(spec.name)
            elif block.get("type") == "tool_removal":
                removed.append(str(tool.get("name") or ""))
            else:
                self._offer(str(tool.get("name") or ""), added, back)
        change = ToolChange(tuple(added), tuple(changed), tuple(back), tuple(removed))
        words = untagged(messages[-1] if messages else None)
        if words is not None:
            messages.pop()
            texts.insert(0, words)
        return SystemPatch("\n\n".join(texts) or change.text, tools=change)

    def _offer(self, name: str, added: list[ToolSpec], back: list[str]) -> None:
        spec = self._waiting.pop(name, None)
        if spec is None:
            back.append(name)
        else:
            added.append(spec)
            self._defined.add(name)


def is_filler(messages: Sequence[Any], position: int) -> bool:
    """Whether the reply at `position` only parts a system message from a user's: `encode` puts it there again."""
    if not 0 < position < len(messages) - 1 or not isinstance(messages[position], Mapping):
        return False
    said, blocks = messages[position], _list(messages[position])
    if said.get("role") != "assistant" or list(map(unmarked, blocks)) != [{"type": "text", "text": NO_REPLY}]:
        return False
    before, after = messages[position - 1], messages[position + 1]
    roles = [message.get("role") if isinstance(message, Mapping) else None for message in (before, after)]
    return roles == ["system", "user"] and any(map(_is_change, _list(before)))


def _is_change(block: Any) -> bool:
    return isinstance(block, Mapping) and block.get("type") in CHANGES


def _list(message: Mapping[str, Any]) -> list[Any]:
    content = message.get("content")
    return content if isinstance(content, list) else []


def _spec(tool: Any) -> ToolSpec:
    given = tool if isinstance(tool, Mapping) else {}
    parameters = given.get("input_schema")
    known = parameters if isinstance(parameters, Mapping) else {}
    return ToolSpec(str(given.get("name") or ""), str(given.get("description") or ""), known)
