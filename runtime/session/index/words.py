"""What people type into a search, the words of a text, and the passage that shows a find.

Pure. Laws: `fold` takes case and accents away, so `Müller`, `MULLER` and `müller` are one word. Scripts without spaces
(Chinese, Japanese, Thai and others) and emoji are split into single characters, so that any stretch of them is found
as a phrase. `parse_query` takes any text: nothing that a person types is an error. `Query.fits` says what a search
finds; the full-text table only gets there faster.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

_LONGEST_WORD = 64  # characters; what is longer is no word (base64, hashes) and is known by its beginning
_SINGLES = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
    "\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # CJK, kana
    "\u2190-\u2bff\U0001f000-\U0001faff"  # arrows, symbols, emoji
)
_WORD = re.compile(rf"[{_SINGLES}]|[^\W_{_SINGLES}]+")
_ACCENTS = re.compile("[\u0300-\u036f\u0483-\u0487\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]+")  # of letters
_TYPED = re.compile(r'"([^"]*)"?|([^\s"]+)')
_STEP = 4_096  # characters that are searched at a time for the passage of a find
_BEFORE, _WIDTH = 40, 160  # characters of a passage: before the find, and altogether


def fold(text: str) -> str:
    """`text` without case and accents; whitespace is one space."""
    if text.isascii():
        return " ".join(text.lower().split())
    loose = unicodedata.normalize("NFKD", text.casefold())
    bare = _ACCENTS.sub("", loose).casefold()
    return " ".join(unicodedata.normalize("NFC", bare).split())


def words(text: str) -> list[str]:
    """The folded words of `text`, in order."""
    return [word[:_LONGEST_WORD] for word in _WORD.findall(fold(text))]


@dataclass(frozen=True, slots=True)
class Term:
    """One word or phrase of a query. `begins`: its last word may go on. `literal`: the folded text itself must be
    there too, as words alone do not say it (`c++`, `a/b`)."""

    words: tuple[str, ...]
    begins: bool
    literal: str | None

    def fits(self, found: list[str]) -> bool:
        length = len(self.words)
        return any(self._fits_at(found, place) for place in range(len(found) - length + 1)) if length else True

    def _fits_at(self, found: list[str], place: int) -> bool:
        *whole, last = self.words
        end = place + len(whole)
        same = found[end].startswith(last) if self.begins else found[end] == last
        return same and found[place:end] == whole


@dataclass(frozen=True, slots=True)
class Query:
    """What a person looks for: every term must be in the same message."""

    terms: tuple[Term, ...]

    @property
    def match(self) -> str:
        """The query in FTS5's language; empty when only literals are asked for."""
        found = [term for term in self.terms if term.words]
        return " ".join(f'"{" ".join(term.words)}"{" *" if term.begins else ""}' for term in found)

    @property
    def literals(self) -> tuple[str, ...]:
        return tuple(term.literal for term in self.terms if term.literal is not None)

    def has_literals(self, text: str) -> bool:
        folded = fold(text)
        return all(literal in folded for literal in self.literals)

    def fits(self, text: str) -> bool:
        """Whether a message that says `text` is found."""
        found = words(text)
        return bool(self.terms) and all(term.fits(found) for term in self.terms) and self.has_literals(text)


def parse_query(typed: str) -> Query:
    """Words are looked for by their beginnings, what stands in quotes exactly; anything else is text like any other."""
    terms = []
    for quoted, word in _TYPED.findall(typed):
        said = fold(quoted or _trimmed(word))
        if not said:
            continue
        parts = tuple(words(said))
        begins = bool(word) and bool(parts) and (len(parts) > 1 or len(parts[0]) > 1)
        told = "".join(parts) == said.replace(" ", "")
        terms.append(Term(parts, begins, None if told else said))
    return Query(tuple(terms))


def passage(text: str, query: Query) -> str:
    """Some words of `text` around the first find, on one line; what is cut off shows as an ellipsis."""
    start = max(0, _place(text, query) - _BEFORE)
    if start:  # begin with a whole word where one begins soon
        space = text.find(" ", start, start + _BEFORE // 2)
        start = space + 1 if space >= 0 else start
    end = start + _WIDTH
    return ("…" if start else "") + " ".join(text[start:end].split()) + ("…" if end < len(text) else "")


def _trimmed(word: str) -> str:
    """A word without the signs that other searches give a meaning: `dog*`, `+dog`."""
    return word.rstrip("*").lstrip("+") if word.strip("*+") else word


def _place(text: str, query: Query) -> int:
    """Where in `text` the first term is said for the first time; 0 when that cannot be told."""
    if not query.terms:
        return 0
    first = query.terms[0]
    looked_for = first.literal or first.words[0]
    for start in range(0, len(text), _STEP):
        piece = text[start : start + _STEP + len(looked_for)]
        place = _said_at(fold(piece), looked_for, first.literal is None)
        if place is not None:
            return start + _unfolded(piece, place)
    return 0


def _said_at(folded: str, looked_for: str, as_word: bool) -> int | None:
    if not as_word:
        return place if (place := folded.find(looked_for)) >= 0 else None
    for found in _WORD.finditer(folded):
        if found[0].startswith(looked_for):
            return found.start()
    return None


def _unfolded(piece: str, place: int) -> int:
    """The place in `piece` of what stands at `place` in its folded form: folding a beginning gives a beginning."""
    low, high = 0, len(piece)
    while low < high:
        middle = (low + high) // 2
        if len(fold(piece[: middle + 1])) > place:
            high = middle
        else:
            low = middle + 1
    return low
