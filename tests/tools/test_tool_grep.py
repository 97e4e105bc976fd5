"""The tool grep."""

import anyio
import pytest

from runtime.errors import ToolError
from runtime.tools.base import ToolContext
from runtime.tools.grep import MOST_MATCHES, make_grep, read_found
from runtime.tools.process import Finished

from .tool_calls import Call

grep = make_grep()


@pytest.fixture
def files(context: ToolContext) -> None:
    texts = {
        "a.py": "import os\nx = 1\n", "src/b.py": "x = 2\n", "src/deep/c.ts": "let x = 3\r\n", "src/d.tsx": "X = 4\n",
        ".git/config": "x = 5\n", ".moonwake/log": "x = 6\n", "blob": "x = 7\0", "ü.txt": "größe x = 8\n",
    }  # fmt: skip
    for name, text in texts.items():
        path = context.workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())


@pytest.mark.usefixtures("files")
async def test_matching_lines_are_found_in_order(call: Call) -> None:
    """Paths, line numbers and lines, sorted; logs, git's files and binary files are left out."""
    assert await call(grep, pattern=r"x = \d") == (
        "a.py:2: x = 1\nü.txt:1: größe x = 8\nsrc/b.py:1: x = 2\nsrc/deep/c.ts:1: let x = 3\n"
        "[files not searched: 1 binary; large means over 5,000,000 bytes]"
    )


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ({"glob": "*.py"}, ["a.py:2", "src/b.py:1"]), ({"glob": "src/**/*.py"}, ["src/b.py:1"]),
        ({"glob": "*.{ts,tsx}", "ignore_case": True}, ["src/d.tsx:1", "src/deep/c.ts:1"]),
        ({"path": "src"}, ["src/b.py:1", "src/deep/c.ts:1"]), ({"path": "src/b.py"}, ["src/b.py:1"]),
        ({"path": "src", "glob": "deep/*"}, ["src/deep/c.ts:1"]), ({"glob": "b.*"}, ["src/b.py:1"]),
    ],
)  # fmt: skip
async def test_search_is_narrowed(call: Call, arguments: dict[str, object], found: list[str]) -> None:
    """By folder, by file, by glob, and widened by ignoring case."""
    lines = (await call(grep, pattern="x = ", **arguments)).splitlines()
    assert [":".join(line.split(":")[:2]) for line in lines if not line.startswith("[")] == found


@pytest.mark.usefixtures("files")
async def test_nothing_found_and_wrong_patterns_are_told(call: Call) -> None:
    """No match is an answer, a wrong pattern or place an error."""
    assert await call(grep, pattern="nowhere", glob="*.py") == "[no match; files searched: 2]"
    assert "unterminated character set at position 0" in await call(grep, fails=True, pattern="[a")
    assert "does not exist" in await call(grep, fails=True, pattern="a", path="none")
    assert "outside" in await call(grep, fails=True, pattern="root", path="/etc/passwd")
    assert "session logs" in await call(grep, fails=True, pattern="x", path=".moonwake")
    assert await call(grep, fails=True, pattern="x" * 200_000)
    assert await call(grep, pattern="\ud800") == "[no match; files searched: 5]\n" + (
        "[files not searched: 1 binary; large means over 5,000,000 bytes]"
    )


async def test_symlinks_are_not_followed(context: ToolContext, call: Call) -> None:
    """A search never reads through a link, to a file or a folder outside."""
    (context.workspace.parent / "secret").write_text("key = 1\n")
    (context.workspace / "file").symlink_to("../secret")
    (context.workspace / "folder").symlink_to("..")
    assert await call(grep, pattern="key") == "[no match; files searched: 0]"


async def test_matches_and_files_are_bounded(context: ToolContext, call: Call) -> None:
    """Many matches stop the search, long lines are cut, large files are skipped; each is told."""
    (context.workspace / "a").write_text("match\n" * 1000)
    lines = (await call(grep, pattern="match")).splitlines()
    assert len(lines) == MOST_MATCHES + 1
    assert "stopped at 200 matches" in lines[-1]
    (context.workspace / "a").write_text("x" * 10_000 + "\n")
    assert len(await call(grep, pattern="x")) < 400
    (context.workspace / "a").write_text("x" * 6_000_000)
    assert "1 large" in await call(grep, pattern="x")


async def test_catastrophic_pattern_does_not_hang(context: ToolContext, call: Call) -> None:
    """A pattern without end is stopped, the event loop runs on, and what was found before is kept."""
    (context.workspace / "a").write_text("aaaa\n" + "a" * 60 + "!\n")
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await anyio.sleep(0.01)
            ticks += 1

    with anyio.fail_after(15):
        async with anyio.create_task_group() as group:
            group.start_soon(tick)
            text = await call(make_grep(longest=0.7), pattern="(a+)+$")
            group.cancel_scope.cancel()
    assert text.startswith("a:1: aaaa\n[stopped after 0.7 s")
    assert ticks > 5


def test_a_broken_search_is_an_error() -> None:
    """A child that dies without an answer is not taken for `no match`."""
    with pytest.raises(ToolError, match="MemoryError"):
        read_found(Finished(b"Traceback\nMemoryError\n", b"", 20, 1, timed_out=False, held=False))
