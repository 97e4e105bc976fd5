"""Edits of what a model sees: which entry, or which block of one, is left out or replaced; and what is redacted.

Laws: of several edits of one target the newest wins; `restore` takes an edit back; an edit holds on the branches that
it stands on, a redaction on all. What is left out of a user-role entry or a result leaves a constant text, so that
roles stay legal without looking ahead; a reply that is left out goes with its results. A redaction wins over every
edit: what a stub or another replacement would show of the entry is not shown either. A call of a reply cannot go alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TypeAlias

from governors.messages import Text, Thinking, ToolCall

from ..entries import EditRecord, Entry, ExtensionRecord, MessageRecord, Part
from .redaction import REDACTED

LEFT_OUT = "[left out]"

#: (entry, block of its content or None for the whole).
Target: TypeAlias = tuple[int, int | None]


class Edits:
    """The edits that hold on one branch, and the entries that are redacted. A message is redacted with the inbox entry
    that it came from."""

    def __init__(self, branch: Iterable[Entry] = (), redacted: Collection[int] = ()) -> None:
        self._newest: dict[Target, tuple[int, EditRecord]] = {}
        self._touched: dict[int, list[Target]] = {}
        self._redacted = set(redacted)
        for entry in branch:
            self.take(entry)

    def take(self, entry: Entry) -> None:
        match entry.record:
            case EditRecord() as record:
                self._edit(entry.id, record)
            case MessageRecord(inbox=int() as item) | ExtensionRecord(inbox=int() as item) if item in self._redacted:
                self._redacted.add(entry.id)
            case _:
                pass

    def _edit(self, identity: int, record: EditRecord) -> None:
        target = (record.target, record.block)
        if record.action == "restore":
            self._newest.pop(target, None)
        else:
            self._newest[target] = (identity, record)
            self._touched.setdefault(record.target, []).append(target)

    def is_redacted(self, identity: int) -> bool:
        return identity in self._redacted

    def hides(self, identity: int) -> bool:
        """Whether the whole entry is left out or redacted."""
        found = self._newest.get((identity, None))
        return identity in self._redacted or (found is not None and found[1].action == "omit")

    def key(self, identity: int) -> str:
        """What distinguishes this state of the entry's edits; empty when there are none."""
        if identity in self._redacted:
            return "redacted"
        touched = dict.fromkeys(self._touched.get(identity, ()))
        return ",".join(self._state(self._newest[target][0]) for target in touched if target in self._newest)

    def _state(self, edit: int) -> str:
        return f"{edit}/redacted" if edit in self._redacted else str(edit)

    def content(self, identity: int, content: Sequence[Part]) -> list[Part]:
        """The parts of an entry as they are shown; what is left out of it leaves a constant text."""
        if identity in self._redacted:
            return [Text(REDACTED)]
        whole = self._newest.get((identity, None))
        if whole is not None:
            return [Text(LEFT_OUT)] if whole[1].action == "omit" else self._replacement(*whole)
        shown: list[Part] = []
        for block, part in enumerate(content):
            found = self._newest.get((identity, block))
            if found is None or isinstance(part, ToolCall):
                shown.append(part)
            elif found[1].action == "replace":
                shown.extend(self._replacement(*found))
            elif not isinstance(part, Thinking):  # reasoning leaves nothing behind
                shown.append(Text(LEFT_OUT))
        return shown

    def _replacement(self, edit: int, record: EditRecord) -> list[Part]:
        return [Text(REDACTED)] if edit in self._redacted else list(record.content)
