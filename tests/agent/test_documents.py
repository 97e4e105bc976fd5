"""Documents in a conversation: kept in the log once, sent as each model takes them, the oldest out of the way."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from governors.messages import Document, Text
from governors.wire.base import Abilities
from runtime import Call, Reply
from runtime.attachments import take
from runtime.session.entries import EditRecord, MessageRecord, RequestRecord, ResultRecord, SettingRecord
from runtime.session.opening import read_log
from tests.agents import talk
from tests.agents_again import assert_every_request_is_made_again
from tests.pdfs import pdf

WIRES = ["anthropic", "openai_chat", "openai_responses"]
TAKES = Abilities(images=True, documents=True)


def report(*pages: str) -> Document:
    part = take("report.pdf", pdf(*pages))
    assert isinstance(part, Document)
    return part


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("takes", [True, False])
async def test_every_request_with_documents_is_made_again(tmp_path: Path, wire: str, takes: bool) -> None:
    """A large one lies in a blob; what was read of it is in the log, and nobody reads it again."""
    large = report(*[f"Page {number} of a long report. " * 40 for number in range(12)])
    assert len(large.data) > 16_384
    abilities = Abilities(images=True, documents=takes)
    async with talk(tmp_path, ["One.", "Two.", "Three."], wire=wire, abilities=abilities) as it:
        await it.say([large, Text("sum it up")])  # type: ignore[arg-type] # parts are sent, too
        await it.say("and then?")
        await it.say([report("Small."), Text("this one?")])  # type: ignore[arg-type] # as above
        for body in it.bodies:
            assert (large.data in str(body)) == takes
        assert ("Page 11 of a long report." in str(it.bodies[0])) == (not takes)
        first, bare = (
            next(e.record for e in read_log(it.log, blobs).entries if isinstance(e.record, MessageRecord))
            for blobs in (it.agent.session.blobs, None)
        )
        assert first.content[0] == large
        assert bare.content[0] == replace(large, data="")  # a blob that is gone takes nothing else with it
        assert large.data not in it.log.read_text()
        assert_every_request_is_made_again(it)


async def test_the_oldest_document_becomes_its_text_over_the_limit_of_pages(tmp_path: Path) -> None:
    """By an edit in the log, which a resumed session sends again."""
    abilities = Abilities(images=True, documents=True, max_document_pages=5)
    script = ["One.", "Two.", "Three."]
    async with talk(tmp_path, script, wire="anthropic", abilities=abilities) as it:
        for number in range(3):
            pages = [f"Document {number}, page {page}." for page in range(2)]
            await it.say([report(*pages), Text(f"question {number}")])  # type: ignore[arg-type] # parts are sent, too
        edits = it.records(EditRecord)
        assert [edit.cause for edit in edits] == ["documents", "documents"]
        last = str(it.bodies[-1]["messages"])
        assert last.count("'type': 'document'") == 1
        assert "Document 0, page 1." in last and "too many documents" in last
        assert_every_request_is_made_again(it)
        session = it.agent.session.id
    async with talk(tmp_path, ["Four."], session=session, wire="anthropic", abilities=abilities) as it:
        await it.say("go on")
        assert str(it.bodies[-1]["messages"]).count("'type': 'document'") == 1
        assert len(it.records(EditRecord)) == 2
        assert_every_request_is_made_again(it)


async def test_without_pictures_a_document_goes_as_its_text(tmp_path: Path) -> None:
    """`/images off` speaks of pages, too."""
    async with talk(tmp_path, ["One.", "Two."], wire="anthropic", abilities=TAKES) as it:
        await it.say([report("Words."), Text("read")])  # type: ignore[arg-type] # parts are sent, too
        await it.agent.session.append(SettingRecord(name="images", value="off"))
        await it.say("again")
        before, after = (str(body["messages"]) for body in it.bodies)
        assert "'type': 'document'" in before and "'type': 'document'" not in after
        assert "Words." in after
        assert_every_request_is_made_again(it)


@pytest.mark.parametrize("wire", WIRES)
async def test_read_file_shows_a_document(tmp_path: Path, wire: str) -> None:
    """The thing itself; and lines of its text from an offset on."""
    (tmp_path / "report.pdf").write_bytes(pdf("First page.", "Second page."))
    script: list[Any] = [
        Reply("", [Call("read_file", {"path": "report.pdf"})]),
        Reply("", [Call("read_file", {"path": "report.pdf", "offset": 3})]),
        "Done.",
    ]
    async with talk(tmp_path, script, wire=wire, abilities=TAKES) as it:
        await it.say("read it")
        whole, part = it.records(ResultRecord)
        assert isinstance(whole.content[1], Document) and whole.content[1].pages == 2
        assert "Second page." in str(part.content) and "First page." not in str(part.content)
        assert whole.content[1].data in str(it.bodies[1])
        assert len(it.records(RequestRecord)) == 3
        assert_every_request_is_made_again(it)
