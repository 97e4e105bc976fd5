"""Names of agents and sessions as file names.

Injective: what is not a lower-case letter, a digit, `-` or `_` is percent-encoded, so no two names share a file (not
even on a file system that ignores case), none leaves the folder, none ends in a dot or a space. A name that Windows
keeps for a device (`con`, `nul`, `com1`) has its first letter encoded too.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

from ..errors import SessionError

_SAFE = re.compile(r"[a-z0-9_-]")
_GENERATED = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_PART = re.compile(r"[0-9a-f-]{6,35}")
_ENCODED = re.compile(r"[a-z0-9_%-]+")
_DEVICE = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])")
_LONGEST_NAME = 200  # bytes; file systems take 255, and side files add their suffix


def is_generated(session: str) -> bool:
    """Whether a session's id was made here (a uuid), and is no name that somebody gave."""
    return _GENERATED.fullmatch(session) is not None


def is_part(text: str) -> bool:
    """Whether `text` could be the beginning or the end of an id that was made here, as people type it."""
    return _PART.fullmatch(text) is not None


def is_file_name(text: str) -> bool:
    """Whether `text` could be what `file_name` gives."""
    return _ENCODED.fullmatch(text) is not None


def file_name(name: str) -> str:
    """`name` as a file name. Raises `SessionError` for an empty or overlong one."""
    encoded = "".join(each if _SAFE.match(each) else _percent(each) for each in name)
    if _DEVICE.fullmatch(encoded):
        encoded = _percent(encoded[0]) + encoded[1:]
    if not encoded or len(encoded) > _LONGEST_NAME:
        raise SessionError(
            f"a name must take 1 to {_LONGEST_NAME} bytes as a file name (each letter outside a-z takes 3 or more); "
            f"this one takes {len(encoded)}: {name[:60]!r}"
        )
    return encoded


def name_in(encoded: str) -> str:
    """The name that `file_name` made `encoded` of, for people; a file name that it never gave stays as it is."""
    try:
        return unquote(encoded, errors="surrogatepass")
    except UnicodeDecodeError:
        return encoded


def _percent(letter: str) -> str:
    return "".join(f"%{byte:02x}" for byte in letter.encode("utf-8", "surrogatepass"))
