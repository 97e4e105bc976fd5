"""What the documentation shows is what the code does."""

from __future__ import annotations

import re
from pathlib import Path

from governors.messages import AssistantMessage, Message, ToolResult, UserMessage
from runtime.session.codec import decode_entry
from runtime.session.projection import project
from runtime.session.tree import Tree

PAGE = (Path(__file__).parents[1] / "docs" / "governors.md").read_text(encoding="utf-8")


def line(message: Message) -> str:
    match message:
        case UserMessage():
            return f"user       {message.text}"
        case AssistantMessage():
            calls = " ".join(f"{call.name}({call.arguments})" for call in message.calls)
            return f"assistant  {message.text or calls}"
        case ToolResult():
            return f"result {message.call_id}   {message.text}"
        case _:
            return f"patch      {message.text}"


def test_nine_entries_become_the_six_messages_of_the_page() -> None:
    (entries,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    (shown,) = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)
    tree = Tree([decode_entry(each.encode())[0] for each in entries.splitlines()])
    assert len(tree.entries) == 9
    projection = project(tree.branch())
    assert [f"system     {projection.baseline.text}", *map(line, projection.messages)] == shown.splitlines()
