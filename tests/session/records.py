"""Hypothesis strategies for entries of every type, and the bytes of session files."""

from __future__ import annotations

from typing import Any, get_args

from hypothesis import settings
from hypothesis import strategies as st

from governors.messages import CompactionItem, Document, Image, StopReason, Text, Thinking, ToolCall, ToolSpec, Usage
from runtime.session.entries import (
    ArchiveRecord,
    Baseline,
    BranchSummaryRecord,
    CompactionRecord,
    EditRecord,
    Entry,
    ExtensionRecord,
    Header,
    HeadRecord,
    InboxRecord,
    InboxState,
    IntentRecord,
    LabelRecord,
    LeafRecord,
    MessageRecord,
    NoteRecord,
    OutcomeRecord,
    Pinned,
    PinRecord,
    Record,
    RedactRecord,
    RequestRecord,
    ResultRecord,
    SettingRecord,
    SystemRecord,
    UnknownRecord,
    Waiting,
)
from runtime.session.format.codec import encode_batch, encode_header

HEADER = Header(id="0193", agent="assistant", created="2026-11-30T18:00:00Z")
AT = "2026-11-30T18:00:01.250Z"

#: For properties: machines that are shared may pause at any moment.
patient = settings(deadline=None)

texts = st.text(max_size=12)
ids = st.integers(1, 10**6)
numbers = st.integers(0, 10**9)
references = st.tuples(ids, st.integers(0, 40))
seconds = st.none() | st.floats(0, 1e6)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)
json_objects = st.dictionaries(texts, json_values, max_size=3)

text_parts = st.builds(Text, texts, st.none() | texts)
image_parts = st.builds(Image, texts, texts, st.none() | numbers, st.none() | numbers)
thinking_parts = st.builds(Thinking, texts, st.none() | texts, st.booleans())
call_parts = st.builds(ToolCall, texts, texts, texts, st.booleans())
document_parts = st.builds(Document, texts, texts, texts, st.none() | numbers, st.none() | texts)
shown = st.lists(text_parts | image_parts | document_parts, max_size=3).map(tuple)
parts = st.lists(text_parts | image_parts | document_parts | thinking_parts | call_parts, max_size=4).map(tuple)
usages = st.builds(Usage, *([numbers] * 6))
stops = st.sampled_from(get_args(StopReason))
specs = st.lists(st.builds(ToolSpec, texts, texts, json_objects, st.booleans(), st.booleans()), max_size=2).map(tuple)

KNOWN: dict[type, st.SearchStrategy[Any]] = {
    MessageRecord: st.builds(
        MessageRecord,
        role=st.sampled_from(["user", "assistant"]),
        content=parts,
        context=st.none() | texts,
        inbox=st.none() | ids,
        steered=st.booleans(),
        stop=st.none() | stops,
        model=st.none() | texts,
        wire=st.none() | texts,
        usage=st.none() | usages,
    ),
    IntentRecord: st.builds(IntentRecord, call=references, tool=texts, read_only=st.booleans()),
    ResultRecord: st.builds(
        ResultRecord,
        call=references,
        tool=texts,
        content=shown,
        is_error=st.booleans(),
        seconds=seconds,
        whole=st.none() | texts,
    ),
    SystemRecord: st.builds(
        SystemRecord,
        sections=st.dictionaries(texts, st.none() | texts, max_size=3),
        tools_added=specs,
        tools_removed=st.lists(texts, max_size=2).map(tuple),
    ),
    SettingRecord: st.builds(SettingRecord, name=texts, value=json_values),
    EditRecord: st.builds(
        EditRecord,
        action=st.sampled_from(["omit", "replace", "restore"]),
        target=ids,
        cause=texts,
        block=st.none() | numbers,
        content=shown,
        forecast=st.none() | json_objects,
    ),
    HeadRecord: st.builds(
        HeadRecord,
        start=ids,
        baseline=st.builds(Baseline, sections=st.dictionaries(texts, texts, max_size=3), tools=specs),
        cause=texts,
        generation=numbers,
        resume=st.none() | ids,
        summary=st.none() | texts,
        item=st.none() | st.builds(CompactionItem, vendor=texts, wire=texts, payload=texts, tokens=numbers),
        quote=st.none() | texts,
        placement=st.sampled_from(["first", "last"]),
        pins=st.lists(st.builds(Pinned, entry=ids, said=texts, content=shown), max_size=2).map(tuple),
        settings=json_objects,
        open_calls=st.lists(references, max_size=2).map(tuple),
        inbox=st.lists(
            st.builds(
                Waiting,
                entry=ids,
                state=st.sampled_from(get_args(InboxState)),
                content=shown,
                context=st.none() | texts,
            ),
            max_size=2,
        ).map(tuple),
        spent=seconds,
        before=numbers,
        after=numbers,
        breaker=json_objects,
    ),
    CompactionRecord: st.builds(
        CompactionRecord,
        timing=texts,
        reason=texts,
        strategy=texts,
        result=st.sampled_from(["done", "nothing", "failed"]),
        why=texts,
        before=numbers,
        after=numbers,
        folded=numbers,
        requests=st.lists(ids, max_size=2).map(tuple),
        cost=seconds,
        dropped=st.lists(texts, max_size=2).map(tuple),
        breaker=json_objects,
    ),
    RequestRecord: st.builds(
        RequestRecord,
        purpose=texts,
        provider=texts,
        model=texts,
        wire=texts,
        prefix=texts,
        forecast=numbers,
        budget=numbers,
        blocks=numbers,
        lifetime=numbers,
        thinking=st.none() | texts,
        stand_ins=st.lists(references, max_size=2).map(tuple),
        decisions=st.lists(ids, max_size=2).map(tuple),
    ),
    OutcomeRecord: st.builds(
        OutcomeRecord,
        request=ids,
        stop=stops,
        usage=st.none() | usages,
        cost=seconds,
        cause=st.none() | texts,
        problem=st.none() | json_objects,
        seconds=seconds,
    ),
    InboxRecord: st.builds(
        InboxRecord,
        state=st.sampled_from(get_args(InboxState)),
        item=st.none() | ids,
        content=shown,
        context=st.none() | texts,
    ),
    LeafRecord: st.builds(LeafRecord, leaf=st.none() | ids),
    NoteRecord: st.builds(NoteRecord, text=texts, data=st.none() | json_objects),
    PinRecord: st.builds(PinRecord, target=st.none() | ids, on=st.booleans()),
    LabelRecord: st.builds(LabelRecord, text=texts, target=st.none() | ids, on=st.booleans()),
    ArchiveRecord: st.builds(ArchiveRecord, on=st.booleans()),
    RedactRecord: st.builds(RedactRecord, target=ids, cause=texts),
    BranchSummaryRecord: st.builds(BranchSummaryRecord, text=texts, tip=ids, fork=st.none() | ids),
    ExtensionRecord: st.builds(ExtensionRecord, name=texts, data=json_objects, content=shown),
}
_PLACE = {"id", "parent", "at", "type", "until"}
unknown = st.builds(
    lambda body, kind: UnknownRecord(raw={"type": kind, **{k: v for k, v in body.items() if k not in _PLACE}}),
    json_objects,
    st.sampled_from(["moon", "from-the-future", ""]),
)
records: st.SearchStrategy[Record] = st.one_of(*KNOWN.values(), unknown)
entries = st.builds(Entry, ids, st.none() | ids, texts, records)


@st.composite
def batches(draw: st.DrawFn, kinds: st.SearchStrategy[Record] = records) -> list[tuple[Entry, ...]]:
    """The batches of a valid file: ids rise, parents are earlier entries."""
    found: list[tuple[Entry, ...]] = []
    number = 0
    for size in draw(st.lists(st.integers(1, 4), max_size=4)):
        batch = []
        for _ in range(size):
            parent = draw(st.none() | st.integers(1, number)) if number else None
            number += 1
            batch.append(Entry(number, parent, AT, draw(kinds)))
        found.append(tuple(batch))
    return found


def file_of(*batches: tuple[Entry, ...]) -> bytes:
    """A session file that holds `batches`."""
    return encode_header(HEADER) + b"".join(encode_batch(batch) for batch in batches)


def user(text: str, **fields: Any) -> MessageRecord:
    return MessageRecord(role="user", content=(Text(text),), **fields)


def chain(first: int, last: int, parent: int | None = None) -> tuple[Entry, ...]:
    """A batch of user messages with the ids `first` to `last`, each hanging on the one before."""
    return tuple(
        Entry(number, (number - 1 or None) if number > first else parent, AT, user(f"message {number}"))
        for number in range(first, last + 1)
    )
