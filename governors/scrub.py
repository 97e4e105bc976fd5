"""Text that UTF-8 can hold.

Models and tools emit halves of surrogate pairs; a provider refuses them (or the encoder raises) on this and every
later request. A pair that arrived as two halves is joined; a half that stays alone becomes U+FFFD.
"""

from __future__ import annotations

import re

_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def scrub(text: str) -> str:
    """`text` without lone surrogates; the same object when there are none."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def may_hide_surrogate(json_text: str) -> bool:
    """Whether JSON text holds an escape that may decode to a lone surrogate (`\\ud99c`)."""
    return _ESCAPED_SURROGATE.search(json_text) is not None
