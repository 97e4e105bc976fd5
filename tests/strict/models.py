"""The models that a random conversation talks to, as the catalog knows them, and the strict hosts behind them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from runtime.providers.anthropic import Anthropic
from runtime.providers.base import ChosenModel
from runtime.providers.catalog import KNOWN_PROVIDERS, lookup
from runtime.providers.openai_chat import OpenAIChat
from runtime.providers.openai_responses import OpenAIResponses
from runtime.providers.retry import RetryingProvider, RetryPolicy

from ..servers import KEY
from .anthropic import MessagesHost
from .chat import ChatHost
from .chat_hosts import HOSTS
from .claude import CLAUDES
from .mind import Mind
from .responses import ResponsesHost

#: Models of OpenAI; of some the reasoning is bound to what was sent before it.
GPTS = ("gpt-6.2-sol", "gpt-6.2-astra", "gpt-6.1-sol", "gpt-5.6-sol", "gpt-5.4", "gpt-4.1")
BINDING = frozenset(GPTS[:2])


@dataclass(frozen=True, slots=True)
class Opened:
    chosen: ChosenModel


def hosts_for(mind: Mind, gentle: bool) -> dict[str, Any]:
    """Hosts by a part of their paths. `gentle`: the account may ask that thinking is dropped and not refused."""
    claudes = {name: replace(claude, gentle=gentle) for name, claude in CLAUDES.items()}
    messages = MessagesHost(mind, claudes)
    chat = {f"/{name}/": ChatHost(host, mind) for name, host in HOSTS.items()}
    return {"/v1/messages": messages, "/v1/responses": ResponsesHost(mind, BINDING), **chat}


async def _at_once(seconds: float) -> None:
    """Waits are not waited for."""


def opened(provider: str, model: str, url: str, **overrides: Any) -> Opened:
    """A model of the catalog at a strict host of `url`."""
    info = lookup(provider, model, overrides)
    client: Any
    if info.wire == "anthropic":
        client = Anthropic(provider, KEY, f"{url}/{provider}")
    elif info.wire == "openai_responses":
        client = OpenAIResponses(provider, KEY, f"{url}/{provider}/v1")
    else:
        client = OpenAIChat(provider, KEY, f"{url}/{provider}/v1")
    return Opened(ChosenModel(info, RetryingProvider(client, RetryPolicy(first_delay=0.001), sleep=_at_once)))


def models_for(wire: str, url: str, random: Random, vendor: str | None, abilities: Mapping[str, Any]) -> list[Opened]:
    """The first is the one that is talked to, the others are for switches. `abilities` differ from the catalog."""
    claudes = [name for name in CLAUDES if name.startswith("claude")]
    if vendor is not None:
        names = [(vendor, "")]
    elif wire == "anthropic":
        other = random.choice(["openai", "deepseek", "mistral", "google", "minimax"])
        names = [("anthropic", random.choice(claudes)), ("anthropic", random.choice(claudes)), (other, "")]
    elif wire == "openai_responses":
        other = random.choice(["anthropic", "deepseek", "google"])
        names = [("openai", random.choice(GPTS)), ("openai", random.choice(GPTS)), (other, "")]
    else:
        hosts = list(HOSTS)
        names = [(random.choice(hosts), ""), (random.choice(hosts), ""), ("anthropic", random.choice(claudes))]
    return [_sized(name, model, url, random, abilities) for name, model in names]


def default_model(provider: str) -> str:
    if provider == "openai":
        return "gpt-4.1"
    known = KNOWN_PROVIDERS.get(provider)
    return known.default_model if known is not None else "m-1"


def _sized(provider: str, model: str, url: str, random: Random, abilities: Mapping[str, Any]) -> Opened:
    """With a window that is large or small, so that heads and edits happen."""
    window = random.choice((None, None, 12_000, 20_000))
    chat: dict[str, Any] = {"wire": "openai_chat"} if provider == "openai" and not model else {}
    settings: dict[str, Any] = chat if window is None else {**chat, "window": window, "max_output": 1_500}
    own = {"strict_alternation": True} if provider == "template" else {}
    return opened(provider, model or default_model(provider), url, abilities={**own, **abilities}, **settings)
