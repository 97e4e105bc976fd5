"""The rules of the Anthropic Messages protocol for what stands around the messages (C6, A3, A4, A7, A11, A12)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .anthropic_check_tools import check_tools
from .base import Abilities, Violation
from .checking import misshapen, refused
from .common import is_blank

SAMPLING = ("temperature", "top_p", "top_k")
LEAST_BUDGET = 1_024


def check_fields(head: Mapping[str, Any], abilities: Abilities) -> Iterator[Violation]:
    """The rules broken outside the messages."""
    yield from _check_system(head.get("system"))
    yield from check_tools(head.get("tools"), abilities)
    yield from _check_thinking(head, abilities)
    yield from _check_sampling(head, abilities)
    yield from _check_prewarm(head)
    if head.get("compaction") is not None and head.get("context_management") is not None:
        yield refused("A11", "compaction", "compaction and context_management cannot be asked for together")


def _check_system(system: Any) -> Iterator[Violation]:
    if system is None or isinstance(system, str):
        return
    if not isinstance(system, list):
        yield misshapen("system", "text or a list of text blocks", system)
        return
    for index, block in enumerate(system):
        where = f"system[{index}]"
        if not isinstance(block, dict) or not isinstance(block.get("text"), str):
            yield misshapen(where, "a text block", block)
        elif is_blank(block["text"]):
            yield refused("A4", where, "the text is empty (white space counts as empty)")


def _check_thinking(head: Mapping[str, Any], abilities: Abilities) -> Iterator[Violation]:
    thinking = head.get("thinking")
    kind = thinking.get("type") if isinstance(thinking, dict) else None
    if thinking is not None and not isinstance(kind, str):
        yield misshapen("thinking", "an object with a type", thinking)
    if kind == "enabled":
        yield from _check_budget(head, thinking, abilities)
    elif kind == "adaptive" and abilities.thinking != "adaptive":
        yield refused("A7", "thinking", "this model does not take adaptive thinking")
    choice = head.get("tool_choice")
    if isinstance(choice, dict) and choice.get("type") in ("any", "tool"):
        if not abilities.forced_tool:
            yield refused("A7", "tool_choice", "this model takes no forced tool call")
        elif kind in ("enabled", "adaptive"):
            yield refused("A7", "tool_choice", "a tool call cannot be forced while thinking is on")


def _check_budget(head: Mapping[str, Any], thinking: Any, abilities: Abilities) -> Iterator[Violation]:
    if abilities.thinking != "budget":
        yield refused("A7", "thinking", "this model takes no thinking budget")
        return
    budget, most = thinking.get("budget_tokens"), head.get("max_tokens")
    if not isinstance(budget, int) or budget < LEAST_BUDGET:
        yield refused("A7", "thinking.budget_tokens", f"is {budget!r}; the least is {LEAST_BUDGET:,} tokens")
    elif isinstance(most, int) and budget >= most:
        yield refused("A7", "thinking.budget_tokens", f"is {budget:,}; it must be below max_tokens, {most:,}")


def _check_sampling(head: Mapping[str, Any], abilities: Abilities) -> Iterator[Violation]:
    thinking = head.get("thinking")
    thinks = isinstance(thinking, dict) and thinking.get("type") in ("enabled", "adaptive")
    for field in SAMPLING:
        value = head.get(field)
        if value is None:
            continue
        if not abilities.sampling:
            yield refused("A7", field, f"this model takes no {field}")
        elif thinks and (field == "top_k" or (field == "temperature" and value != 1)):
            yield refused("A7", field, f"{field} cannot be set while thinking is on")


def _check_prewarm(head: Mapping[str, Any]) -> Iterator[Violation]:
    """A request for no tokens only fills the cache; it can neither stream, nor think, nor be made to call."""
    if head.get("max_tokens") != 0 or isinstance(head.get("max_tokens"), bool):
        return
    thinking, choice = head.get("thinking"), head.get("tool_choice")
    if head.get("stream"):
        yield refused("A12", "stream", "a request for 0 tokens cannot be streamed")
    if isinstance(thinking, dict) and thinking.get("type") == "enabled":
        yield refused("A12", "thinking", "a request for 0 tokens cannot think")
    if isinstance(choice, dict) and choice.get("type") in ("any", "tool"):
        yield refused("A12", "tool_choice", "a request for 0 tokens cannot be made to call a tool")
