"""What /tokens counts is the request that would leave."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from governors.messages import Text
from governors.tokens import scaled, system_tokens, tools_tokens
from governors.wire.base import Abilities
from runtime.attachments import attach
from runtime.channels.window import window_use
from runtime.session.entries import RequestRecord
from tests.agent.test_tools_change import FOLDS, INLINE, give, listing, names, weather
from tests.agents import Talk, talk
from tests.pdfs import pdf


def used(it: Talk) -> tuple[int, int, int, int]:
    agent = it.agent
    use = window_use(tuple(agent.session.branch()), agent.model, agent.equipment.counter, agent.room.standing())
    return use.system, use.tools, use.messages, use.count


@pytest.mark.parametrize("abilities", [INLINE, FOLDS, Abilities(), replace(INLINE, folds_patches=True)])
async def test_tokens_tells_of_the_request_that_leaves(tmp_path: Path, abilities: Abilities) -> None:
    """Tools that a patch brings count where they stand; a folded front counts as it is now, and no patch beside it."""
    async with talk(tmp_path, tools=[listing], otherwise="yes", wire="anthropic", abilities=abilities) as it:
        await it.say("hello")
        (tmp_path / "AGENTS.md").write_text("Answer in verse. " * 40)
        give(it, weather)
        await it.say("and now?")
        counter, factor = it.agent.equipment.counter, it.agent.model.info.token_factor
        folds, body = abilities.folds_patches, it.bodies[-1]
        system, tools, messages, count = used(it)
        assert system == scaled(system_tokens(body["system"][0]["text"], counter), factor)
        defined = [weather.spec] if folds else [listing.spec, weather.spec]
        kept = [tool.spec for tool in it.agent.equipment.toolset if tool.spec.name not in ("listing", "weather")]
        assert tools == scaled(tools_tokens([*kept, *defined], counter), factor)
        assert ("weather" in names(body)) is (folds or not abilities.inline_tools)
        assert count == 4 + (not folds)
        forecast = it.records(RequestRecord)[-1].forecast
        reply = 40  # what was said since
        assert forecast <= system + tools + messages <= forecast + reply or folds


async def test_a_document_counts_as_the_text_that_a_model_without_documents_gets(tmp_path: Path) -> None:
    """Not as pages, which it is never sent."""
    async with talk(tmp_path, otherwise="yes", abilities=Abilities(documents=False)) as it:
        (tmp_path / "a.pdf").write_bytes(pdf("All is well."))
        async for _ in it.agent.send([await attach(tmp_path / "a.pdf"), Text("what does it say?")]):
            pass
        assert used(it)[2] < 1_000
