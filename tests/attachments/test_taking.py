"""A file becomes a part of a message, or is refused with the numbers."""

from __future__ import annotations

import base64
import io
import os
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from governors.messages import Document, Image, Text
from runtime.attachments import CannotAttach, attach, check_sizes, take, take_file
from runtime.attachments.pdf import MOST_TEXT
from runtime.attachments.pictures import LONGEST_SIDE, MOST_ENCODED, SHRUNK_SIDE, picture_of
from runtime.attachments.taking import MOST_DOCUMENT
from tests.pdfs import encrypted, pdf


def drawn(width: int, height: int, kind: str, mode: str = "RGB") -> bytes:
    from PIL import Image as Picture

    made = io.BytesIO()
    Picture.new(mode, (width, height), 128).save(made, kind)
    return made.getvalue()


def test_a_pdf_is_taken_with_its_pages_and_its_text() -> None:
    data = pdf("Rain in (Spain).", "", "More of it.")
    part = take("weather.pdf", data)
    assert isinstance(part, Document)
    assert (part.name, part.pages, part.media_type) == ("weather.pdf", 3, "application/pdf")
    assert part.text == "Rain in (Spain).\n\nMore of it."
    assert base64.b64decode(part.data) == data


def test_a_scan_has_no_text() -> None:
    """That is told from a document that nobody has read."""
    part = take("scan.pdf", pdf("", ""))
    assert isinstance(part, Document) and part.text == "" and part.pages == 2


def test_the_text_of_a_long_document_is_cut() -> None:
    part = take("long.pdf", pdf(*["word " * 20_000] * 4))
    assert isinstance(part, Document) and part.text is not None
    assert MOST_TEXT <= len(part.text) < MOST_TEXT + 200
    assert part.text.endswith("is left out]") and part.pages == 4


def test_an_encrypted_pdf_is_refused_with_the_way_out() -> None:
    with pytest.raises(CannotAttach, match=r"tax\.pdf is encrypted.*qpdf --decrypt"):
        take("tax.pdf", encrypted("secret words"))


@given(st.integers(10, 700), st.integers(0, 255))
@example(9, 0)
def test_a_damaged_pdf_is_taken_or_refused_in_words(cut: int, byte: int) -> None:
    """Whatever was cut off or overwritten."""
    whole = pdf("Some text.", "And more.")
    for broken in (whole[:cut], whole[:cut] + bytes([byte]) * 3 + whole[cut + 3 :]):
        try:
            part = take("broken.pdf", broken)
        except CannotAttach as error:
            assert str(error).startswith("broken.pdf ")
        else:
            assert isinstance(part, Document)


def test_44_what_is_sent_is_measured_where_it_enters() -> None:
    """FAULT 44: raw bytes under the limit, base64 over it."""
    raw = 20_000_000
    assert raw < MOST_DOCUMENT < raw * 4 // 3
    with pytest.raises(CannotAttach, match=r"big\.pdf is too large: 26,66\d,\d{3} bytes in base64.* 24,000,000"):
        take("big.pdf", pdf("x") + b"\n" * raw)
    too_large = Image("image/png", "A" * (MOST_ENCODED + 1))
    with pytest.raises(CannotAttach, match="4,500,001 bytes in base64"):
        check_sizes([Text("look"), too_large])
    with pytest.raises(CannotAttach, match=r"a\.pdf is too large"):
        check_sizes([Document("application/pdf", "A" * (MOST_DOCUMENT + 1), "a.pdf")])
    fits = (Text("look"), Image("image/png", "A" * MOST_ENCODED))
    assert check_sizes(fits) == fits


@pytest.mark.parametrize(("kind", "media"), [("PNG", "image/png"), ("JPEG", "image/jpeg"), ("GIF", "image/gif"),
                                             ("WEBP", "image/webp")])  # fmt: skip
def test_a_picture_is_taken_as_it_is_with_its_size(kind: str, media: str) -> None:
    data = drawn(123, 45, kind)
    part = take("p", data)
    assert part == Image(media, base64.b64encode(data).decode(), 123, 45)


@pytest.mark.parametrize("options", [{"lossless": True}, {"quality": 50}, {"quality": 50, "exif": b"Exif\0\0MM"}])
def test_each_form_of_webp_tells_its_size(options: dict[str, object]) -> None:
    from PIL import Image as Picture

    made = io.BytesIO()
    Picture.new("RGB", (300, 200)).save(made, "WEBP", **options)
    found = picture_of(made.getvalue())
    assert found is not None and (found.width, found.height) == (300, 200)


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "L"])
def test_43_a_large_picture_is_made_smaller(mode: str) -> None:
    """FAULT 43: beside many others it would be refused."""
    part = take("photo.png", drawn(3_000, 1_500, "PNG", mode))
    assert isinstance(part, Image)
    assert (part.width, part.height) == (SHRUNK_SIDE, SHRUNK_SIDE // 2)
    assert len(part.data) <= MOST_ENCODED
    assert picture_of(base64.b64decode(part.data)) is not None


def test_a_picture_that_cannot_be_made_smaller_is_refused_with_its_size() -> None:
    head = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + (LONGEST_SIDE + 1).to_bytes(4) + (10).to_bytes(4)
    with pytest.raises(CannotAttach, match=r"odd\.png is too large: 2,001 x 10 pixels.*moonwake\[images\]"):
        take("odd.png", head + b"\x08\x02\0\0\0")


@given(
    st.binary(max_size=60), st.sampled_from([b"\x89PNG\r\n\x1a\n", b"GIF89a", b"\xff\xd8\xff", b"RIFF....WEBP", b""])
)
def test_any_bytes_are_taken_or_refused_in_words(data: bytes, magic: bytes) -> None:
    try:
        part = take("file", magic + data)
    except CannotAttach as error:
        assert "file" in str(error)
    else:
        assert isinstance(part, Text | Image | Document)


async def test_a_text_file_is_given_as_text(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("buy milk\n")
    assert await attach(tmp_path / "notes.txt") == Text("[file notes.txt:]\nbuy milk\n")
    (tmp_path / "long.txt").write_text("x" * 200_001)
    with pytest.raises(CannotAttach, match="has 200,001 characters"):
        take_file(tmp_path / "long.txt")


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "empty").touch()
    (tmp_path / "program").write_bytes(b"\x7fELF\0\1")
    with (tmp_path / "huge.png").open("wb") as file:
        file.truncate(64_000_001)
    for name, why in (
        ("", "is a folder or a device|is a directory"),
        ("pipe", "is a folder or a device"),
        ("missing.pdf", "no such file"),
        ("empty", "is empty"),
        ("program", "no picture"),
        ("huge.png", "has 64,000,001 bytes"),
    ):
        with pytest.raises(CannotAttach, match=why):
            take_file(tmp_path / name)
