"""The catalog's data, and what is made of it."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from governors.messages import Usage
from governors.wire import WIRES
from governors.wire.base import THINKING_LEVELS, Abilities
from runtime.errors import ConfigError
from runtime.providers.base import CacheTerms, Price
from runtime.providers.catalog import KNOWN_PROVIDERS, UNKNOWN, USUAL_OUTPUT, known_models, lookup
from runtime.providers.catalog.explain import explain
from runtime.providers.pricing import economy_prices

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
        ("openai", "gpt-6-sol", {"thinking_with_tools": True, "developer_role": True, "sampling": False}),
        ("openai", "gpt-6.2-sol", {"binds_prefix": True, "drop_block": False, "inline_tools": True}),
        ("openai", "gpt-5.6-luna", {"cache_marks": True, "cache_key": True, "inline_tools": True, "summaries": True}),
        ("openai", "gpt-5.5", {"cache_marks": False, "cache_key": True, "inline_tools": False, "binds_prefix": False}),
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


def test_a_price_may_be_told_in_part() -> None:
    """Without a plain rate the known price is changed; a tier that leaves a rate out raises it as the plain one."""
    known = lookup("anthropic", "claude-haiku-5-5").price
    changed = lookup("anthropic", "claude-haiku-5-5", {"price": {"cache_read": 0.02}}).price
    assert known is not None
    assert changed == replace(known, cache_read=0.02)
    tiers = ({"above": 9, "plain": 6.0}, {"above": 5, "plain": 4.0, "output": 7.0})
    price = lookup("x", "y", {"price": {"plain": 2.0, "output": 4.0, "tiers": tiers}}).price
    assert price is not None
    assert [(tier.above, tier.plain, tier.output, tier.cache_read) for tier in price.tiers] == [
        (5, 4.0, 7.0, 4.0),
        (9, 6.0, 12.0, 6.0),
    ]


@pytest.mark.parametrize(
    ("model", "offered", "renews", "least"),
    [
        ("anthropic/claude-sonnet-5-5", (300, 3_600), True, 1_024),
        ("anthropic/claude-haiku-4-5", (300, 3_600), True, 4_096),
        ("anthropic/claude-opus-5-5", (300, 3_600), True, 512),
        ("openai/gpt-6.1-sol", (1_800, 43_200), False, 1_024),
        ("openai/gpt-5.2", (300,), False, 1_024),
        ("google/gemini-3.8-flash", (300,), False, 4_096),
        ("openrouter/anthropic/claude-sonnet-5.5", (300,), False, 1_024),
        ("nobody/nothing", (300,), False, 1_024),
    ],
)
def test_what_a_cache_keeps_is_data(model: str, offered: tuple[int, ...], renews: bool, least: int) -> None:
    """And what the economy reckons with."""
    provider, _, name = model.partition("/")
    info = lookup(provider, name, {"price": {"plain": 1.0}})
    assert (info.cache.offered, info.cache.renews, info.cache.least) == (offered, renews, least)
    assert info.price is not None
    prices = economy_prices(info, info.price, warming=True)
    assert (prices.lifetimes, prices.warming) == (offered, renews)


def test_cache_terms_can_be_overridden_in_part() -> None:
    """A lifetime that the vendor changed is one line of settings."""
    terms = lookup("anthropic", "claude-sonnet-5-5", {"cache": {"lifetimes": [600]}}).cache
    assert terms == CacheTerms((600,), chosen=True, renews=True)
    with pytest.raises(ConfigError, match=r"cache\.lifetime"):
        lookup("a", "b", {"cache": {"lifetime": 3}})
    with pytest.raises(ConfigError, match="rise"):
        lookup("a", "b", {"cache": {"lifetimes": [5, 3]}})


def test_every_fact_has_a_source() -> None:
    """Settings before what the server told, before the model's entry, its provider's, and guesses."""
    told = explain("anthropic", "claude-sonnet-5-5", {"tools": False, "cache": {"least": 1}}, {"window": 5_000})
    sources = {fact.name: fact.source for fact in told.facts}
    assert told.entry == "anthropic/claude-sonnet-5-5"
    assert [sources[f"abilities.{name}"] for name in ("tools", "thinking", "images", "stream_usage")] == [
        "settings",
        "model",
        "provider",
        "guess",
    ]
    assert (sources["window"], sources["price"], sources["cache.least"]) == ("server", "model", "settings")
    unknown = {fact.name: fact.source for fact in explain("mine", "some").facts}
    assert set(unknown.values()) == {"guess"}
    resold = {fact.name: fact.source for fact in explain("openrouter", "anthropic/claude-sonnet-5.5").facts}
    assert (resold["window"], resold["price"]) == ("model", "guess")


@pytest.mark.parametrize(
    ("provider", "model", "told", "wire", "only"),
    [
        ("openai", "gpt-6.1-sol", {}, "openai_responses", None),
        ("openai", "newer-than-the-catalog", {}, "openai_responses", None),
        ("openai", "gpt-5.3-codex", {}, "openai_responses", None),
        ("openai", "gpt-6.1-sol", {"base_url": "https://eu.api.openai.com/v1"}, "openai_responses", None),
        ("openai", "gpt-6.1-sol", {"base_url": "http://localhost:1/v1"}, "openai_chat", None),
        ("openai", "gpt-5.3-codex", {"base_url": "http://localhost:1/v1"}, "openai_chat", None),
        ("openai", "gpt-5.3-codex", {"wire": "openai_chat"}, "openai_chat", None),
        ("google", "deep-research-preview-04-2026", {}, "openai_chat", "google_interactions"),
        ("google", "deep-research-preview-04-2026", {"wire": "openai_chat"}, "openai_chat", None),
        ("openrouter", "openai/gpt-5.3-codex", {}, "openai_chat", None),
        ("minimax", "MiniMax-M3", {}, "anthropic", None),
        ("nobody", "nothing", {}, "openai_chat", None),
    ],
)
def test_the_protocol_follows_from_who_serves(
    provider: str, model: str, told: dict[str, Any], wire: str, only: str | None
) -> None:
    """The vendor's own servers speak Responses, those that stand in Chat Completions; what the user says holds."""
    info = lookup(provider, model, told)
    assert (info.wire, info.only) == (wire, only)


def test_what_differs_over_one_protocol_is_of_that_and_of_the_vendor_alone() -> None:
    """Over Chat Completions, or at a compatible server, nothing is asked for that may be refused."""
    there = lookup("openai", "gpt-6.2-sol")
    assert there.cache.offered == (1_800, 43_200)
    for told in ({"wire": "openai_chat"}, {"wire": "openai_responses", "base_url": "http://localhost:1/v1"}):
        info = lookup("openai", "gpt-6.2-sol", told)
        assert info.cache.offered == (1_800,)
        named = ("cache_marks", "summaries", "inline_tools", "binds_prefix", "thinking_with_tools")
        assert {name: getattr(info.abilities, name) for name in named} == dict.fromkeys(named, False)
    sources = {fact.name: fact.source for fact in explain("openai", "gpt-6.2-sol").facts}
    assert (sources["wire"], sources["abilities.cache_marks"], sources["cache.chosen"]) == (
        "provider",
        "model",
        "model",
    )
    assert {fact.name: fact.source for fact in explain("openai", "gpt-5.3-codex").facts}["wire"] == "model"


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("gpt-6.2-sol", ("low", "low", "medium", "high", "max")),
        ("gpt-5.6-sol", ("none", "low", "medium", "high", "max")),
        ("gpt-5.4", ("none", "low", "medium", "high", "xhigh")),
        ("gpt-5", ("minimal", "low", "medium", "high", "high")),
        ("gpt-5-pro", ("high",) * 5),
        ("o3", ("low", "low", "medium", "high", "high")),
        ("gpt-4.1", (None,) * 5),
    ],
)
def test_levels_of_thinking_are_words_that_the_model_takes(model: str, words: tuple[str | None, ...]) -> None:
    """From off to max; what cannot do without is asked for its least."""
    info = lookup("openai", model)
    asked = []
    for level in THINKING_LEVELS:
        body = WIRES[info.wire].body(
            {"input": []}, model=model, max_output=99, abilities=info.abilities, thinking=level
        )
        asked.append(body.get("reasoning", {}).get("effort"))
    assert tuple(asked) == words


#: Words that begin the names of models. In prose and in data they are welcome, in code they decide nothing.
FAMILIES = re.compile(
    r"\b(claude-(?!code)|fable|opus|sonnet|haiku|gpt-|o[134]-mini|gemini-|gemma|grok-|kimi-|glm-|deepseek-|qwen|mistral-|codestral"
    r"|devstral|minimax-|llama-\d)",
    re.IGNORECASE,
)


def texts_of(path: Path) -> Iterator[tuple[int, str]]:
    """The texts in a file's code, without its docstrings (comments are no part of the tree)."""
    tree = ast.parse(path.read_text())
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    prose = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, documented) and node.body and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            yield node.lineno, node.value


def test_no_name_of_a_model_is_in_code() -> None:
    """What holds of one model is data, in `governors` too."""
    root = Path(__file__).parents[2]
    found = [
        f"{path.relative_to(root)}:{line}: {text[:60]!r}"
        for package in ("runtime", "governors")
        for path in sorted((root / package).rglob("*.py"))
        for line, text in texts_of(path)
        if FAMILIES.search(text)
    ]
    assert found == []
