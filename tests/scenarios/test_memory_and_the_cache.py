"""A real prefix cache: memory that is written in the middle of a conversation costs its own size and no more."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from governors.messages import Usage
from runtime import Runtime
from runtime.events import ReplyRecorded, TurnFinished
from runtime.inspecting import misses_of
from runtime.providers.base import ChosenModel
from runtime.providers.local import Local, is_installed
from runtime.providers.weights import find_model
from runtime.session.entries import OutcomeRecord, SystemRecord
from runtime.session.opening import read_log
from tests.agents import of

WEIGHTS = find_model() if is_installed() else None
pytestmark = [
    pytest.mark.local_model,
    pytest.mark.skipif(WEIGHTS is None, reason="the embedded model is not here: moonwake model get smollm2"),
]
MEMORY = "# Memory\n\nThe user is called Ada, grows beans, and wants short answers.\n"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"  # once is enough for a real model


async def test_memory_written_in_mid_session_keeps_the_prefix(tmp_path: Path) -> None:
    """The server's own count of cached tokens on the next call is at least 95 % of the prompt before it."""
    assert WEIGHTS is not None
    local = Local(WEIGHTS, window=2048, threads=1)
    info = replace(local.model_info(), max_output=12, profile="full")  # a tiny profile has no memory
    async with Runtime.open(tmp_path, model=ChosenModel(info, local), environ={}) as runtime:
        agent = runtime.agent(session="memory")
        events = [event for question in ("Say hello.", "Name a colour.") async for event in agent.send(question)]
        (tmp_path / "memory").mkdir(exist_ok=True)
        (tmp_path / "memory" / "MEMORY.md").write_text(MEMORY)
        events += [event for question in ("Name a fruit.", "Name a city.") async for event in agent.send(question)]
    assert [event.error for event in of(TurnFinished, events)] == [None] * 4
    usages = [event.usage for event in of(ReplyRecorded, events)]
    found = [usage for usage in usages if isinstance(usage, Usage)]
    assert len(found) == 4
    shares = [later.cache_read / earlier.prompt for earlier, later in pairwise(found)]
    assert all(share >= 0.95 for share in shares), shares
    (log,) = tmp_path.rglob("memory.jsonl")
    entries = read_log(log).entries
    _, patch = [entry.record for entry in entries if isinstance(entry.record, SystemRecord)]
    assert list(patch.sections) == ["memory/project"]
    usual = found[1].prompt - found[0].prompt
    told = len(str(patch.sections["memory/project"]))
    assert found[2].plain - usual < told / 2, "the patch was billed, and nothing else"
    assert [entry.record.cause for entry in entries if isinstance(entry.record, OutcomeRecord)] == [None] * 4
    assert not misses_of(entries, {}).misses
