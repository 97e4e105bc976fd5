"""Abilities that differ in whatever shapes a payload."""

from governors.wire.base import Abilities

MANY = 1_000  # images: how many is the pipeline's to decide, and not what these tests are about

ANTHROPIC = [
    Abilities(),
    Abilities(images=True, max_images=MANY, documents=True, thinking="adaptive", binds_prefix=True, drop_block=True),
    Abilities(
        images=True, max_images=MANY, documents=True, max_document_bytes=8, thinking="budget", strict_alternation=True
    ),
    Abilities(
        images=True,
        max_images=MANY,
        thinking="adaptive",
        system_after_user=True,
        inline_tools=True,
        binds_prefix=True,
        drop_block=True,
    ),
    Abilities(inline_tools=True, system_after_user=True, strict_alternation=True, schema_references=False),
    Abilities(unsigned_thinking=True, images=True, max_images=MANY, max_image_bytes=4, schema_references=False),
]
CHAT = [
    Abilities(id_pattern=r"[A-Za-z0-9]{9}", tool_name_in_result=True),
    Abilities(
        images=True,
        max_images=MANY,
        documents=True,
        system_anywhere=True,
        developer_role=True,
        max_tokens_field="max_completion_tokens",
        inline_tools=True,  # says nothing on this wire
    ),
    Abilities(images=True, max_images=MANY, null_content=False, replay_reasoning=True, thinking="effort"),
    Abilities(strict_alternation=True, null_content=False, call_signatures=True),
    Abilities(
        images=True,
        max_images=MANY,
        documents=True,
        strict_alternation=True,
        replay_reasoning=True,
        tool_name_in_result=True,
        thinking="effort",
        thinking_field=True,
        keeps_thinking=True,
        efforts=("low", "high", "max"),
    ),
    Abilities(strict_alternation=True, system_anywhere=True),
]
RESPONSES = [
    Abilities(),
    Abilities(
        images=True,
        max_images=MANY,
        documents=True,
        system_anywhere=True,
        developer_role=True,
        thinking="effort",
        sampling=False,
        binds_prefix=True,
        efforts=("low", "medium", "high", "xhigh"),
    ),
    Abilities(system_anywhere=True, developer_role=True, inline_tools=True, schema_references=False),
    Abilities(inline_tools=True),
    Abilities(cache_marks=True, developer_role=True, inline_tools=True, thinking="effort", summaries=True),
    Abilities(images=True, max_images=MANY, system_anywhere=True, strict_alternation=True),
]
CASES = [
    *(("anthropic", abilities) for abilities in ANTHROPIC),
    *(("openai_chat", abilities) for abilities in CHAT),
    *(("openai_responses", abilities) for abilities in RESPONSES),
]
MODELS = [None, "claude-a", "gpt-a"]
