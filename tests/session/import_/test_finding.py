"""Where other programs keep their sessions."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from runtime.errors import SessionError
from runtime.session.import_ import FORMATS, find_sources
from runtime.session.import_.finding import folders_of

from .samples import CHAT, CLAUDE, CODEX, NANOBOT, PI, write

PLACES = {
    "pi": (".pi/agent/sessions/--srv-garden--/2026-05-01_0aa1.jsonl", PI),
    "claude-code": (".claude/projects/-srv-garden/0bb2.jsonl", CLAUDE),
    "codex": (".codex/sessions/2026/05/01/rollout-2026-05-01T10-00-00-0cc3.jsonl", CODEX),
    "nanobot": (".nanobot/workspace/sessions/telegram_5.jsonl", NANOBOT),
}


def put(root: Path, place: str, lines: list[dict[str, object]], changed: int = 0) -> Path:
    path = root / place
    path.parent.mkdir(parents=True, exist_ok=True)
    write(path.parent, lines, path.name)
    os.utime(path, (changed, changed))
    return path


@pytest.mark.parametrize("format", PLACES)
def test_sessions_are_found_where_their_program_keeps_them(tmp_path: Path, format: str) -> None:
    """With title, folder, date and size."""
    place, lines = PLACES[format]
    path = put(tmp_path, place, lines, changed=1_777_000_000)
    (found,) = find_sources(format, tmp_path)
    assert (found.path, found.format, found.size) == (path, format, path.stat().st_size)
    assert found.changed == "2026-04-24T03:06:40Z"
    titles = {"pi": "The garden", "claude-code": "The garden", "codex": "Plant beans.", "nanobot": "The garden"}
    assert found.title == titles[format]
    assert found.cwd == ("" if format == "nanobot" else "/srv/garden")


def test_the_newest_comes_first_and_others_are_left_out(tmp_path: Path) -> None:
    """Packed ones too; what is broken, foreign or none is no session."""
    place = ".claude/projects/-srv-garden"
    old = put(tmp_path, f"{place}/old.jsonl", CLAUDE, changed=1)
    new = put(tmp_path, f"{place}/new.jsonl.gz", CLAUDE, changed=3)
    middle = put(tmp_path, f"{place}/agents/agent-1.jsonl", CLAUDE, changed=2)
    put(tmp_path, f"{place}/pi.jsonl", PI)
    put(tmp_path, f"{place}/agents/agent-2.jsonl", [line for line in CLAUDE if line.get("isSidechain")])
    (tmp_path / place / "broken.jsonl").write_bytes(b"\x1f\x8b\0")
    (tmp_path / place / "notes.md").write_text("x")
    (tmp_path / place / "link.jsonl").symlink_to(old)
    (tmp_path / place / "folder.jsonl").mkdir()
    assert [found.path for found in find_sources("claude-code", tmp_path)] == [new, middle, old]


def test_variables_move_the_places(tmp_path: Path) -> None:
    """Those that the programs themselves read."""
    moved = tmp_path / "elsewhere"
    put(moved, "projects/p/a.jsonl", CLAUDE)
    put(moved, "archived_sessions/rollout-a.jsonl", CODEX)
    put(moved, "sessions/p/a.jsonl", PI)
    variables = {"claude-code": "CLAUDE_CONFIG_DIR", "codex": "CODEX_HOME", "pi": "PI_CODING_AGENT_DIR"}
    for format, variable in variables.items():
        assert find_sources(format, tmp_path) == []
        assert len(find_sources(format, tmp_path, {variable: str(moved)})) == 1


def test_older_places_of_nanobot_count(tmp_path: Path) -> None:
    """A file there may be without its line of metadata."""
    put(tmp_path, ".nanobot/sessions/cli_x.jsonl", CHAT)
    (found,) = find_sources("nanobot", tmp_path)
    assert found.title == "hello"


def test_dialogs_have_no_place(tmp_path: Path) -> None:
    """Whoever wants them names the files."""
    with pytest.raises(SessionError, match="has no place of its own"):
        find_sources("chat", tmp_path)


def test_the_page_has_every_format() -> None:
    """With the folders that are looked in."""
    page = (Path(__file__).parents[3] / "docs" / "importing.md").read_text()
    home = Path("/home/me")
    for format in FORMATS:
        (row,) = [line for line in page.splitlines() if line.startswith(f"| `{format}` |")]
        if format != "chat":
            for folder in folders_of(format, home, {}):
                assert f"`~/{folder.relative_to(home)}`" in row
