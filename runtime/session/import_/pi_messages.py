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
    """The output of a command that the user ran, and how it ended, as our own tool tells it."""
    output = a_text(message.get("output")).rstrip("\n")
    parts = [output] if output else []
    if message.get("truncated") is True:
        parts.append("[the output was longer; this is a part of it]")
    code = message.get("exitCode")
    if message.get("cancelled") is True:
        parts.append("[stopped by the user before it ended]")
    elif isinstance(code, int):
        parts.append(f"[exit code {code}]")
    return "\n".join(parts) or "(no output)"
