"""A session without what was redacted in it. Pure: bytes in, bytes out.

Laws:
- What a redacted entry said is replaced by `ERASED`, part by part; who it was, when, where in the tree, and which
  result answers which call stay. So is what was made from it: the input that brought it, pins and quotes of it, what
  edits put in its place, its labels. Of a summary that was made from it nothing stays.
- Every other line stays byte for byte.
- What a model is shown of a summary changes then, so a last line says so: the newest redaction once more, with the
  cause `ERASURE`.
- A line that cannot be read may hold it too: it is left out, and told.
- Doing it again changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any

from governors.scrub import scrub

from ..entries import (
    BranchSummaryRecord,
    CompactionRecord,
    Entry,
    ExtensionRecord,
    HeadRecord,
    InboxRecord,
    LabelRecord,
    MessageRecord,
    NoteRecord,
    RedactRecord,
    RequestRecord,
    ResultRecord,
    UnknownRecord,
)
from ..format.codec import encode_entry
from ..format.located import Located, locate, raw_object
from ..format.reading import Finding, Reading, read_header
from ..placing import place
from ..tree import Tree
from ..view.redaction import redactions_of, stale_summaries, with_copies
from .wordless import ERASED as ERASED
from .wordless import NO_WORDS, arguments_of, without_value, without_words

ERASED_SUMMARY = "[A summary stood here. Something that it was made from has been erased, and the summary with it.]"

ERASURE = "erased"  # the cause of the `redact` entry that tells of it

_Raw = dict[str, Any]
#: Entries that may hold what was made from others.
_DERIVED = ("edit", "head", "label", "compaction", "request")
_PLACE = ("id", "parent", "at", "until", "type")
#: What stays of a redacted entry beside its place and its content.
_KEPT: Mapping[type, tuple[str, ...]] = {
    MessageRecord: ("role", "content", "inbox", "steered", "stop", "model", "wire", "usage"),
    ResultRecord: ("call", "tool", "content", "is_error", "seconds"),
    InboxRecord: ("state", "item", "content"),
    NoteRecord: ("text",),
    LabelRecord: ("text", "target", "on"),
    ExtensionRecord: ("name", "content", "before", "inbox"),
    BranchSummaryRecord: ("text", "tip", "fork"),
    UnknownRecord: (),
}


@dataclass(frozen=True, slots=True)
class Erased:
    """The new file: `data`. `entries` said something that is gone, `derived` held something made from it; `dropped`
    are lines that are left out. `problems` is what could not be erased or judged. `texts` is what was erased."""

    data: bytes
    entries: tuple[int, ...]
    derived: tuple[int, ...]
    dropped: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    texts: tuple[str, ...] = field(default=(), repr=False)


def redacted_in(entries: Iterable[Entry]) -> frozenset[int]:
    """What is to be erased: the targets of redactions, and the copies of each: the input that brought it, and all
    messages that brought that input."""
    known = {entry.id: entry for entry in entries}
    redactions = {target: since for target, since in redactions_of(known.values()).items() if target in known}
    return frozenset(with_copies(known, redactions))


def erase(data: bytes, reading: Reading, at: str) -> Erased:
    """The session file `data`, which says `reading`, without what was redacted in it; `at` is the time (UTC, ISO 8601)
    of the entry that tells of it."""
    located = locate(data, reading)
    gone = redacted_in(reading.entries)
    lines = _Lines(reading.entries, gone)
    new = [lines.line(each) for each in located]
    told = _told(reading.entries, at) if lines.summaries else b""
    return Erased(
        data=b"\n".join([data[: read_header(data).end].rstrip(b"\n"), *_rebound(located, new), told]),
        entries=tuple(sorted(lines.erased)),
        derived=tuple(sorted(lines.derived)),
        dropped=tuple(f"{finding}; the line is left out" for finding in _dropped(reading)),
        problems=tuple(lines.problems),
        texts=tuple(dict.fromkeys(lines.texts)),
    )


class _Lines:
    def __init__(self, entries: Sequence[Entry], gone: Collection[int]) -> None:
        self.erased: set[int] = set()
        self.derived: set[int] = set()
        self.summaries: set[int] = set()
        self.problems: list[str] = []
        self.texts: list[str] = []
        self._gone = gone
        self._stale = stale_summaries(entries)
        self._entries = {entry.id: entry for entry in entries}
        self._times = with_copies(self._entries, redactions_of(entries))

    def line(self, each: Located) -> bytes:
        """The new line of an entry; the same object where nothing of it goes."""
        entry = each.entry
        if entry.id in self._gone:
            change = self._erase
        elif entry.id in self._stale or entry.record.type in _DERIVED:
            change = self._derive
        else:
            return each.content
        raw = raw_object(each.content)
        new = change(entry, raw)
        if new == raw:
            return each.content
        (self.erased if entry.id in self._gone else self.derived).add(entry.id)
        if new.get("summary") != raw.get("summary") or (entry.id in self._stale and new.get("text") != raw.get("text")):
            self.summaries.add(entry.id)
        return _dumped(new)

    def _erase(self, entry: Entry, raw: _Raw) -> _Raw:
        """A redacted entry."""
        derived = self._derive(entry, raw)
        kept = _KEPT.get(type(entry.record))
        if isinstance(entry.record, HeadRecord):
            return {**derived, **self._replaced(derived, "summary"), **self._replaced(derived, "quote")}
        if entry.record.type == "edit":
            return {**derived, **self._content(derived)}
        if kept is None:
            self.problems.append(f"entry {entry.id} is a {entry.record.type}: it was redacted, but stays as it was")
            return raw
        if isinstance(entry.record, UnknownRecord):
            self.problems.append(
                f"entry {entry.id} is of an unknown type ({raw.get('type')}): all that it said is gone"
            )
        left = {name: value for name, value in raw.items() if name in _PLACE or name in kept}
        self._remember({name: value for name, value in raw.items() if name not in left and name != "context"})
        return {**left, **self._replaced(left, "text"), **self._content(left)}

    def _derive(self, entry: Entry, raw: _Raw) -> _Raw:
        """What was made from redacted entries goes from an entry of its own."""
        match entry.record:
            case BranchSummaryRecord() if entry.id in self._stale:
                return {**raw, "text": ERASED_SUMMARY}
            case HeadRecord() as record:
                return self._head(entry, record, raw)
            case LabelRecord(target=target) if target in self._gone:
                return {**raw, **self._replaced(raw, "text")}
            case CompactionRecord(dropped=dropped) if dropped and self._may_hold(entry):
                return {**raw, "dropped": [ERASED]}  # which words came from where is not told
            case RequestRecord(changes=changes, asked=asked) if (changes or asked) and self._may_hold(entry):
                new = {"changes": [without_value(each) for each in raw["changes"]]} if changes else {}
                return {**raw, **new, **({} if asked is None else {"asked": ERASED})}
        if raw["type"] == "edit" and raw.get("target") in self._gone:
            return {**raw, **self._content(raw)}
        return raw

    def _may_hold(self, entry: Entry) -> bool:
        """Whether `entry` was made when something could be seen that was redacted later."""
        return any(target < entry.id < self._times.get(target, inf) for target in self._gone)

    def _head(self, entry: Entry, record: HeadRecord, raw: _Raw) -> _Raw:
        new = dict(raw)
        if entry.id in self._stale and record.summary is not None:
            new["summary"] = ERASED_SUMMARY
            new.pop("item", None)  # nobody can tell what it holds
        if record.quote is not None and self._quotes_redacted(record):
            new |= self._replaced(raw, "quote")
        for name in ("pins", "inbox"):
            if isinstance(raw.get(name), list):
                new[name] = [self._carried(each) for each in raw[name]]
        return new

    def _carried(self, raw: _Raw) -> _Raw:
        if raw.get("entry") not in self._gone:
            return raw
        return {**{name: value for name, value in raw.items() if name != "context"}, **self._content(raw)}

    def _quotes_redacted(self, record: HeadRecord) -> bool:
        if record.quoted is not None:
            return record.quoted in self._gone
        above = self._entries.get(record.start)  # it does not say: the reply before its first message, then
        while above is not None and above.parent is not None:
            above = self._entries.get(above.parent)
            if above is not None and isinstance(above.record, MessageRecord) and above.record.role == "assistant":
                return above.id in self._gone
        return False

    def _replaced(self, raw: _Raw, name: str) -> _Raw:
        """The field `name`, if there is one, without what it said."""
        if name not in raw:
            return {}
        self._remember(raw[name])
        return {name: ERASED}

    def _content(self, raw: _Raw) -> _Raw:
        if not isinstance(raw.get("content"), list):
            return {}
        new = [without_words(part) for part in raw["content"]]
        self._remember([part for part, left in zip(raw["content"], new, strict=True) if part != left])
        return {"content": new}

    def _remember(self, value: Any) -> None:
        """Keep the texts in `value`, to look for them elsewhere."""
        if isinstance(value, str):
            if value.strip() and value != ERASED:
                self.texts.append(value)
        elif isinstance(value, list):
            for each in value:
                self._remember(each)
        elif isinstance(value, dict):
            known = NO_WORDS.get(str(value.get("type")), ("type",))
            for name, each in value.items():
                if name == "arguments" and isinstance(each, str):
                    self._remember(arguments_of(each))
                if name not in known:
                    self._remember(each)


def _told(entries: Sequence[Entry], at: str) -> bytes:
    """The line that says that summaries were erased."""
    known = {entry.id for entry in entries}
    redacted = (entry.record.target for entry in reversed(entries) if isinstance(entry.record, RedactRecord))
    target = next(each for each in redacted if each in known)
    (entry,) = place(Tree(entries), (RedactRecord(target=target, cause=ERASURE),), at)
    return encode_entry(entry)


def _dropped(reading: Reading) -> list[Finding]:
    return [finding for finding in reading.findings if finding.content]


def _rebound(located: Sequence[Located], lines: list[bytes]) -> list[bytes]:
    """`lines`, where a batch at the end whose last lines are left out ends with the last that is there: a reader would
    take it for one that was never finished."""
    until = located[-1].until if located else None
    if until is None:
        return lines
    last = located[-1].entry.id

    def bound(each: Located, line: bytes) -> bytes:
        if each.until != until:
            return line
        raw = raw_object(line)
        if each.entry.id == last:
            del raw["until"]
        else:
            raw["until"] = last
        return _dumped(raw)

    return [bound(each, line) for each, line in zip(located, lines, strict=True)]


def _dumped(raw: _Raw) -> bytes:
    return scrub(json.dumps(raw, ensure_ascii=False, separators=(",", ":"))).encode()
