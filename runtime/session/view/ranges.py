"""Where a context begins: the range that a head shows. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from ..entries import Entry, HeadRecord


@dataclass(frozen=True, slots=True)
class Range:
    """What a head shows: entries from `start` on, but for the steps before `resume`."""

    start: int
    resume: int

    def leaves_out(self, identity: int) -> bool:
        """Whether `identity` stands in the gap between the first message and the first kept step."""
        return self.start < identity < self.resume

    def shows(self, identity: int) -> bool:
        return identity >= self.start and not self.leaves_out(identity)


def range_of(record: HeadRecord) -> Range:
    return Range(record.start, record.start if record.resume is None else record.resume)


def newest_head(branch: Sequence[Entry]) -> Entry | None:
    """The head that counts on `branch`."""
    return next((entry for entry in reversed(branch) if isinstance(entry.record, HeadRecord)), None)


def from_start(branch: Sequence[Entry], start: int) -> Sequence[Entry]:
    """The entries of `branch` from `start` on (from the next one when that line was lost)."""
    return branch[bisect_left(branch, start, key=lambda entry: entry.id) :]
