"""A refusal, and what the servers share in reading a request."""

from __future__ import annotations

import base64
import binascii
import json
import struct
from typing import Any

PNG = b"\x89PNG\r\n\x1a\n"


class Refused(Exception):
    """A request that the provider refuses: HTTP status, a word for the kind, a text, and what else the body says."""

    def __init__(self, status: int, kind: str, text: str, **more: Any) -> None:
        super().__init__(f"{status} {kind}: {text}")
        self.status = status
        self.kind = kind
        self.text = text
        self.more = more


def read_json(body: bytes) -> Any:
    """The body of a request. Raises `ValueError` for what strict readers refuse: half a surrogate pair, NaN."""
    value = json.loads(body.decode("utf-8"), parse_constant=_no_constant)
    json.dumps(value, ensure_ascii=False).encode("utf-8")  # a lone surrogate as an escape is found here
    return value


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def canonical(value: Any) -> bytes:
    """The same bytes for the same JSON value."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode()


def picture_problem(data: Any, media_type: Any) -> str | None:
    """Why a base64 picture cannot be processed."""
    if media_type not in ("image/png", "image/jpeg", "image/gif", "image/webp"):
        return f"media type {media_type!r} is not supported"
    try:
        raw = base64.b64decode(data, validate=True)
    except (binascii.Error, TypeError, ValueError):
        return "invalid base64 data"
    return None if raw else "image cannot be empty"


def pixels(data: str) -> tuple[int, int]:
    """Width and height of a base64 PNG; 0 for other formats."""
    raw = base64.b64decode(data[:64] + "=" * (-len(data[:64]) % 4))
    if not raw.startswith(PNG):
        return 0, 0
    width, height = struct.unpack(">II", raw[16:24])
    return width, height
