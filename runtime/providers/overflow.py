"""Whether a provider says that the prompt is larger than the window, and with which numbers. Pure.

Providers word it in many ways, and an unknown wording costs a whole task (plain retries, no compaction), so this
is a table that grows. Throttling by tokens per minute and a too large `max_tokens` also speak of tokens and
limits; they are told apart first.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

#: Codes and types that say it without words (OpenAI and compatibles; llama.cpp; Z.ai 1261).
CODES: frozenset[str] = frozenset(
    {
        "context_length_exceeded",
        "exceed_context_size_error",
        "context_window_exceeded",
        "model_context_window_exceeded",
        "prompt_too_long",
        "1261",
    }
)

_N = r"([\d][\d,_]*)"
_PROMPT = _N.replace("(", "(?P<prompt>", 1)
_WINDOW = _N.replace("(", "(?P<window>", 1)

#: What speaks of tokens and is no overflow of the window.
_OTHER = re.compile(
    r"tokens? per (?:min|minute|day|hour)|\bTPM\b|\bTPD\b|rate.?limit|too many tokens, please wait|quota"
    r"|max(?:imum)?[ _](?:completion[ _]|output[ _])?tokens[`'\"]? (?:is too large|must be|value)"
    r"|max_tokens: \d+ > \d+|maximum (?:allowed )?number of output tokens|at most \d+ completion tokens",
    re.IGNORECASE,
)

_WORDINGS: tuple[re.Pattern[str], ...] = tuple(
    re.compile(wording, re.IGNORECASE | re.DOTALL)
    for wording in (
        rf"prompt is too long:? {_PROMPT} tokens? > {_WINDOW}",
        rf"input length and `?max_tokens`? exceed context limit:? {_PROMPT} \+ [\d,]+ > {_WINDOW}",
        rf"request \({_PROMPT} tokens\) exceeds the available context size \({_WINDOW}",
        rf"input length {_PROMPT} exceeds the maximum allowed input length of {_WINDOW}",
        rf"prompt has {_PROMPT} tokens,? but the (?:configured )?context (?:size|length) is {_WINDOW}",
        rf"input token count (?:of )?\(?{_PROMPT}\)? exceeds the maximum number of tokens allowed \(?{_WINDOW}",
        rf"prompt token count (?:of )?{_PROMPT} exceeds the limit of {_WINDOW}",
        rf"prompt contains {_PROMPT} tokens.{{0,60}}too large for model with {_WINDOW}",
        rf"maximum prompt length is {_WINDOW} but the request contains {_PROMPT}",
        rf"exceeded model token limit:? {_WINDOW} \(requested:? {_PROMPT}",
        rf"passed {_PROMPT} input tokens.{{0,120}}context length is only {_WINDOW}",
        rf"prompt \(?(?:with )?length (?:of )?{_PROMPT}\)? (?:is longer than|exceeds) the maximum (?:model|context) "
        rf"length (?:of )?{_WINDOW}",
        rf"input \({_PROMPT} tokens\) is longer than the model'?s context length \({_WINDOW}",
        rf"maximum context length (?:is|of) {_WINDOW} tokens.{{0,200}}?\({_PROMPT} in the (?:messages|prompt)",
        rf"maximum context length (?:is|of) {_WINDOW} tokens.{{0,200}}?(?:resulted in|requested)(?: about)?"
        rf"(?: a total of)? {_PROMPT}",
        rf"tokens exceed the configured limit of {_WINDOW} tokens.{{0,80}}?resulted in {_PROMPT}",
        rf"current length is {_PROMPT} while limit is {_WINDOW}",
        rf"must be <= {_WINDOW}\. given: {_PROMPT} `inputs` tokens",
        rf"must have less than {_WINDOW} tokens\. given: {_PROMPT}",
        rf"the first {_PROMPT} tokens when context.{{0,80}}context length of only {_WINDOW}",
        rf"maximum context length (?:is|of) {_WINDOW}",
        rf"range of input length should be \[\d+, {_WINDOW}\]",
        r"prompt is too long|prompt too long|input is too long|prompt exceeds max(?:imum)? length",
        r"exceeds? (?:the |its )?(?:model'?s? )?(?:available |max(?:imum)? )?context (?:window|size|length|limit)",
        r"context (?:window|length) (?:is )?exceed|context window exceeds limit",
        r"exceeded max(?:imum)? context length|greater than the context length|longer than the model'?s context",
        r"tokens in request more than max tokens allowed|reduce the length of (?:the|your) (?:messages|prompt|input)",
        r"too many (?:input |prompt )?tokens(?! per)|exceeds the maximum number of tokens",
    )
)


@dataclass(frozen=True, slots=True)
class Overflow:
    """Figures in tokens, None where the provider did not tell them."""

    window: int | None = None
    prompt: int | None = None


def find_overflow(message: str, fields: dict[str, Any], status: int | None) -> Overflow | None:
    """`fields` is the error object of the body (`code`, `type`, llama.cpp's `n_ctx`, `n_prompt_tokens`)."""
    told = Overflow(_number(fields.get("n_ctx")), _number(fields.get("n_prompt_tokens")))
    by_code = any(str(fields.get(key)) in CODES for key in ("code", "type"))
    if not by_code and (status in (401, 402, 403, 404, 429) or _OTHER.search(message)):
        return None
    for wording in _WORDINGS:
        if found := wording.search(message):
            groups = found.groupdict()
            return Overflow(told.window or _number(groups.get("window")), told.prompt or _number(groups.get("prompt")))
    return told if by_code or told.window else None


def _number(value: Any) -> int | None:
    digits = re.sub(r"\D", "", str(value)) if value is not None else ""
    return int(digits) if digits else None
