"""An imported session as recorded messages with their times, for a replay.

The sessions of other programs are read by `session.import_` alone. A replay wants what was sent, along the current
branch; a head begins another conversation, led by its summary, as what came before it was no longer sent.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from governors.messages import (
    AssistantMessage,
    Document,
    Image,
    SystemPatch,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    UserMessage,
)

from ..session.entries import Entry, HeadRecord, MessageRecord, NoteRecord, ResultRecord
from ..session.tree import Tree
from .conversations import Timed


def conversations(entries: Sequence[Entry], *, timed: bool = True) -> list[list[Timed]]:
    """What was said, in one conversation, or in several where heads begin new ones. Not `timed`: the file told no
    times."""
    tree = Tree(entries)
    shown = {entry.id for entry in tree.branch()}
    found: list[list[Timed]] = [[]]
    for entry in entries:
        is_prompt = isinstance(entry.record, NoteRecord) and (entry.parent is None or entry.parent in shown)
        if entry.id not in shown and not is_prompt:
            continue
        if isinstance(entry.record, HeadRecord):
            found.append([])
        at = seconds(entry.at) if timed else None
        found[-1] += [Timed(message, at) for message in _message(entry, tree)]
    return found


def _message(entry: Entry, tree: Tree) -> Iterator[SystemPatch | UserMessage | AssistantMessage | ToolResult]:
    match entry.record:
        case MessageRecord(role="user") as record:
            context = (Text(record.context),) if record.context else ()
            yield UserMessage(
                (*(part for part in record.content if isinstance(part, Text | Image | Document)), *context)
            )
        case MessageRecord() as record:
            parts = tuple(part for part in record.content if isinstance(part, Text | Thinking | ToolCall))
            yield AssistantMessage(parts, record.stop or "stop", model=record.model, usage=record.usage)
        case ResultRecord(call=(reply, number)) as record:
            said = tree.get(reply)
            calls = [part for part in getattr(said and said.record, "content", ()) if isinstance(part, ToolCall)]
            yield ToolResult(calls[number].id, record.tool, record.content, record.is_error)
        case HeadRecord(summary=summary):
            yield UserMessage((Text(summary or ""),))
        case NoteRecord(data=data, text=text) if data is not None and data.get("role") == "system":
            yield SystemPatch(text)
        case _:
            return


def seconds(stamp: Any) -> float | None:
    """An ISO time as seconds; None for anything else."""
    try:
        moment = datetime.fromisoformat(str(stamp))
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
