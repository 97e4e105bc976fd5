"""What an agent works with, handed in from outside: tools, prompt, counter, clock."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

import anyio

from governors.tokens import Counter

from ..compaction.timing import Marks
from ..hooks.contract import DEFAULT_TIMEOUT, Hook
from ..ledger.base import Ledger, NoLimits
from ..prompt.builder import Prompt
from ..providers.base import ChosenModel
from ..tools.toolset import Toolset


class PromptSource(Protocol):
    """Builds the system prompt from the files of a workspace. Synchronous; called in a worker thread."""

    def build(self, channel: str, tool_names: Iterable[str], profile: Literal["full", "tiny"] = "full") -> Prompt: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Equipment:
    """`context` gives the text that tells a model the clock, channel and sender, for the end of a user's message.

    `channel` picks the face of the prompt (`terminal`, `library` ...); `now` is the clock
    (seconds since 1970) that a cache's age is told by; `max_steps` bounds a turn; `margin` (tokens)
    is left free in each request, None for the usual share; `thinking` is the level when the session sets none;
    `warming`: whether requests that only renew the cache may be sent while nobody talks (None: where
    that was found to pay), `sleep` what waits for their
    time (seconds); `prompt_share` is how much of a window the prompt's sections may take (0 to 1), None for the usual.
    `hooks` take part in the order given, each for `hook_timeout` seconds at most; `images`: whether pictures are sent
    where the session does not say. `ledger` is asked before each model call and told after it what it did cost.
    `fallbacks` open the models that step in, in order, when a call fails in a way that may pass, and with
    `fallback_on_refusal` when the model refuses to answer.
    `strategy` is how room is made in a conversation that grows too long (`summary`, `blank`, or `off`: the governors
    cut), `marks` say when.
    """

    workspace: Path
    channel: str
    toolset: Toolset
    prompt: PromptSource
    counter: Counter
    context: Callable[[str | None], str]
    now: Callable[[], float] = time.time
    sleep: Callable[[float], Awaitable[None]] = anyio.sleep
    warming: bool | None = False
    max_steps: int = 50
    margin: int | None = None
    thinking: str | None = None
    prompt_share: float | None = None
    hooks: tuple[Hook, ...] = ()
    hook_timeout: float = DEFAULT_TIMEOUT
    images: bool = True
    ledger: Ledger = field(default_factory=NoLimits)
    fallbacks: tuple[Callable[[], Awaitable[ChosenModel]], ...] = ()
    fallback_on_refusal: bool = False
    strategy: str = "off"
    marks: Marks = field(default_factory=Marks)
