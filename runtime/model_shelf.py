"""What `moonwake model show` finds out and prints."""

from __future__ import annotations

import json
import shutil
import sys
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from .channels.plain import write_text
from .channels.sanitize import clean
from .choice import LOCAL, Surroundings, ask_of_model, choose_model
from .config import Config, load_config
from .errors import MoonwakeError
from .providers.base import ModelInfo, Price, PriceTier
from .providers.catalog import KNOWN_PROVIDERS, known_models
from .providers.catalog.explain import GUESS, SERVER, SOURCES, Explained, Fact, explain
from .providers.discover import PORTS, find_servers

_WIDEST = 100
_UNITS = {
    "window": "tokens",
    "max_output": "tokens asked for",
    "cache.least": "tokens",
    "cache.lifetimes": "seconds",
}


async def explained(folder: Path, reference: str, environ: Mapping[str, str]) -> Explained:
    """What is known of the model `reference`, with the settings of the workspace. Raises `MoonwakeError`."""
    config = load_config(folder, environ, {})
    provider, _, model = _whole(reference, config).partition("/")
    if provider == LOCAL:
        info = (await choose_model(Surroundings(config, environ), reference)).info
        return Explained(info, tuple(Fact(name, value, SERVER) for name, value in _flat(info)))
    own = config.models.get(f"{provider}/{model}") or config.models.get(model)
    settings = own.model_dump(exclude_none=True) if own is not None else {}
    if (served := config.providers.get(provider)) is not None:
        settings = {"base_url": served.base_url, "wire": served.wire} | settings
    told: dict[str, Any] = {}
    if served is not None and served.base_url is not None:
        info = explain(provider, model, settings).info
        key = environ.get(served.key_env or "", "").strip()
        told = await ask_of_model(info.wire, served.base_url, key, model) if info.guessed else {}
    if provider in dict(PORTS) and provider not in config.providers:
        for server in await find_servers(PORTS):
            if server.kind == provider and model in server.models:
                told = {**server.told(model), "base_url": server.url}
    return explain(provider, model, settings, told)


def _whole(reference: str, config: Config) -> str:
    """`provider/id` for what a person names. Raises `MoonwakeError` for a bare id that nobody knows."""
    provider, _, model = reference.partition("/")
    if provider == LOCAL or (model and (provider in KNOWN_PROVIDERS or provider in config.providers)):
        return reference
    if reference in KNOWN_PROVIDERS:
        return f"{reference}/{KNOWN_PROVIDERS[reference].default_model}"
    for known in KNOWN_PROVIDERS:
        if reference in known_models(known):
            return f"{known}/{reference}"
    if not model:
        names = ", ".join(KNOWN_PROVIDERS)
        raise MoonwakeError(f"the catalog has no model {reference!r}: name it as PROVIDER/ID. Providers: {names}")
    return reference


def _flat(info: ModelInfo) -> Iterator[tuple[str, Any]]:
    for field in fields(info):
        if field.name not in ("id", "provider"):
            value = getattr(info, field.name)
            parts = asdict(value) if field.name in ("abilities", "cache") else None
            yield from (
                ((f"{field.name}.{key}", each) for key, each in parts.items()) if parts else [(field.name, value)]
            )


def print_model(told: Explained, *, every: bool, as_json: bool) -> int:
    name = f"{told.info.provider}/{told.info.id}"
    if as_json:
        shown = {fact.name: {"value": _plain(fact.value), "from": fact.source} for fact in told.facts}
        write_text(sys.stdout, json.dumps({"model": name, "entry": told.entry, "facts": shown}, indent=2) + "\n")
        return 0
    facts = [fact for fact in told.facts if every or _worth_a_line(fact)]
    width = min(_WIDEST, shutil.get_terminal_size((80, 24)).columns)
    lines = [name, *(line for remark in _remarks(told) for line in _wrap(remark, width)), ""]
    room = max(len(fact.name) for fact in facts)
    for fact in facts:
        head = f"{fact.name:<{room}}  {fact.source:<8}  "
        for text in _value_lines(fact):
            parts = _wrap(text, max(20, width - len(head))) or [""]
            lines += [f"{head}{parts[0]}", *(" " * len(head) + part for part in parts[1:])]
            head = " " * len(head)
    used = dict.fromkeys(fact.source for fact in facts)
    lines += ["", *(f"{source:<8}  {SOURCES[source]}" for source in SOURCES if source in used)]
    if not every:
        lines.append("Abilities that are only guessed are left out: --all")
    lines += ["Change any of it in moonwake.toml (docs/models.md), below", f'[models."{name}"]']
    write_text(sys.stdout, "\n".join(clean(line) for line in lines) + "\n")
    return 0


def _wrap(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, break_on_hyphens=False)


def _remarks(told: Explained) -> Iterator[str]:
    name = f"{told.info.provider}/{told.info.id}"
    if told.entry is None and told.info.provider != LOCAL:
        yield "The catalog does not know it: what nobody told is guessed."
    elif told.entry is not None and told.entry != name:
        yield f"Sold under another name: window and senses are those of {told.entry}."
    if told.info.only is not None:
        yield f"It cannot answer: only the protocol {told.info.only} serves it, which Moonwake does not speak there."


def _worth_a_line(fact: Fact) -> bool:
    empty = fact.value in (None, (), False) and fact.name not in ("price", "base_url")
    return not (fact.name.startswith("abilities.") and fact.source == GUESS) and not (empty and fact.source == GUESS)


def _value_lines(fact: Fact) -> list[str]:
    value = fact.value
    if isinstance(value, Price):
        tiers = [f"above {tier.above:,} tokens: {_rates(tier)}" for tier in value.tiers]
        return [f"US$ a million tokens: {_rates(value)}", *tiers]
    if fact.name == "price":
        return ["not known"]
    unit = f" {_UNITS[fact.name]}" if fact.name in _UNITS else ""
    if isinstance(value, bool):
        return ["yes" if value else "no"]
    if isinstance(value, int):
        return [f"{value:,}{unit}"]
    if isinstance(value, tuple | list):
        return [(", ".join(map(str, value)) or "none") + unit]
    return ["none" if value is None else str(value)]


def _rates(price: Price | PriceTier) -> str:
    rates = {"plain": price.plain, "output": price.output, "read": price.cache_read, "written": price.cache_write_5m}
    told = ", ".join(f"{what} {rate:g}" for what, rate in rates.items())
    return told if price.cache_write_1h == price.cache_write_5m else f"{told} (longer: {price.cache_write_1h:g})"


def _plain(value: Any) -> Any:
    return asdict(value) if isinstance(value, Price) else value
