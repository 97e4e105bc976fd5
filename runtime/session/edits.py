"""Edits of what a model sees: which entry, or which block of one, is left out or replaced.

Laws: of several edits of one target the newest wins; `restore` takes an edit back; an edit holds on the branches that
it stands on. What is left out of a user's message or a result leaves a constant text, so that roles stay legal
without looking ahead; a reply that is left out goes with its results.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from governors.messages import Text, Thinking

from .entries import EditRecord, Entry, Part

LEFT_OUT = "[left out]"

#: (entry, block of its content or None for the whole).
Target: TypeAlias = tuple[int, int | None]


class Edits:
    """The edits that hold on one branch."""

    def __init__(self, branch: Sequence[Entry]) -> None:
        self._newest: dict[Target, tuple[int, EditRecord]] = {}
        self._touched: dict[int, list[Target]] = {}
        for entry in branch:
            if isinstance(entry.record, EditRecord):
                self._take(entry.id, entry.record)

    def _take(self, identity: int, record: EditRecord) -> None:
        target = (record.target, record.block)
        if record.action == "restore":
            self._newest.pop(target, None)
        else:
            self._newest[target] = (identity, record)
            self._touched.setdefault(record.target, []).append(target)

    def hides(self, identity: int) -> bool:
        """Whether the whole entry is left out."""
        found = self._newest.get((identity, None))
        return found is not None and found[1].action == "omit"

    def key(self, identity: int) -> str:
        """What distinguishes this state of the entry's edits; empty when there are none."""
        touched = dict.fromkeys(self._touched.get(identity, ()))
        return ",".join(str(self._newest[target][0]) for target in touched if target in self._newest)

    def content(self, identity: int, content: Sequence[Part]) -> list[Part]:
        """The parts of an entry as they are shown; what is left out of it leaves a constant text."""
        whole = self._newest.get((identity, None))
        if whole is not None:
            return [Text(LEFT_OUT)] if whole[1].action == "omit" else list(whole[1].content)
        shown: list[Part] = []
        for block, part in enumerate(content):
            found = self._newest.get((identity, block))
            if found is None:
                shown.append(part)
            elif found[1].action == "replace":
                shown.extend(found[1].content)
            elif not isinstance(part, Thinking):  # reasoning leaves nothing behind
                shown.append(Text(LEFT_OUT))
        return shown
