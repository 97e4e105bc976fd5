"""From the entries of a session to what the index keeps of it.

Pure. Laws: `read_facts` of all entries is what a session is in lists and searches. `go_on` with the entries that were
appended since gives the same as `read_facts` of all, or None where only a whole reading can tell: after a leaf that
moved, a redaction, or an entry that does not follow the leaf. `new_entries` takes bytes only where they are whole
batches without a fault; anything else is for the reader of whole files.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from governors.messages import Document, Text, ToolCall

from ..entries import (
    ArchiveRecord,
    Entry,
    Header,
    LabelRecord,
    LeafRecord,
    MessageRecord,
    OutcomeRecord,
    PinRecord,
    RedactRecord,
    RequestRecord,
)
from ..format.blobs import BlobStore
from ..format.codec import BadLine, decode_entry
from ..format.large import MISSING_IMAGE, MISSING_TEXT
from ..tree import leaf_after
from ..view.redaction import input_of, is_delivery
from .listing import milliseconds

_TITLE = 80  # characters


@dataclass(slots=True, kw_only=True)
class Facts:
    """What a list shows of a session, and (`leaf`, `newest`, `hidden`: entry ids) what reading on needs. `said` is in
    milliseconds since 1970; `title` is how the person began. Whoever was given one does not change it."""

    said: int | None = None
    title: str = ""
    models: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    pinned: bool = False
    archived: bool = False
    cost: float | None = 0.0
    messages: int = 0
    calls: int = 0
    leaf: int | None = None
    newest: int = 0
    hidden: int = 0  # the highest entry that a redaction names


@dataclass(frozen=True, slots=True)
class Said:
    """What somebody said in one entry. `at` is in milliseconds since 1970; `current`: on the current branch."""

    entry: int
    at: int
    who: Literal["user", "assistant"]
    text: str
    current: bool = True


def read_facts(header: Header, entries: Sequence[Entry]) -> tuple[Facts, tuple[Said, ...]]:
    """What the index keeps of a session with all its `entries`."""
    hidden = {entry.record.target for entry in entries if isinstance(entry.record, RedactRecord)}
    if hidden:  # a message goes with the input that it brought
        hidden |= {each.id for each in entries if is_delivery(each.record) and input_of(each) in hidden}
    parents: dict[int, int | None] = {}
    facts = Facts(hidden=max(hidden, default=0))
    said: list[Said] = []
    for entry in entries:
        told = None if entry.id in hidden else said_in(entry, header)
        _take(facts, entry, told, parents, header.copied)
        parents[entry.id] = entry.parent
        if told is not None:
            said.append(told)
    branch = _branch(facts.leaf, parents)
    return facts, tuple(each if each.entry in branch else replace(each, current=False) for each in said)


def go_on(header: Header, facts: Facts, entries: Iterable[Entry]) -> tuple[Facts, tuple[Said, ...]] | None:
    """The facts with `entries` appended, and what is said in these; None: read the whole session."""
    said = []
    facts = replace(facts)
    for entry in entries:
        record = entry.record
        if entry.id <= max(facts.newest, facts.hidden) or entry.parent != facts.leaf:
            return None
        if isinstance(record, LeafRecord | RedactRecord):
            return None
        if facts.hidden and is_delivery(record):
            return None
        told = said_in(entry, header)
        _take(facts, entry, told, (), header.copied)
        if told is not None:
            said.append(told)
    return facts, tuple(said)


def new_entries(data: bytes, blobs: BlobStore | None = None) -> tuple[Entry, ...] | None:
    """The entries of lines that were appended; None when they are not whole batches without a fault."""
    if not data.endswith(b"\n"):
        return None if data else ()
    entries: list[Entry] = []
    until: int | None = None
    for line in data[:-1].split(b"\n"):
        try:
            entry, last = decode_entry(line, blobs)
        except BadLine:
            return None
        if until is not None and (entry.id != entries[-1].id + 1 or last not in (until, None)):
            return None
        if until is not None and (last is None) != (entry.id == until):
            return None
        until = last
        entries.append(entry)
    return tuple(entries) if until is None else None


def said_in(entry: Entry, header: Header) -> Said | None:
    """What a person or a model says in `entry`: no context, no thinking, no calls; None: nothing."""
    record = entry.record
    if not isinstance(record, MessageRecord):
        return None
    texts = (
        part.name if isinstance(part, Document) else part.text
        for part in record.content
        if isinstance(part, (Text, Document))
    )
    text = "\n\n".join(each for each in texts if each not in (MISSING_TEXT, MISSING_IMAGE))
    if not text.strip():
        return None
    return Said(entry.id, _moment(entry, header), record.role, text)


def _take(facts: Facts, entry: Entry, told: Said | None, known: Container[int], copied: int) -> None:
    """Count `entry` in; those up to `copied` were paid for by another session."""
    facts.leaf = leaf_after(entry, facts.leaf, known)
    facts.newest = entry.id
    match entry.record:
        case MessageRecord(role=role, content=content, model=model):
            if told is not None and role == "user" and not facts.title:
                facts.title = _title(told.text)
            moment = milliseconds(entry.at)
            facts.said = facts.said if moment is None else moment
            facts.messages += 1
            facts.calls += sum(isinstance(part, ToolCall) for part in content)
            facts.models = _with_model(facts.models, model)
        case RequestRecord(provider=provider, model=model):
            facts.models = _with_model(facts.models, f"{provider}/{model}")
        case OutcomeRecord(usage=usage, cost=cost) if usage is not None and entry.id > copied:
            facts.cost = None if facts.cost is None or cost is None else facts.cost + cost
        case LabelRecord(target=None, text=text, on=on):
            tag = " ".join(text.split())
            others = tuple(each for each in facts.tags if each != tag)
            facts.tags = (*others, tag) if on and tag else others
        case PinRecord(target=None, on=on):
            facts.pinned = on
        case ArchiveRecord(on=on):
            facts.archived = on
        case _:
            pass


def _with_model(models: tuple[str, ...], model: str | None) -> tuple[str, ...]:
    """Each model once: a reply names it alone, where its request has named it with its provider."""
    name = " ".join((model or "").split())
    known = not name or any(each == name or each.endswith(f"/{name}") for each in models)
    return models if known else (*models, name)


def _moment(entry: Entry, header: Header) -> int:
    found = milliseconds(entry.at)
    return found if found is not None else milliseconds(header.created) or 0


def _title(text: str) -> str:
    line = " ".join(text[: _TITLE * 8].split())
    if len(line) <= _TITLE:
        return line
    short = line[:_TITLE]
    return (short.rsplit(" ", 1)[0] if " " in short[_TITLE // 2 :] else short) + "…"


def _branch(leaf: int | None, parents: dict[int, int | None]) -> set[int]:
    branch = set()
    while leaf is not None:
        branch.add(leaf)
        leaf = parents[leaf]
    return branch
