"""What of a conversation is shown: all messages by place, and the view that edits and cuts leave of them.

Appending costs what is appended. An edit or a cut makes new lists, so that a view which was handed out stays as it was.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from .carrying import carried
from .estimate_count import Count
from .media import Media
from .messages import AssistantMessage, Message, SystemPatch, Text, ToolResult, UserMessage
from .microcompact import stub
from .snip import OMITTED_STEPS, stays


@dataclass(slots=True)
class Shown:
    """`kept` holds every repaired message; its index there is its place. The view shows `lead` messages at the front,
    the patches that a cut carries (with `keep_patches`), the quote, and what follows `start`, less the steps before
    `resume`. `ripe` are the places of results that are older than the `keep` newest and that `saving` says a stub makes
    smaller, `ripe_saving` what that would save (see `ripen`).
    """

    count_of: Callable[[Message], Count]
    saving: Callable[[Message], int]
    fixed: Count
    lead: int
    keep: int
    keep_patches: bool = True
    kept: list[Message] = field(default_factory=list)
    edited: dict[int, Message] = field(default_factory=dict)
    start: int = 0
    resume: int = 0
    quote: str | None = None
    view: list[Message] = field(default_factory=list)
    places: list[int | None] = field(default_factory=list)
    sums: list[Count] = field(default_factory=list)  # of all that stands before a message, the fixed part included
    count: Count = field(default_factory=Count)
    media: Media = field(default_factory=Media)
    ripe: list[int] = field(default_factory=list)
    ripe_saving: int = 0
    _index: dict[int, int] = field(default_factory=dict)
    _newest: deque[int] = field(default_factory=deque)
    _aged: list[int] = field(default_factory=list)  # older than those, and not yet looked at
    _edited_at: dict[int, int] = field(default_factory=dict)  # by identity: `edited` keeps them alive
    _inserted: dict[str, UserMessage] = field(default_factory=dict)
    _carried: tuple[int, SystemPatch | None] = (0, None)  # those before a start

    def __post_init__(self) -> None:
        self.count = self.fixed

    def append(self, message: Message) -> None:
        self.kept.append(message)
        self._show(len(self.kept) - 1, message)

    def at(self, place: int) -> Message:
        """What is shown of the message of `place`, when it is in view."""
        return self.edited.get(place) or self.kept[place]

    def result(self, place: int) -> ToolResult:
        """The whole result that was kept at `place`."""
        message = self.kept[place]
        assert isinstance(message, ToolResult)
        return message

    def stub_of(self, result: ToolResult) -> ToolResult:
        """The stub for a result in view: of the whole one, also where pictures of it are left out."""
        place = self._edited_at.get(id(result))
        return stub(result if place is None or self.edited[place] is not result else self.result(place))

    def inserted(self, text: str) -> UserMessage:
        """The message with a text that a cut puts in, made once."""
        return self._inserted.setdefault(text, UserMessage((Text(text),)))

    def index_of(self, place: int) -> int | None:
        """Where the message of `place` stands in the view; None when it is out of view."""
        return self._index.get(place)

    def indices(self, places: Collection[int] | None) -> frozenset[int]:
        """Where the messages of `places` stand in the view, by default all but what a cut put in."""
        found = self._index.values() if places is None else map(self.index_of, places)
        return frozenset(index for index in found if index is not None)

    def ripen(self) -> list[int]:
        """`ripe`, after a look at the results that have grown old since the last one."""
        for place in self._aged:
            saved = self.saving(self.view[self._index[place]])
            if saved > 0:
                self.ripe.append(place)
                self.ripe_saving += saved
        self._aged.clear()
        return self.ripe

    def edit(self, changes: dict[int, Message]) -> None:
        """Show other messages at these places."""
        self.edited.update(changes)
        self._edited_at.update((id(message), place) for place, message in changes.items())
        self._rebuild()

    def cut(self, start: int, resume: int, quote: str | None) -> None:
        """Begin at the place `start`, and with the steps of that turn at `resume`."""
        self.start, self.resume, self.quote = start, resume, quote
        self._rebuild()

    def _show(self, place: int | None, message: Message) -> None:
        self.view.append(message)
        self.places.append(place)
        self.sums.append(self.count)
        self.count += self.count_of(message)
        if place is None:
            return
        self._index[place] = len(self.view) - 1
        self.media.take(place, message)
        if isinstance(message, ToolResult):
            self._newest.append(place)
            if len(self._newest) > self.keep:
                self._aged.append(self._newest.popleft())

    def _carry(self) -> SystemPatch | None:
        """The patches that stand before the cut, as one, made once for each cut."""
        if not self.keep_patches:
            return None
        if self._carried[0] != self.start:
            gone = self.kept[min(self.lead, self.start) : self.start]
            self._carried = self.start, carried([each for each in gone if isinstance(each, SystemPatch)])
        return self._carried[1]

    def _rebuild(self) -> None:
        self.view, self.places, self.sums, self.media, self.ripe = [], [], [], Media(), []
        self.count, self.ripe_saving = self.fixed, 0
        self._index, self._newest, self._aged = {}, deque(), []
        for place in range(min(self.lead, self.start)):
            self._show(place, self.at(place))
        if (patch := self._carry()) is not None:
            self._show(None, patch)
        if self.quote is not None:
            self._show(None, self.inserted(self.quote))
        marker = self.inserted(OMITTED_STEPS)
        marked = any(message == marker for message in self.kept[self.start : self.resume])  # by an earlier life
        for place in range(self.start, len(self.kept)):
            message = self.at(place)
            if place >= self.resume or stays(message, self.keep_patches):
                self._show(place, message)
            elif not marked and isinstance(message, AssistantMessage):
                self._show(None, marker)
                marked = True
