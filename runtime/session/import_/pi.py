"""pi's session files: v1, a line after another; v2 and v3, a tree by `id` and `parentId`.

What is known of them comes from the program's own documentation and source (`docs/session.md`, `session-manager.ts`).
The conversation goes on from the last line of the file, as pi itself has it. A branch summary becomes one of ours, an
extension's entry an extension's entry, a compaction a head, and a command that the user ran a message of the user's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from governors.messages import Text

from ..entries import BranchSummaryRecord, ExtensionRecord, LabelRecord, LeafRecord, MessageRecord, NoteRecord
from ..view.wrapping import SHELL
from .book import Account, Book
from .drafts import Draft, Spot, path_to
from .lines import Line
from .parts import Object, a_text, an_object, count, level, moment, objects, said
from .pi_messages import reply, shell_text
from .weaving import Weaver, Woven

_LEFT = {
    "ephemeral": "context of a single request, which pi itself does not send again",
    "context_transform": "a change that an extension of pi made to what is sent",
    "active_tools_change": "which of pi's tools were on",
}


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
        self._tree = False
        self._numbers: list[int] = []  # v1 names entries by their index in the file
        self._last: tuple[int, Spot | None] = (0, None)
        self._summaries: list[tuple[int, Object, Draft]] = []
        self._makers: dict[str, Callable[[int, Object, Spot], Draft | None]] = {
            "session": self._header,
            "message": self._message,
            "compaction": self._compaction,
            "branch_summary": self._branch_summary,
            "custom": self._custom,
            "custom_message": self._custom,
            "label": self._label,
            "leaf": self._leaf,
            "model_change": self._model,
            "thinking_level_change": self._thinking,
            "session_info": self._info,
        }

    def take(self, number: int, value: Object) -> None:
        self._numbers.append(number)
        if value.get("type") == "session":
            self._weaver.take(Woven(number, value, None, None))
            return
        name, parent = value.get("id"), value.get("parentId")
        is_named = isinstance(name, str)
        self._tree = self._tree or is_named
        is_root = is_named and "parentId" in value and not isinstance(parent, str)
        self._weaver.take(
            Woven(
                number,
                value,
                name if isinstance(name, str) else None,
                parent if isinstance(parent, str) and is_named else None,
                is_root and not self._follows_settings(),
            )
        )

    def _follows_settings(self) -> bool:
        """Whether nothing but the header's settings has come: the first root hangs on them."""
        return self._last[0] == 0

    def finish(self) -> Book:
        self._weaver.finish()
        self._name_branches()
        if self._last[1] is not None:
            self.book.leaf = self._last[1].tail
        self.book.finish()
        return self.book

    def _one(self, number: int, value: Object, spot: Spot) -> Spot:
        kind = a_text(value.get("type"))
        self.book.clock(moment(value.get("timestamp")))
        self.book.spot = spot
        draft = None
        if kind in self._makers:
            draft = self._makers[kind](number, value, spot)
        else:
            self._account.leave(number, _LEFT.get(kind, f"unknown type {kind!r}"))
        own = spot if draft is None else Spot(draft, draft if draft.is_reply else None)
        if number >= self._last[0] and kind not in ("leaf", "session"):
            self._last = (number, own)
        return own

    def _loser(self, number: int) -> Callable[[str], None]:
        return lambda what: self._account.lose(number, what)

    def _header(self, number: int, value: Object, spot: Spot) -> Draft | None:
        folder = a_text(value.get("cwd"))
        self.book.cwd = self.book.cwd or folder
        self.book.id = self.book.id or a_text(value.get("id"))
        told = {key: each for key, each in value.items() if key != "type"}
        self.book.note(f"Imported from pi, which worked in {folder or 'an unknown folder'}.", number, told)
        model = self._set("model", _model_name(value), number, spot)
        spot = spot if model is None else Spot(model)
        return self._set("thinking", level(value.get("thinkingLevel")), number, spot) or model

    def _model(self, number: int, value: Object, spot: Spot) -> Draft | None:
        return self._set("model", _model_name(value), number, spot)

    def _thinking(self, number: int, value: Object, spot: Spot) -> Draft | None:
        return self._set("thinking", level(value.get("thinkingLevel")), number, spot)

    def _set(self, name: str, wanted: str | None, number: int, spot: Spot) -> Draft | None:
        draft = self.book.setting(name, wanted, number, spot)
        if draft is None:
            known = f"it sets the {name} that is in force already"
            self._account.leave(number, known if wanted else f"a setting of {name} that is not known here")
        return draft

    def _info(self, number: int, value: Object, spot: Spot) -> None:
        self.book.name(a_text(value.get("name")).strip(), number)

    def _compaction(self, number: int, value: Object, spot: Spot) -> Draft:
        index = value.get("firstKeptEntryIndex")
        if not self._tree and isinstance(index, int) and 0 <= index < len(self._numbers):
            kept: Spot | None = self._weaver.nearest(self._numbers[index])
        else:
            kept = self._weaver.spot(value.get("firstKeptEntryId"))
        before = count(value.get("tokensBefore"))
        start = kept.tail if kept is not None else None
        summary = a_text(value.get("summary"))
        draft = self.book.head(summary, number, spot, start, cause="pi: compaction", before=before)
        if isinstance(value.get("usage"), dict):
            told = {"usage": value["usage"], "model": value.get("model")}
            self.book.hang(
                NoteRecord(text="What pi's request for the summary used is kept here.", data=told), number, Spot(draft)
            )
        return draft

    def _branch_summary(self, number: int, value: Object, spot: Spot) -> Draft:
        draft = self.book.hang(BranchSummaryRecord(text=a_text(value.get("summary")), tip=0), number, spot)
        self._summaries.append((number, value, draft))
        return draft

    def _name_branches(self) -> None:
        """Say which branch each summary is of. pi names the entry that it went back to; the branch that was left ended
        on the line before."""
        for number, value, draft in self._summaries:
            here = path_to(draft)
            spots = (self._weaver.spot(value.get("fromId")), self._weaver.nearest(number - 1))
            tails = [at.tail for at in spots if at is not None and at.tail is not None]
            left = next((tail for tail in tails if tail not in here and draft not in path_to(tail)), None)
            if left is not None:
                draft.refers = (left, draft.parent)
            else:  # the branch that was left is not in the file
                draft.record = MessageRecord(role="user", content=(Text(a_text(value.get("summary"))),))
                draft.meta = True

    def _custom(self, number: int, value: Object, spot: Spot) -> Draft:
        shown = "content" in value
        data = value.get("details") if shown else value.get("data")
        record = ExtensionRecord(
            name=f"pi.{a_text(value.get('customType')) or 'custom'}",
            data=data if isinstance(data, dict) else {} if data is None else {"value": data},
            content=said(value.get("content"), self._loser(number)) if shown else (),
        )
        return self.book.hang(record, number, spot)

    def _label(self, number: int, value: Object, spot: Spot) -> None:
        target, text = self._weaver.spot(value.get("targetId")), a_text(value.get("label"))
        if target is None or target.tail is None:
            self._account.leave(number, "a label for a line that is not in the file")
        elif not text:
            self._account.leave(number, "it took a label away")
        else:
            self.book.hang(LabelRecord(text=text), number, spot).refers = (target.tail,)

    def _leaf(self, number: int, value: Object, spot: Spot) -> None:
        target = self._weaver.spot(value.get("targetId"))
        if target is None or target.tail is None:
            self._account.leave(number, "it goes on from a line that is not in the file")
            return
        self._last = (number, target)
        self.book.hang(LeafRecord(leaf=None), number, spot).refers = (target.tail,)

    def _message(self, number: int, value: Object, spot: Spot) -> Draft | None:
        message, lose = an_object(value.get("message")), self._loser(number)
        role = message.get("role")
        match role:
            case "user":
                return self.book.said(said(message.get("content"), lose), number, spot)
            case "assistant":
                return self._reply(number, message, spot)
            case "toolResult":
                return self._result(number, message, spot)
            case "bashExecution":
                return self._shell(number, message, spot)
            case "custom" | "hookMessage":
                return self._custom(number, message, spot)
            case "branchSummary" | "compactionSummary":
                return self.book.said((Text(a_text(message.get("summary"))),), number, spot, meta=True)
            case "system":
                self._system(number, message)
            case _:
                self._account.leave(number, f"a message of the unknown role {role!r}")
        return None

    def _reply(self, number: int, message: Object, spot: Spot) -> Draft:
        draft = self.book.hang(reply(message, self._loser(number)), number, spot)
        if problem := a_text(message.get("errorMessage")):
            self.book.hang(NoteRecord(text=f"pi reported: {problem}"), number, Spot(draft))
        return draft

    def _result(self, number: int, message: Object, spot: Spot) -> Draft | None:
        found = self.book.find_call(a_text(message.get("toolCallId")), spot.tail, tool=a_text(message.get("toolName")))
        if found is None:
            self._account.leave(number, "the result of a call that is not in the file")
            return None
        content = said(message.get("content"), self._loser(number))
        seconds = message.get("durationMs")
        return self.book.result(
            found,
            content,
            number,
            spot,
            is_error=message.get("isError") is True,
            seconds=seconds / 1_000 if isinstance(seconds, int | float) else None,
        )

    def _shell(self, number: int, message: Object, spot: Spot) -> Draft | None:
        command, text = a_text(message.get("command")), shell_text(message)
        if message.get("excludeFromContext") is True:
            self.book.note(f"$ {command}\n{text}", number, {SHELL: {"command": command}})
            return None
        record = ExtensionRecord(name=SHELL, data={"command": command}, content=(Text(text),))
        return self.book.hang(record, number, spot, meta=True)

    def _system(self, number: int, message: Object) -> None:
        sections = an_object(message.get("sections"))
        text = "\n\n".join([a_text(message.get("content")), *map(a_text, sections.values())]).strip()
        tools = [a_text(tool.get("name")) for tool in objects(message.get("toolsAdded"))]
        self.book.note(text, number, {"of": "pi", "sections": list(sections), "tools": tools})


def _model_name(value: Object) -> str | None:
    provider, model = a_text(value.get("provider")), a_text(value.get("modelId"))
    return "/".join(part for part in (provider, model) if part) if model else None
