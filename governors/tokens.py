"""How many tokens something costs: never too few, and never an exception.

A `Counter` counts plain text. What stands around it (a message's frame, a call's frame, pictures, tool schemas) is
added here, rounded up. A model's own tokenizer differs from ours: multiply by its factor (`scaled`).

`load_vocabulary` reads the vocabulary that ships with this package (o200k_base, compressed): no network, ever. It is
synchronous, takes 0.5 to 2 s and 50 to 90 MB once, and is the one thing in `governors` that reads a file; programs
with an event loop call it in a thread. Until it is there, `TiktokenCounter` counts by bytes, an upper bound.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from importlib import resources
from math import ceil
from typing import TYPE_CHECKING, Protocol

from .messages import (
    AssistantMessage,
    CompactionItem,
    Document,
    Image,
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    ToolSpec,
    UserMessage,
    remember,
)

if TYPE_CHECKING:
    import tiktoken

VOCABULARY = "o200k_base"
_VOCABULARY_FILE = "data/o200k_base.tiktoken.gz"
# How o200k_base splits text before merging bytes (published with the vocabulary, MIT).
_WORD = r"[^\r\n\p{L}\p{N}]?"
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_SPLIT = "|".join(
    (
        _WORD + _UPPER + "*" + _LOWER + r"+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        _WORD + _UPPER + "+" + _LOWER + r"*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    )
)

MESSAGE_FRAME = 6  # role, delimiters and separators around one message
CALL_FRAME = 12  # id, type and braces around one call or result
TOOL_FRAME = 16  # what a provider writes around one tool schema
SYSTEM_FRAME = 8
DOCUMENT_FRAME = 64  # what names a document, and what says that its text stands for it
PAGE = 2_600  # a page of a document as a picture: A4 or letter at 1,568 pixels, 750 a token (1,105 by tiles)
PAGE_TEXT = 3_000  # and its text, where nobody has read it: providers tell of 1,500 to 3,000
PAGE_BYTES = 10_000  # of a document whose pages nobody has counted: one with text alone takes so much for a page
LARGEST_IMAGE = 4_784  # what providers scale pictures down to: 2,576 pixels at the longer side, 28 x 28 a token
_PIECE = 100_000  # characters counted at once: the splitting fails on runs of some 500,000 spaces
_KEPT = 8_192  # characters of a text whose count is kept for whoever has the same
_SLACK = 16  # tokens that a cut inside a word may save, as merging is not optimal


class Counter(Protocol):
    """Counts the tokens of a text. `key` names the way of counting, so that counts can be kept by it."""

    @property
    def key(self) -> str: ...

    def count(self, text: str) -> int: ...


class ByteCounter:
    """An upper bound without a vocabulary: no token is shorter than a byte."""

    key = "bytes"

    def count(self, text: str) -> int:
        return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))


class TiktokenCounter:
    """Counts with the shipped vocabulary once `load_vocabulary` has run, by bytes before."""

    @property
    def key(self) -> str:
        return VOCABULARY if vocabulary_loaded() else ByteCounter.key

    def count(self, text: str) -> int:
        if not vocabulary_loaded():
            return ByteCounter().count(text)
        return _counted(text) if len(text) > _KEPT else _kept(text)


def _counted(text: str) -> int:
    encode = load_vocabulary().encode_ordinary  # special tokens in a text are text
    return sum(len(encode(piece)) + slack for piece, slack in _pieces(text))


#: Sessions share their system prompt and tools: each counted them anew, which was a tenth of a short session's cost.
_kept = lru_cache(maxsize=512)(_counted)


def _pieces(text: str) -> Iterator[tuple[str, int]]:
    """`text` in pieces, each with what must be added to its tokens, so that the sum is never less than the whole's."""
    start = 0
    while len(text) - start > _PIECE:
        end = _after_word(text, start)
        yield text[start : end or start + _PIECE], 0 if end else _SLACK
        start = end or start + _PIECE
    yield text[start:] if start else text, 0


def _after_word(text: str, start: int) -> int | None:
    """The last end of a word in the latter half of a piece, where cutting changes no token; None if there is none."""
    middle, end = start + _PIECE // 2, start + _PIECE
    while (end := text.rfind(" ", middle, end)) > 0:
        if text[end - 1].isalnum():
            return end
    return None


@lru_cache(maxsize=1)
def load_vocabulary() -> tiktoken.Encoding:
    """Read the vocabulary and build the encoding; later calls return it at once."""
    import tiktoken  # 40 MB with its data: only for those who count

    packed = resources.files(__package__).joinpath(_VOCABULARY_FILE).read_bytes()
    ranks = {}
    for line in gzip.decompress(packed).splitlines():
        token, rank = line.split()
        ranks[base64.b64decode(token)] = int(rank)
    return tiktoken.Encoding(VOCABULARY, pat_str=_SPLIT, mergeable_ranks=ranks, special_tokens={})


def vocabulary_loaded() -> bool:
    return load_vocabulary.cache_info().currsize > 0


def scaled(tokens: int, factor: float) -> int:
    """`tokens` of our vocabulary as tokens of a model whose tokenizer finds up to `factor` times as many."""
    return ceil(tokens * factor)


def message_tokens(message: Message, counter: Counter) -> int:
    """The tokens of one message with its frame; counted once and kept with the message."""
    return remember(message, f"tokens/{counter.key}", lambda: _message_tokens(message, counter))


def messages_tokens(messages: Iterable[Message], counter: Counter) -> int:
    return sum(message_tokens(message, counter) for message in messages)


def system_tokens(system: str, counter: Counter) -> int:
    return counter.count(system) + SYSTEM_FRAME if system else 0


def tools_tokens(tools: Sequence[ToolSpec], counter: Counter) -> int:
    return sum(
        TOOL_FRAME
        + counter.count(tool.name)
        + counter.count(tool.description)
        + counter.count(json.dumps(tool.parameters, default=_plain, separators=(",", ":"), ensure_ascii=False))
        for tool in tools
    )


def _plain(value: object) -> object:
    """A read-only mapping as JSON; whatever else JSON does not know, as the text it would be written as."""
    return dict(value) if isinstance(value, Mapping) else str(value)


def image_tokens(image: Image) -> int:
    """What a picture costs at the dearer of the published formulas: an area of 750 pixels a token, or 170 a tile
    of 512 pixels and 85 for the whole. Never more than `LARGEST_IMAGE`, which is also the cost of an unknown size."""
    if not image.width or not image.height:
        return LARGEST_IMAGE
    by_area = ceil(image.width * image.height / 750)
    by_tiles = 85 + 170 * ceil(image.width / 512) * ceil(image.height / 512)
    return min(max(by_area, by_tiles), LARGEST_IMAGE)


def page_count(document: Document) -> int:
    """Its pages, at least one; by its size where nobody has counted them."""
    if document.pages is not None:
        return max(document.pages, 1)
    return 1 + len(document.data) * 3 // 4 // PAGE_BYTES


def page_tokens(document: Document) -> int:
    """What the pages of a document cost beside its text. Providers show a model the text and a picture of each page
    (https://docs.anthropic.com/en/docs/build-with-claude/pdf-support,
    https://developers.openai.com/docs/guides/pdf-files)."""
    if not document.data:
        return 0
    return page_count(document) * (PAGE if document.text is not None else PAGE + PAGE_TEXT)


def _message_tokens(message: Message, counter: Counter) -> int:
    match message:
        case UserMessage(content=content, item=item):
            read = _parts(content, counter)
            return MESSAGE_FRAME + (read if item is None else max(read, _item_tokens(item)))
        case AssistantMessage():
            return MESSAGE_FRAME + _parts(message.content, counter)
        case ToolResult():
            return MESSAGE_FRAME + CALL_FRAME + counter.count(message.tool) + _parts(message.content, counter)
        case _:
            return MESSAGE_FRAME + SYSTEM_FRAME + counter.count(message.text)


def _parts(parts: Iterable[Text | Image | Document | Thinking | ToolCall], counter: Counter) -> int:
    return sum(_part(part, counter) for part in parts)


def _part(part: Text | Image | Document | Thinking | ToolCall, counter: Counter) -> int:
    match part:
        case Text():
            return counter.count(part.text) + 1
        case Image():
            return image_tokens(part)
        case Document():
            return page_tokens(part) + counter.count(part.name) + counter.count(part.text or "") + DOCUMENT_FRAME
        case Thinking():
            return counter.count(part.text) + _signature_tokens(part.signature) + 4
        case _:
            own = counter.count(part.name) + counter.count(part.arguments)
            return CALL_FRAME + own + _signature_tokens(part.signature)


def _item_tokens(item: CompactionItem) -> int:
    """As the provider counted; where it did not, all of its text may be encrypted."""
    return item.tokens or _signature_tokens(item.payload)


def _signature_tokens(signature: str | None) -> int:
    """A signature holds reasoning, encrypted and in base64: more than five characters for each token of it."""
    return ceil(len(signature or "") / 3)
