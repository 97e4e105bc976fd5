"""Pictures and documents over what a request takes of them: which of them go. Pure.

Laws:
- The oldest go first. Over a limit, they go down to half of it, so that the next one does not force it again.
- What the newest message with any of them brings is spared as long as the rest is enough.
- What a wire leaves out by itself (too large for it, of a kind that the model takes none of) counts for nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from .messages import Document, Image, Message, ToolResult, UserMessage
from .tokens import page_count
from .wire.base import Abilities

_MEDIA_SHARE = 0.75  # of the bytes of a request: the rest is for what is said


@dataclass(frozen=True, slots=True)
class Piece:
    """A picture or a document in view, in the message of `place`. `size` is of its base64 text, in characters."""

    place: int
    is_image: bool
    pages: int
    size: int


@dataclass(frozen=True, slots=True)
class Drops:
    """By place, how many of the first pictures and of the first documents of a message go; what was too much, and why
    that is."""

    images: dict[int, int]
    documents: dict[int, int]
    what: str
    why: str


@dataclass(slots=True)
class Media:
    """What of pictures and documents is in view, oldest first, and how much that is."""

    pieces: list[Piece] = field(default_factory=list)
    images: int = 0
    pages: int = 0
    size: int = 0

    def take(self, place: int, message: Message) -> None:
        if not isinstance(message, UserMessage | ToolResult):
            return
        for part in message.content:
            if isinstance(part, Image):
                self._add(Piece(place, True, 0, len(part.data)))
            elif isinstance(part, Document):
                self._add(Piece(place, False, page_count(part) if part.data else 0, len(part.data)))

    def _add(self, piece: Piece) -> None:
        self.pieces.append(piece)
        self.images += piece.is_image
        self.pages += piece.pages
        self.size += piece.size

    def over(self, abilities: Abilities) -> bool:
        """Whether this is more than a request takes."""
        suspect = bool(self.pieces) and (
            (abilities.images and self.images > abilities.max_images)
            or (abilities.documents and self.pages > abilities.max_document_pages)
            or self.size > _MEDIA_SHARE * abilities.max_body_bytes
        )
        return suspect and self.drops(abilities) is not None

    def drops(self, abilities: Abilities) -> Drops | None:
        """What goes; None when all can stay."""
        kept = [piece for piece in self.pieces if _is_sent(piece, abilities)]
        gone: list[Piece] = []
        told: list[tuple[str, str]] = []
        bytes_limit = int(_MEDIA_SHARE * abilities.max_body_bytes)
        for limit, measure, what in (
            (abilities.max_images, _one_image, "pictures"),
            (abilities.max_document_pages, _pages, "pages of documents"),
            (bytes_limit, _size, "bytes of pictures and documents"),
        ):
            total = sum(map(measure, kept))
            surplus = _surplus(kept, limit, measure)
            if surplus:
                gone += surplus
                going = set(map(id, surplus))
                kept = [piece for piece in kept if id(piece) not in going]
                told.append((f"{total:,} {what}, the oldest left out", f"a request takes at most {limit:,}"))
        if not gone:
            return None
        return Drops(
            self._counts(gone, is_image=True),
            self._counts(gone, is_image=False),
            "; ".join(what for what, _ in told),
            "; ".join(why for _, why in told),
        )

    def _counts(self, gone: Sequence[Piece], *, is_image: bool) -> dict[int, int]:
        """By place, how many of the first pieces of a kind go, so that all of `gone` do."""
        going = set(map(id, gone))
        counts: dict[int, int] = {}
        seen: dict[int, int] = {}
        for piece in self.pieces:
            if piece.is_image == is_image:
                seen[piece.place] = seen.get(piece.place, 0) + 1
                if id(piece) in going:
                    counts[piece.place] = seen[piece.place]
        return counts


def over_limits(messages: Iterable[Message], abilities: Abilities) -> bool:
    """Whether a request of `messages` holds more pictures or documents than `abilities` tell."""
    media = Media()
    for place, message in enumerate(messages):
        media.take(place, message)
    return media.over(abilities)


def _is_sent(piece: Piece, abilities: Abilities) -> bool:
    if piece.is_image:
        return abilities.images and piece.size <= abilities.max_image_bytes
    fits = piece.size <= abilities.max_document_bytes and piece.pages <= abilities.max_document_pages
    return abilities.documents and fits and piece.size > 0


def _surplus(pieces: Sequence[Piece], limit: int, measure: Callable[[Piece], int]) -> list[Piece]:
    """The oldest pieces that go so that `measure` of the rest comes down to half of `limit`."""
    counted = [piece for piece in pieces if measure(piece)]
    total = sum(map(measure, counted))
    gone: list[Piece] = []
    if total <= limit:
        return gone
    newest = counted[-1].place
    for piece in counted:
        if total <= limit // 2 or (total <= limit and piece.place == newest):
            break
        gone.append(piece)
        total -= measure(piece)
    return gone


def _one_image(piece: Piece) -> int:
    return int(piece.is_image)


def _pages(piece: Piece) -> int:
    return piece.pages


def _size(piece: Piece) -> int:
    return piece.size
