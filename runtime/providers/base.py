"""The one way to a model: a prepared request goes in, typed events come out, the last of them is `Finished`.

Laws:
- A stream always ends in exactly one `Finished`, whatever happened: a refused key, a broken connection and a
  cut-off stream are values (`stop` error or aborted, `problem` set), never exceptions. Only cancellation passes
  through; it closes the connection, and whoever cancelled records what was received.
- The body is final when it comes here: bytes, encoded by its wire and checked. A provider adds nothing to it but
  transport fields.
- Transient failures are retried only while nothing visible was sent (`retry.py`).
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

from governors.messages import AssistantMessage, Usage
from governors.wire.base import Abilities
from governors.wire.encoded import dump_bytes

Wire = Literal["anthropic", "openai_chat", "openai_responses"]

ProblemKind = Literal[
    "bad_request",  # the request is wrong: ours to mend, never retried
    "auth",
    "overflow",  # the prompt is larger than the model's window
    "rate_limited",
    "overloaded",
    "refused",  # content refused by the provider
    "network",
    "unknown",
]


@dataclass(frozen=True, slots=True)
class PriceTier:
    """The price of a call whose prompt is larger than `above` tokens; it holds for all of its tokens."""

    above: int
    plain: float
    output: float
    cache_read: float
    cache_write_5m: float
    cache_write_1h: float


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens. `tiers` rise by `above`."""

    plain: float
    output: float
    cache_read: float
    cache_write_5m: float
    cache_write_1h: float
    tiers: tuple[PriceTier, ...] = ()

    def at(self, prompt: int) -> Price | PriceTier:
        """What holds for a call with `prompt` tokens."""
        return next((tier for tier in reversed(self.tiers) if prompt > tier.above), self)

    def cost(self, usage: Usage) -> float:
        """What a call with `usage` costs, in US dollars."""
        price = self.at(usage.prompt)
        millionths = (
            usage.plain * price.plain
            + usage.cache_read * price.cache_read
            + usage.cache_write_5m * price.cache_write_5m
            + usage.cache_write_1h * price.cache_write_1h
            + usage.output * price.output
        )
        return millionths / 1_000_000


@dataclass(frozen=True, slots=True)
class CacheTerms:
    """What a provider's prompt cache offers.

    `lifetimes` are seconds, the shortest first. `chosen`: a request may name the one it wants; otherwise only the first
    can be counted on. `renews`: a read begins the lifetime anew. `least`: a prefix of fewer tokens is never kept.
    """

    lifetimes: tuple[int, ...] = (300,)
    chosen: bool = False
    renews: bool = False
    least: int = 1024

    def __post_init__(self) -> None:
        object.__setattr__(self, "lifetimes", tuple(self.lifetimes))  # data files bring a list
        if not self.lifetimes or min(self.lifetimes) <= 0 or list(self.lifetimes) != sorted(set(self.lifetimes)):
            raise ValueError(f"lifetimes must be seconds that rise, at least one: {list(self.lifetimes)}")
        if self.least < 0:
            raise ValueError(f"least must be a number of tokens, not {self.least}")

    @property
    def offered(self) -> tuple[int, ...]:
        """The lifetimes that a request may count on."""
        return self.lifetimes if self.chosen else self.lifetimes[:1]


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """Everything the runtime knows of a model. Data from the catalog, the config or the server itself.

    `window` and `max_output` are tokens; `token_factor` is how many tokens this model's own counter finds for
    each one of o200k_base at most (an upper bound). `profile` picks the prompt: `tiny` is for models that
    cannot follow a long one. `price` is None where unknown; a local model costs 0. `reasons`: it thinks before it
    answers, whether or not a request can ask for it (`abilities.thinking`). `offers` are features of the vendor's that
    no request uses yet, `fallbacks` the models that the vendor lets step in. `guessed`: nobody told the window. `only`
    names the protocol that alone serves the model, where it is not `wire`.
    """

    id: str
    provider: str
    wire: Wire
    window: int
    max_output: int
    abilities: Abilities
    token_factor: float = 1.2
    price: Price | None = None
    profile: Literal["full", "tiny"] = "full"
    base_url: str | None = None
    cache: CacheTerms = CacheTerms()
    reasons: bool = False
    offers: tuple[str, ...] = ()
    fallbacks: tuple[str, ...] = ()
    only: str | None = None
    guessed: bool = False


@dataclass(frozen=True, slots=True)
class Request:
    """A finished request: `content` is the JSON object to post, in UTF-8, without transport fields such as `stream`.

    `timeout` is in seconds: a stream that sends nothing for so long counts as stalled. `session` says who asks and
    `tokens` how large the prompt is expected to be: limits are shared out by them.
    """

    model: ModelInfo
    content: bytes
    timeout: float = 120.0
    session: str = ""
    tokens: int = 0

    @classmethod
    def of(cls, model: ModelInfo, body: Mapping[str, Any], timeout: float = 120.0) -> Request:
        """The request that posts `body`. Raises `ValueError` for what cannot be JSON in UTF-8."""
        return cls(model, dump_bytes(body), timeout)

    @property
    def body(self) -> dict[str, Any]:
        """What is posted, read anew each time: for fakes and people who look; providers send `content`."""
        read: dict[str, Any] = json.loads(self.content)
        return read


@dataclass(frozen=True, slots=True)
class Problem:
    """What went wrong, for a person (`text`), a program (`kind`) and a bug report (`status`, `detail`).

    `window` and `prompt` are filled in for an overflow where the provider told them (tokens). `unsent`: the request
    never left this machine, so that nothing can have been billed.
    """

    kind: ProblemKind
    text: str
    status: int | None = None
    detail: str = ""
    retry_after: float | None = None
    window: int | None = None
    prompt: int | None = None
    unsent: bool = False


@dataclass(frozen=True, slots=True)
class TextPiece:
    text: str


@dataclass(frozen=True, slots=True)
class ThinkingPiece:
    text: str


@dataclass(frozen=True, slots=True)
class CallPiece:
    """A piece of the arguments of call `index` (0-based within the reply)."""

    index: int
    tool: str
    arguments: str


@dataclass(frozen=True, slots=True)
class UsagePiece:
    """What the provider has counted so far; `Finished` carries the final count."""

    usage: Usage


@dataclass(frozen=True, slots=True)
class Retry:
    """The call failed before anything was shown and is made again after `delay` seconds.

    `problem` is what ended the attempt before, None where nothing was sent yet; `usage` what was counted of it by then.
    """

    why: str
    delay: float
    attempt: int
    problem: Problem | None = None
    usage: Usage | None = None


@dataclass(frozen=True, slots=True)
class Finished:
    """The end of a stream: the whole message with its stop reason and usage, and the problem, if there was one.

    `remote`: where the provider's own compaction was asked for, all that it gave, as it came.
    """

    message: AssistantMessage
    problem: Problem | None = None
    remote: tuple[Mapping[str, Any], ...] = ()


StreamEvent: TypeAlias = TextPiece | ThinkingPiece | CallPiece | UsagePiece | Retry | Finished


class Provider(Protocol):
    """`name` as in config and in the catalog (`anthropic`, `openai`, `local` ...)."""

    @property
    def name(self) -> str: ...

    def stream(self, request: Request) -> AbstractAsyncContextManager[AsyncIterator[StreamEvent]]:
        """Send `request`; the iterator yields events as they come and ends after `Finished`.

        Leaving the context early closes the connection.
        """
        ...

    async def warm(self) -> None:
        """Do what the first call would otherwise wait for (import an SDK, start a server). Never raises."""
        ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class ChosenModel:
    """A model with the provider that serves it. `why` says in a few words how it came to be chosen."""

    info: ModelInfo
    provider: Provider
    why: str = ""

    @property
    def name(self) -> str:
        return f"{self.info.provider}/{self.info.id}"
