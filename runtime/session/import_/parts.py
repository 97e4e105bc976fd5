"""Values of other programs as ours: texts, pictures, calls, usage, times. Whatever is of another shape comes out as
nothing, never as an exception."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, TypeAlias

from governors.documents import PDF
from governors.messages import Document, Image, Text, ToolCall, Usage, UserPart

Object: TypeAlias = Mapping[str, Any]
Lose: TypeAlias = Callable[[str], None]  # told of what could not be carried over

_PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp")
_TEXTS = ("text", "input_text", "output_text", "summary_text", "reasoning_text", "refusal")
_LEVELS = {
    "none": "off",
    "off": "off",
    "minimal": "low",
    "low": "low",
    "medium": "medium",
    "high": "high",
    "xhigh": "max",
    "max": "max",
    "ultra": "max",
}
_WIRES = {
    "anthropic-messages": "anthropic",
    "openai-completions": "openai_chat",
    "openai-responses": "openai_responses",
    "openai-codex-responses": "openai_responses",
    "azure-openai-responses": "openai_responses",
}


def an_object(value: Any) -> Object:
    return value if isinstance(value, dict) else {}


def objects(value: Any) -> Iterator[Object]:
    """The objects of a list."""
    return (each for each in value if isinstance(each, dict)) if isinstance(value, list) else iter(())


def a_text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def said(content: Any, lose: Lose) -> tuple[UserPart, ...]:
    """The texts, pictures and documents of a content: a string, a block, or a list of both."""
    if isinstance(content, str):
        return (Text(content),) if content else ()
    blocks = content if isinstance(content, list) else [content] if isinstance(content, dict) else []
    return tuple(part for block in blocks for part in _part(block, lose))


def _part(block: Any, lose: Lose) -> Iterator[UserPart]:
    if isinstance(block, str):
        yield from (Text(block),) if block else ()
        return
    kind = a_text(an_object(block).get("type"))
    if kind in ("image", "input_image", "image_url"):
        yield picture(block, lose)
    elif kind in ("document", "file", "input_file"):
        yield document(block, lose)
    elif kind in _TEXTS or (not kind and isinstance(block, dict)):
        text = a_text(block.get("text")) or a_text(block.get("refusal"))
        yield from (Text(text),) if text else ()
    else:
        lose(f"a part of type {kind or type(block).__name__!r}")
        yield Text(f"[{kind or 'a part'} of the original conversation, not imported]")


def picture(block: Object, lose: Lose) -> Text | Image:
    """A picture as pi, Anthropic, OpenAI chat and OpenAI Responses write it; a constant text where there is none."""
    source = an_object(block.get("source"))
    data = a_text(block.get("data")) or a_text(source.get("data"))
    media = a_text(block.get("mimeType")) or a_text(source.get("media_type"))
    url = block.get("image_url") or source.get("url") or block.get("url")
    url = a_text(an_object(url).get("url")) if isinstance(url, dict) else a_text(url)
    if url.startswith("data:") and "," in url:
        head, data = url[5:].split(",", 1)
        media = head.split(";")[0]
    elif url:
        lose("a picture that is only named by its address")
        return Text(f"[picture: {url[:500]}]")
    if media in _PICTURES and _is_base64(data):
        return Image(media, data)
    lose("a picture that is not in the file" if not data else f"a picture of type {media[:40]!r}")
    return Text("[a picture of the original conversation, not imported]")


def document(block: Object, lose: Lose) -> UserPart:
    """A document as Anthropic, OpenAI chat and OpenAI Responses write it; a constant text where it is not here."""
    source = an_object(block.get("source"))
    file = an_object(block.get("file")) or block
    name = a_text(block.get("title")) or a_text(file.get("filename"))
    media, data = a_text(source.get("media_type")), a_text(source.get("data"))
    if (given := a_text(file.get("file_data"))).startswith("data:") and "," in given:
        head, data = given[5:].split(",", 1)
        media = head.split(";")[0]
    if source.get("type") == "text" and data:
        return Text(f"{name}:\n{data}" if name else data)
    if media == PDF and _is_base64(data):
        return Document(media, data, name)
    lose("a document that is not in the file" if not data else f"a document of type {media[:40]!r}")
    return Text(f"[document {name[:200]!r} of the original conversation, not imported]")


def _is_base64(data: str) -> bool:
    try:
        return bool(base64.b64decode(data, validate=True))
    except (binascii.Error, ValueError):
        return False


def text_of(content: Any) -> str:
    """The text of a content, without its pictures."""
    return "\n\n".join(part.text for part in said(content, _nobody) if isinstance(part, Text))


def _nobody(_: str) -> None:
    pass


def call(identity: Any, name: Any, arguments: Any, signature: Any = None) -> ToolCall:
    """A call; arguments that are no JSON object become one with the single key `input`."""
    return ToolCall(a_text(identity), a_text(name).strip() or "unknown", _arguments(arguments), True, signature or None)


def _arguments(arguments: Any) -> str:
    if isinstance(arguments, str):
        try:
            if isinstance(json.loads(arguments), dict):
                return arguments
        except (ValueError, RecursionError):
            pass
        return json.dumps({"input": arguments}) if arguments.strip() else "{}"
    if isinstance(arguments, dict):
        return json.dumps(arguments, ensure_ascii=False)
    return "{}" if arguments is None else json.dumps({"input": arguments}, ensure_ascii=False)


def count(value: Any) -> int:
    """A number of tokens; 0 for what is none."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 2**53:
        return 0
    return int(value)


def usage(told: Any, *, plain: str, read: str, output: str, written: str = "", reasoning: str = "") -> Usage | None:
    """The usage under the given keys; None where nothing was used."""
    told = an_object(told)
    found = Usage(
        plain=count(told.get(plain)),
        cache_read=count(told.get(read)),
        cache_write_5m=count(told.get(written)),
        output=count(told.get(output)),
        reasoning=count(told.get(reasoning)),
    )
    return found if found.total else None


def moment(stamp: Any) -> str | None:
    """An ISO time, or seconds or milliseconds since 1970, as our logs write times; a time without zone counts as UTC.
    None for anything else."""
    try:
        if isinstance(stamp, bool):
            return None
        if isinstance(stamp, int | float):
            found = datetime.fromtimestamp(stamp / 1_000 if stamp > 1e11 else stamp, UTC)
        else:
            found = datetime.fromisoformat(a_text(stamp))
            found = found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return found.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def level(told: Any) -> str | None:
    """A thinking level in our words; None for one that is not known here."""
    return _LEVELS.get(a_text(told).lower())


def wire(program: str, api: Any) -> str:
    """How a reply's wire is recorded: program and protocol. It is never the plain name of a wire of ours, since
    reasoning was signed under that program's prompt and may be bound to it."""
    told = a_text(api)
    return f"{program}/{_WIRES.get(told, told or 'unknown')}"


def system_prompt(program: str) -> dict[str, Any]:
    """What a note says of itself that holds a program's own instructions to its models."""
    return {"role": "system", "of": program}


def title_of(text: str) -> str:
    """The first line of a text, short enough for a list."""
    line = " ".join(text.split("\n\n")[0].split())
    return line if len(line) <= 80 else line[:79] + "…"
