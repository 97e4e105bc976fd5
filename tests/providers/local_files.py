"""Small GGUF files for tests: the header is real, the weights are absent."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path

Value = str | int | list[str] | list[int]


def packed_text(text: str) -> bytes:
    raw = text.encode()
    return struct.pack("<Q", len(raw)) + raw


def packed(value: Value) -> bytes:
    """A type and a value: strings, unsigned 32-bit integers, and arrays of either."""
    if isinstance(value, str):
        return struct.pack("<I", 8) + packed_text(value)
    if isinstance(value, int):
        return struct.pack("<II", 4, value)
    if value and isinstance(value[0], str):
        return struct.pack("<IIQ", 9, 8, len(value)) + b"".join(packed_text(str(each)) for each in value)
    return struct.pack("<IIQ", 9, 4, len(value)) + b"".join(struct.pack("<I", each) for each in value)


LLAMA: dict[str, Value] = {
    "general.architecture": "llama",
    "general.name": "Test",
    "llama.context_length": 131_072,
    "llama.block_count": 10,
    "llama.embedding_length": 512,
    "llama.attention.head_count": 8,
    "llama.attention.head_count_kv": 2,
    "tokenizer.ggml.tokens": [f"token{number}" for number in range(2000)],
    "tokenizer.ggml.token_type": list(range(2000)),
    "tokenizer.chat_template": "{% if tools %}{{ tools }}{% endif %}{{ messages }}",
}


def write_gguf(
    path: Path,
    fields: Mapping[str, Value] = LLAMA,
    tensors: tuple[tuple[int, ...], ...] = ((512, 2000), (512,)),
    *,
    magic: bytes = b"GGUF",
    version: int = 3,
) -> Path:
    """A file with `fields` and descriptions of tensors of these dimensions."""
    header = magic + struct.pack("<IQQ", version, len(tensors), len(fields))
    header += b"".join(packed_text(key) + packed(value) for key, value in fields.items())
    for number, dimensions in enumerate(tensors):
        header += packed_text(f"tensor{number}") + struct.pack("<I", len(dimensions))
        header += struct.pack(f"<{len(dimensions)}Q", *dimensions) + struct.pack("<IQ", 0, 0)
    path.write_bytes(header)
    return path
