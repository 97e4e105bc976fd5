"""What a GGUF file says of itself, read from its header without loading the model.

Laws:
- Reading touches the header alone and never trusts a length in it: a number that points past the end of the file
  means a damaged file, not a large allocation.
- Long arrays (vocabularies, merges) are walked, never kept; only how many elements they have is.

The format is documented at https://github.com/ggml-org/ggml/blob/master/docs/gguf.md (version 3).
"""

from __future__ import annotations

import math
import mmap
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runtime.errors import ModelUnavailable

MAGIC = b"GGUF"
VERSIONS = (2, 3)

_STRING, _ARRAY = 8, 9
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_KEPT_ARRAY = 1024  # elements; the per-layer arrays are shorter, the vocabularies longer


@dataclass(frozen=True, slots=True)
class GgufHeader:
    """`window` is the model's training context in tokens, `cache_bytes` its attention cache for each of them.

    `parameters` and `vocabulary` are counts. What a file does not say is 0 or empty.
    """

    version: int
    architecture: str
    name: str
    window: int
    parameters: int
    vocabulary: int
    cache_bytes: int
    chat_template: str


class _Damaged(Exception):
    """The header cannot be right."""


def check_gguf(path: Path) -> None:
    """Raises `ModelUnavailable` unless `path` begins as a GGUF file that llama.cpp reads (versions 2 and 3)."""
    try:
        with path.open("rb") as file:
            start = file.read(8)
    except OSError as error:
        raise ModelUnavailable(f"cannot read the model file {path}: {error.strerror or error}") from error
    if len(start) < 8 or start[:4] != MAGIC:
        raise ModelUnavailable(f"{path} is not a GGUF file: choose a file whose name ends in .gguf")
    version = int.from_bytes(start[4:], "little")
    if version not in VERSIONS:
        raise ModelUnavailable(
            f"{path} is a GGUF file of version {version}; versions 2 and 3 (little-endian) can be used. "
            "Get a newer conversion of the model"
        )


def read_header(path: Path) -> GgufHeader:
    """The header of the model file at `path` (about 0.2 seconds for a large vocabulary).

    Raises `ModelUnavailable` where it is missing, no GGUF file, damaged, or not a language model.
    """
    check_gguf(path)
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            header = _header(_Cursor(data))
    except OSError as error:
        raise ModelUnavailable(f"cannot read the model file {path}: {error.strerror or error}") from error
    except _Damaged as error:
        raise ModelUnavailable(f"the model file {path} is damaged ({error}): get it again") from error
    if header.architecture in ("", "clip") or not header.window:
        raise ModelUnavailable(f"{path} is a GGUF file, but not a language model (`{header.architecture or 'none'}`)")
    return header


class _Cursor:
    """A place in the file; every step checks that the file is long enough."""

    def __init__(self, data: mmap.mmap) -> None:
        self.data = data
        self.at = 8  # behind magic and version
        self.version = int.from_bytes(data[4:8], "little")

    def skip(self, size: int) -> int:
        start, self.at = self.at, self.at + size
        if self.at > len(self.data):
            raise _Damaged(f"its header wants byte {self.at:,} of {len(self.data):,}")
        return start

    def number(self, form: str) -> Any:
        start = self.skip(struct.calcsize("<" + form))
        return struct.unpack_from("<" + form, self.data, start)[0]

    def text(self) -> str:
        size = self.number("Q")
        start = self.skip(size)
        return self.data[start : start + size].decode("utf-8", "replace")

    def value(self, kind: int) -> Any:
        if kind == _STRING:
            return self.text()
        if kind == _ARRAY:
            return self.array()
        if kind not in _SCALARS:
            raise _Damaged(f"unknown value type {kind}")
        return self.number(_SCALARS[kind])

    def array(self) -> list[Any] | int:
        """The elements, or only how many they are where they are many."""
        kind, count = self.number("I"), self.number("Q")
        if kind in _SCALARS and count > _KEPT_ARRAY:
            self.skip(count * struct.calcsize("<" + _SCALARS[kind]))
            return int(count)
        if kind == _STRING:
            for _ in range(count):
                self.skip(self.number("Q"))
            return int(count)
        if kind == _ARRAY:
            raise _Damaged("an array of arrays")
        return [self.value(kind) for _ in range(count)]


def _header(cursor: _Cursor) -> GgufHeader:
    tensors, pairs = cursor.number("Q"), cursor.number("Q")
    fields: dict[str, Any] = {}
    for _ in range(pairs):
        key = cursor.text()
        fields[key] = cursor.value(cursor.number("I"))
    architecture = str(fields.get("general.architecture", ""))
    return GgufHeader(
        version=cursor.version,
        architecture=architecture,
        name=str(fields.get("general.name", "")),
        window=_count(fields.get(f"{architecture}.context_length")),
        parameters=sum(_tensor_size(cursor) for _ in range(tensors)),
        vocabulary=_length(fields.get("tokenizer.ggml.tokens")),
        cache_bytes=_cache_bytes(architecture, fields),
        chat_template=str(fields.get("tokenizer.chat_template", "")),
    )


def _tensor_size(cursor: _Cursor) -> int:
    """The number of weights of the next tensor: name, dimensions, type, offset."""
    cursor.text()
    dimensions = cursor.number("I")
    if dimensions > 8:
        raise _Damaged(f"a tensor of {dimensions} dimensions")
    size: int = math.prod(cursor.number("Q") for _ in range(dimensions))
    cursor.skip(12)
    return size


def _cache_bytes(architecture: str, fields: Mapping[str, Any]) -> int:
    """Bytes of attention cache for each token: keys and values of every layer, 16 bits each."""

    def field(name: str) -> Any:
        return fields.get(f"{architecture}.{name}")

    layers, heads = _count(field("block_count")), field("attention.head_count")
    shared = field("attention.head_count_kv") or heads
    all_heads = sum(shared) if isinstance(shared, list) else layers * _count(shared)
    most = max(heads, default=0) if isinstance(heads, list) else _count(heads)
    width = _count(field("embedding_length")) // most if most else 0
    key = _count(field("attention.key_length")) or width
    value = _count(field("attention.value_length")) or width
    return all_heads * (key + value) * 2


def _count(value: Any) -> int:
    return value if isinstance(value, int) and value > 0 else 0


def _length(value: Any) -> int:
    """How many elements an array field has."""
    return len(value) if isinstance(value, list) else _count(value)
