"""The codec: entries to lines and back."""

from __future__ import annotations

import contextlib
import json
import math
from dataclasses import replace
from hashlib import sha256
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from governors.messages import Image, Text
from runtime.session.entries import (
    Baseline,
    Blob,
    EditRecord,
    Entry,
    ExtensionRecord,
    HeadRecord,
    InboxRecord,
    LeafRecord,
    MessageRecord,
    NoteRecord,
    Pinned,
    Record,
    ResultRecord,
    SettingRecord,
    UnknownRecord,
    Waiting,
)
from runtime.session.format.codec import (
    BadLine,
    decode_batch,
    decode_entry,
    decode_header,
    encode_batch,
    encode_entry,
    encode_header,
)
from runtime.session.format.large import LARGE, LARGE_TEXT, MISSING_IMAGE, MISSING_TEXT, Shelf
from runtime.session.format.shapes import Unusual, exact

from .records import AT, HEADER, KNOWN, entries, ids, patient, records, texts, user

PLACE = {"id": 4, "parent": 3, "at": AT}


def line(**fields: Any) -> bytes:
    return json.dumps({**PLACE, **fields}).encode()


@patient
@given(entries)
def test_decoding_an_encoded_entry_gives_the_entry(entry: Entry) -> None:
    """Every type survives, in one line of JSON."""
    encoded = encode_entry(entry)
    assert encoded.endswith(b"\n") and encoded.count(b"\n") == 1
    assert decode_entry(encoded) == (entry, None)


def test_strategies_cover_every_type() -> None:
    """The property above means nothing for a type that is never drawn."""
    assert set(KNOWN) | {UnknownRecord} == set(get_args(Record))


@patient
@given(st.lists(entries, min_size=1, max_size=3))
def test_only_the_lines_before_the_last_of_a_batch_say_until(batch: list[Entry]) -> None:
    """`until` binds a batch together; a batch of one needs none."""
    lines = [json.loads(each) for each in encode_batch(batch).splitlines()]
    last = batch[-1].id
    assert all(raw.get("until") == last for raw, entry in zip(lines, batch, strict=True) if entry.id != last)
    assert "until" not in lines[-1]


def test_defaults_are_left_out() -> None:
    """A plain message takes one short line."""
    assert json.loads(encode_entry(Entry(4, 3, AT, user("hi")))) == {
        **PLACE,
        "type": "message",
        "role": "user",
        "content": [{"type": "text", "text": "hi"}],
    }


def test_a_value_that_only_equals_its_default_is_kept() -> None:
    """Zero is no False: types stay what they were."""
    entry = Entry(4, 3, AT, SettingRecord(name="budget", value=0))
    decoded = decode_entry(encode_entry(entry))[0].record
    assert isinstance(decoded, SettingRecord) and decoded.value == 0 and decoded.value is not False


def test_heads_start_is_called_from() -> None:
    """`from` is a keyword in Python, not in the format."""
    raw = json.loads(
        encode_entry(Entry(4, 3, AT, HeadRecord(start=2, baseline=Baseline(sections={}), cause="snip", generation=1)))
    )
    assert raw["from"] == 2 and "start" not in raw


def test_null_that_is_no_default_is_written() -> None:
    """A leaf before the first entry and a setting taken back are both null."""
    assert json.loads(encode_entry(Entry(4, 3, AT, LeafRecord(leaf=None))))["leaf"] is None
    assert json.loads(encode_entry(Entry(4, 3, AT, SettingRecord(name="model", value=None))))["value"] is None


def test_unknown_types_are_kept_as_they_were() -> None:
    """A newer version's lines pass through an older one unharmed."""
    raw = {**PLACE, "type": "weather", "target": 2, "text": "keep", "deep": {"a": [1, None]}}
    entry, _ = decode_entry(json.dumps(raw).encode())
    assert isinstance(entry.record, UnknownRecord)
    assert json.loads(encode_entry(entry)) == raw


def test_unknown_fields_of_known_types_do_no_harm() -> None:
    """A newer version may add a field."""
    assert decode_entry(line(type="note", text="x", colour="red"))[0].record == NoteRecord(text="x")


@pytest.mark.parametrize("text", ["a\ud83d", "\udc00", "\ud800\ud800"])
def test_lone_surrogates_become_replacement_characters(text: str) -> None:
    """UTF-8 cannot hold a lone surrogate; the rest of the text stays."""
    entry = decode_entry(encode_entry(Entry(4, 3, AT, user(text))))[0]
    assert entry.record == user("".join("�" if "\ud800" <= each <= "\udfff" else each for each in text))


def test_halves_of_a_pair_are_joined() -> None:
    """A pair that came as two halves is the character it stands for."""
    assert decode_entry(encode_entry(Entry(4, 3, AT, user("\ud83d\ude00"))))[0].record == user("😀")


def test_escaped_lone_surrogates_of_other_writers_are_replaced() -> None:
    """ASCII JSON can smuggle one in; nothing behind the codec meets it."""
    bad = line(type="note", text="X").replace(b"X", b"\\ud83d!")
    assert decode_entry(bad)[0].record == NoteRecord(text="�!")


@pytest.mark.parametrize("number", [math.inf, -math.inf, math.nan])
def test_numbers_that_json_lacks_become_null(number: float) -> None:
    """A bare NaN would make the line unreadable to everybody else."""
    encoded = encode_entry(Entry(4, 3, AT, NoteRecord(text="x", data={"a": number, "b": 1.5})))
    assert decode_entry(encoded)[0].record == NoteRecord(text="x", data={"a": None, "b": 1.5})


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (b"\xff{}", "not UTF-8"),
        (b"\0" * 300, "not JSON"),
        (line(type="note", text="a") + line(type="note", text="b"), "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b'{"id":' + b"9" * 5_000 + b"}", "not JSON"),
        (b"[1]", "list"),
        (b"null", "NoneType"),
        (line(type="note", text="x", id=0), "id is 0"),
        (line(type="note", text="x", id=True), "id is True"),
        (line(type="note", text="x", id="4"), "id is '4'"),
        (line(type="note", text="x", parent="3"), "parent is '3'"),
        (line(type="note", text="x", parent=0), "parent is 0"),
        (line(type="note", text="x", at=5), "no time"),
        (line(text="x"), "no `type`"),
        (line(type=7), "no `type`"),
        (line(type="note", text="x", until=4), "until 4"),
        (line(type="note", text="x", until="5"), "until '5'"),
        (line(type="note"), "its text is wrong"),
        (line(type="message", role="wizard", content=[]), "its role is wrong"),
        (line(type="message", role="user", content="hello"), "its content is wrong"),
        (line(type="message", role="user", content=["hello"]), "unknown type"),
        (line(type="message", role="user", content=[{"type": "smell"}]), "unknown type"),
        (line(type="message", role="user", content=[{"type": "text"}]), "its text is wrong"),
        (line(type="result", call=[1], tool="x", content=[]), "its call"),
        (line(type="result", call=[1, 0], tool="x", content=[{"type": "call", "id": "a", "name": "b"}]), "its content"),
    ],
)
def test_wrong_lines_say_what_is_wrong(bad: bytes, says: str) -> None:
    """Each raises `BadLine` with a sentence, and nothing else."""
    with pytest.raises(BadLine, match=says):
        decode_entry(bad)


@patient
@given(st.binary(max_size=60))
def test_any_bytes_decode_or_raise_badline(data: bytes) -> None:
    """No other exception comes out of a broken file."""
    for decode in (decode_entry, decode_header):
        try:
            decode(data)
        except BadLine as problem:
            assert str(problem)


@patient
@given(entries, st.data())
def test_any_changed_line_decodes_or_raises_badline(entry: Entry, data: st.DataObject) -> None:
    """Also not out of a line that lost or changed a value."""
    raw = json.loads(encode_entry(entry))
    key = data.draw(st.sampled_from(sorted(raw)))
    raw[key] = data.draw(st.sampled_from([None, True, -1, "", "text", [], [[]], {}, {"a": 1}, 1e300]))
    try:
        decode_entry(json.dumps(raw).encode())
    except BadLine as problem:
        assert str(problem)


def test_header_round_trip() -> None:
    """The first line says what the file is."""
    assert decode_header(encode_header(HEADER)) == HEADER
    assert json.loads(encode_header(HEADER))["type"] == "session"


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        ({"type": "message"}, "not a session header"),
        ({}, "not a session header"),
        ({"type": "session", "version": 2}, "format version 2; this Moonwake reads up to 1"),
        ({"type": "session", "version": "1"}, "format version is '1'"),
        ({"type": "session", "version": True}, "format version is True"),
        ({"type": "session", "version": 0}, "format version is 0"),
        ({"type": "session"}, "format version is None"),
        ({"type": "session", "version": 1, "id": 5, "agent": "a", "created": ""}, "its id is wrong"),
        ({"type": "session", "version": 1, "id": "5", "created": ""}, "its agent is wrong"),
    ],
)
def test_wrong_headers_say_what_is_wrong(raw: dict[str, Any], says: str) -> None:
    """Another format, a newer version and a damaged header are told apart."""
    with pytest.raises(BadLine, match=says):
        decode_header(json.dumps(raw).encode())


def test_decode_batch_reads_whole_lines() -> None:
    """What `encode_batch` wrote comes back in order."""
    batch = (Entry(1, None, AT, user("a\nb")), Entry(2, 1, AT, NoteRecord(text="\u2028")))
    assert decode_batch(encode_batch(batch)) == batch


def test_text_of_parts_is_not_interpreted() -> None:
    """Text that looks like JSON stays text."""
    entry = Entry(1, None, AT, MessageRecord(role="user", content=(Text('{"type":"call"}'), Text("\\ud83d"))))
    assert decode_entry(encode_entry(entry))[0] == entry


def thorough(encoded: bytes) -> bytes:
    """The line with a field of a later version that orjson refuses: the standard library and pydantic read it."""
    return encoded[:-2] + b',"later":NaN}\n'


@patient
@given(st.builds(Entry, ids, st.none() | ids, texts, st.one_of(*KNOWN.values())))
def test_the_fast_way_and_the_thorough_way_agree(entry: Entry) -> None:
    """Which of them reads a line is nobody's to notice."""
    encoded = encode_entry(entry)
    assert decode_entry(encoded) == decode_entry(thorough(encoded)) == (entry, None)


@patient
@given(st.one_of(*KNOWN.values()))
def test_every_line_that_we_write_takes_the_fast_way(record: Record) -> None:
    """But for numbers that orjson cannot hold."""
    raw = json.loads(encode_entry(Entry(4, 3, AT, record)))
    renamed = {"from": "start"} if record.type == "head" else None
    with contextlib.suppress(Unusual):
        assert exact(type(record), raw, renamed) == record
        return
    assert any(abs(number) >= 2**63 for number in numbers_of(raw))


def numbers_of(value: Any) -> list[float]:
    if isinstance(value, (dict, list)):
        inner = value.values() if isinstance(value, dict) else value
        return [number for each in inner for number in numbers_of(each)]
    return [value] if isinstance(value, (int, float)) else []


@pytest.mark.parametrize("number", [2**64, -(2**63) - 1, 10**30, 2**63, 1e300, 0.1, -0.0])
def test_numbers_keep_every_digit(number: float) -> None:
    """A parser that has no room for an integer must not make a float of it."""
    for record in (NoteRecord(text="x", data={"a": [number]}), UnknownRecord(raw={"type": "moon", "a": number})):
        decoded = decode_entry(encode_entry(Entry(4, 3, AT, record)))[0].record
        assert decoded == record and repr(number) in repr(decoded)


class Blobs:
    """Blobs in memory."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}

    def put(self, text: str) -> Blob:
        data = text.encode()
        blob = Blob(sha256(data).hexdigest(), len(data))
        self.texts[blob.name] = text
        return blob

    def get(self, blob: Blob) -> str | None:
        return self.texts.get(blob.name)


PICTURE = Image("image/png", "A" * LARGE, 40, 30)
LONG = "word " * (LARGE_TEXT // 5 + 1)
with_large = st.sampled_from(
    [
        user(LONG),
        MessageRecord(role="user", content=(Text("see"), PICTURE, Text("x" * LARGE_TEXT))),
        MessageRecord(role="assistant", content=(Text(LONG),)),
        ResultRecord(call=(1, 0), tool="x", content=(PICTURE, Text(LONG)), whole="é" * LARGE),
        ResultRecord(call=(1, 0), tool="x", content=(Text("short"),), whole="é" * (LARGE - 1)),
        ResultRecord(call=(1, 0), tool="x", content=(), whole=Blob("ab" * 32, 7)),
        EditRecord(action="replace", target=1, cause="", content=(PICTURE,)),
        InboxRecord(state="queued", content=(PICTURE, Text("so"))),
        ExtensionRecord(
            name="x", data={"blob": {"name": "n", "size": 1}, "content": [{"blob": 1}]}, content=(PICTURE,)
        ),
        HeadRecord(
            start=1,
            baseline=Baseline(sections={}),
            cause="",
            generation=1,
            pins=(Pinned(entry=1, said="user", content=(PICTURE,)),),
            inbox=(Waiting(entry=1, state="held", content=(Text("a"), PICTURE)),),
        ),
    ]
)


@patient
@given(st.builds(Entry, ids, st.none() | ids, texts, with_large | records))
def test_with_blobs_decoding_gives_the_entry_but_for_the_whole_of_a_result(entry: Entry) -> None:
    """That stays the name of a blob until somebody wants it."""
    blobs = Blobs()
    encoded = encode_entry(entry, blobs=blobs)
    assert len(encoded) < 2 * LARGE_TEXT
    decoded, _ = decode_entry(encoded, blobs)
    record = decoded.record
    if isinstance(record, ResultRecord) and isinstance(record.whole, Blob) and record != entry.record:
        decoded = replace(decoded, record=replace(record, whole=blobs.get(record.whole)))
    assert decoded == entry
    assert decode_entry(encoded, Shelf(blobs)) == decode_entry(encoded, blobs)


def test_large_content_is_named_and_not_written() -> None:
    """An image and the whole of a result from 16,384 characters on, a text that a user or a tool gave from 65,536."""
    blobs = Blobs()
    record = ResultRecord(call=(1, 0), tool="x", content=(PICTURE, Text(LONG)), whole="w" * LARGE)
    raw = json.loads(encode_entry(Entry(4, 3, AT, record), blobs=blobs))
    name = {text: {"name": name, "size": len(text)} for name, text in blobs.texts.items()}
    assert raw["content"] == [
        {"type": "image", "media_type": "image/png", "blob": name[PICTURE.data], "width": 40, "height": 30},
        {"type": "text", "blob": name[LONG]},
    ]
    assert raw["whole"] == name["w" * LARGE]


@pytest.mark.parametrize(
    "record", [user("x" * (LARGE_TEXT - 1)), MessageRecord(role="assistant", content=(Text(LONG),))]
)
def test_what_is_small_or_a_models_stays_in_the_line(record: MessageRecord) -> None:
    """A file for every word would be slow; a model's reply is never that long."""
    blobs = Blobs()
    assert encode_entry(Entry(4, 3, AT, record), blobs=blobs) == encode_entry(Entry(4, 3, AT, record))
    assert not blobs.texts


@pytest.mark.parametrize("store", [None, Blobs()])
def test_a_missing_blob_leaves_a_text_that_says_so(store: Blobs | None) -> None:
    """The rest of the entry is read, and the shelf tells what was missing."""
    written = MessageRecord(role="user", content=(Text("see"), PICTURE, Text(LONG)))
    encoded = encode_entry(Entry(4, 3, AT, written), blobs=Blobs())
    shelf = Shelf(store)
    entry, _ = decode_entry(encoded, shelf)
    assert entry.record == MessageRecord(role="user", content=(Text("see"), Text(MISSING_IMAGE), Text(MISSING_TEXT)))
    assert [blob.size for blob in shelf.missing] == [LARGE, len(LONG)]


def test_a_lone_surrogate_in_large_content_becomes_a_replacement_character() -> None:
    """A blob is UTF-8 as the line is."""
    blobs = Blobs()
    encoded = encode_entry(Entry(4, 3, AT, user(LONG + "\ud83d")), blobs=blobs)
    assert decode_entry(encoded, blobs)[0].record == user(LONG + "�")
