"""What the wire modules share: a model's abilities on a wire, and the shape of a broken rule.

A wire turns messages into the body that a provider's protocol accepts, and checks a finished body by that
protocol's rules. Abilities are data that the caller brings; no model name appears in code.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from ..messages import Messages

#: E: the provider refuses the request. S: something is lost silently. $: it costs money.
Severity = Literal["E", "S", "$"]

Payload: TypeAlias = dict[str, Any]

#: How much reasoning to ask for.
THINKING_LEVELS = ("off", "low", "medium", "high", "max")

#: Words of the protocols for how much reasoning to do, in order.
EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")


#: The protocols' names for lifetimes of a cache, by seconds. The shortest of a provider needs no name.
LIFETIMES = {1_800: "30m", 3_600: "1h", 43_200: "12h"}


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken rule: its code in the list of wire rules (`A2`), where in the payload, and what is wrong."""

    rule: str
    severity: Severity
    where: str
    problem: str

    def __str__(self) -> str:
        return f"{self.rule} at {self.where}: {self.problem}"


@dataclass(frozen=True, slots=True)
class Abilities:
    """What one model on one wire takes. The defaults are the careful guesses for an unknown model."""

    # ids
    id_pattern: str = r"[A-Za-z0-9_-]{1,64}"
    # content
    images: bool = False
    max_images: int = 20
    max_image_pixels: int = 2000  # the longer side
    max_image_bytes: int = 4_500_000  # of the base64 text
    documents: bool = False  # PDFs
    max_document_pages: int = 100  # of all in a request
    max_document_bytes: int = 24_000_000  # of the base64 text of one
    max_body_bytes: int = 32_000_000  # of the whole request
    max_messages: int = 100_000
    # order
    system_anywhere: bool = False  # a system or developer message may follow any message
    system_after_user: bool = False  # Anthropic: role system inside messages, after a user turn (A10)
    folds_patches: bool = False  # takes no patch inside the conversation: all of it goes into the system prompt
    prefill: bool = False  # the last message may be the assistant's
    strict_alternation: bool = False  # the host demands user/assistant in turn
    user_after_results: bool = True  # openai_chat: a user's message may follow results at once (not at Mistral)
    # roles and fields (openai_chat)
    developer_role: bool = False
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    null_content: bool = True  # assistant content may be null beside tool_calls; else ""
    tool_name_in_result: bool = False
    stream_usage: bool = True  # takes stream_options.include_usage
    # tools and thinking
    tools: bool = True
    inline_tools: bool = False  # takes definitions of tools inside the conversation (see `Wire.inline_tools`)
    schema_references: bool = True  # tool schemas may hold $ref; else they are written out (GLM)
    parallel_tools: bool = True
    forced_tool: bool = True  # takes a tool_choice that forces a call
    sampling: bool = True  # takes temperature, top_p, top_k
    thinking: Literal["none", "budget", "adaptive", "effort"] = "none"
    thinking_with_tools: bool = True
    efforts: tuple[str, ...] = EFFORTS  # the words for the effort that the model takes
    summaries: bool = False  # openai_responses: tells in short what it reasoned, when asked
    thinking_field: bool = False  # openai_chat: takes thinking={"type": "enabled" or "disabled"} (Kimi, GLM)
    keeps_thinking: bool = False  # and drops replayed reasoning unless clear_thinking=false stands there (GLM)
    replay_reasoning: bool = False  # reasoning_content goes back with the turn's calls (DeepSeek, Kimi, GLM)
    empty_reasoning: str = ""  # what goes back where there is none (Kimi refuses an empty text)
    unsigned_thinking: bool = False  # anthropic: thinking goes back without signatures (DeepSeek)
    call_signatures: bool = False  # the first call of a reply goes back with its signature (Gemini)
    # cache
    cache_key: bool = False  # openai_chat: takes prompt_cache_key
    cache_marks: bool = False  # openai_responses: takes breakpoints and lifetimes for its cache
    compaction: str = ""  # whose compaction items it makes and reads, over its own protocol (`anthropic`, `openai`)
    # binding
    binds_prefix: bool = False  # reasoning is bound to the exact prefix (A6, O3)
    drop_block: bool = False  # a mismatch drops the block instead of refusing the request

    def __post_init__(self) -> None:
        object.__setattr__(self, "efforts", tuple(self.efforts))  # data files bring a list


@dataclass(frozen=True, slots=True)
class Decoded:
    """A payload read back: its leading system prompt (empty when there is none) and its messages."""

    system: str
    messages: Messages


class CannotDecode(ValueError):
    """A payload holds something that the message model has no place for. The text names where it stands."""
