"""A reply and a user's shell command as pi writes them."""

from __future__ import annotations

from governors.messages import StopReason, Text, Thinking

from ..entries import MessageRecord, Part
from .parts import Lose, Object, a_text, call, objects, picture, usage, wire

_STOPS: dict[str, StopReason] = {
    "stop": "stop",
    "length": "length",
    "toolUse": "tool_use",
    "error": "error",
    "aborted": "aborted",
    "refusal": "refused",
    "safety": "refused",
}


def reply(message: Object, lose: Lose) -> MessageRecord:
    content: list[Part] = []
    for block in objects(message.get("content")):
        kind = block.get("type")
        if kind == "toolCall":
            signature = a_text(block.get("thoughtSignature"))
            content.append(call(block.get("id"), block.get("name"), block.get("arguments"), signature))
        elif kind == "thinking":
            signature = a_text(block.get("thinkingSignature"))
            content.append(Thinking(a_text(block.get("thinking")), signature or None, block.get("redacted") is True))
        elif kind == "text":
            content += [Text(block["text"])] if a_text(block.get("text")) else []
        elif kind == "image":
            made = picture(block, lose)
            if not isinstance(made, Text):
                lose("a picture that the model made")
                made = Text("[a picture that the model made, not imported]")
            content.append(made)
        else:
            lose(f"a part of type {kind!r}")
    if text := a_text(message.get("content")):
        content.append(Text(text))
    return MessageRecord(
        role="assistant",
        content=tuple(content),
        stop=_STOPS.get(a_text(message.get("stopReason")), "stop"),
        model=a_text(message.get("model")) or None,
        wire=wire("pi", message.get("api")),
        usage=usage(
            message.get("usage"),
            plain="input",
            read="cacheRead",
            written="cacheWrite",
            output="output",
            reasoning="reasoning",
        ),
    )


def shell_text(message: Object) -> str:
    """What a model reads of a command that the user ran."""
    output = a_text(message.get("output")).rstrip("\n")
    lines = [f"The user ran this command: {a_text(message.get('command'))}"]
    lines.append(f"Its output:\n{output}" if output else "It printed nothing.")
    code = message.get("exitCode")
    if message.get("cancelled") is True:
        lines.append("It was stopped before it ended.")
    elif isinstance(code, int) and code:
        lines.append(f"It ended with exit code {code}.")
    if message.get("truncated") is True:
        lines.append("The output was longer; this is a part of it.")
    return "\n\n".join(lines)
