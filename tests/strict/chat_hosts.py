"""What each host of Chat Completions is strict about, from its documentation and from refusals that people reported."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Host:
    """One host.

    `identity`: the form of a call's id. `length`: the fields for the longest reply that it takes. `roles`: those it
    knows beside user, assistant and tool. `system_anywhere`: such a message may stand later, too. `alternates`: user
    and assistant in turn. `user_after_tool`: a user's message may follow a result. `names_results`: each result names
    its tool. `null_content`: may stand beside calls. `reasoning`: replies with calls bring back `reasoning_content`:
    "text" (which must say something), "field" (which may be empty), "refused" (an unknown field). `signs`: calls come
    back with their signatures. `stream_options`: takes them. `strange_fields`: unknown fields are let pass. `forced`: a
    call can be forced. `effort_with_tools`: takes a reasoning effort beside tools. `references`: schemas may have them.
    `errors` is the form of its refusals; `usage` that of its counts; `thinks`: the field its thinking comes in.
    """

    identity: str = r".{1,64}"
    length: tuple[str, ...] = ("max_tokens", "max_completion_tokens")
    roles: tuple[str, ...] = ("system",)
    system_anywhere: bool = True
    alternates: bool = False
    user_after_tool: bool = True
    names_results: bool = False
    null_content: bool = True
    reasoning: str = ""
    signs: bool = False
    stream_options: bool = True
    strange_fields: bool = True
    forced: bool = True
    effort_with_tools: bool = True
    efforts: tuple[str, ...] = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
    references: bool = True
    pictures: int = 50
    errors: str = "openai"
    usage: str = "openai"
    thinks: str | None = None
    thinking_field: bool = False


_OPENAI = Host(
    identity=r"[A-Za-z0-9_-]{1,40}",
    length=("max_completion_tokens", "max_tokens"),
    roles=("system", "developer"),
    strange_fields=False,
    reasoning="refused",
    effort_with_tools=False,
    efforts=(),
    pictures=1500,
)
_LOCAL = Host(system_anywhere=False)

HOSTS = {
    "openai": _OPENAI,
    "deepseek": Host(
        length=("max_tokens",),
        reasoning="field",
        forced=False,
        pictures=0,
        usage="deepseek",
        thinks="reasoning_content",
    ),
    "moonshotai": Host(
        length=("max_tokens",),
        reasoning="text",
        forced=False,
        usage="kimi",
        thinks="reasoning_content",
        thinking_field=True,
    ),
    "zai": Host(
        length=("max_tokens",),
        reasoning="field",
        forced=False,
        references=False,
        pictures=0,
        errors="zai",
        thinks="reasoning_content",
        thinking_field=True,
        efforts=("low", "high", "max"),
        system_anywhere=False,
    ),
    "mistral": Host(
        identity=r"[A-Za-z0-9]{9}",
        length=("max_tokens",),
        user_after_tool=False,
        names_results=False,
        reasoning="refused",
        stream_options=False,
        strange_fields=False,
        pictures=8,
        errors="mistral",
        thinks="content",
        system_anywhere=False,
    ),
    "groq": Host(
        reasoning="refused", strange_fields=False, pictures=5, thinks="reasoning", usage="groq", system_anywhere=False
    ),
    "cerebras": Host(reasoning="refused", strange_fields=False, pictures=0, thinks="reasoning", system_anywhere=False),
    "xai": Host(pictures=20, thinks="reasoning_content", system_anywhere=False),
    "openrouter": Host(thinks="reasoning", errors="openrouter", system_anywhere=False),
    "google": Host(
        pictures=3600,
        signs=True,
        errors="google",
        strange_fields=False,
        reasoning="refused",
        thinks=None,
        system_anywhere=False,
    ),
    "vllm": replace(_LOCAL, thinks="reasoning_content", errors="vllm"),
    "ollama": replace(_LOCAL, null_content=True, thinks="reasoning", usage="none"),
    "lm_studio": replace(_LOCAL, errors="plain"),
    "llama.cpp": replace(_LOCAL, thinks="reasoning_content", errors="llama"),
    "template": replace(_LOCAL, alternates=True, errors="vllm"),
}
