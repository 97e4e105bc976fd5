"""What a model saw can be shown at any entry, and proved for every request."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from governors.messages import Text
from runtime import Call, Reply, tool
from runtime.exports import as_model, request_at
from runtime.session.entries import Entry, HeadRecord, MessageRecord, RedactRecord, RequestRecord, SystemRecord
from tests.agents import Talk, talk
from tests.session.logs import Log


@tool(bulky=True, read_only=True)
def listing(number: int) -> str:
    """Give a long listing.

    Args:
        number: Which one.
    """
    return f"listing {number}\n" + "\n".join(f"entry {number}-{line} of a listing" for line in range(40))


def script() -> list[Any]:
    steps: list[Any] = []
    for number in range(8):
        steps += [Reply("", [Call("listing", {"number": 10 * number + step})]) for step in range(3)]
        steps.append(f"answer {number}")
    return steps


def sent_bytes(body: Any) -> bytes:
    return json.dumps(dict(body), ensure_ascii=False, separators=(",", ":")).encode()


def requests(it: Talk) -> list[Entry]:
    return [entry for entry in it.on_disk() if isinstance(entry.record, RequestRecord)]


@pytest.mark.parametrize("wire", ["anthropic", "openai_chat"])
async def test_every_request_is_shown_as_it_was_sent(tmp_path: Path, wire: str) -> None:
    """Byte for byte, across edits, heads and a changed prompt."""
    async with talk(tmp_path, script(), tools=[listing], wire=wire, window=9_000) as it:
        for number in range(8):
            await it.say(f"question {number}")
            if number == 3:
                (tmp_path / "AGENTS.md").write_text("Answer in verse.\n")
        assert it.records(HeadRecord)
        for entry, request in zip(requests(it), it.model.requests, strict=True):
            seen = as_model(it.on_disk(), entry.id, it.agent.model.info)
            assert (seen.same, seen.why) == (True, "")
            assert seen.data == sent_bytes(request.body)
            assert seen.body == dict(request.body)


async def test_a_redaction_is_hidden_and_the_proof_holds(tmp_path: Path) -> None:
    """What was sent had it in it; what is shown has not."""
    async with talk(tmp_path, ["noted", "yes"]) as it:
        await it.say("the code is 4711")
        await it.say("go on")
        secret = next(entry.id for entry in it.on_disk() if isinstance(entry.record, MessageRecord))
        await it.agent.session.append(RedactRecord(target=secret))
        seen = as_model(it.on_disk(), requests(it)[-1].id, it.agent.model.info)
        assert seen.same and "hidden" in seen.why
        assert "4711" not in repr((seen.messages, seen.body, seen.data))


async def test_a_model_that_is_known_otherwise_now_is_recognised_by_its_hash(tmp_path: Path) -> None:
    """A server may have told less of its abilities then than the catalog does now."""
    async with talk(tmp_path, ["yes"], tools=[listing]) as it:
        await it.say("hello")
        info = it.agent.model.info
        other = replace(info, abilities=replace(info.abilities, tools=False))
        seen = as_model(it.on_disk(), requests(it)[0].id, other)
        assert seen.same and seen.data == sent_bytes(it.model.requests[0].body)


async def test_a_log_that_is_not_as_it_was_is_told(tmp_path: Path) -> None:
    """The hash does not agree, and the reason is said."""
    async with talk(tmp_path, ["yes"]) as it:
        await it.say("hello")
        request = requests(it)[0].id
        changed = [
            Entry(each.id, each.parent, each.at, replace(each.record, sections={"identity": "Be bold."}))
            if isinstance(each.record, SystemRecord)
            else each
            for each in it.on_disk()
        ]
        seen = as_model(changed, request, it.agent.model.info)
        assert seen.same is False and "not as it was then" in seen.why


def test_any_other_entry_shows_what_a_request_there_would() -> None:
    """Up to and with that entry; without a model there is no body."""
    log = Log()
    first = log.user("one")
    log.reply("answer")
    log.user("two")
    seen = as_model(log.tree.entries, first)
    assert [message.content for message in seen.messages if hasattr(message, "content")] == [(Text("one"),)]
    assert (seen.body, seen.same, seen.request) == (None, None, None)
    assert request_at(log.tree.entries, first) is None
    log.request()
    assert request_at(log.tree.entries, first) == log.branch[-1].record
