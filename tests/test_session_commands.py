"""`moonwake sessions` as a person or a script uses it: what is printed, exit codes, what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from runtime import Call, cli
from runtime.app import new_session_id, utc_now
from runtime.errors import MoonwakeError, SessionError
from runtime.session.entries import LeafRecord, MessageRecord, RedactRecord, RequestRecord
from runtime.session.naming import find_session
from runtime.session.opening import read_log
from runtime.session.store import SessionStore
from runtime.session.writing.locking import lock, unlock
from runtime.shelf.printing import cut, table
from runtime.shelf.times import moment_asked, moment_asked_until
from tests.agents import talk

NOW = datetime(2026, 11, 30, 18, 0, tzinfo=UTC)


@dataclass
class Done:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Command = Callable[..., Done]


@pytest.fixture
def garden(tmp_path: Path) -> Path:
    """A workspace with a session `garden` in which a tool was called, a branch was left, and an entry was redacted."""
    folder = tmp_path / "work"

    async def talk_there() -> None:
        script = [Call("read_file", {"path": "beds.md"}), "Thin the **beans**.", "noted", "Water the roses."]
        folder.mkdir()
        (folder / "beds.md").write_text("bed 3: beans\n")
        async with talk(folder, script, session="garden") as it:
            await it.say("What needs doing? 豆を間引く")
            first = it.agent.session.tree.leaf
            await it.say("the gate code is open-sesame-4711")
            said = (each for each in it.on_disk() if isinstance(each.record, MessageRecord))
            secret = next(each.id for each in said if "open-sesame-4711" in str(each.record))
            await it.agent.session.append(RedactRecord(target=secret), LeafRecord(leaf=first))
            await it.say("and the roses?")

    anyio.run(talk_there)
    return folder


@pytest.fixture
def moonwake(garden: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs a command of `moonwake sessions` on that workspace."""

    def run(*arguments: str) -> Done:
        with pytest.raises(SystemExit) as end:
            cli.main(["sessions", *arguments, "-w", str(garden)])
        captured = capsys.readouterr()
        return Done(int(end.value.code or 0), captured.out, captured.err)

    return run


def log_of(garden: Path, session: str = "garden") -> Path:
    return garden / ".moonwake" / "sessions" / "assistant" / f"{session}.jsonl"


def entry_of(garden: Path, kind: type) -> int:
    return next(entry.id for entry in read_log(log_of(garden)).entries if isinstance(entry.record, kind))


def test_a_list_fits_eighty_columns(moonwake: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the title, and as JSON with everything."""
    monkeypatch.setenv("COLUMNS", "80")
    done = moonwake("list")
    assert done.code == 0
    assert done.out.splitlines()[0].split() == ["SESSION", "LAST", "SAID", "SAID", "COST", "TITLE"]
    assert "garden" in done.out and all(cell_len(line) <= 80 for line in done.out.splitlines())
    (info,) = moonwake("list", "--json").json["sessions"]
    assert (info["id"], info["agent"], info["messages"], info["archived"]) == ("garden", "assistant", 7, False)


def test_filters_leave_out(moonwake: Command) -> None:
    """By every option that there is."""
    assert moonwake("list", "--since", "1h", "--model", "scripted", "--cost-over", "0.001", "--json").json["total"] == 1
    for options in (["--until", "1h"], ["--pinned"], ["--archived"], ["--tag", "x"], ["--agent", "nobody"]):
        assert moonwake("list", *options, "--json").json["total"] == 0
    assert "no sessions of that kind" in moonwake("list", "--channel", "telegram").err


def test_a_list_says_when_it_read_the_folder(moonwake: Command, garden: Path) -> None:
    """The index is a folder here, and cannot be used; the list is the same."""
    for name in ("index.sqlite", "index.sqlite-wal", "index.sqlite-shm"):
        (garden / ".moonwake" / name).unlink(missing_ok=True)
    (garden / ".moonwake" / "index.sqlite").mkdir()
    done = moonwake("list")
    assert "garden" in done.out
    assert "the folder was read instead" in done.err


@pytest.mark.parametrize("command", [["list"], ["search", "beans"]])
def test_an_index_that_is_not_there_yet_is_made_without_a_word(
    moonwake: Command, garden: Path, command: list[str]
) -> None:
    """Programs are told all the same."""
    for options, told in (([], ""), (["--json"], "missing")):
        for name in ("index.sqlite", "index.sqlite-wal", "index.sqlite-shm"):
            (garden / ".moonwake" / name).unlink(missing_ok=True)
        done = moonwake(*command, *options)
        assert "garden" in done.out and done.err == ""
        assert not told or done.json["fallback"] == told
        assert (garden / ".moonwake" / "index.sqlite").is_file()


def test_search_finds_what_was_said(moonwake: Command) -> None:
    """With its entry; exit code 1 when nobody said it, also for what was redacted."""
    done = moonwake("search", "beans")
    assert done.code == 0 and "garden, entry" in done.out and "Thin the **beans**" in done.out
    assert moonwake("search", "beans", "--json").json["finds"][0]["session"] == "garden"
    assert moonwake("search", "open-sesame-4711").code == 1
    assert "nobody said 'cucumbers'" in moonwake("search", "cucumbers").err


def test_show_prints_the_branch_with_numbers(moonwake: Command, garden: Path) -> None:
    """Other branches when asked for; never what was redacted."""
    done = moonwake("show", "garden")
    assert "   1  You" in done.out and "✓ read_file beds.md" in done.out and "Water the roses." in done.out
    assert "[redacted]" not in done.out and "another branch leaves here" in done.out
    everything = moonwake("show", "garden", "--all-branches").out
    assert "[redacted]" in everything and "open-sesame-4711" not in everything
    result = moonwake("show", "garden", "--json").json
    assert result["session"]["id"] == "garden"
    assert [each["id"] for each in result["entries"] if each["id"] in result["branch"]] == result["branch"]
    assert "open-sesame-4711" not in json.dumps(moonwake("show", "garden", "--all-branches", "--json").json)


def test_show_prints_an_entry_whole(moonwake: Command, garden: Path) -> None:
    """With the result of a tool; an entry that there is none of names the nearest."""
    result = next(e.id for e in read_log(log_of(garden)).entries if e.record.type == "result")
    done = moonwake("show", "garden", "--entry", str(result))
    assert "bed 3: beans" in done.out and "Thin the" not in done.out
    done = moonwake("show", "garden", "--entry", "900")
    assert done.code == 1 and "there is no entry 900 in this session. The nearest are" in done.err


def test_show_as_model_proves_its_bytes(moonwake: Command, garden: Path) -> None:
    """For a request; for another entry it shows what one there would see."""
    request = entry_of(garden, RequestRecord)
    done = moonwake("show", "garden", "--as-model", "--entry", str(request))
    assert "same bytes as recorded" in done.out and "── user · entry 1" in done.out
    seen = moonwake("show", "garden", "--as-model", "--entry", str(request), "--json").json
    assert seen["same_bytes"] is True and seen["body"]["messages"] and seen["messages"][0]["role"] == "user"
    other = moonwake("show", "garden", "--as-model", "--entry", "1", "--json").json
    assert other["same_bytes"] is None and other["request"] is None and other["body"]
    assert "Water the roses" not in moonwake("show", "garden", "--as-model").out  # that is the answer to it


@pytest.mark.parametrize("ending", ["md", "html", "jsonl", "json"])
def test_export_writes_by_the_ending_and_overwrites_nothing(moonwake: Command, tmp_path: Path, ending: str) -> None:
    """Unless it is told to; nothing redacted is in any of them."""
    path = tmp_path / f"talk.{ending}"
    done = moonwake("export", "garden", "--output", str(path))
    assert done.code == 0 and f"wrote {path}" in done.err
    text = path.read_text(encoding="utf-8")
    assert "Water the roses." in text and "open-sesame-4711" not in text
    path.write_text("mine")
    done = moonwake("export", "garden", "--output", str(path))
    assert done.code == 1 and "say --force" in done.err and path.read_text() == "mine"
    assert moonwake("export", "garden", "--output", str(path), "--force").code == 0
    assert path.read_text(encoding="utf-8") == text
    assert sorted(each.name for each in tmp_path.iterdir()) == [path.name, "work"]


def test_export_to_standard_output_and_to_nowhere(moonwake: Command, tmp_path: Path) -> None:
    """Markdown unless something else is asked for; what cannot be written is said."""
    assert moonwake("export", "garden").out.startswith("# What needs doing? 豆を間引く")
    assert json.loads(moonwake("export", "garden", "-f", "jsonl").out.splitlines()[0])["id"] == "garden"
    assert "give one of markdown, html, jsonl, atif" in moonwake("export", "garden", "-f", "docx").err
    done = moonwake("export", "garden", "-o", str(tmp_path / "no" / "x.md"))
    assert done.code == 1 and f"there is no folder {tmp_path / 'no'}. Make it first" in done.err
    done = moonwake("export", "garden", "-o", str(tmp_path), "--force")
    assert done.code == 1 and "it is a folder" in done.err


def test_a_fork_is_a_session_of_its_own(moonwake: Command, garden: Path) -> None:
    """Its id is all that is printed on standard output; the message that opened a turn stands for all of it."""
    done = moonwake("fork", "garden", "--at", "1")
    made = done.out.strip()
    origin = dict(read_log(log_of(garden, made)).header.origin or {})
    assert done.code == 0 and (origin["kind"], origin["session"]) == ("fork", "garden")
    shown = moonwake("show", made[-8:]).out
    assert "Thin the **beans**" in shown and "and the roses?" not in shown


def test_putting_away_pinning_and_tagging_can_be_undone(moonwake: Command) -> None:
    """And lists show it."""
    assert moonwake("archive", "garden").code == 0
    assert moonwake("list", "--json").json["total"] == 0
    assert moonwake("list", "--archived", "--json").json["total"] == 1
    assert moonwake("archive", "garden", "--undo").code == 0
    assert moonwake("pin", "garden").code == 0
    assert moonwake("label", "garden", "spring").code == 0
    (info,) = moonwake("list", "--pinned", "--tag", "spring", "--json").json["sessions"]
    assert info["pinned"] and info["tags"] == ["spring"]
    assert moonwake("pin", "garden", "--undo").code == moonwake("label", "garden", "spring", "--undo").code == 0
    assert moonwake("list", "--pinned", "--json").json["total"] == 0
    assert moonwake("pin", "garden", "--entry", "1").code == 0
    assert "pinned" in moonwake("show", "garden").out
    done = moonwake("pin", "garden", "--entry", "2")
    assert done.code == 1 and "only messages and results can be pinned" in done.err


def test_a_session_that_is_open_can_be_read_and_not_written(moonwake: Command, garden: Path) -> None:
    """Whoever holds it is named."""
    held = lock(log_of(garden))
    try:
        for reading in (["show"], ["export"], ["fork"], ["verify"]):
            assert moonwake(*reading, "garden").code == 0
        for writing in (["archive"], ["pin"], ["label"], ["gc", "--redacted"]):
            done = moonwake(*writing, "garden", *(["tag"] if writing == ["label"] else []))
            assert done.code == 1 and "is open in this process already" in done.err
    finally:
        unlock(held, log_of(garden))


def test_a_name_that_is_none_names_the_nearest(moonwake: Command) -> None:
    """For every command that takes one."""
    for command in (["show"], ["export"], ["fork"], ["archive"], ["pin"], ["verify"], ["gc", "--redacted"]):
        done = moonwake(*command, "gardn")
        assert done.code == 1 and "there is no session 'gardn'. The nearest: garden" in done.err
    assert "The newest: garden" in moonwake("show", "zzz").err


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "empty"),
        (b'{"id":1,"parent":null,"at":"2026-11-30T18:00:00.000Z","type":"note","text":"x"}\n', "not a session header"),
        (b'{"type":"session","version":99,"id":"x","agent":"a","created":"2026-11-30T18:00:00.000Z"}\n', "version 99"),
        (None, "is a folder"),
    ],
    ids=["empty", "no header", "newer", "folder"],
)
@pytest.mark.parametrize("session", ["broken", "019ad5e0-5c1e-7b6e-9a51-3f0c8f4f2a10"])
def test_a_session_that_cannot_be_read_is_there_and_says_why(
    moonwake: Command, garden: Path, session: str, content: bytes | None, why: str
) -> None:
    """Also when its agent has no other: it is not said to be missing."""
    path = garden / ".moonwake" / "sessions" / "other" / f"{session}.jsonl"
    path.parent.mkdir()
    path.mkdir() if content is None else path.write_bytes(content)
    for arguments in (["show", session[-8:]], ["export", session], ["label", session, "x"], ["fork", session]):
        done = moonwake(*arguments)
        assert (done.code, why in done.err) == (1, True), done
    done = moonwake("verify", session)
    assert done.code == 1 and (why in done.out or "it is no file" in done.out)
    assert moonwake("show", session, "--agent", "assistant").err.startswith("moonwake: there is no session")


def test_verify_tells_what_is_damaged(moonwake: Command, garden: Path) -> None:
    """Exit code 1 then, and the line."""
    assert "1 session looked at, 0 damaged" in moonwake("verify").out
    path = log_of(garden)
    lines = path.read_bytes().split(b"\n")
    lines[2] = lines[2][: len(lines[2]) // 2]
    path.write_bytes(b"\n".join(lines))
    done = moonwake("verify", "garden")
    assert done.code == 1 and "error: line 3" in done.out
    (found,) = moonwake("verify", "--json").json
    assert found["sound"] is False and "error" in [each["severity"] for each in found["problems"]]
    assert "line 3" in moonwake("show", "garden").err


def test_gc_erases_what_was_redacted(moonwake: Command, garden: Path) -> None:
    """A dry run first, which changes nothing."""
    before = log_of(garden).read_bytes()
    assert "would be erased" in moonwake("gc", "--redacted", "garden", "--dry-run").out
    assert log_of(garden).read_bytes() == before and b"open-sesame-4711" in before
    assert moonwake("gc", "--redacted", "garden").code == 0
    assert b"open-sesame-4711" not in log_of(garden).read_bytes()
    assert moonwake("gc", "--json").json["removed"] == []


def test_import_reports_every_line(moonwake: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Named files, or those of a program where it keeps them."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    folder = tmp_path / "home" / ".pi" / "agent" / "sessions" / "x"
    folder.mkdir(parents=True)
    message = {"role": "user", "content": [{"type": "text", "text": "read the map"}], "timestamp": 1764525600000}
    lines: list[dict[str, Any]] = [
        {"type": "session", "version": 3, "id": "a", "timestamp": "2026-11-30T18:00:00.000Z", "cwd": "/x"},
        {"type": "message", "id": "b", "parentId": None, "timestamp": "2026-11-30T18:00:01.000Z", "message": message},
    ]
    (folder / "one.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert "one.jsonl" in moonwake("import", "--list").out
    assert "name files to import" in moonwake("import").err
    assert "--all imports all of them" in moonwake("import", "--from", "pi").err
    done = moonwake("import", "--from", "pi", "--all")
    assert done.code == 0 and "2 lines (pi): 2 carried over, 0 left." in done.out
    assert "was imported before" in moonwake("import", str(folder / "one.jsonl")).out
    assert moonwake("search", "map").code == 0


def test_a_workspace_that_is_not_there_is_not_made(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Reading makes nothing."""
    with pytest.raises(SystemExit) as end:
        cli.main(["sessions", "list", "-w", str(tmp_path / "none")])
    assert end.value.code == 1 and "there is no workspace" in capsys.readouterr().err
    assert not (tmp_path / "none").exists()


def test_one_name_of_two_agents_asks_which(tmp_path: Path) -> None:
    """A part of an id that fits several, too."""
    store = SessionStore(tmp_path / "sessions", new_session_id, utc_now)

    async def make() -> None:
        for agent in ("one", "two"):
            session = await store.create(agent, "taxes")
            await session.append(MessageRecord(role="user", content=()))
            await session.close()

    anyio.run(make)
    assert find_session(store, "taxes", "two").agent == "two"
    with pytest.raises(SessionError, match="taxes is a session of one and of two: say which with --agent"):
        find_session(store, "taxes")


@given(st.lists(st.tuples(st.text(max_size=30), st.text(max_size=200)), min_size=1, max_size=5), st.integers(50, 120))
def test_a_table_never_runs_over(rows: list[tuple[str, str]], columns: int) -> None:
    """Wide letters take two columns; control characters none."""
    cells = [(cut(name, 20), title) for name, title in rows]
    for line in table(cells, columns):
        assert cell_len(line) <= columns
        assert "\n" not in line and "\x1b" not in line


def test_times_are_dates_or_ages() -> None:
    """A day counts as a whole at the end; nonsense is refused in words."""
    assert moment_asked("12h", NOW).hour == 6
    assert moment_asked("2026-11-29", NOW) == datetime(2026, 11, 29, tzinfo=UTC)
    assert moment_asked_until("2026-11-29", NOW) == datetime(2026, 11, 30, tzinfo=UTC)
    assert moment_asked_until("2026-11-29T12:00+02:00", NOW).astimezone(UTC).hour == 10
    for text in ("soon", "999999w", ""):
        with pytest.raises(MoonwakeError, match="is no time"):
            moment_asked(text, NOW)
