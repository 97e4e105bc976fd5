"""Fill a folder that tiktoken takes for its cache (TIKTOKEN_CACHE_DIR), from files that packages ship.

    python fill_vocabularies.py FOLDER

o200k_base comes with this project, cl100k_base with the wheel of bpe-openai. tiktoken itself tells what a file is
called there and what its hash must be, so a wrong file cannot pass.
"""

from __future__ import annotations

import gzip
import hashlib
import sys
from importlib import resources
from pathlib import Path

from tiktoken_ext import openai_public

OURS = Path(__file__).resolve().parents[2] / "governors" / "data" / "o200k_base.tiktoken.gz"


def source_and_hash(name: str) -> tuple[str, str]:
    """Where tiktoken would fetch a vocabulary, and the SHA-256 that it demands."""
    asked: list[tuple[str, str]] = []

    def note(source: str, expected_hash: str = "") -> dict[bytes, int]:
        asked.append((source, expected_hash))
        return {}

    original = openai_public.load_tiktoken_bpe
    openai_public.load_tiktoken_bpe = note
    try:
        getattr(openai_public, name)()
    finally:
        openai_public.load_tiktoken_bpe = original
    return asked[0]


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    theirs = resources.files("bpe_openai").joinpath("data/cl100k_base.tiktoken.gz")
    for name, packed in (("o200k_base", OURS.read_bytes()), ("cl100k_base", theirs.read_bytes())):
        source, expected = source_and_hash(name)
        vocabulary = gzip.decompress(packed)
        if hashlib.sha256(vocabulary).hexdigest() != expected:
            sys.exit(f"{name}: the shipped file is not the one that tiktoken expects (SHA-256 {expected})")
        (folder / hashlib.sha1(source.encode()).hexdigest()).write_bytes(vocabulary)


if __name__ == "__main__":
    main()
