"""Where in a folder a text still stands, in the ways that our files write it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from .gc import chunks, files_of

_LEAST = 12  # characters: shorter texts stand everywhere
_MOST = 200  # texts that are looked for; the longest


def still_holding(state: Path, texts: Sequence[str]) -> list[str]:
    """Which files under the folder `state` (and what is linked there as a session) hold one of `texts` word for word,
    each as a sentence. Words in other words, and texts of fewer than 12 characters, are not found."""
    looked_for = sorted({text for text in texts if len(text.strip()) >= _LEAST}, key=len, reverse=True)[:_MOST]
    if not looked_for:
        return []
    forms = {form for text in looked_for for form in _forms(text)}
    problems: list[str] = []
    for path in (*files_of(state, problems, everything=True),):
        try:
            found = _found(path, forms)
        except OSError as error:
            problems.append(f"{path} cannot be searched: {error.strerror or error}")
        else:
            if found:
                problems.append(found)
    return problems


def _forms(text: str) -> set[bytes]:
    """As it stands in text files, in JSON, and in JSON inside JSON."""
    once = (json.dumps(text, ensure_ascii=ascii_only)[1:-1] for ascii_only in (False, True))
    twice = (json.dumps(json.dumps(text, ensure_ascii=False)[1:-1], ensure_ascii=False)[1:-1],)
    return {form.encode("utf-8", "replace") for form in (text, *once, *twice)}


def _found(path: Path, forms: set[bytes]) -> str | None:
    if not path.is_file():
        return None
    longest = max(map(len, forms))
    lines = 1
    with path.open("rb") as file:
        for chunk in chunks(file, longest):
            places = [place for form in forms if (place := chunk.find(form)) >= 0]
            if places:
                line = lines + chunk.count(b"\n", 0, min(places))
                where = f"{path}, line {line}," if path.suffix == ".jsonl" else str(path)
                return f"{where} still holds something that was erased"
            lines += chunk.count(b"\n", 0, len(chunk) - longest)
    return None
