"""Documents on the three wires: sent, refused, read back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from governors.messages import Document, Message, Text, ToolResult
from governors.wire import WIRES
from governors.wire.base import Abilities, CannotDecode
from tests.builders import call, document, image, reply, result, user
from tests.strategies import documents

TAKES = Abilities(images=True, documents=True)
NAMES = tuple(WIRES)
PDF = document("report.pdf", 3, "Its text.", "JVBERi0xLjQ=")


def encoded(name: str, *messages: Message, abilities: Abilities = TAKES) -> Any:
    wire = WIRES[name]
    return wire.encode(messages, system="", tools=(), abilities=abilities, model="m")


def problems(name: str, parts: Any, abilities: Abilities = TAKES) -> list[str]:
    wire = WIRES[name]
    body = wire.body(parts, model="m", max_output=100, abilities=abilities)
    return [str(each) for each in wire.check(body, abilities) if each.severity != "$"]


SENT = {
    "anthropic": {
        "type": "document",
        "source": {"type": "base64", "media_type": "application/pdf", "data": PDF.data},
        "title": "report.pdf",
    },
    "openai_chat": {
        "type": "file",
        "file": {"filename": "report.pdf", "file_data": f"data:application/pdf;base64,{PDF.data}"},
    },
    "openai_responses": {
        "type": "input_file",
        "filename": "report.pdf",
        "file_data": f"data:application/pdf;base64,{PDF.data}",
    },
}


@pytest.mark.parametrize("name", NAMES)
def test_a_document_is_sent_as_its_wire_takes_it(name: str) -> None:
    parts = encoded(name, user("read", PDF))
    (message,) = parts["input" if name == "openai_responses" else "messages"]
    assert message["content"][1] == SENT[name]
    assert problems(name, parts) == []


@pytest.mark.parametrize("name", NAMES)
def test_a_tool_gives_a_document(name: str) -> None:
    """In its result where the wire takes it there, else after all results of the step (H2), also of an error (A4)."""
    for failed in (False, True):
        results = (result("a", "seen", PDF, is_error=failed), result("b", "other"))
        parts = encoded(name, user("go"), reply(call(id="a"), call(id="b")), *results)
        assert problems(name, parts) == []
        text = str(parts)
        assert text.count(PDF.data) == 1
        moved = name == "openai_chat" or (name == "anthropic" and failed)
        assert ("[report.pdf: shown after the results]" in text) == moved
        assert ("[document report.pdf from read_file, call a]" in text) == moved


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("change", "limits", "why"),
    [
        ({}, {"documents": False}, "this model takes no application/pdf"),
        ({"media_type": "application/msword"}, {}, "this model takes no application/msword"),
        ({}, {"max_document_bytes": 8}, "it is too large for this model"),
        ({"pages": 101}, {}, "it is too large for this model"),
        ({"data": ""}, {}, "its file is not there"),
    ],
)
def test_where_a_document_cannot_be_sent_its_text_is(
    name: str, change: dict[str, Any], limits: dict[str, Any], why: str
) -> None:
    able = replace(TAKES, **limits)
    for part, says in ((PDF, "\nIts text.\n"), (replace(PDF, text=None), "its text was not read")):
        parts = encoded(name, user("read", replace(part, **change)), abilities=able)
        assert why in str(parts) and says in str(parts).replace("\\n", "\n")
        assert PDF.data not in str(parts)
        assert problems(name, parts, able) == []


@pytest.mark.parametrize("name", NAMES)
def test_a_document_that_the_model_does_not_take_is_a_violation(name: str) -> None:
    """The check says so (A12), whoever made the body."""
    parts = encoded(name, user("read", PDF))
    assert any("takes none" in each for each in problems(name, parts, replace(TAKES, documents=False)))
    assert any("at most 8" in each for each in problems(name, parts, replace(TAKES, max_document_bytes=8)))


@pytest.mark.parametrize("name", NAMES)
@given(st.lists(documents, min_size=1, max_size=3), st.booleans())
def test_documents_come_back_as_they_were_sent(name: str, given_: list[Document], failed: bool) -> None:
    """Decoded and encoded again they are the same bytes; of a document name, type and data come back."""
    messages = (user("read", *given_, image()), reply(call(id="a")), result("a", "x", *given_, is_error=failed))
    parts = encoded(name, *messages)
    assert problems(name, parts) == []
    decoded = WIRES[name].decode(parts, model="m")
    assert encoded(name, *decoded.messages) == parts
    sent = [
        part for part in given_ if str(parts).count(part.data) and part.data and part.media_type == "application/pdf"
    ]
    read = [
        part for message in decoded.messages for part in getattr(message, "content", ()) if isinstance(part, Document)
    ]
    assert {part.data for part in read} <= {part.data for part in sent}
    assert all(part.media_type == "application/pdf" and part.name for part in read)


@pytest.mark.parametrize("name", NAMES)
def test_a_document_by_address_is_refused_by_name(name: str) -> None:
    """Its content is not in the request, so that nobody could say what was read."""
    part = {
        "anthropic": {"type": "document", "source": {"type": "url", "url": "https://example.com/a.pdf"}},
        "openai_chat": {"type": "file", "file": {"file_id": "file-1"}},
        "openai_responses": {"type": "input_file", "file_url": "https://example.com/a.pdf"},
    }[name]
    with pytest.raises(CannotDecode, match="document"):
        WIRES[name].decode([{"role": "user", "content": [part]}])


def test_an_errors_document_returns_to_its_result() -> None:
    failed = ToolResult("a", "read_file", (Text("boom"), replace(PDF, pages=None, text=None)), is_error=True)
    messages = (user("go"), reply(call(id="a")), failed)
    decoded = WIRES["anthropic"].decode(encoded("anthropic", *messages), model="m")
    assert decoded.messages[-1] == failed
