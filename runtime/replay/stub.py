"""The line that stands for an old result in a replay: tool, size, and how it began. A function of the result alone."""

from __future__ import annotations

from governors.messages import Message, Text, ToolResult, remember

_SHOWN = 80  # characters


def stub_of(message: Message) -> Message:
    """`message` reduced to a line if it is a result, made once; anything else as it is."""
    if not isinstance(message, ToolResult):
        return message
    result = message

    def make() -> ToolResult:
        text = result.text
        line = f"[{result.tool} result, {len(text):,} characters, left out: {' '.join(text[:_SHOWN].split())}]"
        return ToolResult(result.call_id, result.tool, (Text(line),), result.is_error, origin=result.origin)

    return remember(message, "replay/stub", make)
