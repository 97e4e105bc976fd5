"""What a reader makes of a file: drafts of entries, and an account of every line.

Laws: a line is carried over (to its first entry) or left with a reason, and the first word on it stands; a result
is paired with the newest unanswered call of its id on its branch; a head begins at a user message of its branch, and
never before the one that an earlier head begins at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from governors.messages import Text, ToolCall, UserPart

from ..entries import (
    OFF_BRANCH,
    Baseline,
    HeadRecord,
    LabelRecord,
    MessageRecord,
    NoteRecord,
    Record,
    ResultRecord,
    SettingRecord,
)
from .drafts import Draft, Spot, path_to
from .parts import title_of

_EPOCH = "1970-01-01T00:00:00.000Z"


@dataclass(slots=True)
class Account:
    """What became of each line of a file, by its number. `partly`: what a line lost that was carried over. `at` is the
    time of what tells none (UTC, ISO 8601)."""

    at: str = _EPOCH
    carried: dict[int, Draft] = field(default_factory=dict)
    left: dict[int, str] = field(default_factory=dict)
    partly: list[tuple[int, str]] = field(default_factory=list)

    def carry(self, line: int, draft: Draft) -> None:
        if line not in self.carried:
            self.carried[line] = draft
            self.left.pop(line, None)

    def leave(self, line: int, reason: str) -> None:
        if line not in self.carried:
            self.left.setdefault(line, reason)

    def lose(self, line: int, what: str) -> None:
        self.partly.append((line, what))


class Book:
    """One conversation in the making. `spot` is where the next entry of a linear format hangs."""

    def __init__(self, account: Account) -> None:
        self.account = account
        self.drafts: list[Draft] = []
        self.spot = Spot()
        self.leaf: Draft | None = None
        self.id = ""  # what its program calls it
        self.title = ""
        self.cwd = ""
        self.created: str | None = None
        self.at = account.at  # of the newest line that told its time
        self._settings: dict[str, Any] = {}
        self._answered: set[tuple[int, int]] = set()
        self._name: tuple[int, str] | None = None

    def clock(self, at: str | None) -> str:
        """The time of a line; where it tells none, that of the line before."""
        if at is not None:
            self.at = at
            self.created = self.created or at
        return self.at

    def hang(self, record: Record, line: int | None, spot: Spot, *, meta: bool = False) -> Draft:
        """A draft of `record` on `spot`. Without a `line` it is something that a line says in passing."""
        draft = Draft(record, self.at, spot.tail, meta=meta)
        if not isinstance(record, OFF_BRANCH):
            spot.children.append(draft)
        self.drafts.append(draft)
        if line is not None:
            self.account.carry(line, draft)
        return draft

    def note(self, text: str, line: int, data: dict[str, Any] | None = None) -> None:
        """Something for people, beside the conversation."""
        self.hang(NoteRecord(text=text, data=data), line, self.spot)

    def setting(self, name: str, value: Any, line: int | None, spot: Spot) -> Draft | None:
        """The setting, if it is not in force already; None when it is."""
        if value is None or self._settings.get(name) == value:
            return None
        self._settings[name] = value
        return self.hang(SettingRecord(name=name, value=value), line, spot)

    def name(self, text: str, line: int) -> None:
        """The session's own name, as a tag of the session; the newest counts."""
        if self._name is not None:
            self.account.leave(self._name[0], "an earlier name of the session")
        self._name = (line, text) if text else None
        if text:
            self.title = text
        else:
            self.account.leave(line, "it took the session's name away")

    def find_call(self, identity: str, tip: Draft | None, *, tool: str = "") -> tuple[Draft, int] | None:
        """The call that a result under `tip` answers: in the nearest reply that has its id, the first without a result,
        else the first. Where the result tells no id, its `tool` tells."""
        draft = tip
        while draft is not None:
            calls = calls_of(draft)
            fits = [n for n, each in enumerate(calls) if (each.id == identity if identity else each.name == tool)]
            if fits:
                unanswered = (number for number in fits if (id(draft), number) not in self._answered)
                return draft, next(unanswered, fits[0])
            draft = draft.parent
        return None

    def said(self, content: Sequence[UserPart], line: int, spot: Spot, *, meta: bool = False, **told: Any) -> Draft:
        """A user's message; `meta`: one that no person wrote."""
        record = MessageRecord(role="user", content=tuple(content), **told)
        if not self.title and not meta:
            self.title = title_of("\n\n".join(part.text for part in content if isinstance(part, Text)))
        return self.hang(record, line, spot, meta=meta)

    def result(
        self, found: tuple[Draft, int], content: Sequence[UserPart], line: int, spot: Spot, **told: Any
    ) -> Draft:
        """The result of a call."""
        reply, number = found
        self._answered.add((id(reply), number))
        tool = calls_of(reply)[number].name
        draft = self.hang(ResultRecord(call=(0, number), tool=tool, content=tuple(content), **told), line, spot)
        draft.refers = (reply,)
        return draft

    def head(
        self,
        summary: str,
        line: int,
        spot: Spot,
        kept: Draft | None = None,
        *,
        first: Draft | None = None,
        cause: str = "import",
        before: int = 0,
    ) -> Draft:
        """A compaction at `spot`: everything goes into `summary` but what stands from `kept` on, or, with `first`, but
        the users' messages from there on. With neither, the newest user message stays and the summary follows it."""
        path = path_to(spot.tail)
        start, resume = _range(path, kept, first)
        if start is None:  # nobody said anything before: the summary itself is the message to begin at
            said = self.hang(MessageRecord(role="user", content=(Text(summary),)), line, spot, meta=True)
            spot, start, resume, text = Spot(said), said, None, None
        else:
            text = summary
        record = HeadRecord(
            start=0,
            baseline=Baseline(sections={}),
            cause=cause,
            generation=0,
            resume=0 if resume == "head" else None,
            summary=text or None,
            placement="last" if resume == "head" else "first",
            before=before,
        )
        draft = self.hang(record, line, spot)
        draft.refers = (start, resume if isinstance(resume, Draft) else None)
        return draft

    def finish(self) -> None:
        """What is known only at the end."""
        if self._name is not None:
            line, text = self._name
            self.hang(LabelRecord(text=text), line, Spot(self.leaf))


def calls_of(draft: Draft) -> list[ToolCall]:
    """The calls of a reply; none of anything else."""
    record = draft.record
    if not isinstance(record, MessageRecord) or record.role != "assistant":
        return []
    return [part for part in record.content if isinstance(part, ToolCall)]


def grow(draft: Draft, **changed: Any) -> None:
    """Change the record of a message draft: a reply that came over several lines."""
    assert isinstance(draft.record, MessageRecord)
    draft.record = replace(draft.record, **changed)


def _range(path: list[Draft], kept: Draft | None, first: Draft | None) -> tuple[Draft | None, Draft | str | None]:
    """Where a head begins, and the step that it resumes at: a reply, `head` for none, or None for all from there."""
    least = 0
    for draft in path:  # never before the start of an earlier head
        begun = draft.refers[0] if isinstance(draft.record, HeadRecord) else None
        if begun is not None and begun in path:
            least = path.index(begun)
    users = [place for place in range(least, len(path)) if path[place].is_user]
    if not users:
        return None, None
    if kept is not None and kept in path:
        return _kept_from(path, max(path.index(kept), least), users)
    if first is not None and first in path:
        place = path.index(first)
        return path[next((user for user in users if user >= place), users[-1])], "head"
    said = [place for place in users if not path[place].meta]
    return path[(said or users)[-1]], "head"


def _kept_from(path: list[Draft], place: int, users: list[int]) -> tuple[Draft | None, Draft | str | None]:
    """The range that shows everything from `place` on, or from the first message or reply after it."""
    reply = path[place].refers[0] if isinstance(path[place].record, ResultRecord) else None
    if reply is not None and reply in path:  # a result goes with its call
        place = path.index(reply)
    shown = next((at for at in range(place, len(path)) if path[at].is_user or path[at].is_reply), None)
    if shown is None:
        return path[users[-1]], "head"
    if path[shown].is_user and shown in users:
        return path[shown], None
    earlier = [user for user in users if user < shown]
    if earlier:
        return path[earlier[-1]], path[shown]
    later = [user for user in users if user > shown]
    return path[later[0]], None
