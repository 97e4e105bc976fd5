"""What a picture is, by its first bytes; and a smaller one where it is too large for providers.

Pictures are made smaller here, before they are recorded, as no two versions of a library make the same bytes: a request
is made again from the log alone.
"""

from __future__ import annotations

import io
import struct
from dataclasses import dataclass

#: Bytes of base64 text and pixels of the longer side that every provider in the catalog takes, also where a request
#: holds many pictures (https://docs.anthropic.com/en/docs/build-with-claude/vision).
MOST_ENCODED = 4_500_000
LONGEST_SIDE = 2_000
SHRUNK_SIDE = 1_568  # what providers scale pictures down to: more brings nothing
_MOST_PIXELS = 100_000_000  # of a picture that is decoded to be made smaller: 300 MB


@dataclass(frozen=True, slots=True)
class Picture:
    """`width` and `height` in pixels; 0 where they could not be read."""

    media_type: str
    width: int
    height: int


def picture_of(data: bytes) -> Picture | None:
    """What picture `data` is; None when it is none that providers take (PNG, JPEG, GIF, WebP)."""
    try:
        if data.startswith(b"\x89PNG\r\n\x1a\n"):
            return Picture("image/png", *struct.unpack(">II", data[16:24]))
        if data.startswith((b"GIF87a", b"GIF89a")):
            return Picture("image/gif", *struct.unpack("<HH", data[6:10]))
        if data.startswith(b"\xff\xd8\xff"):
            return Picture("image/jpeg", *_jpeg_size(data))
        if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
            return Picture("image/webp", *_webp_size(data))
    except (struct.error, IndexError):
        return Picture(_BY_MAGIC[data[:3]], 0, 0)
    return None


_BY_MAGIC = {b"\x89PN": "image/png", b"GIF": "image/gif", b"\xff\xd8\xff": "image/jpeg", b"RIF": "image/webp"}


def is_too_large(picture: Picture, encoded: int) -> bool:
    """Whether a provider may refuse it; `encoded` is the length of its base64 text."""
    return encoded > MOST_ENCODED or max(picture.width, picture.height) > LONGEST_SIDE


def shrunk(data: bytes) -> bytes | None:
    """The picture made smaller, as PNG or JPEG; None where that cannot be done (no Pillow, or it cannot read it)."""
    try:
        from PIL import Image, ImageOps, UnidentifiedImageError
    except ImportError:
        return None
    try:
        with Image.open(io.BytesIO(data)) as opened:
            if opened.width * opened.height > _MOST_PIXELS:
                return None
            upright = ImageOps.exif_transpose(opened)
            plain = upright.convert("RGBA" if "A" in upright.getbands() or "transparency" in upright.info else "RGB")
    except (UnidentifiedImageError, OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return None
    plain.thumbnail((SHRUNK_SIDE, SHRUNK_SIDE))
    made = io.BytesIO()
    if plain.mode == "RGBA":
        plain.save(made, "PNG", optimize=True)
        if len(made.getvalue()) * 4 // 3 <= MOST_ENCODED:
            return made.getvalue()
        made, plain = io.BytesIO(), plain.convert("RGB")
    plain.save(made, "JPEG", quality=88)
    return made.getvalue()


def _jpeg_size(data: bytes) -> tuple[int, int]:
    """Width and height from the frame header, past all segments before it."""
    place = 2
    while True:
        while data[place] != 0xFF:
            place += 1
        while data[place] == 0xFF:
            place += 1
        marker = data[place]
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", data[place + 4 : place + 8])
            return width, height
        if marker in (0x01, *range(0xD0, 0xD9)):  # without a length
            place += 1
            continue
        (length,) = struct.unpack(">H", data[place + 1 : place + 3])
        place += 1 + length


def _webp_size(data: bytes) -> tuple[int, int]:
    """From the first chunk, in each of the three forms
    (https://developers.google.com/speed/webp/docs/riff_container)."""
    kind = data[12:16]
    if kind == b"VP8X":
        return 1 + int.from_bytes(data[24:27], "little"), 1 + int.from_bytes(data[27:30], "little")
    if kind == b"VP8L":
        (bits,) = struct.unpack("<I", data[21:25])
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    width, height = struct.unpack("<HH", data[26:30])
    return width & 0x3FFF, height & 0x3FFF
