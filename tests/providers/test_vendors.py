"""Each vendor's quirks are data of the catalog: with them its strict server refuses nothing, without them it does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from runtime.providers.catalog import KNOWN_PROVIDERS, lookup
from tests.strict.chat_hosts import HOSTS
from tests.strict.conversation import hold

VENDORS = (*HOSTS, "minimax")

#: A quirk, and what the vendor would get without it.
QUIRKS = [
    ("mistral", {"id_pattern": "[A-Za-z0-9_-]{1,64}"}, "length of 9"),
    ("mistral", {"user_after_results": True}, "after role 'tool'"),
    ("mistral", {"stream_usage": True}, "stream_options"),
    ("deepseek", {"replay_reasoning": False}, "must be passed back"),
    ("moonshotai", {"replay_reasoning": False}, "is missing"),
    ("moonshotai", {"empty_reasoning": ""}, "is missing"),
    ("zai", {"replay_reasoning": False}, "must be passed back"),
    ("google", {"call_signatures": False}, "thought_signature"),
    ("groq", {"replay_reasoning": True}, "unsupported"),
    ("openrouter", {"system_anywhere": True}, "at the beginning"),
    ("minimax", {"strict_alternation": False}, "must alternate"),
    ("template", {"strict_alternation": False}, "must alternate"),
]


@pytest.mark.parametrize("vendor", VENDORS)
async def test_a_vendor_refuses_nothing(tmp_path: Path, vendor: str) -> None:
    """A random conversation with each, as the catalog knows it."""
    report = await hold(1, "openai_chat", tmp_path, turns=4, vendor=vendor)
    assert report.wrong == []
    assert report.done["requests"] > 3


@pytest.mark.parametrize(("vendor", "without", "says"), QUIRKS)
async def test_a_quirk_is_needed(tmp_path: Path, vendor: str, without: dict[str, Any], says: str) -> None:
    """Taken out of the catalog, the vendor's server refuses what leaves, or our own checker does before."""
    for seed in range(12):
        (folder := tmp_path / str(seed)).mkdir()
        report = await hold(seed, "openai_chat", folder, turns=5, vendor=vendor, **without)
        if any(says in each for each in report.wrong):
            return
    raise AssertionError(f"nothing was refused for {says!r}")


@pytest.mark.parametrize("vendor", [name for name in VENDORS if name in KNOWN_PROVIDERS])
def test_a_vendor_takes_a_body_no_larger_than_the_strictest_reading(vendor: str) -> None:
    """`32 MB` is read as 32,000,000 bytes, the smaller of the two; hosts that say more are asked for more."""
    info = lookup(vendor, KNOWN_PROVIDERS[vendor].default_model, {"wire": "openai_chat"})
    assert info.abilities.max_body_bytes == {"openai": 536_870_912, "google": 20_971_520}.get(vendor, 32_000_000)
