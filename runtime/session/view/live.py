"""The projection of a conversation that goes on, and what holds in its session, at the price of what is new.

Not pure: both remember what they read last. What they give is what `project` and `standing_of` give for the same
entries. `LiveProjection` starts anew after whatever may change what was shown (another leaf, an edit, a head, a
redaction); that costs the range of the newest head.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from itertools import takewhile

from governors.identifiers import DEFAULT_ID_PATTERN, RunningIds, answering
from governors.messages import Message, ToolResult
from governors.microcompact import handle_of
from governors.repair import legal_content

from ..entries import EditRecord, Entry, ExtensionRecord, HeadRecord, Record
from ..tree import Tree
from .projection import Projection, projection_of, rendering_of
from .rendering import Rendering
from .standing import Standing, StandingFold


class LiveProjection:
    """`steady` is how many of the messages at the front stand as they stood at the last `settle`. The branch given is
    one of a tree's: whoever ends in the same entry holds the same entries."""

    def __init__(self) -> None:
        self.steady = 0
        self._rendering = Rendering(None)
        self._redacted: Collection[int] = ()
        self._read = 0  # entries of the branch
        self._last: Entry | None = None  # of those
        self._first: Entry | None = None
        self._messages: list[Message] = []
        self._ids = _running_ids()
        self._projection = projection_of(self._rendering, ())
        self._spared: tuple[Rendering, Mapping[int, bool], frozenset[str]] = self._rendering, {}, frozenset()

    @property
    def rendering(self) -> Rendering:
        """What the last projection was made of. It goes on changing: read it, and let it go."""
        return self._rendering

    def project(self, branch: Sequence[Entry], redacted: Collection[int] = ()) -> Projection:
        """`project(branch, redacted)`."""
        if not self._extends(branch, redacted) or self._is_moved_by(branch):
            self._begin(branch, redacted)
        elif len(branch) > self._read:
            self._rendering.take(branch[self._read :])
            self._append()
        else:
            return self._projection
        self._read, self._last, self._first = len(branch), branch[-1] if branch else None, branch[0] if branch else None
        self._projection = projection_of(self._rendering, tuple(self._messages))
        return self._projection

    def pending(self, branch: Sequence[Entry], redacted: Collection[int] = ()) -> int:
        """About how many entries `project` would have to read."""
        if self._extends(branch, redacted) and not self._is_moved_by(branch):
            return len(branch) - self._read
        return len(branch)

    def spared(self, pins: Mapping[int, bool]) -> frozenset[str]:
        """The handles of the results that a person wants to see whole: restored, or pinned (`Standing.pins`)."""
        rendering = self._rendering
        before, known, handles = self._spared
        if before is not rendering or known != pins:
            wanted = rendering.restored.union(entry for entry, on in pins.items() if on)
            handles = frozenset(handle_of(record.content) for record in rendering.results(wanted))
            self._spared = rendering, pins, handles
        return handles

    def settle(self) -> None:
        """Count `steady` from all messages there are now."""
        self.steady = len(self._messages)

    def _extends(self, branch: Sequence[Entry], redacted: Collection[int]) -> bool:
        """Whether `branch` begins with the entries that were read, and the same ones are redacted."""
        if redacted is not self._redacted and set(redacted) != set(self._redacted):
            return False
        if not self._read:
            return not branch
        return len(branch) >= self._read and branch[self._read - 1] is self._last and branch[0] is self._first

    def _is_moved_by(self, branch: Sequence[Entry]) -> bool:
        """Whether the new entries change what was shown before."""
        return any(moves_what_was_shown(entry.record) for entry in branch[self._read :])

    def _begin(self, branch: Sequence[Entry], redacted: Collection[int]) -> None:
        before = self._messages[: self.steady]
        self._redacted = redacted
        self._rendering = rendering_of(branch, redacted)
        self._messages, self._ids = [], _running_ids()
        self._append()
        self.steady = sum(1 for _ in takewhile(_is_same, zip(before, self._messages, strict=False)))

    def _append(self) -> None:
        """Take over what is new of the rendering, in legal form."""
        shown, legal = self._rendering.messages, self._messages
        for index in self._rendering.filled:
            stand, result = legal[index], legal_content(shown[index])
            assert isinstance(stand, ToolResult) and isinstance(result, ToolResult)
            legal[index] = answering(result, stand.call_id)
            self.steady = min(self.steady, index)
        legal += self._ids.apply([legal_content(message) for message in shown[len(legal) :]])


class LiveStanding:
    """What holds in one session, whatever branch is shown."""

    def __init__(self) -> None:
        self._fold = StandingFold()
        self._newest = self._first = 0

    def read(self, tree: Tree) -> Standing:
        """`standing_of(tree.entries, tree.copied)`. All is read again when what is older was put into the tree."""
        if tree.first != self._first or self._newest == 0:
            self._fold, self._newest, self._first = StandingFold(tree.copied), 0, tree.first
        new = list(takewhile(lambda entry: entry.id > self._newest, tree.newest_first()))
        for entry in reversed(new):
            self._fold.take(entry)
        if new:
            self._newest = new[0].id
        return self._fold.standing


def moves_what_was_shown(record: Record) -> bool:
    """Whether a new entry changes what was shown before it."""
    match record:
        case EditRecord() | HeadRecord():
            return True
        case ExtensionRecord(before=before):
            return before is not None
        case _:
            return False


def _running_ids() -> RunningIds:
    return RunningIds(re.compile(DEFAULT_ID_PATTERN))


def _is_same(pair: tuple[Message, Message]) -> bool:
    return pair[0] is pair[1]
