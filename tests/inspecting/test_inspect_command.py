"""`moonwake inspect` as a person or a script uses it."""

from __future__ import annotations

import json
from pathlib import Path

import anyio
import pytest
from rich.cells import cell_len

from runtime import Call, Reply, cli
from runtime.providers.scripted import Scripted
from runtime.session.entries import RequestRecord
from tests.agents import talk
from tests.caching import Caching, Clock, caching_talk
from tests.inspecting.scenarios import listing


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """With a session `kept` whose cache was lost twice, and a session `silent` in which nothing was answered."""
    provider = Caching(Clock())

    async def converse() -> None:
        async with caching_talk(tmp_path, provider, tools=[listing], session="kept") as it:
            provider.add(Call("listing", {"number": 1}), "that is long " * 100)
            await it.say("look at it " * 300)
            provider.evict()
            await it.say("still there?")
            first = next(e for e in it.agent.session.branch() if e.record.type == "message")
            await it.agent.marks.omit(first.id)
            await it.say("and now?")
        async with talk(tmp_path, [Reply(error="overloaded")], session="silent") as it:
            await it.say("hello?")

    anyio.run(converse)
    monkeypatch.setenv("COLUMNS", "80")
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], workspace: Path, *words: str) -> tuple[int, str, str]:
    capsys.readouterr()
    with pytest.raises(SystemExit) as end:
        cli.main(["inspect", *words, "-w", str(workspace)])
    out, err = capsys.readouterr()
    return int(end.value.code or 0), out, err


def test_the_table_of_misses_fits_a_terminal_and_adds_up(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, workspace, "kept", "--cache")
    assert code == 0 and not err
    assert all(cell_len(line) <= 80 for line in out.splitlines()), out
    assert "provider" in out and "edit: user" in out and "named for 100.0 %" in out
    code, out, _ = run(capsys, workspace, "kept", "--cache", "--json")
    told = json.loads(out)
    assert [miss["cause"] for miss in told["misses"]] == ["provider", "edit"]
    assert sum(miss["lost"] for miss in told["misses"]) == told["summary"]["lost"]
    assert {each["cause"] for each in told["summary"]["causes"]} == {"provider", "edit"}


def test_the_requests_of_a_session_stand_one_a_line(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, workspace, "kept")
    lines = out.splitlines()
    assert code == 0 and all(cell_len(line) <= 80 for line in lines), out
    assert lines[1] == "scripted/scripted (anthropic)"
    assert len(lines) == 2 + 4 + 1 and lines[-2].endswith("edit") and lines[-1].startswith("4 requests, ")
    code, out, _ = run(capsys, workspace, "kept", "--json")
    requests = json.loads(out)["requests"]
    assert [each["request"]["purpose"] for each in requests] == ["turn"] * 4
    assert requests[-1]["outcome"]["cause"] == "edit"


def test_one_request_is_printed_whole(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, workspace, "kept", "--json")
    entry = json.loads(out)["requests"][-1]["entry"]
    code, out, _ = run(capsys, workspace, "kept", "--entry", str(entry))
    assert code == 0
    for name in ("entry", "sent", "prefix", "usage", "cause", "lifetime", "decisions"):
        assert any(line.startswith(name) for line in out.splitlines()), name
    code, _, err = run(capsys, workspace, "kept", "--entry", "1")
    assert code == 1 and "entry 1 is no request" in err and "nearest" in err


def test_a_session_without_an_answer_has_nothing_to_compare(
    workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(capsys, workspace, "silent", "--cache")
    assert code == 0 and not out and "nothing to compare" in err
    code, out, _ = run(capsys, workspace, "silent")
    assert code == 0 and "overloaded" in out


def test_all_requests_and_one_are_two_questions(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, workspace, "kept", "--cache", "--entry", "3")
    assert code == 2 and "give one of them" in err


async def test_a_request_says_which_level_of_thinking_it_asked_for(tmp_path: Path) -> None:
    async with talk(tmp_path, ["yes"], settings={"thinking": "off"}) as it:
        await it.say("hello")
        assert isinstance(it.model, Scripted)
        (request,) = it.records(RequestRecord)
        assert request.thinking == "off"
