"""What a person needs to see when a conversation is taken up again: how it ended, what waits. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from governors.messages import UNFINISHED, ToolCall

from ..session.entries import (
    CompactionRecord,
    Entry,
    HeadRecord,
    MessageRecord,
    OutcomeRecord,
    RequestRecord,
    ResultRecord,
)
from ..session.moving.turns import said
from ..session.view.redaction import REDACTED
from .receipts import result_line
from .reducer import Line, LineKind
from .sanitize import clean, one_line
from .wording import plural

_MOST_LINES = 4  # of each text
_LONGEST_LINE = 300


@dataclass(slots=True)
class _Exchange:
    asked: list[str] = field(default_factory=list)
    calls: int = 0
    answer: str = ""
    error: str = ""


def recap(branch: Sequence[Entry], most: int = 3, redacted: Collection[int] = ()) -> tuple[Line, ...]:
    """The last `most` exchanges of `branch`, folded, and a line when the last turn did not come to its end. Entries
    that are `redacted` are not shown."""
    exchanges = _exchanges(branch, redacted)
    lines: list[Line] = []
    if len(exchanges) > most:
        lines.append(Line("past", f"… {plural(len(exchanges) - most, 'earlier exchange')}"))
    for exchange in exchanges[-most:]:
        lines.extend(Line("past", f"› {folded(text)}") for text in exchange.asked)
        if exchange.calls:
            lines.append(Line("past", f"  ({plural(exchange.calls, 'tool call')})"))
        if exchange.answer.strip():
            lines.append(Line("past", f"  {folded(exchange.answer)}"))
        if exchange.error:
            lines.append(Line("past", f"  ✗ {one_line(exchange.error)}"))
    if interrupted(branch):
        lines.append(Line("warning", "The last turn was stopped or interrupted. What was finished is kept."))
    return tuple(lines)


def _exchanges(branch: Sequence[Entry], redacted: Collection[int]) -> list[_Exchange]:
    found: list[_Exchange] = []
    asides = {entry.id for entry in branch if _is_aside(entry)}
    for entry in branch:
        record = entry.record
        if isinstance(record, OutcomeRecord) and found and record.request not in asides:
            found[-1].error = str(record.problem.get("text", "")) if record.problem else ""
        if not isinstance(record, MessageRecord):
            continue
        text = REDACTED if entry.id in redacted else said(entry)
        if record.role == "user" and not record.steered:
            found.append(_Exchange([text]))
        elif found and record.role == "user":
            found[-1].asked.append(text)
        elif found:
            found[-1].calls += sum(isinstance(part, ToolCall) for part in record.content)
            found[-1].answer = text or found[-1].answer
    return found


def folded(text: str) -> str:
    """The first lines of `text`, and how many there are more; later lines are indented to stand under the first."""
    lines = [line for line in clean(text).splitlines() if line.strip()]
    kept = [line if len(line) <= _LONGEST_LINE else line[:_LONGEST_LINE] + "…" for line in lines[:_MOST_LINES]]
    if len(lines) > len(kept):
        kept.append(f"… {plural(len(lines) - len(kept), 'more line')}")
    return "\n  ".join(kept)


def interrupted(branch: Sequence[Entry]) -> bool:
    """Whether the last turn of `branch` did not end by itself: stopped, or the program ended in its middle."""
    asides = {entry.id for entry in branch if _is_aside(entry)}
    for entry in reversed(branch):
        match entry.record:
            case OutcomeRecord(request=request) if request in asides:
                continue
            case OutcomeRecord(problem=problem) if problem is not None:
                return False  # it ended, with an error that was shown
            case RequestRecord() if _is_aside(entry):
                continue
            case MessageRecord(role="user") | ResultRecord() | RequestRecord():
                return True
            case MessageRecord() as reply:
                calls = any(isinstance(part, ToolCall) and part.complete for part in reply.content)
                return calls or reply.stop in UNFINISHED
            case _:
                continue
    return False


def _is_aside(entry: Entry) -> bool:
    """Whether the entry is a request that was no part of the conversation."""
    return isinstance(entry.record, RequestRecord) and entry.record.purpose != "turn"


def made_meanwhile(entries: Sequence[Entry], opening: int) -> tuple[Line, ...]:
    """What came of compactions that ran while nobody talked, since the last message before the entry `opening`."""
    made: list[Line] = []
    for entry in reversed(entries):
        record = entry.record
        if entry.id >= opening:
            continue
        if isinstance(record, MessageRecord | ResultRecord):
            break
        if isinstance(record, CompactionRecord) and record.timing == "idle":
            kind: LineKind = "info" if record.result == "done" else "warning"
            made.append(Line(kind, f"While nobody talked: {result_line(record, entry=entry.id)}"))
    return tuple(reversed(made))


def used_tokens(branch: Sequence[Entry]) -> int:
    """Tokens that the model's window holds: as forecast at the newest head, or as the provider counted them for the
    newest reply (prompt and output); 0 when nobody did."""
    undone = False
    for entry in reversed(branch):
        match entry.record:
            case HeadRecord(before=before, after=after) if after:
                return before if undone else after
            case HeadRecord():  # it took another one back
                undone = True
            case MessageRecord(usage=usage) if usage is not None and not undone:
                return usage.total
            case _:
                continue
    return 0


def counted_tokens(branch: Sequence[Entry]) -> int:
    """Tokens of the newest reply's prompt and output, as its provider counted them; 0 when nobody did, or the context
    began anew after it."""
    for entry in reversed(branch):
        if isinstance(entry.record, HeadRecord):
            return 0
        if isinstance(entry.record, MessageRecord) and entry.record.usage is not None:
            return entry.record.usage.total
    return 0
