"""What was sent is what the log says: every request can be made again from the entries before it, byte for byte."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from governors.tokens import TiktokenCounter
from runtime import Call, Reply, tool
from runtime.agent.drafts import Drafts
from runtime.agent.fit import known_fit
from runtime.agent.prepare import Prepared, Situation, prepare
from runtime.session.entries import EditRecord, HeadRecord, MessageRecord, RequestRecord
from tests.agents import Talk, talk


@tool(bulky=True, read_only=True)
def listing(number: int) -> str:
    """Give a long listing.

    Args:
        number: Which one.
    """
    return f"listing {number}\n" + "\n".join(f"entry {number}-{line} of a listing" for line in range(40))


def again(it: Talk, request: int) -> Prepared:
    """The request of the entry `request`, prepared from the entries before it and nothing else."""
    branch = [entry for entry in it.agent.session.branch() if entry.id < request]
    turn = [e.id for e in branch if isinstance(e.record, MessageRecord) and e.record.role == "user"][-1]
    model = it.agent.model
    situation = Situation(branch, branch, turn, model, known_fit(model, {}), Drafts(TiktokenCounter()))
    outcome = prepare(situation).outcome
    assert isinstance(outcome, Prepared), "the log holds every decision that shaped the request"
    return outcome


@pytest.mark.parametrize("wire", ["anthropic", "openai_chat"])
async def test_every_request_is_a_function_of_the_log(tmp_path: Path, wire: str) -> None:
    script: list[Any] = []
    for number in range(8):
        steps = [Reply("", [Call("listing", {"number": 10 * number + step})]) for step in range(3)]
        script += [*steps, f"answer {number}"]
    async with talk(tmp_path, script, tools=[listing], wire=wire, window=9_000) as it:
        for number in range(8):
            await it.say(f"question {number}")
            if number == 3:
                (tmp_path / "AGENTS.md").write_text("Answer in verse.\n")
        assert it.records(HeadRecord) and it.records(EditRecord)
        sent = [entry for entry in it.on_disk() if isinstance(entry.record, RequestRecord)]
        assert len(sent) == len(it.model.requests) == 32
        named = [decision for entry in sent for decision in entry.record.decisions]  # type: ignore[union-attr] # requests
        assert named == [entry.id for entry in it.on_disk() if isinstance(entry.record, EditRecord | HeadRecord)]
        for entry, request in zip(sent, it.model.requests, strict=True):
            assert isinstance(entry.record, RequestRecord)
            made = again(it, entry.id)
            assert made.record.prefix == entry.record.prefix
            ttl = "1h" if entry.record.lifetime > 300 else None
            assert made.draft.to_bytes(ttl) == _bytes_of(request.body)


def _bytes_of(body: Any) -> bytes:
    import json

    return json.dumps(dict(body), ensure_ascii=False, separators=(",", ":")).encode()
