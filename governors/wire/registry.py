"""The wires by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from . import (
    anthropic,
    anthropic_cache,
    anthropic_check,
    anthropic_decode,
    anthropic_tools,
    compaction_items,
    openai_chat,
    openai_chat_check,
    openai_chat_decode,
    openai_chat_order,
    openai_chat_prefix,
    openai_responses,
    openai_responses_check,
    openai_responses_decode,
    openai_responses_prefix,
)
from .protocol import Stepwise, Wire

WIRES: Mapping[str, Wire] = MappingProxyType(
    {
        "anthropic": Wire(
            name="anthropic",
            encode=anthropic.encode,
            body=anthropic.body,
            mark_cache=anthropic_cache.mark_cache,
            check=anthropic_check.check,
            decode=anthropic_decode.decode,
            prefix_blocks=anthropic_cache.prefix_blocks,
            prefix_hash=anthropic_cache.prefix_hash,
            inline_tools=anthropic_tools.takes_changes,
            stepwise=Stepwise(
                part="messages",
                encode_unit=anthropic.encode_unit,
                opening=anthropic.opening,
                merge=anthropic.merge,
                rules=anthropic_check.AnthropicRules,
                split=anthropic_cache.split,
                reasoning=anthropic_cache.reasoning,
                between=anthropic_tools.between,
                opens=anthropic.opens_itself,
                compacts=compaction_items.ask_anthropic,
            ),
        ),
        "openai_chat": Wire(
            name="openai_chat",
            encode=openai_chat.encode,
            body=openai_chat.body,
            mark_cache=openai_chat.mark_cache,
            check=openai_chat_check.check,
            decode=openai_chat_decode.decode,
            prefix_blocks=openai_chat_prefix.prefix_blocks,
            prefix_hash=openai_chat_prefix.prefix_hash,
            inline_tools=openai_chat.takes_changes,
            stepwise=Stepwise(
                part="messages",
                encode_unit=openai_chat.encode_unit,
                opening=openai_chat_order.opening,
                merge=openai_chat_order.merge,
                rules=openai_chat_check.ChatRules,
                split=openai_chat_prefix.split,
                reasoning=openai_chat_prefix.reasoning,
                between=openai_chat_order.between,
            ),
        ),
        "openai_responses": Wire(
            name="openai_responses",
            encode=openai_responses.encode,
            body=openai_responses.body,
            mark_cache=openai_responses_prefix.mark_cache,
            check=openai_responses_check.check,
            decode=openai_responses_decode.decode,
            prefix_blocks=openai_responses_prefix.prefix_blocks,
            prefix_hash=openai_responses_prefix.prefix_hash,
            inline_tools=openai_responses.takes_changes,
            stepwise=Stepwise(
                part="input",
                encode_unit=openai_responses.encode_unit,
                opening=openai_responses.opening,
                merge=None,
                rules=openai_responses_check.ResponsesRules,
                split=openai_responses_prefix.split,
                reasoning=openai_responses_prefix.reasoning,
                binding_rule="O3",
                compacts=compaction_items.ask_openai,
            ),
        ),
    }
)
