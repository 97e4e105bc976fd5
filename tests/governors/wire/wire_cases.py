"""Abilities that differ in whatever shapes a payload."""

from governors.wire.base import Abilities

ANTHROPIC = [
    Abilities(),
    Abilities(images=True, thinking="adaptive", binds_prefix=True),
    Abilities(images=True, thinking="budget", strict_alternation=True),
]
CHAT = [
    Abilities(id_pattern=r"[A-Za-z0-9]{9}", tool_name_in_result=True),
    Abilities(images=True, system_anywhere=True, developer_role=True, max_tokens_field="max_completion_tokens"),
    Abilities(images=True, null_content=False, replay_reasoning=True, thinking="effort"),
    Abilities(strict_alternation=True, null_content=False),
    Abilities(images=True, strict_alternation=True, replay_reasoning=True, tool_name_in_result=True),
]
CASES = [("anthropic", abilities) for abilities in ANTHROPIC] + [("openai_chat", abilities) for abilities in CHAT]
MODELS = [None, "claude-a", "gpt-a"]
