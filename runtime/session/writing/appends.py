"""Appends as they wait to be written: placed in the tree, encoded, or refused for what is wrong with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain, islice

from governors.messages import Document, Image, Text, Thinking, ToolCall

from ..entries import (
    Entry,
    InboxRecord,
    IntentRecord,
    LeafRecord,
    MessageRecord,
    OutcomeRecord,
    Part,
    Record,
    RequestRecord,
    ResultRecord,
)
from ..format.codec import decode_batch, encode_batch
from ..placing import place
from ..tree import Tree
from .log import LogFile

_SMALL = 16_384  # characters that are encoded on the event loop


class Append:
    """Records that somebody wants appended, and the `entries` that they become.

    `lines` is None where they are to be encoded (again). Large content is put for whoever writes its name soon after:
    after a write that failed it is put once more, from `placed`, as nobody's blob may have been collected since.
    """

    def __init__(self, records: Sequence[Record]) -> None:
        self.records = records
        self.placed: tuple[Entry, ...] = ()  # with all of their content
        self.entries: tuple[Entry, ...] = ()  # as the file holds them
        self.lines: bytes | None = None
        self.error: Exception | None = None
        self.settled = False

    def refused(self) -> None:
        """The disk did not take the lines."""
        if not all(map(is_small, self.records)):
            self.lines = None


def prepare(log: LogFile, tree: Tree, appends: list[Append], now: Callable[[], str]) -> None:
    """Give each append its entries and lines, or its error; what cannot be encoded takes no place."""
    while True:
        good = [append for append in appends if append.error is None]
        entries = iter(place(tree, list(chain.from_iterable(append.records for append in good)), now()))
        for append in good:
            placed = tuple(islice(entries, len(append.records)))
            try:
                append.placed = placed
                append.entries, append.lines = _encoded(log, placed)
            except (ValueError, TypeError) as error:
                append.error = error
                break
        else:
            return


def _encoded(log: LogFile, placed: tuple[Entry, ...]) -> tuple[tuple[Entry, ...], bytes | None]:
    try:
        return log.encode(placed)
    except OSError:  # its large content has no place on the disk now
        return decode_batch(encode_batch(placed)), None


def encode_late(log: LogFile, appends: list[Append]) -> None:
    """Encode what has no lines, and put its large content. Raises `OSError`."""
    for append in appends:
        append.lines = log.encode(append.placed)[1]


def is_small(record: Record) -> bool:
    """Whether encoding it takes no time worth a thread, and surely no file of its own."""
    match record:
        case MessageRecord() | ResultRecord() | InboxRecord():
            if isinstance(record, ResultRecord) and record.whole is not None:
                return False
            return sum(map(_length, record.content)) < _SMALL
        case IntentRecord() | RequestRecord() | OutcomeRecord() | LeafRecord():
            return True
        case _:
            return False


def _length(part: Part) -> int:
    match part:
        case Text(text) | Thinking(text):
            return len(text)
        case Image():
            return len(part.data)
        case Document():
            return len(part.data) + len(part.text or "")
        case ToolCall():
            return len(part.arguments)
