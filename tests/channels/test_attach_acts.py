"""Files that a person gives with a message."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from governors.messages import Document, Image, Text
from governors.wire.base import Abilities
from runtime.channels.attach_acts import as_path, dragged_file, said_lines
from runtime.session.entries import MessageRecord
from tests.agents import talk as opened
from tests.channels.test_talk import sitting
from tests.channels.test_tree_commands import type_
from tests.pdfs import encrypted, pdf

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d49444154789c6360606060000000050001a5f645400000000049454e44ae426082"
)


async def test_an_attached_file_goes_with_the_next_message(tmp_path: Path) -> None:
    """Once, before the words; the person sees what went."""
    (tmp_path / "my report.pdf").write_bytes(pdf("All is well."))
    async with sitting(tmp_path, "Read.", "Again.", abilities=Abilities(documents=True)) as (talk, audience):
        await type_(talk, f"/attach {tmp_path / 'my report.pdf'}", "/attach")
        title = "my report.pdf, application/pdf, 1 page"
        assert audience.texts[-2:] == [
            f"info: {title} goes with the next message.",
            f"info: With the next message: {title}. /detach takes it off.",
        ]
        await type_(talk, "what does it say?", "and now?")
        assert f"user: [{title}]\n\nwhat does it say?" in audience.texts and "user: and now?" in audience.texts
        said = [entry.record for entry in talk.agent.session.branch() if isinstance(entry.record, MessageRecord)]
        first, second = (record.content for record in said if record.role == "user")
        assert [type(part) for part in first] == [Document, Text] and second == (Text("and now?"),)


async def test_what_a_model_cannot_take_is_told_when_it_is_attached(tmp_path: Path) -> None:
    """Else a person would believe that it was seen."""
    (tmp_path / "a.png").write_bytes(PNG)
    (tmp_path / "a.pdf").write_bytes(pdf("All is well."))
    blind = Abilities(images=False, documents=False)
    async with sitting(tmp_path, "Fine.", abilities=blind) as (talk, audience):
        await type_(talk, f"/attach {tmp_path / 'a.png'}", f"/attach {tmp_path / 'a.pdf'}")
        assert audience.texts[-2].endswith("takes no pictures: it reads only that there was one.")
        assert audience.texts[-1].endswith("takes no documents: it reads the text of this one.")


async def test_what_is_detached_does_not_go(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hello")
    async with sitting(tmp_path, "Fine.") as (talk, audience):
        await type_(talk, f"/attach {tmp_path / 'a.txt'}", "/detach", "/detach", "/attach", "hi")
        assert [text for text in audience.texts if text.startswith("info")] == [
            "info: a.txt (5 characters) goes with the next message.",
            "info: Taken off.",
            "info: Nothing is attached.",
            "info: Nothing is attached. /attach FILE gives a picture, a PDF or a text with the next message.",
        ]
        assert "user: hi" in audience.texts


async def test_a_dragged_picture_is_attached(tmp_path: Path) -> None:
    """A line that is nothing but a path, as terminals write it; any other line is a message."""
    path = tmp_path / "it's a picture (1).png"
    path.write_bytes(PNG)
    async with sitting(tmp_path, "Seen.") as (talk, audience):
        await type_(talk, shlex.quote(str(path)))
        assert audience.texts == ["info: a picture (image/png, 1 x 1) goes with the next message."]
        await type_(talk, "what is it?")
        record = next(e.record for e in talk.agent.session.branch() if isinstance(e.record, MessageRecord))
        assert isinstance(record.content[0], Image)


@pytest.mark.parametrize("name", ["plain.pdf", "with space.pdf", "it's.pdf", 'say "hi".pdf', "back\\slash.pdf"])
async def test_each_way_of_writing_a_path_is_understood(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(b"x")
    ways = [
        shlex.quote(str(path)),
        "".join(c if c.isalnum() or c in "/." else "\\" + c for c in str(path)),
        path.as_uri(),
    ]
    for way in ways:
        found = await dragged_file(way)
        assert found is not None and as_path(found) == path
    assert await dragged_file(f"look at {path}") is None
    assert await dragged_file(str(tmp_path / "missing.pdf")) is None
    assert await dragged_file(str(tmp_path)) is None


@given(st.text(max_size=40))
def test_any_line_is_some_path(text: str) -> None:
    assert isinstance(as_path(text), Path)


async def test_what_cannot_be_attached_is_told_and_loses_nothing(tmp_path: Path) -> None:
    """Neither what was attached before, nor the message that follows."""
    (tmp_path / "tax.pdf").write_bytes(encrypted("secret"))
    (tmp_path / "ok.txt").write_text("fine")
    async with sitting(tmp_path, "Read.") as (talk, audience):
        await type_(talk, f"/attach {tmp_path / 'ok.txt'}", f"/attach {tmp_path / 'tax.pdf'}", "/attach nowhere.pdf")
        errors = [text for text in audience.texts if text.startswith("error")]
        assert len(errors) == 2 and "is encrypted" in errors[0] and "no such file" in errors[1]
        await type_(talk, "go on")
        record = next(e.record for e in talk.agent.session.branch() if isinstance(e.record, MessageRecord))
        assert record.content == (Text("[file ok.txt:]\nfine"), Text("go on"))


async def test_44_a_part_that_is_too_large_is_refused_before_it_enters(tmp_path: Path) -> None:
    """FAULT 44: nothing is recorded, and the conversation goes on."""
    async with opened(tmp_path, ["Hello."]) as it:
        with pytest.raises(Exception, match=r"5,000,000 bytes in base64"):
            await it.say([Text("look"), Image("image/png", "A" * 5_000_000)])  # type: ignore[arg-type] # parts are sent, too
        assert not it.log.exists() or not it.records(MessageRecord)
        await it.say("hi")
        assert len(it.records(MessageRecord)) == 2


def test_what_was_said_is_shown_without_its_bytes() -> None:
    content = (Image("image/png", "iVBORw0KGgo=", 3, 4), Text("see"))
    assert said_lines(content) == "[a picture (image/png, 3 x 4)]\n\nsee"
    assert said_lines((Text("a"), Text("b"))) == "a\n\nb"
