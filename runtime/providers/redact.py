"""Secrets stay out of what people and bug reports see. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

MASK = "[redacted]"

_NAMED = r"(?:x-)?(?:api[-_ ]?key|access[-_]?token|auth[-_]?token|secret)"

_SECRETS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"(?i)\b(bearer|basic)\s+[\w.~+/=*-]{6,}"), rf"\1 {MASK}"),
    (re.compile(rf"(?i)({_NAMED}[\"']?\s*[:=]\s*[\"']?)[\w.*/+-]{{6,}}"), rf"\1{MASK}"),
    (re.compile(r"(?i)([?&](?:key|token|sig|signature|password)=)[^&\s\"']+"), rf"\1{MASK}"),
    (re.compile(r"(?i)\b(\w{1,20}://)[^/\s:@]{1,256}:[^/\s@]+@"), rf"\1{MASK}@"),
    (re.compile(r"\b(?:sk|pk|rk|gsk|xai|csk|r8|hf)[-_][\w*.-]{6,}"), MASK),
    (re.compile(r"\bAIza[\w-]{20,}"), MASK),
    (re.compile(r"(?<![\w-])eyJ[\w-]{8,}\.[\w-]+\.[\w-]*"), MASK),
)


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """`text` without `secrets` and without what looks like one."""
    for secret in secrets:
        for form in (secret, repr(secret)[1:-1], *secret.split()):
            if len(form) >= 6:  # a placeholder such as `none` would mask words
                text = text.replace(form, MASK)
    for pattern, mask in _SECRETS:
        text = pattern.sub(mask, text)
    return text
