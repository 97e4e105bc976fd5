r"""Text that is safe to print: nothing that a model, a tool or a file name says may steer the terminal.

Pure. Laws:
- `clean` leaves no control character but newline and tab, no escape sequence, no override of the writing
  direction (it could show a command as another one), and no lone surrogate (it cannot be encoded).
- `clean` of its own output changes nothing.
- A stream cleaned piece by piece, with `ready` holding back what may still become a sequence, gives what cleaning
  the whole gives, however it was cut into pieces.

Sequences are those of ECMA-48 and xterm: CSI, OSC, DCS, SOS, PM and APC, in their 7-bit and 8-bit forms.
"""

from __future__ import annotations

import re

_LONGEST = 2_000  # characters of a string sequence; one that is longer loses its introducer and shows its text
_BODY = rf"[^\x07\x1b\x9c\r\n]{{0,{_LONGEST}}}"
_STRING = rf"(?:\x1b[\]PX^_]|[\x90\x98\x9d\x9e\x9f]){_BODY}"
_CSI = r"(?:\x1b\[|\x9b)[0-?]{0,64}[ -/]{0,8}"
_SEQUENCE = re.compile(rf"{_STRING}(?:\x07|\x1b\\|\x9c)|{_CSI}[@-~]|\x1b[ -/]{{0,8}}[0-~]")
#: A beginning that more text may complete.
_OPEN = re.compile(rf"(?:\r|{_STRING}\x1b?|{_CSI}|\x1b[ -/]{{0,8}})\Z")
_RETURNS = re.compile("\r\n?")
_LINE_ENDS = re.compile("[\u2028\u2029]")
_UNWANTED = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_SUSPECT = re.compile("[^\t\n -~\xa0-\u1fff\u2030-\u205f\u2070-\ud7ff\ue000-\U0010ffff]")


def clean(text: str) -> str:
    """`text` without anything that would act on a terminal instead of being shown."""
    if _SUSPECT.search(text) is None:
        return text
    text = _RETURNS.sub("\n", text)  # before sequences go: what stood between `\r` and `\n` makes them two
    text = _UNWANTED.sub("", _LINE_ENDS.sub("\n", _SEQUENCE.sub("", text)))
    return _SURROGATE.sub("\ufffd", text)


def ready(text: str) -> tuple[str, str]:
    """`text` split into what can be cleaned now and an unfinished sequence at its end, to be put before the rest."""
    begun = _OPEN.search(text)
    return (text, "") if begun is None else (text[: begun.start()], text[begun.start() :])


def one_line(text: str, limit: int = 200) -> str:
    """`text` cleaned, on one line, in at most `limit` characters."""
    flat = " ".join(clean(text[: 8 * limit]).split())
    return flat if len(flat) <= limit else flat[: limit - 1].rstrip() + "…"
