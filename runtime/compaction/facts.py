"""What a summary must not lose without saying so: the figures, names and quoted words of what people said. Pure.

Found without a model: addresses, paths, quotations, identifiers and numbers. Laws:
- Each is found once, in the order of the text; what stands inside another one is not found again.
- What is said to be missing does not stand in the summary, whatever the case of its letters, the kind of its quotation
  marks or the marks between its thousands; what stands there as a part of a longer word or number does not count.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

_LONGEST = 300  # characters of a quotation; what is longer is no short instruction but a text

_WORD = r"[^\W_]"
#: In this order: what is found first hides what stands inside it.
_KINDS = tuple(
    re.compile(pattern)
    for pattern in (
        r"\b[A-Za-z][A-Za-z0-9+.-]*://[^\s<>\"'`“”«»)\]}]+",  # an address
        r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+",  # of mail
        rf'"[^"\n]{{1,{_LONGEST}}}"|“[^”\n]{{1,{_LONGEST}}}”|«[^»\n]{{1,{_LONGEST}}}»|`[^`\n]{{1,{_LONGEST}}}`',
        rf"(?<!\w)'[^'\n]{{2,{_LONGEST}}}'(?!\w)|‘[^’\n]{{2,{_LONGEST}}}’",
        r"(?<![\w/.~])(?:~|\.{1,2})?/(?:[\w.@+-]+/)*[\w.@+-]+/?|\b[A-Za-z]:\\[^\s\"'<>|]+",  # a path
        r"\b[\w.-]+(?:/[\w.-]+)+\b",
        rf"\b{_WORD}[\w-]+\.[A-Za-z][A-Za-z0-9]{{0,5}}\b",  # a file's name
        rf"\b(?=[\w-]*\d)(?=[\w-]*[^\W\d_]){_WORD}[\w-]*{_WORD}\b",  # letters and digits: a code
        r"(?<![\w.])[-+−]?\d(?:[\d.,:/’'_-]*\d)?%?(?!\w)",  # a number, a date, a time, a version
        r"\b\w+_\w+\b|\b[a-z]+[A-Z]\w*\b|\b[A-Z][a-z0-9]+[A-Z]\w*\b",  # names as programs have them
    )
)
_TAIL = ".,;:!?)]}…"
_QUOTES = str.maketrans({"“": '"', "”": '"', "«": '"', "»": '"', "„": '"', "‘": "'", "’": "'", "−": "-", "\u00a0": " "})
_THOUSANDS = re.compile(r"(?<=\d)[,’' _\u202f](?=\d{3}(?!\d))")
_MARKS = "\"'`"


def facts_of(text: str) -> tuple[str, ...]:
    """The facts of `text`, in order, each once."""
    found = sorted(_found(text))
    return tuple(dict.fromkeys(fact for _, fact in found))


def missing(said: Iterable[str], summary: str) -> tuple[str, ...]:
    """The facts of the texts `said` that `summary` does not hold, in order, each once."""
    held = _plain(summary)
    facts = dict.fromkeys(fact for text in said for fact in facts_of(text))
    return tuple(fact for fact in facts if not _stands(_plain(fact.strip(_MARKS + "“”«»‘’")), held))


def _found(text: str) -> Iterator[tuple[int, str]]:
    left = text
    for kind in _KINDS:
        for match in kind.finditer(left):
            fact = match.group().rstrip(_TAIL)
            if fact:
                yield match.start(), fact
        left = kind.sub(lambda match: " " * len(match.group()), left)


def _plain(text: str) -> str:
    """How two texts are compared: without what differs between people who mean the same."""
    return " ".join(_THOUSANDS.sub("", text.translate(_QUOTES)).casefold().split())


def _stands(fact: str, text: str) -> bool:
    """Whether `fact` stands in `text` as a whole."""
    if not fact:
        return True
    before = r"(?<!\w)" if fact[0].isalnum() or fact[0] == "_" else ""
    if fact[0].isdigit():
        before = r"(?<!\w)(?<!\d[.,])"
    after = r"(?!\w)" if fact[-1].isalnum() or fact[-1] == "_" else ""
    if fact[-1].isdigit():
        after = r"(?!\w)(?![.,]\d)"
    return re.search(before + re.escape(fact) + after, text) is not None
