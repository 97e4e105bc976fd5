"""A real model on this machine: ten turns, a kill in the middle of a reply, and a server that overflows."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from runtime import Runtime
from runtime.events import HistoryCut, Notice, ReplyRecorded, RequestSent, TurnFinished
from runtime.providers.base import ChosenModel
from runtime.providers.local import Local, is_installed
from runtime.providers.openai_chat import OpenAIChat
from runtime.providers.retry import RetryingProvider
from runtime.providers.weights import find_model
from runtime.session.entries import MessageRecord, OutcomeRecord
from runtime.session.opening import read_log
from tests.agents import of

ROOT = Path(__file__).parents[2]
WEIGHTS = find_model() if is_installed() else None
pytestmark = [
    pytest.mark.local_model,
    pytest.mark.skipif(WEIGHTS is None, reason="the embedded model is not here: moonwake model get smollm2"),
]
QUESTIONS = [
    "My name is Ada. Say hello.",
    "What is two and two?",
    "Name a colour.",
    "Name a fruit.",
    "Is water wet?",
    "Name a city.",
    "Name a river.",
    "What do bees make?",
    "Name an animal.",
    "Say goodbye.",
    "Tell me a long story about the sea.",
]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"  # once is enough for a real model; the providers' own tests run on both


def short_answers(local: Local, limit: int = 24) -> ChosenModel:
    return ChosenModel(replace(local.model_info(), max_output=limit), local, "a test")


TALK = """
import anyio, json, sys
from itertools import pairwise
from pathlib import Path
from runtime import Runtime
from tests.agents import acknowledged
from tests.scenarios.test_embedded_model import QUESTIONS, WEIGHTS, short_answers
from runtime.providers.local import Local

async def main():
    model = short_answers(Local(WEIGHTS, window=2048, threads=1), limit=24)
    async with Runtime.open(sys.argv[1], model=model, environ={}) as runtime:
        for number, question in enumerate(QUESTIONS):
            async for event in runtime.agent(session="ten").send(question):
                print(json.dumps([number, event.type, acknowledged(event)]), flush=True)

anyio.run(main)
"""


async def test_ten_turns_then_kill_9_in_a_reply_lose_nothing(tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    seen: list[Any] = []
    command = [sys.executable, "-c", TALK, str(workspace)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environ, cwd=ROOT) as child:
        assert child.stdout is not None
        for line in child.stdout:
            seen.append(json.loads(line))
            if seen[-1][:2] == [10, "text_delta"]:
                break
        child.send_signal(signal.SIGKILL)
    assert [kind for _, kind, _ in seen].count("turn_finished") == 10
    promised = {entry for _, _, entry in seen if entry is not None}
    (log,) = workspace.rglob("ten.jsonl")
    assert promised <= {entry.id for entry in read_log(log).entries}
    assert WEIGHTS is not None
    async with Runtime.open(
        workspace, model=short_answers(Local(WEIGHTS, window=2048, threads=1)), environ={}
    ) as runtime:
        events = [event async for event in runtime.agent(session="ten").send("What is my name?")]
    finished = of(TurnFinished, events)[0]
    assert finished.error is None and finished.text.strip()
    records = [entry.record for entry in read_log(log).entries]
    asked = [
        record.content[0].text for record in records if isinstance(record, MessageRecord) and record.role == "user"
    ]
    assert asked == [*QUESTIONS, "What is my name?"]


async def test_a_real_server_that_overflows_is_answered_by_fitting(tmp_path: Path) -> None:
    """The server's window is smaller than we believe; its own error teaches us, and the conversation goes on."""
    assert WEIGHTS is not None
    local = Local(WEIGHTS, window=1024, threads=1)
    running = await local.ready()
    try:
        server = running.child
        chat = RetryingProvider(OpenAIChat("llama", server.key, server.url))
        believed = replace(local.model_info(), provider="llama", window=4096, max_output=16, token_factor=1.2)
        async with Runtime.open(tmp_path, model=ChosenModel(believed, chat), environ={}) as runtime:
            agent = runtime.agent(session="overflow")
            events = []
            for number in range(4):
                question = f"Note {number}: " + "the quick brown fox jumps over the lazy dog " * 28
                events += [event async for event in agent.send(question)]
        assert [event.error for event in of(TurnFinished, events)] == [None] * 4
        assert of(HistoryCut, events)
        assert len(of(Notice, events)) == 1
        assert "1,024" in of(Notice, events)[0].text
        (log,) = tmp_path.rglob("overflow.jsonl")
        outcomes = [entry.record for entry in read_log(log).entries if isinstance(entry.record, OutcomeRecord)]
        assert [record.problem["kind"] for record in outcomes if record.problem] == ["overflow"]
        assert of(RequestSent, events)[-1].budget < 1024
    finally:
        await local.close()


async def test_the_same_conversation_through_a_server_on_loopback(tmp_path: Path) -> None:
    assert WEIGHTS is not None
    local = Local(WEIGHTS, window=2048, threads=1)
    running = await local.ready()
    try:
        chat = RetryingProvider(OpenAIChat("llama", running.child.key, running.child.url))
        info = replace(local.model_info(), provider="llama", max_output=16)
        async with Runtime.open(tmp_path, model=ChosenModel(info, chat), environ={}) as runtime:
            agent = runtime.agent()
            events = [event for question in QUESTIONS[:10] async for event in agent.send(question)]
        assert [event.error for event in of(TurnFinished, events)] == [None] * 10
        usages = [event.usage for event in of(ReplyRecorded, events)]
        assert all(usage is not None for usage in usages)
        read = [(later.cache_read, earlier.prompt) for earlier, later in pairwise(usages)]
        assert sum(1 for cached, before in read if cached >= 0.95 * before) >= 8, read
    finally:
        await local.close()
