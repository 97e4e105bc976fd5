"""What the runtime knows of a local model before it is loaded: figures from the file's header, and why they are so.

SmolLM2-135M (Q4_1, two threads of a plain server CPU, llama.cpp of xllamacpp 2026.10) was measured:

- Its training context is 8,192 tokens. A prompt of 3,600 takes 18 s to read when nothing is cached and answers
  come at 37 tokens/s; one of 6,900 takes 48 s and 20 tokens/s (one thread: 32 s and 86 s). So its window is 4,096.
- Its tokenizer finds, for each token of o200k_base: English and code 1.06 to 1.26, JSON 1.32 to 1.37, log lines 1.54,
  German, French and Spanish up to 1.85, emoji 1.8, tables of numbers 1.97. So the factor is 2.0. What it was not
  made for is more (Russian, Chinese, Japanese, Arabic 2.7 to 3.0, Hindi, Korean, Thai up to 4.05; digits alone 3.0,
  newlines alone 4.0): there the server's own refusal, which carries the numbers, is what keeps a request in bounds.
- Its chat template adds at most 6 tokens for each message and 4 at the end, and without a system message 21 more.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from governors.wire.base import Abilities

from .base import ModelInfo, Price
from .gguf import GgufHeader, read_header
from .weights import SMOLLM2

SMOLLM2_WINDOW = 4096
SMOLLM2_TOKEN_FACTOR = 2.0

#: The longest window of any local model, in tokens, unless the user asks for more. A processor without a graphics
#: card reads about 100 tokens a second, so that a full one takes minutes when nothing of it is cached.
LONGEST_WINDOW = 16_384

#: Models under this many weights follow a long system prompt badly: they get the tiny profile.
FULL_PROFILE = 1_500_000_000

_FREE = Price(plain=0.0, output=0.0, cache_read=0.0, cache_write_5m=0.0, cache_write_1h=0.0)
_CACHE_SHARE = 4  # the attention cache may take one part in so many of the machine's memory
_STEP = 256  # llama.cpp pads a context to a multiple of this
_SHORTEST = 1024
_WIDE_VOCABULARY = 100_000  # tokens; from here on a vocabulary is about as fine as o200k_base (200,000)

_USES_TOOLS = re.compile(r"\{[%{][^}]*\btools\b")
_ALTERNATES = re.compile(r"must alternate", re.IGNORECASE)
_NINE_CHARACTERS = re.compile(r"IDs should be alphanumeric strings with length 9")


def is_smollm2(path: Path) -> bool:
    """Whether `path` is the file that `moonwake model get smollm2` keeps, or a copy of it (by name and size)."""
    try:
        return path.name == SMOLLM2.file_name and path.stat().st_size == SMOLLM2.size
    except OSError:
        return False


def describe(path: Path, *, window: int | None = None, memory: int | None = None) -> ModelInfo:
    """The `ModelInfo` of a model file. `window` (tokens) overrules the choice made here, within the training context.

    `memory` is the machine's whole memory in bytes, None where unknown: the whole and not what is free now, so that
    a session finds the same window tomorrow. Raises `ModelUnavailable` where the file cannot be used.
    """
    header = read_header(path)
    if is_smollm2(path):
        return ModelInfo(
            id="smollm2-135m",
            provider="local",
            wire="openai_chat",
            window=min(window or SMOLLM2_WINDOW, header.window),
            max_output=512,
            abilities=Abilities(tools=False, parallel_tools=False, forced_tool=False),
            token_factor=SMOLLM2_TOKEN_FACTOR,
            price=_FREE,
            profile="tiny",
        )
    window = min(window, header.window) if window else fitting_window(header, memory)
    return ModelInfo(
        id=path.stem,
        provider="local",
        wire="openai_chat",
        window=window,
        max_output=min(2048, window // 4),
        abilities=template_abilities(header.chat_template),
        token_factor=1.5 if header.vocabulary >= _WIDE_VOCABULARY else 2.0,
        price=_FREE,
        profile="full" if header.parameters >= FULL_PROFILE else "tiny",
    )


def fitting_window(header: GgufHeader, memory: int | None) -> int:
    """The training context, cut to what memory holds and a processor reads in bearable time (tokens)."""
    window = min(header.window, LONGEST_WINDOW)
    if memory and header.cache_bytes:
        window = min(window, max(_SHORTEST, memory // _CACHE_SHARE // header.cache_bytes))
    return window - window % _STEP if window > _STEP else window


def template_abilities(template: str) -> Abilities:
    """What a chat template takes: tools if it reads `tools`; order and ids by what it says it refuses."""
    tools = bool(_USES_TOOLS.search(template))
    return Abilities(
        tools=tools,
        parallel_tools=tools,
        forced_tool=tools,
        strict_alternation=bool(_ALTERNATES.search(template)),
        id_pattern=r"[A-Za-z0-9]{9}" if _NINE_CHARACTERS.search(template) else Abilities().id_pattern,
    )


def whole_memory() -> int | None:
    """The machine's memory in bytes, None where the system does not say."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def default_threads(cores: int) -> int:
    """How many threads compute: two where there are two cores, else half of them (the rest are often half-cores)."""
    return max(min(cores, 2), min(cores // 2, 8))
