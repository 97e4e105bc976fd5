"""Receipts of compactions, where people and programs look them up: `inspect`, exports, `verify`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import anyio
import pytest
from rich.cells import cell_len

from runtime import cli
from runtime.exports import to_atif, to_html, to_jsonl, to_markdown
from runtime.session.care.checking import check_entries
from runtime.session.entries import CompactionRecord, Entry, HeadRecord, NoteRecord
from runtime.session.format.codec import decode_entry
from runtime.session.format.located import Located
from runtime.session.opening import read_log
from runtime.session.view.recall import recall
from tests.agent.test_compacting import ON, SUMMARY, answering
from tests.agents import talk


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With a session `kept` where room was made once and failed once, and a session `silent`."""
    folder = tmp_path_factory.mktemp("receipts")
    answers = iter([SUMMARY, "", ""])

    async def converse() -> None:
        async with talk(folder, otherwise=answering(lambda _: next(answers)), settings=ON, session="kept") as it:
            for number in range(12):
                await it.say(f"Note order_{number}.")
            assert (await it.agent.compactions.by_hand()).result == "done"
            for number in range(12):
                await it.say(f"Note more_{number}.")
            assert (await it.agent.compactions.by_hand()).result == "failed"
        async with talk(folder, ["Hi."], session="silent") as it:
            await it.say("hello?")

    anyio.run(converse)
    return folder


def run(capsys: pytest.CaptureFixture[str], workspace: Path, *words: str) -> tuple[int, str, str]:
    capsys.readouterr()
    with pytest.raises(SystemExit) as end:
        cli.main([*words, "-w", str(workspace)])
    out, err = capsys.readouterr()
    return int(end.value.code or 0), out, err


def entries(workspace: Path) -> tuple[Entry, ...]:
    return read_log(next(workspace.rglob("kept.jsonl"))).entries


def receipts(workspace: Path) -> list[tuple[int, CompactionRecord]]:
    found = ((entry.id, entry.record) for entry in entries(workspace))
    return [(number, record) for number, record in found if isinstance(record, CompactionRecord)]


def test_they_stand_one_a_line(
    workspace: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a terminal's width, with their sum."""
    monkeypatch.setenv("COLUMNS", "80")
    code, out, err = run(capsys, workspace, "inspect", "kept", "--compactions")
    head, done, failed, total = out.splitlines()
    assert (code, err) == (0, "") and all(cell_len(line) <= 80 for line in out.splitlines()), out
    assert head.split() == ["entry", "made", "for", "before", "after", "msgs", "cost", "result"]
    (first, record), (second, _) = receipts(workspace)
    assert done.split()[0] == str(first) and done.endswith(f"lacks {len(record.dropped)}")
    assert failed.split()[0] == str(second) and "the summary does" in failed
    assert total.startswith("2 attempts, 1 done: ") and "for $0.0" in total


def test_one_is_shown_whole_and_all_are_json(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (first, record), (second, _) = receipts(workspace)
    _, out, _ = run(capsys, workspace, "inspect", "kept", "--compactions", "--entry", str(first))
    assert out.startswith("A compaction by hand (summary). Room was made for $0.0")
    assert all(f"  {lost}" in out.splitlines() for lost in record.dropped)
    _, out, _ = run(capsys, workspace, "inspect", "kept", "--compactions", "-e", str(second))
    assert "No room was made: " in out and "Attempts in a row that brought nothing: 1." in out
    _, out, _ = run(capsys, workspace, "inspect", "kept", "--compactions", "--json")
    told = json.loads(out)["compactions"]
    assert [(each["entry"], each["result"]) for each in told] == [(first, "done"), (second, "failed")]
    code, _, err = run(capsys, workspace, "inspect", "kept", "--compactions", "-e", "1")
    assert code != 0 and err == f"moonwake: entry 1 is no receipt of a compaction; the nearest are {first}, {second}\n"
    code, out, err = run(capsys, workspace, "inspect", "silent", "--compactions")
    assert (code, out, err) == (0, "", "no room was made in this session\n")
    code, _, err = run(capsys, workspace, "inspect", "kept", "--compactions", "--cache")
    assert code != 0 and "give one of them" in err


def test_exports_tell_them(workspace: Path) -> None:
    """With what the summary lacks, and why one failed; the session file has them as they are."""
    header, all_of_it = read_log(next(workspace.rglob("kept.jsonl"))).header, entries(workspace)
    (_, record), _ = receipts(workspace)
    lost = f"The summary lacks: {', '.join(record.dropped)}"
    for page in (to_markdown(header, all_of_it), to_html(header, all_of_it), json.dumps(to_atif(header, all_of_it))):
        plain = page.replace("\\", "")
        assert "room was made for $0.0" in plain and f"{record.folded} messages went out of the model" in plain
        assert "no room was made" in plain and lost.split(", ")[1] in plain
    lines = to_jsonl(header, all_of_it).splitlines()[1:]
    kept = [decode_entry(line)[0].record for line in lines]
    assert [each for each in kept if isinstance(each, CompactionRecord)] == [each for _, each in receipts(workspace)]


def test_what_was_folded_is_found_by_recall_and_by_search(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The words and the place: nothing that goes out of view is lost."""
    found = recall(entries(workspace), "order_0")
    assert found is not None and "Note order_0." in found
    code, out, _ = run(capsys, workspace, "sessions", "search", "order_0")
    assert code == 0 and "order_0" in out


def check(found: Sequence[Entry], without: int = 0) -> list[str]:
    """What is wrong with entries, one of which is another one."""
    other = [replace(each, record=NoteRecord(text="x")) if each.id == without else each for each in found]
    return [problem.problem for problem in check_entries([Located(each, 1, 0, b"", None) for each in other])]


def test_verify_holds_receipts_to_their_heads_and_requests(workspace: Path) -> None:
    """As they are written, nothing is wrong with them."""
    sound = entries(workspace)
    assert check(sound) == []
    (first, record), _ = receipts(workspace)
    assert f"its request, entry {record.requests[0]}, is not there" in check(sound, record.requests[0])
    head = next(each for each in sound if isinstance(each.record, HeadRecord))
    assert head.id == first - 1
    assert "it tells of a compaction that was done, but hangs on no head" in check(sound, head.id)
