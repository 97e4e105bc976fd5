"""Random sessions in which every entry says a word of its own, so that one can look where it still stands."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from governors.messages import Text, Thinking, ToolCall
from runtime.session.entries import (
    BranchSummaryRecord,
    EditRecord,
    Entry,
    ExtensionRecord,
    Header,
    HeadRecord,
    InboxRecord,
    LabelRecord,
    LeafRecord,
    MessageRecord,
    NoteRecord,
    Pinned,
    PinRecord,
    RedactRecord,
    ResultRecord,
    Waiting,
)
from runtime.session.view.redaction import carried_summary, stale_summaries
from tests.session.logs import Log

HEADER = Header(id="0193-demo", agent="assistant", created="2026-11-30T18:00:00Z", channel="terminal")

_NAMES = """
user reply calls result late_result edit head carry pin label note leaf inbox deliver summary extension redact request
system
"""
OPERATIONS = _NAMES.split()


def word(entry: int) -> str:
    """What the entry `entry` says, and nobody else by himself."""
    return f"moonstone{entry}x"


class Growing:
    """A log to which operations are applied; those that make no sense where it stands do nothing."""

    def __init__(self) -> None:
        self.log = Log()
        self.log.system({"identity": "Be kind."})
        self.redacted: set[int] = set()

    @property
    def entries(self) -> tuple[Entry, ...]:
        return self.log.tree.entries

    @property
    def word(self) -> str:
        return word(self.log.tree.next_id)

    def apply(self, operation: str, choice: int) -> None:
        getattr(self, f"_{operation}")(choice)

    def _pick(self, kinds: type | tuple[type, ...], choice: int, *, branch: bool = True) -> Entry | None:
        source: Sequence[Entry] = self.log.branch if branch else self.entries
        found = [entry for entry in source if isinstance(entry.record, kinds)]
        return found[choice % len(found)] if found else None

    def _user(self, choice: int) -> None:
        self.log.user(self.word, context=f"<at>{self.word}</at>")

    def _reply(self, choice: int) -> None:
        self.log.reply(Thinking(f"hm {self.word}"), f"so: {self.word}", stop="aborted" if choice % 7 == 0 else "stop")

    def _calls(self, choice: int) -> None:
        arguments = f'{{"path": "{self.word}"}}'
        calls = [ToolCall(f"call_{n}_{self.word}", f"tool_{self.word}", arguments) for n in range(1 + choice % 2)]
        self.log.reply(f"look {self.word}", *calls)

    def _result(self, choice: int) -> None:
        reply = self._pick(MessageRecord, choice)
        if reply is not None and any(isinstance(part, ToolCall) for part in getattr(reply.record, "content", ())):
            text = (Text(f"found {self.word}"),)
            whole = self.word * 3 if choice % 2 else None
            self.log.add(ResultRecord(call=(reply.id, choice % 2), tool="look", content=text, whole=whole))

    _late_result = _result

    def _edit(self, choice: int) -> None:
        target = self._pick((MessageRecord, ResultRecord), choice)
        if target is not None and target.id not in self.redacted:
            shown = (Text(f"[stub: {self._said_by(target)}]"),)
            self.log.add(EditRecord(action="replace", target=target.id, cause="test", content=shown))

    def _said_by(self, entry: Entry) -> str:
        inbox = getattr(entry.record, "inbox", None)
        return word(inbox if isinstance(inbox, int) else entry.id)

    def _head(self, choice: int) -> None:
        projected = {message.origin for message in self.log.projection.messages}
        users = [
            entry
            for entry in self.log.branch
            if isinstance(entry.record, MessageRecord) and entry.record.role == "user" and entry.id in projected
        ]
        if not users:
            return
        start = users[choice % len(users)]
        gone = [entry for entry in self.log.branch if entry.id < start.id and entry.id not in self.redacted]
        replies = [entry for entry in gone if isinstance(entry.record, MessageRecord) and entry.record.role != "user"]
        pins = [
            Pinned(entry=each.id, said="x", content=(Text(self._said_by(each)),))
            for each in gone
            if isinstance(each.record, MessageRecord)
        ]
        self.log.head(
            start.id,
            summary="before: " + " ".join(self._said_by(entry) for entry in gone),
            quote=f"asked: {word(replies[-1].id)}" if replies else None,
            quoted=replies[-1].id if replies else None,
            pins=tuple(pins),
            inbox=tuple(
                Waiting(entry=each.id, state="queued", content=(Text(word(each.id)),), context=word(each.id))
                for each in self.entries
                if isinstance(each.record, InboxRecord) and each.record.item is None and each.id not in self.redacted
            ),
        )

    def _carry(self, choice: int) -> None:
        """A head without a summary of its own."""
        earlier = next((each for each in reversed(self.log.branch) if isinstance(each.record, HeadRecord)), None)
        if earlier is not None:
            assert isinstance(earlier.record, HeadRecord)
            summary = carried_summary(earlier, stale_summaries(self.entries))
            self.log.head(earlier.record.start, summary=summary)

    def _pin(self, choice: int) -> None:
        target = self._pick((MessageRecord, ResultRecord), choice)
        self.log.add(PinRecord(target=None if target is None else target.id))

    def _label(self, choice: int) -> None:
        target = self._pick((MessageRecord, ResultRecord), choice)
        if target is not None and target.id not in self.redacted:
            self.log.add(LabelRecord(text=f"named {self._said_by(target)}", target=target.id))

    def _note(self, choice: int) -> None:
        self.log.add(NoteRecord(text=self.word, data={"x": self.word}))

    def _leaf(self, choice: int) -> None:
        target = self._pick((MessageRecord, ResultRecord), choice, branch=False)
        if target is not None:
            self.log.add(LeafRecord(leaf=target.id))

    def _inbox(self, choice: int) -> None:
        self.log.add(InboxRecord(state="queued", content=(Text(self.word),), context=self.word))

    def _deliver(self, choice: int) -> None:
        item = self._pick(InboxRecord, choice, branch=False)
        if item is not None and item.record.item is None and not self._is_hidden(item.id):  # type: ignore[union-attr]
            self.log.add(MessageRecord(role="user", content=(Text(word(item.id)),), inbox=item.id))

    def _is_hidden(self, item: int) -> bool:
        copies = {entry.id for entry in self.entries if getattr(entry.record, "inbox", None) == item}
        return bool(self.redacted & {item, *copies})

    def _summary(self, choice: int) -> None:
        tip = self._pick((MessageRecord, ResultRecord), choice, branch=False)
        if tip is not None:
            told = [each for each in self.log.tree.branch_to(tip.id) if each.id not in self.redacted]
            self.log.add(BranchSummaryRecord(text=" ".join(map(self._said_by, told)), tip=tip.id))

    def _extension(self, choice: int) -> None:
        self.log.add(ExtensionRecord(name="moon.phase", data={"x": self.word}, content=(Text(self.word),)))

    def _redact(self, choice: int) -> None:
        kinds = (MessageRecord, ResultRecord, InboxRecord, NoteRecord, ExtensionRecord)
        target = self._pick(kinds, choice, branch=False)
        if target is not None:
            self.redact(target.id)

    def redact(self, target: int) -> None:
        self.log.add(RedactRecord(target=target))
        inbox = getattr(getattr(self.log.tree.get(target), "record", None), "inbox", None)
        item = inbox if isinstance(inbox, int) else target
        self.redacted |= {target, item}
        self.redacted |= {each.id for each in self.entries if getattr(each.record, "inbox", None) == item}

    def _request(self, choice: int) -> None:
        self.log.request()

    def _system(self, choice: int) -> None:
        self.log.system({f"part{choice % 3}": "more"})


@st.composite
def growing_logs(draw: st.DrawFn) -> Growing:
    """A session with forks, heads, edits and redactions."""
    growing = Growing()
    steps = draw(st.lists(st.tuples(st.sampled_from(OPERATIONS), st.integers(0, 50)), min_size=4, max_size=30))
    for operation, choice in steps:
        growing.apply(operation, choice)
    return growing
