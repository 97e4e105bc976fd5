"""The catalog's data, and what is made of it."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from governors.messages import Usage
from governors.wire.base import Abilities
from runtime.errors import ConfigError
from runtime.providers.base import Price
from runtime.providers.catalog import KNOWN_PROVIDERS, UNKNOWN, USUAL_OUTPUT, known_models, lookup

EVERY = [(provider, model) for provider in KNOWN_PROVIDERS for model in known_models(provider)]


@pytest.mark.parametrize(("provider", "model"), EVERY)
def test_every_model_leaves_room_for_a_prompt(provider: str, model: str) -> None:
    """A window is never eaten by the output that is asked for."""
    info = lookup(provider, model)
    assert 0 < info.max_output <= min(USUAL_OUTPUT, info.window // 4)
    assert info.wire == KNOWN_PROVIDERS[provider].wire
    assert info.base_url == KNOWN_PROVIDERS[provider].base_url


@pytest.mark.parametrize("provider", list(KNOWN_PROVIDERS))
def test_every_provider_has_its_key_and_a_default_model(provider: str) -> None:
    """The default model is one that the catalog knows, or a resold one of another vendor."""
    entry = KNOWN_PROVIDERS[provider]
    assert re.fullmatch(r"[A-Z]+_API_KEY", entry.key_variable)
    assert lookup(provider, entry.default_model).window > UNKNOWN.window
    re.compile(lookup(provider, entry.default_model).abilities.id_pattern)


def test_prices_of_cache_reads_and_writes_stand_in_order() -> None:
    """Reading the cache never costs more than a plain token; writing it for an hour never less than for minutes."""
    for provider, model in EVERY:
        price = lookup(provider, model).price
        if price is not None:
            assert price.cache_read <= price.plain
            assert price.cache_write_5m <= price.cache_write_1h


@pytest.mark.parametrize(
    ("provider", "model", "abilities"),
    [
        ("anthropic", "claude-sonnet-5-5", {"thinking": "adaptive", "sampling": False, "binds_prefix": True}),
        ("anthropic", "claude-haiku-4-5", {"thinking": "budget", "sampling": True, "prefill": True}),
        ("anthropic", "claude-fable-5-2", {"forced_tool": False, "system_after_user": True}),
        ("openai", "gpt-6-sol", {"thinking_with_tools": False, "developer_role": True, "sampling": False}),
        ("openai", "gpt-5.2", {"thinking_with_tools": True, "max_tokens_field": "max_completion_tokens"}),
        ("openai", "gpt-4.1", {"thinking": "none", "sampling": True, "images": True}),
        ("mistral", "mistral-large-latest", {"id_pattern": "[A-Za-z0-9]{9}", "developer_role": False}),
        ("deepseek", "deepseek-v4-pro", {"replay_reasoning": True, "forced_tool": False, "images": False}),
        ("moonshotai", "kimi-k3", {"replay_reasoning": True, "max_tokens_field": "max_tokens"}),
        ("zai", "glm-5.3", {"replay_reasoning": True}),
        ("minimax", "MiniMax-M3", {"strict_alternation": True}),
    ],
)
def test_quirks_that_the_wire_rules_name(provider: str, model: str, abilities: dict[str, Any]) -> None:
    """One line for each rule that is data."""
    info = lookup(provider, model)
    assert {name: getattr(info.abilities, name) for name in abilities} == abilities


def test_quirks_of_openai_hold_at_openai_only() -> None:
    """A compatible server that stands in for it knows neither the developer role nor the new field."""
    there = lookup("openai", "gpt-5.2", {"base_url": "http://localhost:4000/v1"}).abilities
    assert (there.developer_role, there.max_tokens_field, there.system_anywhere) == (False, "max_tokens", False)


def test_an_unknown_model_of_an_unknown_server_gets_careful_guesses() -> None:
    """No price, a small window, the default abilities."""
    info = lookup("somewhere", "some-model", {"base_url": "http://localhost:1/v1"})
    assert (info.window, info.max_output, info.price) == (UNKNOWN.window, UNKNOWN.max_output, None)
    assert info.abilities == Abilities()
    assert info.wire == "openai_chat"


def test_an_unknown_model_of_a_known_provider_gets_its_quirks() -> None:
    """A model newer than the catalog works at once."""
    info = lookup("anthropic", "claude-next")
    assert (info.window, info.wire, info.abilities.images) == (200_000, "anthropic", True)


def test_resold_models_have_their_vendors_window_and_no_price() -> None:
    """OpenRouter's ids name vendor and model, with a dot where the vendor writes a dash."""
    info = lookup("openrouter", "anthropic/claude-sonnet-5.5:nitro")
    assert (info.window, info.price) == (lookup("anthropic", "claude-sonnet-5-5").window, None)
    assert info.abilities.thinking == "none"


def test_overrides_outrank_the_catalog() -> None:
    """In the form of the configuration's tables: flat abilities, None for what is not set, prices in part."""
    given = {"window": 8192, "max_output": None, "tools": False, "images": False, "profile": "tiny",
             "price": {"plain": 2.0, "output": 4.0, "cache_read": 0.5, "cache_write_5m": None}}  # fmt: skip
    info = lookup("anthropic", "claude-sonnet-5-5", given)
    assert (info.window, info.max_output, info.profile) == (8192, 2048, "tiny")
    assert (info.abilities.tools, info.abilities.images, info.abilities.thinking) == (False, False, "adaptive")
    assert info.price == Price(plain=2.0, output=4.0, cache_read=0.5, cache_write_5m=2.0, cache_write_1h=2.0)
    assert lookup("x", "y", {"abilities": {"stream_usage": False}}).abilities.stream_usage is False


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        ({"windo": 3}, "windo"),
        ({"id": "x"}, "id"),
        ({"window": "many"}, "window"),
        ({"window": 0}, "max_output"),
        ({"window": 1000, "max_output": 1000}, "1,000"),
        ({"abilities": {"flying": True}}, "abilities.flying"),
        ({"thinking": "hard"}, "thinking"),
        ({"wire": "smoke"}, "wire"),
    ],
)
def test_bad_overrides_are_named(overrides: dict[str, Any], words: str) -> None:
    """With the model and the key that is wrong."""
    with pytest.raises(ConfigError, match=words):
        lookup("openai", "gpt-5.2", overrides)


@given(st.integers(8, 3_000_000))
def test_any_window_leaves_room_for_a_prompt(window: int) -> None:
    """Whatever a server says its window is."""
    info = lookup("local", "x", {"window": window})
    assert 0 < info.max_output <= max(1, window // 4)


def test_no_model_is_named_in_code() -> None:
    """Abilities are data: no file of the providers asks how a model's name begins."""
    folder = Path(__file__).parents[2] / "runtime" / "providers"
    for path in folder.rglob("*.py"):
        text = path.read_text()
        assert not re.search(r"model(_id)?(\.id)?\.(startswith|endswith)|in model(_id|\.id)\b", text), path


def test_abilities_in_the_data_are_those_of_the_contract() -> None:
    """Loading checks the names; here, that the check knows them all."""
    names = {field.name for field in fields(Abilities)}
    assert all(set(entry.abilities) | set(entry.at_home) <= names for entry in KNOWN_PROVIDERS.values())


def test_importing_providers_loads_nothing_heavy() -> None:
    """SDKs, tenacity and the data wait until they are used."""
    code = (
        "import sys, runtime.providers.openai_chat, runtime.providers.anthropic, runtime.providers.retry\n"
        "import runtime.providers.discover, runtime.providers.catalog as catalog\n"
        "heavy = {'openai', 'anthropic', 'httpx2', 'tenacity'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "assert catalog._models.cache_info().currsize == 0\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[2])


def test_a_long_prompt_is_charged_by_its_tier() -> None:
    """Above the bound the higher price holds for every token of the call."""
    price = lookup("anthropic", "claude-haiku-5-5").price
    assert price is not None
    short, long = Usage(plain=100_000, output=1_000), Usage(plain=100_001, output=1_000)
    assert price.cost(short) == pytest.approx(0.0105)
    assert price.cost(long) == pytest.approx(0.0525, rel=1e-4)
