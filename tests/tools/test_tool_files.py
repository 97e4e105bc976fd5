"""read_file, write_file, edit_file and list_dir."""

import json
import os
import tracemalloc
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from governors.messages import Document, Image, Text
from runtime.errors import ToolError
from runtime.tools.base import ToolContext, ToolOutput
from runtime.tools.editing import Edit, apply_edit
from runtime.tools.files import edit_file, list_dir, read_file, write_file
from runtime.tools.reading import LARGEST_WINDOW, guess_binary, read_window
from runtime.tools.toolset import Toolset
from tests.pdfs import encrypted, pdf

from .tool_calls import Call


def put(context: ToolContext, name: str, data: bytes | str) -> Path:
    path = context.workspace / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


async def test_whole_file_is_read_plain(context: ToolContext, call: Call) -> None:
    """A short file comes as it is, without notes."""
    put(context, "a.txt", "one\ntwo é\n")
    assert await call(read_file, path="a.txt") == "one\ntwo é"
    put(context, "empty", "")
    assert await call(read_file, path="empty") == "[the file is empty]"


async def test_part_of_a_file_says_how_to_go_on(context: ToolContext, call: Call) -> None:
    """A window says which lines it holds, of how many, and where the next one begins."""
    put(context, "a.txt", "".join(f"line {number}\n" for number in range(1, 5313)))
    text = await call(read_file, path="a.txt")
    assert text.startswith("line 1\nline 2\n")
    assert text.endswith("line 2000\n[lines 1-2000 of 5312; continue with offset=2001]")
    end = await call(read_file, path="a.txt", offset=5312)
    assert end == "line 5312\n[lines 5312-5312 of 5312]"
    assert "has 5,312 lines" in await call(read_file, fails=True, path="a.txt", offset=5313)
    assert "offset: expected" in await call(read_file, fails=True, path="a.txt", offset=0)


@given(
    st.lists(st.text(alphabet="aé😀 \r", max_size=5), max_size=30), st.booleans(), st.integers(1, 40), st.integers(1, 9)
)
def test_windows_are_slices_of_the_lines(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], ends: bool, offset: int, limit: int
) -> None:
    """A window is exactly the slice of the file's lines, and its numbers are right."""
    lines = [line.rstrip("\r") for line in lines]
    data = "\n".join(lines) + ("\n" if ends and lines else "")
    expected = data.removesuffix("\n").split("\n") if data else []
    path = tmp_path_factory.getbasetemp() / "windows"
    path.write_text(data, newline="")
    with path.open("rb") as handle:
        window = read_window(handle, offset, limit)
    assert list(window.lines) == expected[offset - 1 : offset - 1 + limit]
    assert window.total == max(len(expected), 0)
    assert window.at_end == (offset - 1 + limit >= len(expected))
    assert not window.replaced


async def test_all_windows_together_are_the_file(context: ToolContext, call: Call) -> None:
    """Following the notes reads every line once, also where the window is bounded by its characters."""
    lines = [f"{number} " + "x" * (number % 700) for number in range(600)]
    put(context, "a.txt", "\n".join(lines))
    seen: list[str] = []
    while True:
        text = await call(read_file, path="a.txt", offset=len(seen) + 1)
        assert len(text) < LARGEST_WINDOW + 200
        shown = text.split("\n")
        seen += shown[:-1]
        if "continue" not in shown[-1]:
            break
    assert seen == lines


async def test_long_lines_are_cut_with_a_note(context: ToolContext, call: Call) -> None:
    """A long line shows its start and how much is missing; the next line follows."""
    put(context, "a.txt", "é" * 5_000 + "\nnext\n")
    first, second = (await call(read_file, path="a.txt")).split("\n")
    assert first == "é" * 2_000 + " [… 6,000 more bytes of this line]"
    assert second == "next"


async def test_invalid_utf8_is_shown_and_told(context: ToolContext, call: Call) -> None:
    """Bytes that are no UTF-8 are replaced, and a note says so; CRLF and a byte order mark do not disturb."""
    put(context, "a.txt", b"a\xffb\n")
    assert await call(read_file, path="a.txt") == "a\ufffdb\n[some bytes are not valid UTF-8 and are shown as \ufffd]"
    put(context, "b.txt", b"\xef\xbb\xbfone\r\ntwo\r\n")
    assert await call(read_file, path="b.txt") == "one\ntwo\n[lines end in CRLF]"


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"\x89PNG\r\n\x1a\n\0", "a PNG image"), (b"%PDF-1.7\n\xff\xfe", "a PDF document"), (b"\x7fELF\0", "program"),
        (b"a\0b", "binary data"), ("text".encode("utf-16"), "text in UTF-16"), (b"PK\x03\x04\xff", "a ZIP archive"),
    ],
)  # fmt: skip
async def test_binary_files_are_told_apart(context: ToolContext, call: Call, data: bytes, kind: str) -> None:
    """A binary file is an error that says what it seems to be and its size."""
    put(context, "data", data)
    said = await call(read_file, fails=True, path="data")
    assert kind in said
    assert f"{len(data)} bytes" in said


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\0\ufeff"), max_size=40))
def test_text_is_not_taken_for_binary(text: str) -> None:
    """No UTF-8 text without NUL is refused, even if it begins like some binary format."""
    for start in ("", "BZh", "GIF8", "%PDF-"):
        assert guess_binary((start + text).encode()) is None


async def test_a_huge_file_is_read_in_bounded_memory(context: ToolContext, call: Call) -> None:
    """Of 1 GB only the beginning is read, and the note gives the size instead of a count."""
    path = put(context, "huge.log", "line of a log\n" * 4000)
    os.truncate(path, 1_000_000_000)
    tracemalloc.start()
    try:
        text = await call(read_file, path="huge.log")
        assert tracemalloc.get_traced_memory()[1] < 8_000_000
    finally:
        tracemalloc.stop()
    assert text.endswith("[lines 1-2000; the file has 1,000,000,000 bytes; continue with offset=2001]")


async def test_written_files_are_whole(context: ToolContext, call: Call) -> None:
    """A file is made with its folders, then replaced; the answer says what was written."""
    assert await call(write_file, path="a/b/c.txt", content="é\nx") == "created a/b/c.txt: 4 bytes, 2 lines"
    assert await call(write_file, path="a/b/c.txt", content="") == "replaced a/b/c.txt: 0 bytes, 0 lines"
    assert (context.workspace / "a/b/c.txt").read_bytes() == b""


async def test_unwritable_things_are_told(context: ToolContext, call: Call) -> None:
    """Surrogates, settings, logs and places outside are refused, and nothing is written."""
    assert "lone surrogate at character 1" in await call(write_file, fails=True, path="a", content="x\ud800")
    for path in ("moonwake.toml", ".moonwake/sessions/x", "../x", "/etc/x", "a\0b"):
        assert await call(write_file, fails=True, path=path, content="x")
    assert list(context.workspace.iterdir()) == []


async def test_edit_replaces_once(context: ToolContext, call: Call) -> None:
    """One occurrence is replaced in place, the rest of the bytes stay, whatever they are."""
    path = put(context, "a.txt", b"\xffone\ntwo\nthree\n")
    assert "at line 2" in await call(edit_file, path="a.txt", old_text="two", new_text="2\n2")
    assert path.read_bytes() == b"\xffone\n2\n2\nthree\n"


async def test_edit_of_a_crlf_file_keeps_crlf(context: ToolContext, call: Call) -> None:
    """Text copied from read_file matches across CRLF line ends, and the new text gets them too."""
    path = put(context, "a.txt", b"one\r\ntwo\r\nthree\r\n")
    await call(edit_file, path="a.txt", old_text="one\ntwo", new_text="1\n2")
    assert path.read_bytes() == b"1\r\n2\r\nthree\r\n"


async def test_edit_errors_help(context: ToolContext, call: Call) -> None:
    """What does not fit is told with what stands there instead; the file stays."""
    path = put(context, "a.py", "def one():\n    return 1\n\n\ndef two():\n    return 1\n")
    before = path.read_bytes()
    many = await call(edit_file, fails=True, path="a.py", old_text="return 1", new_text="return 2")
    assert "2 times" in many
    assert "lines 2, 6" in many
    near = await call(edit_file, fails=True, path="a.py", old_text="def tow():", new_text="x")
    assert "line 5: def two():" in near
    space = await call(edit_file, fails=True, path="a.py", old_text="def two():\n\treturn 1", new_text="x")
    assert "same words stand at line 5" in space
    assert "empty" in await call(edit_file, fails=True, path="a.py", old_text="", new_text="x")
    assert "No line is similar" in await call(edit_file, fails=True, path="a.py", old_text="zzzzz", new_text="x")
    assert "does not exist" in await call(edit_file, fails=True, path="none", old_text="a", new_text="x")
    assert path.read_bytes() == before


async def test_fault_113_edit_without_change_is_an_error(context: ToolContext, call: Call) -> None:
    """An edit that changes nothing is never reported as success."""
    put(context, "a.txt", "same")
    assert "nothing to change" in await call(edit_file, fails=True, path="a.txt", old_text="same", new_text="same")


@given(st.binary(max_size=40), st.binary(min_size=1, max_size=3), st.binary(max_size=3))
def test_edits_are_replacements(data: bytes, old: bytes, new: bytes) -> None:
    """An edit everywhere is `replace`, and the named lines are those of the matches."""
    if old == new or old not in data:
        return
    edited, lines = apply_edit("f", data, Edit(old, new, everywhere=True))
    assert edited == data.replace(old, new)
    assert len(lines) == data.count(old)
    assert lines[0] == data[: data.index(old)].count(b"\n") + 1
    if len(lines) > 1:
        with pytest.raises(ToolError, match="times"):
            apply_edit("f", data, Edit(old, new))


async def test_edits_at_the_same_time_are_all_kept(context: ToolContext, call: Call) -> None:
    """Calls of one reply that edit one file at once lose nothing."""
    path = put(context, "a.txt", "".join(f"<{number}>" for number in range(20)))

    async def one(number: int) -> None:
        await call(edit_file, path="a.txt", old_text=f"<{number}>", new_text=f"[{number}]")

    async with anyio.create_task_group() as group:
        for number in range(20):
            group.start_soon(one, number)
    assert path.read_text() == "".join(f"[{number}]" for number in range(20))


async def test_folders_are_listed_in_order(context: ToolContext, call: Call) -> None:
    """Folders, files with sizes, links with targets; the session logs are not shown."""
    put(context, "b.txt", "12345")
    put(context, "a/x", "")
    put(context, ".moonwake/log", "")
    put(context, "two\nlines", "")
    (context.workspace / "link").symlink_to("b.txt")
    os.mkfifo(context.workspace / "pipe")
    assert await call(list_dir) == "a/\nb.txt  5\nlink -> b.txt\npipe  (special file)\ntwo\\nlines  0"
    assert await call(list_dir, path="a") == "x  0"
    assert "not a folder" in await call(list_dir, fails=True, path="b.txt")
    (context.workspace / "none").mkdir()
    assert await call(list_dir, path="none") == "[the folder is empty]"


async def test_long_listings_are_bounded(context: ToolContext, call: Call) -> None:
    """A folder of many files shows the first ones and says how many more there are."""
    for number in range(510):
        (context.workspace / f"{number:04}").touch()
    lines = (await call(list_dir)).split("\n")
    assert lines[499] == "0499  0"
    assert lines[500].startswith("[10 more entries")


async def test_names_that_are_no_text_are_listed(context: ToolContext, call: Call) -> None:
    """A file name that is not UTF-8 does not break the output."""
    (context.workspace / os.fsdecode(b"\xff")).touch()
    assert await call(list_dir) == "\ufffd  0"


async def test_a_picture_and_a_document_are_shown(context: ToolContext) -> None:
    """Where the model can take them is its wire's to say; what is broken is an error that the model reads."""
    output = await read_output(context, put(context, "report.pdf", pdf("One.", "Two.")).name)
    title, part = output.content
    assert title == Text("[report.pdf, application/pdf, 2 pages; its text has 3 lines, which offset reads]")
    assert isinstance(part, Document) and part.text == "One.\n\nTwo."
    text = await read_output(context, "report.pdf", offset=3)
    assert text.content == (Text("Two.\n[lines 3-3 of 3]"),)
    png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + (7).to_bytes(4) + (9).to_bytes(4) + b"\x08\x02\0\0\0"
    output = await read_output(context, put(context, "a.png", png).name)
    assert output.content[0] == Text("[image/png, 7 x 9 pixels]") and isinstance(output.content[1], Image)
    broken = await read_output(context, put(context, "broken.pdf", b"%PDF-1.7\n\xff\0").name)
    assert broken.is_error and "broken.pdf cannot be read as a PDF" in str(broken.content)
    locked = await read_output(context, put(context, "locked.pdf", encrypted("x")).name)
    assert locked.is_error and "is encrypted" in str(locked.content)


async def read_output(context: ToolContext, path: str, **arguments: object) -> ToolOutput:
    return await Toolset([read_file]).run("read_file", json.dumps({"path": path, **arguments}), context)
