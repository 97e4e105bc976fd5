"""A log that grows in memory, and its projection as short lines of text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from governors.messages import (
    AssistantMessage,
    Message,
    StopReason,
    SystemPatch,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    UserMessage,
)
from runtime.session.entries import (
    EditRecord,
    Entry,
    HeadRecord,
    IntentRecord,
    LeafRecord,
    MessageRecord,
    PinRecord,
    Record,
    RedactRecord,
    RequestRecord,
    ResultRecord,
    SystemRecord,
)
from runtime.session.placing import place
from runtime.session.tree import Tree
from runtime.session.view.pins import pins_to_carry
from runtime.session.view.projection import Projection, project
from runtime.session.view.ranges import Range, newest_head
from runtime.session.view.redaction import carried_summary, stale_summaries
from runtime.session.view.standing import standing_of

from .records import AT


class Log:
    """Appends records as a session does; every method gives the id of the entry it made."""

    def __init__(self) -> None:
        self.tree = Tree()

    def add(self, record: Record) -> int:
        (entry,) = place(self.tree, (record,), AT)
        self.tree.add(entry)
        return entry.id

    def user(self, text: str = "hi", **fields: Any) -> int:
        return self.add(MessageRecord(role="user", content=(Text(text),), **fields))

    def reply(self, *parts: str | Thinking | ToolCall, stop: StopReason | None = None) -> int:
        content = tuple(Text(part) if isinstance(part, str) else part for part in parts)
        called = any(isinstance(part, ToolCall) for part in content)
        return self.add(
            MessageRecord(role="assistant", content=content, stop=stop or ("tool_use" if called else "stop"))
        )

    def calls(self, *tools: str, text: str = "") -> int:
        """A reply that calls `tools`; ids start at call_0 in every reply, as many relays have it."""
        parts = (text,) if text else ()
        return self.reply(*parts, *(call(tool, number) for number, tool in enumerate(tools)))

    def intent(self, reply: int, number: int = 0) -> int:
        return self.add(IntentRecord(call=(reply, number), tool="x"))

    def result(self, reply: int, number: int = 0, text: str = "done", tool: str = "x") -> int:
        return self.add(ResultRecord(call=(reply, number), tool=tool, content=(Text(text),)))

    def request(self) -> int:
        """A request with what the projection shows now."""
        stand_ins = self.projection.stand_ins
        return self.add(
            RequestRecord(
                purpose="turn",
                provider="p",
                model="m",
                wire="anthropic",
                prefix="",
                forecast=0,
                budget=0,
                blocks=0,
                stand_ins=stand_ins,
            )
        )

    def system(self, sections: dict[str, str | None], **fields: Any) -> int:
        return self.add(SystemRecord(sections=sections, **fields))

    def edit(self, target: int, action: str = "omit", text: str = "", **fields: Any) -> int:
        content = (Text(text),) if action == "replace" else ()
        return self.add(EditRecord(action=action, target=target, content=content, **{"cause": "user", **fields}))  # type: ignore[arg-type] # one of the three

    def redact(self, target: int) -> int:
        return self.add(RedactRecord(target=target))

    def pin(self, target: int, on: bool = True) -> int:
        return self.add(PinRecord(target=target, on=on))

    def leaf(self, leaf: int | None) -> int:
        return self.add(LeafRecord(leaf=leaf))

    def head(self, start: int, resume: int | None = None, summary: str | None = None, **fields: Any) -> int:
        """A head as the runtime makes it: it carries the state, the settings, the open calls and the pins; `carry`: and
        the summary of the one before it."""
        projection, standing = self.projection, standing_of(self.tree.entries)
        before = newest_head(self.branch)
        if fields.pop("carry", False) and summary is None:
            summary = carried_summary(before, stale_summaries(self.tree.entries))
        earlier = before.record if before is not None and isinstance(before.record, HeadRecord) else None
        shown = Range(start, {None: start, 0: self.tree.next_id}.get(resume, resume or 0))
        pins = pins_to_carry(self.branch, shown, projection.open, earlier, standing.pins, standing.redacted)
        fields = {"pins": pins, "inbox": standing.waiting, "spent": standing.spent, **fields}
        return self.add(
            HeadRecord(
                start=start,
                resume=resume,
                summary=summary,
                baseline=projection.state.baseline,
                cause="test",
                generation=projection.generation + 1,
                settings=dict(projection.settings),
                open_calls=projection.open_calls(start),
                **fields,
            )
        )

    @property
    def branch(self) -> Sequence[Entry]:
        return self.tree.branch()

    @property
    def projection(self) -> Projection:
        return project(self.branch, self.tree.redacted)

    @property
    def shown(self) -> list[str]:
        return [line(message) for message in self.projection.messages]


def call(tool: str = "x", number: int = 0, arguments: str = "{}", complete: bool = True) -> ToolCall:
    return ToolCall(f"call_{number}", tool, arguments, complete)


def line(message: Message) -> str:
    """A message as a line: who, and what it says."""
    match message:
        case UserMessage():
            return "user: " + " | ".join(part.text for part in message.content if isinstance(part, Text))
        case AssistantMessage():
            return " ".join(["reply:", message.text, *(f"[{each.name}]" for each in message.calls)]).replace("  ", " ")
        case ToolResult(stand_in=True):
            return f"stand-in: {message.tool}"
        case ToolResult():
            return f"result: {message.text}"
        case SystemPatch():
            return f"patch: {message.text}"
