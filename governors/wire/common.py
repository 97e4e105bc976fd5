"""What the wires' encoders share: clean text, arguments as objects, images within limits, constant texts.

Every text here is a function of the message alone, so the same message has the same bytes for ever.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..arguments import MAX_DEPTH, parse_object
from ..documents import NO_DATA, PDF, TOO_LARGE, document_name, document_words, takes_none
from ..messages import Document, Image, Message, Text, ToolCall, ToolResult, UserMessage, UserPart
from ..scrub import may_hide_surrogate, scrub
from .base import EFFORTS, THINKING_LEVELS, Abilities, CannotDecode
from .encoded import Encoded
from .encoded import rolling_hash as rolling_hash
from .references import inlined

#: Stands before a conversation that the assistant opens, on wires where the user must (A1).
OPENING = "(the assistant speaks first)"

#: Stands for a reply that never came, where a protocol wants one.
NO_REPLY = "(no reply)"

_DATA_URI = re.compile(r"data:(?P<media_type>[^;,]+);base64,(?P<data>.*)", re.DOTALL)
_TAGGED = re.compile(r"<system-update>\n(?P<text>.*)\n</system-update>", re.DOTALL)
_NAME_REFUSED = re.compile(r"[^A-Za-z0-9_-]")


def is_clean(text: str) -> bool:
    """Whether `text` can be written as UTF-8: it holds no lone surrogate (C1)."""
    return scrub(text) is text


def scrub_json(value: Any, depth: int = 0, *, sort: bool = False) -> Any:
    """A copy of a JSON value with clean strings; what lies deeper than `MAX_DEPTH` becomes null.

    `sort` also puts the keys of every object in order, so that equal schemas are equal bytes (C6).
    """
    if isinstance(value, str):
        return scrub(value)
    if depth > MAX_DEPTH:
        return None
    if isinstance(value, Mapping):
        items = sorted(value.items(), key=lambda item: str(item[0])) if sort else value.items()
        return {scrub(str(key)): scrub_json(item, depth + 1, sort=sort) for key, item in items}
    if isinstance(value, list | tuple):
        return [scrub_json(item, depth + 1, sort=sort) for item in value]
    return value


def schema(parameters: Mapping[str, Any], *, references: bool = True) -> dict[str, Any]:
    """A tool's parameters as every provider takes them: an object schema with sorted keys.

    Without `references`, what a `$ref` names stands in its place (a schema that contains itself ends in `{}`).
    """
    if not references:
        parameters = inlined(parameters)
    return scrub_json({"properties": {}, **parameters, "type": "object"}, sort=True)  # type: ignore[no-any-return] # a Mapping goes in, a dict comes out


def _may_be_unclean(json_text: str) -> bool:
    # A lone surrogate can hide as an escape in text that is plain ASCII.
    return may_hide_surrogate(json_text) or not is_clean(json_text)


def arguments_object(call: ToolCall) -> dict[str, Any]:
    """A call's arguments as an object, `{}` when they are none."""
    value = parse_object(call.arguments) or {}
    return scrub_json(value) if _may_be_unclean(call.arguments) else value


def arguments_text(call: ToolCall) -> str:
    """A call's arguments as JSON text: as the model wrote it when it is a clean object, `{}` when it is none."""
    value = parse_object(call.arguments)
    if value is None:
        return "{}"
    if not _may_be_unclean(call.arguments):
        return call.arguments
    mended = scrub_json(value)
    return call.arguments if mended == value else dump(mended)


def dump(value: Any) -> str:
    """JSON text as a payload holds it."""
    return json.dumps(value, ensure_ascii=False)


def sendable_name(name: str) -> str:
    """A called tool's name with the characters that providers refuse replaced (models invent such names)."""
    return _NAME_REFUSED.sub("_", name)[:64]


def is_blank(text: str) -> bool:
    """Whether a provider would refuse `text` as empty. White space counts as empty for them."""
    return not text or text.isspace()


def is_empty(part: UserPart) -> bool:
    """Whether a part is a text that says nothing."""
    return isinstance(part, Text) and is_blank(part.text)


def media_memo(abilities: Abilities) -> str:
    """What of the abilities decides how images and documents are encoded, as part of a memo's key."""
    images = f"images={abilities.images}/{abilities.max_image_pixels}/{abilities.max_image_bytes}"
    if not abilities.documents:
        return images
    return f"{images}/documents={abilities.max_document_pages}/{abilities.max_document_bytes}"


def left_out(part: Image | Document, abilities: Abilities, *, known: bool) -> str | None:
    """The text that stands for a picture or a document which cannot be sent (A12); None when it can.

    `known`: the protocol has a place for images of this type.
    """
    if isinstance(part, Document):
        return document_left_out(part, abilities)
    return image_left_out(part, abilities, known=known)


def document_left_out(document: Document, abilities: Abilities) -> str | None:
    """The text of a document, or of its absence, where it cannot be sent; None when it can."""
    if not abilities.documents or document.media_type != PDF or not is_clean(document.data):
        return document_words(document, takes_none(document))
    if not document.data:
        return document_words(document, NO_DATA)
    if len(document.data) > abilities.max_document_bytes or (document.pages or 0) > abilities.max_document_pages:
        return document_words(document, TOO_LARGE)
    return None


def image_left_out(image: Image, abilities: Abilities, *, known: bool) -> str | None:
    """The constant text that stands for an image which cannot be sent (A12); None when it can.

    `known`: the protocol has a place for images of this type.
    """
    kind = scrub(image.media_type)
    if not abilities.images or not known or not image.data or not is_clean(image.data):
        return f"[image left out: this model takes no {kind}]"
    if len(image.data) <= abilities.max_image_bytes and longer_side(image) <= abilities.max_image_pixels:
        return None
    size = f"{image.width} x {image.height} pixels, " if image.width and image.height else ""
    return f"[image left out, as it is too large: {kind}, {size}{len(image.data):,} bytes]"


def longer_side(image: Image) -> int:
    """In pixels; 0 when it is not known."""
    return max(image.width or 0, image.height or 0)


def follows(part: Image | Document) -> str:
    """What stands in a result for a picture or a document that has to be sent after all results of the step."""
    kind = scrub(part.media_type) if isinstance(part, Image) else document_name(part)
    return f"[{kind}: shown after the results]"


def label_of(part: Image | Document, result: ToolResult) -> str:
    """Says of a picture or a document sent after the results whose it is."""
    kind = "image" if isinstance(part, Image) else f"document {document_name(part)}"
    return f"[{kind} from {sendable_name(result.tool)}, call {scrub(result.call_id)}]"


def file_data(document: Document) -> dict[str, str]:
    """A document as OpenAI's protocols take it inside a request: its name, and a data URI."""
    return {"filename": document_name(document), "file_data": f"data:{document.media_type};base64,{document.data}"}


def decode_file(file: Any, where: str) -> Document:
    """The document that `file_data` made. Raises `CannotDecode`, naming `where`, for one that is not in the request."""
    given = file.get("file_data") if isinstance(file, Mapping) else None
    match = _DATA_URI.fullmatch(given) if isinstance(given, str) else None
    if match is None:
        raise CannotDecode(f"{where} is a document that is not given as a base64 data URI")
    return Document(match["media_type"], match["data"], str(file.get("filename") or ""))


def patch_text(text: str) -> str:
    """A system patch as user-role text: tagged, so that it is told from what a person wrote."""
    return f"<system-update>\n{scrub(text)}\n</system-update>"


def untagged(message: Message | None) -> str | None:
    """The words of a patch that was sent as a user's message; None when it is none.

    Only for a message that an addition of tools follows: a person can write the tag too, but cannot add tools.
    """
    if not isinstance(message, UserMessage) or len(message.content) != 1:
        return None
    match = _TAGGED.fullmatch(message.text)
    return match["text"] if match else None


def data_uri(url: Any, where: str) -> Image:
    """The image in a data URI. Raises `CannotDecode`, naming `where`, for any other address."""
    match = _DATA_URI.fullmatch(url) if isinstance(url, str) else None
    if match is None:
        raise CannotDecode(f"{where} is an image that is not given as a base64 data URI")
    return Image(match["media_type"], match["data"])


def joined_text(parts: Iterable[Any]) -> str:
    """The text parts that say something, as one text."""
    return "\n\n".join(scrub(part.text) for part in parts if isinstance(part, Text) and not is_blank(part.text))


def steps(messages: Sequence[Any]) -> Iterator[Any | tuple[ToolResult, ...]]:
    """The messages in order, neighbouring tool results gathered into one tuple."""
    results: list[ToolResult] = []
    for message in messages:
        if isinstance(message, ToolResult):
            results.append(message)
            continue
        if results:
            yield tuple(results)
            results = []
        yield message
    if results:
        yield tuple(results)


def remember_step(results: tuple[ToolResult, ...], key: str, compute: Callable[[], list[Encoded]]) -> list[Encoded]:
    """The encoded form of a whole step, kept with its first result for as long as the others are the same objects."""
    memo = results[0].memo
    held = memo.get(key)
    if held is None or len(held[0]) != len(results) - 1 or any(map(_differ, held[0], results[1:])):
        # Holding the others (not the first: that would be a cycle) makes identity a sound test.
        held = memo[key] = (results[1:], compute())
    encoded: list[Encoded] = held[1]
    return encoded


def _differ(one: object, other: object) -> bool:
    return one is not other


def effort_for(level: str, abilities: Abilities) -> str | None:
    """The model's word for a level of thinking: the nearest one up, else the nearest down; None: say nothing.

    Raises `ValueError` for what is no level.
    """
    if level not in THINKING_LEVELS:
        raise ValueError(f"thinking is {level!r}; it can be one of {', '.join(THINKING_LEVELS)}")
    if level == "off":
        return "none" if "none" in abilities.efforts else None
    wanted = EFFORTS.index(level)
    able = [EFFORTS.index(word) for word in abilities.efforts if word in EFFORTS[1:]]
    if not able:
        return None
    return EFFORTS[min((index for index in able if index >= wanted), default=max(able))]
