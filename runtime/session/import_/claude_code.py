"""Claude Code's session files: a tree by `uuid` and `parentUuid`, one reply over several lines.

Lines of one reply share `message.id`; they become one reply, with its usage counted once. Its calls' results are hung
behind it, in whatever order they came and whichever of its lines they name as parent, so that calls made at once make
no branches. What is a branch stays one: an edited message, a thread of a sub-agent (`isSidechain`), which begins a
tree of its own beside the conversation. A compaction (`compact_boundary`, and the message with `isCompactSummary` after
it) becomes a head where the boundary stands. The conversation goes on from the newest line of the main thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from governors.messages import Usage

from ..entries import ExtensionRecord, MessageRecord, Part
from .book import Account, Book, grow
from .claude_lines import LEFT, LEFT_SYSTEM, attachment, reply_parts, stop_of, usage_of
from .drafts import Spot
from .lines import Line
from .parts import Object, a_text, an_object, count, level, moment, objects, said, text_of
from .shell import answer, claude_command, claude_output, is_unanswered
from .weaving import Weaver, Woven

_SYNTHETIC = "<synthetic>"
_NO_SUMMARY = "a compaction whose summary is not in the file: what stands before it stays in view"


def read(lines: Iterable[Line], account: Account) -> Iterator[Book]:
    """The conversation of a file."""
    reader = _Reader(account)
    for line in lines:
        if line.value is not None:
            reader.take(line.number, line.value)
    yield reader.finish()


class _Reader:
    def __init__(self, account: Account) -> None:
        self.book = Book(account)
        self._account = account
        self._weaver = Weaver(account, self._one)
        self._boundaries: list[tuple[Spot, int, Object]] = []  # whose summary has not come
        self._counted: set[str] = set()  # replies whose usage stands somewhere already
        self._last: dict[bool, tuple[int, Spot]] = {}  # of the main thread (False) and of sub-agents (True)
        self._folders: set[str] = set()
        self._makers: dict[str, Callable[[int, Object, Spot], Spot]] = {
            "user": self._user,
            "assistant": self._assistant,
            "system": self._system,
            "attachment": self._attachment,
            "summary": self._title,
            "custom-title": self._title,
            "ai-title": self._title,
            "agent-title": self._title,
            "tag": self._title,
        }

    def take(self, number: int, value: Object) -> None:
        name, parent = value.get("uuid"), value.get("parentUuid") or value.get("logicalParentUuid")
        is_root = "parentUuid" in value and not isinstance(parent, str)
        named = name if isinstance(name, str) else None
        if not is_root and not isinstance(parent, str) and value.get("type") in ("user", "assistant"):
            self._weaver.put(number, self._tip(value))  # a line that names no parent goes on from its thread
        self._weaver.take(Woven(number, value, named, parent if isinstance(parent, str) else None, is_root))
        if value.get("type") == "last-prompt" and value.get("rewound") is True:
            target = self._weaver.spot(value.get("leafUuid"))
            if target is not None:
                self._last[False] = (number, target)

    def finish(self) -> Book:
        self._weaver.finish()
        for _, number, _ in self._boundaries:
            self._account.leave(number, _NO_SUMMARY)
        last = self._last.get(False) or self._last.get(True)
        self.book.leaf = last[1].tail if last is not None else None
        self.book.finish()
        return self.book

    def _tip(self, value: Object) -> Spot:
        last = self._last.get(value.get("isSidechain") is True)
        return last[1] if last is not None else Spot()

    def _one(self, number: int, value: Object, spot: Spot) -> Spot:
        self.book.clock(moment(value.get("timestamp")))
        self.book.cwd = self.book.cwd or a_text(value.get("cwd"))
        self.book.id = self.book.id or a_text(value.get("sessionId"))
        self.book.spot = spot
        kind = a_text(value.get("type"))
        if kind not in self._makers:
            self._account.leave(number, LEFT.get(kind, f"unknown type {kind!r}"))
            return spot
        own = self._makers[kind](number, value, spot)
        side = value.get("isSidechain") is True
        if kind in ("user", "assistant", "attachment") and own.tail and number >= self._last.get(side, (0, own))[0]:
            self._last[side] = (number, own)
        return own

    def _loser(self, number: int) -> Callable[[str], None]:
        return lambda what: self._account.lose(number, what)

    def _assistant(self, number: int, value: Object, spot: Spot) -> Spot:
        message = an_object(value.get("message"))
        if value.get("isApiErrorMessage") is True:
            self.book.note(f"Claude Code reported: {text_of(message.get('content'))}", number, {"api_error": True})
            return spot
        parts, identity = reply_parts(message, self._loser(number)), a_text(message.get("id"))
        usage = usage_of(message.get("usage"))
        if spot.reply is not None and identity and spot.name == identity:
            return self._more(number, message, parts, usage, spot)
        model = a_text(message.get("model"))
        model = "" if model == _SYNTHETIC else model
        if model:
            chosen = self.book.setting("model", f"anthropic/{model}", None, spot)
            spot = spot if chosen is None else Spot(chosen)
        content = tuple(parts)
        record = MessageRecord(
            role="assistant",
            content=content,
            stop=stop_of(message, content),
            model=model or None,
            wire="claude-code/anthropic",
            usage=None if identity in self._counted else usage,
        )
        if identity:
            self._counted.add(identity)
        draft = self.book.hang(record, number, spot)
        return Spot(draft, draft, identity)

    def _more(self, number: int, message: Object, parts: list[Part], usage: Usage | None, spot: Spot) -> Spot:
        """Another line of the reply at `spot`; of several usages, the one that tells most of the output counts."""
        assert spot.reply is not None
        record = spot.reply.record
        assert isinstance(record, MessageRecord)
        content = (*record.content, *parts)
        known = record.usage
        if usage is not None and known is not None and usage.output > known.output:
            known = usage
        grow(spot.reply, content=content, stop=stop_of(message, content), usage=known)
        self._account.carry(number, spot.reply)
        return spot

    def _user(self, number: int, value: Object, spot: Spot) -> Spot:
        content = an_object(value.get("message")).get("content")
        if value.get("isCompactSummary") is True:
            return self._compaction(number, text_of(content), spot)
        results = [block for block in objects(content) if block.get("type") == "tool_result"]
        for block in results:
            self._result(number, block, spot)
        rest = [block for block in content if block not in results] if isinstance(content, list) else content
        if results and not rest:
            return spot
        if value.get("isVisibleInTranscriptOnly") is True:
            self.book.note(text_of(rest), number)
            return spot
        spot = self._thinking(value, spot)
        meta = value.get("isMeta") is True
        if (command := claude_command(text_of(rest))) is not None:
            return Spot(self.book.hang(command, number, spot, meta=True))
        if spot.tail is not None and is_unanswered(spot.tail) and (told := claude_output(text_of(rest))) is not None:
            answer(spot.tail, told)
            self._account.carry(number, spot.tail)
            return spot
        parts = said(rest, self._loser(number))
        meta = meta or text_of(rest).lstrip().startswith(("<command-", "<local-command-", "<bash-", "<task-"))
        return Spot(self.book.said(parts, number, spot, meta=meta))

    def _thinking(self, value: Object, spot: Spot) -> Spot:
        told = an_object(value.get("thinkingMetadata"))
        wanted = "off" if told.get("disabled") is True else level(told.get("level"))
        chosen = self.book.setting("thinking", wanted, None, spot)
        return spot if chosen is None else Spot(chosen)

    def _result(self, number: int, block: Object, spot: Spot) -> None:
        """The result goes behind its reply, when `spot` is that step; else it stands where it came."""
        found = self.book.find_call(a_text(block.get("tool_use_id")), spot.tail)
        if found is None:
            reason = "the result of a call that is not in the file"
            if number in self._account.carried:
                self._account.lose(number, reason)
            else:
                self._account.leave(number, reason)
            return
        content = said(block.get("content"), self._loser(number))
        draft = self.book.result(found, content, number, Spot(spot.tail), is_error=block.get("is_error") is True)
        spot.extend(draft)

    def _compaction(self, number: int, summary: str, spot: Spot) -> Spot:
        boundary, told = self._boundary(number, spot)
        metadata = an_object(told.get("compactMetadata"))
        segment = an_object(metadata.get("preservedSegment"))
        kept = self._weaver.spot(segment.get("headUuid"))
        start = (kept.reply or kept.tail) if kept is not None else None
        before = count(metadata.get("preTokens"))
        draft = self.book.head(summary, number, spot, start, cause="claude-code: compaction", before=before)
        if boundary is not None:
            self._account.carry(boundary, draft)
        own = Spot(draft)
        tail = segment.get("tailUuid")
        if isinstance(tail, str) and kept is not None:  # what follows names the end of what was kept as its parent
            self._weaver.rename(tail, own)
        return own

    def _boundary(self, number: int, spot: Spot) -> tuple[int | None, Object]:
        """The boundary that a summary belongs to: the one it hangs on, else the newest before it."""
        before = [each for each in self._boundaries if each[1] < number or each[0] is spot]
        found = next((each for each in before if each[0] is spot), before[-1] if before else None)
        if found is None:
            return None, {}
        self._boundaries.remove(found)
        return found[1], found[2]

    def _system(self, number: int, value: Object, spot: Spot) -> Spot:
        subtype, text = a_text(value.get("subtype")), a_text(value.get("content"))
        if subtype == "compact_boundary":
            own = Spot(spot.tail, spot.reply, spot.name)
            self._boundaries.append((own, number, value))
            return own
        if subtype in LEFT_SYSTEM:
            self._account.leave(number, LEFT_SYSTEM[subtype])
        elif text:
            self.book.note(text, number, {"subtype": subtype})
        else:
            self._account.leave(number, f"a notice of the program ({subtype or 'without a subtype'})")
        return spot

    def _attachment(self, number: int, value: Object, spot: Spot) -> Spot:
        told = an_object(value.get("attachment"))
        if told.get("type") == "queued_command":  # typed while the model worked, and sent with the next step
            meta = told.get("commandMode") not in (None, "prompt")
            parts = said(told.get("prompt"), self._loser(number))
            return Spot(self.book.said(parts, number, spot, meta=meta, steered=True))
        kind, content = attachment(told, self._loser(number))
        data = {key: each for key, each in told.items() if key not in ("content", "snippet", "type")}
        record = ExtensionRecord(name=f"claude-code.{kind}", data=data, content=content)
        return Spot(self.book.hang(record, number, spot))

    def _title(self, number: int, value: Object, spot: Spot) -> Spot:
        keys = ("customTitle", "aiTitle", "summary", "title", "tag")
        text = next((told for key in keys if (told := a_text(value.get(key)).strip())), "")
        self.book.name(text, number)
        return spot
