"""Codex rollouts: lines of `{timestamp, type, payload}`, in the order they happened.

The items of one response stand on lines of their own and become one reply; its usage ends it. Usage is told twice or
more: where `token_usage_record` lines are, they count, and `token_count` events only say it again; else an event
counts when the sum of the session rose. A compaction keeps the users' messages and puts a summary after them, and so
does its head. Turns that were taken back (`thread_rolled_back`) are left as a branch. What Codex itself says in the
user's or the developer's role is a note, but for the surroundings (`<environment_context>`): they are the context of
the message that comes with them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from governors.messages import Text, Usage

from ..entries import LeafRecord, MessageRecord, Part
from .book import Account, Book, calls_of, grow
from .codex_lines import (
    LEFT,
    LEFT_EVENTS,
    LEFT_ITEMS,
    OUTPUTS,
    output,
    reply_part,
    usage_of,
    user_kind,
)
from .drafts import Draft, Spot, path_to
from .lines import Line
from .parts import Object, a_text, an_object, count, level, moment, objects, said, system_prompt, text_of
from .shell import codex_command


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
        self._reply: Draft | None = None  # may still grow
        self._model: str | None = None
        self._provider = "openai"
        self._has_meta = False
        self._has_records = False
        self._total: Any = None
        self._context: list[tuple[int, str]] = []
        self._users: dict[str, Draft] = {}  # by id and by text
        self._makers: dict[str, Callable[[int, Object], None]] = {
            "session_meta": self._meta,
            "response_item": self._item,
            "event_msg": self._event,
            "turn_context": self._turn_context,
            "compacted": self._compacted,
            "token_usage_record": self._usage_record,
        }

    def take(self, number: int, value: Object) -> None:
        self.book.clock(moment(value.get("timestamp")))
        kind, payload = a_text(value.get("type")), value.get("payload")
        if isinstance(payload, dict):
            if kind in self._makers:
                self._makers[kind](number, payload)
            else:
                self._account.leave(number, LEFT.get(kind, f"unknown type {kind!r}"))
        elif "record_type" in value:  # before September 2025 the items stood on their lines without an envelope
            self._account.leave(number, "the state of the program between two turns")
        elif not kind and "id" in value:
            self._meta(number, value)
        else:
            self._item(number, value)

    def finish(self) -> Book:
        for number, text in self._context:
            self.book.note(text, number)
        self.book.finish()
        return self.book

    def _loser(self, number: int) -> Callable[[str], None]:
        return lambda what: self._account.lose(number, what)

    def _meta(self, number: int, payload: Object) -> None:
        self._reply = None
        if self._has_meta:
            self._account.leave(number, "the session's description again, as it was when the session was resumed")
            return
        self._has_meta = True
        self.book.cwd = a_text(payload.get("cwd"))
        self.book.id = a_text(payload.get("id"))
        self._provider = a_text(payload.get("model_provider")) or self._provider
        told = payload.get("base_instructions") or payload.get("instructions")
        instructions = a_text(an_object(told).get("text")) or a_text(told)
        kept = {key: each for key, each in payload.items() if key not in ("base_instructions", "instructions")}
        self.book.note(f"Imported from Codex, which worked in {self.book.cwd or 'an unknown folder'}.", number, kept)
        if instructions:
            self.book.note(instructions, number, {"of": "codex", "instructions": True})

    def _turn_context(self, number: int, payload: Object) -> None:
        self._reply = None
        settings = an_object(an_object(payload.get("collaboration_mode")).get("settings"))
        model = a_text(payload.get("model")) or a_text(settings.get("model"))
        self._model = model or self._model
        name = f"{self._provider}/{model}" if model else None
        effort = payload.get("effort") or settings.get("reasoning_effort")
        made = False
        for setting, value in (("model", name), ("thinking", level(effort))):
            draft = self.book.setting(setting, value, number, self.book.spot)
            if draft is not None:
                made = True
                self._go_on(draft)
        if not made:
            self._account.leave(number, "it sets the model and the effort that are in force already")

    def _usage_record(self, number: int, payload: Object) -> None:
        self._has_records = True
        if self._give(usage_of(payload.get("usage")), number):
            return
        self._account.leave(
            number, "the usage of a request that left no reply in the file (that for a summary, mostly)"
        )

    def _give(self, usage: Usage | None, number: int) -> bool:
        """Give the usage to the reply that it came after, which is whole then."""
        reply, self._reply = self._reply, None
        if reply is None or usage is None:
            return False
        assert isinstance(reply.record, MessageRecord)
        if reply.record.usage is not None:
            return False
        grow(reply, usage=usage)
        self._account.carry(number, reply)
        return True

    def _token_count(self, number: int, payload: Object) -> None:
        info = an_object(payload.get("info"))
        total, last = info.get("total_token_usage"), info.get("last_token_usage")
        if self._has_records:
            self._account.leave(number, "usage that a line of its own told already")
        elif not info or total == self._total:
            self._account.leave(number, "usage that did not change, and the limits of the account")
        else:
            self._total = total
            if not self._give(usage_of(last), number):
                self._account.leave(number, "the usage of a request that left no reply in the file")

    def _event(self, number: int, payload: Object) -> None:
        kind = a_text(payload.get("type"))
        match kind:
            case "token_count":
                self._token_count(number, payload)
            case "thread_rolled_back":
                self._roll_back(number, count(payload.get("num_turns")))
            case "turn_aborted":
                self._reply = None
                self.book.note(f"The turn was stopped ({a_text(payload.get('reason')) or 'no reason told'}).", number)
            case "thread_name_updated":
                self.book.name(a_text(payload.get("thread_name")).strip(), number)
            case "error" | "warning" | "stream_error" | "deprecation_notice":
                self.book.note(f"Codex reported: {a_text(payload.get('message'))}", number)
            case _:
                self._account.leave(number, LEFT_EVENTS.get(kind, f"unknown event {kind!r}"))

    def _roll_back(self, number: int, turns: int) -> None:
        """Go on from before the last `turns` messages of the user."""
        path = path_to(self.book.spot.tail)
        begun = [draft for draft in path if draft.is_user and not draft.meta]
        if not turns or not begun:
            self._account.leave(number, "turns were taken back that are not in the file")
            return
        target = begun[-min(turns, len(begun))].parent
        self._reply = None
        self.book.spot, self.book.leaf = Spot(target), target
        self.book.hang(LeafRecord(leaf=None), number, self.book.spot).refers = (target,)

    def _item(self, number: int, item: Object) -> None:
        kind = a_text(item.get("type"))
        part = reply_part(item, self._loser(number))
        if part is not None:
            self._add(number, (part,))
        elif kind == "message":
            self._message(number, item)
        elif kind == "agent_message":
            text = f"[from {a_text(item.get('author')) or 'another agent'}]\n{text_of(item.get('content'))}"
            self._user(number, (Text(text),), item, meta=True)
        elif kind in OUTPUTS:
            self._output(number, item)
        else:
            self._account.leave(number, LEFT_ITEMS.get(kind, f"unknown item {kind!r}"))

    def _message(self, number: int, item: Object) -> None:
        role, content = item.get("role"), said(item.get("content"), self._loser(number))
        text = "\n\n".join(part.text for part in content if isinstance(part, Text))
        if role == "assistant":
            self._add(number, tuple(part for part in content if isinstance(part, Text)))
        elif role in ("developer", "system"):
            self.book.note(text, number, system_prompt("codex"))
        elif role != "user":
            self._account.leave(number, f"a message of the unknown role {role!r}")
        elif (kind := user_kind(item, text)) == "surroundings":
            self._reply = None
            self._context.append((number, text))
        elif kind == "instructions":
            self._reply = None
            self.book.note(text, number, system_prompt("codex"))
        elif (command := codex_command(text)) is not None:
            self._reply = None
            draft = self.book.hang(command, number, self.book.spot, meta=True)
            self._go_on(draft)
            self._users[a_text(item.get("id"))] = self._users[_key(item)] = draft
        else:
            self._user(number, content, item, meta=kind == "meta")

    def _user(self, number: int, content: tuple[Any, ...], item: Object, *, meta: bool) -> None:
        self._reply = None
        context = "\n\n".join(text for _, text in self._context) or None
        draft = self.book.said(content, number, self.book.spot, meta=meta, context=context)
        for line, _ in self._context:
            self._account.carry(line, draft)
        self._context = []
        self._go_on(draft)
        self._users[a_text(item.get("id"))] = self._users[_key(item)] = draft

    def _go_on(self, draft: Draft) -> None:
        self.book.spot = Spot(draft)
        self.book.leaf = draft

    def _add(self, number: int, parts: tuple[Part, ...]) -> None:
        """Add to the reply that is coming in, or begin one."""
        if self._reply is not None:
            record = self._reply.record
            assert isinstance(record, MessageRecord)
            grow(self._reply, content=(*record.content, *parts))
            self._account.carry(number, self._reply)
        else:
            record = MessageRecord(
                role="assistant", content=parts, stop="stop", model=self._model, wire="codex/openai_responses"
            )
            self._reply = self.book.hang(record, number, self.book.spot)
            self._go_on(self._reply)
        if calls_of(self._reply):
            grow(self._reply, stop="tool_use")

    def _output(self, number: int, item: Object) -> None:
        self._reply = None
        found = self.book.find_call(a_text(item.get("call_id")), self.book.spot.tail)
        if found is None:
            self._account.leave(number, "the result of a call that is not in the file")
            return
        content, failed = output(item, self._loser(number))
        self._go_on(self.book.result(found, content, number, self.book.spot, is_error=failed))

    def _compacted(self, number: int, payload: Object) -> None:
        self._reply = None
        history = list(objects(payload.get("replacement_history")))
        summary = a_text(payload.get("message"))
        path = path_to(self.book.spot.tail)
        kept = [draft for item in history if (draft := self._kept(item)) is not None and draft in path]
        if not summary.strip():
            unknown = [item for item in history if _is_user(item) and self._kept(item) is None]
            summary = text_of(unknown[-1].get("content")) if unknown else ""
        if not summary.strip():
            self.book.note(
                "Codex compacted the conversation here. Only its provider can read the summary, so what stands before "
                "it stays in view.",
                number,
            )
            return
        first = min(kept, key=path.index) if kept else None
        if first is None and not history:  # older versions did not write what they kept: all users' messages
            first = next((draft for draft in path if draft.is_user), None)
        used = an_object(an_object(payload.get("latest_token_usage_record")).get("usage"))
        before, cause = count(used.get("input_tokens")), "codex: compaction"
        self._go_on(self.book.head(summary, number, self.book.spot, first=first, cause=cause, before=before))

    def _kept(self, item: Object) -> Draft | None:
        if not _is_user(item):
            return None
        identity = a_text(item.get("id"))
        return self._users.get(identity) if identity in self._users and identity else self._users.get(_key(item))


def _is_user(item: Mapping[str, Any]) -> bool:
    return item.get("type") == "message" and item.get("role") == "user"


def _key(item: Object) -> str:
    return "text:" + text_of(item.get("content"))
