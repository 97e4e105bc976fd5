"""What the documentation shows is what the code does."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import governors
from governors.messages import AssistantMessage, Message, Text, ToolResult, Usage, UserMessage
from governors.microcompact import stub
from runtime.session.format.codec import decode_entry
from runtime.session.tree import Tree
from runtime.session.view.projection import project

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


def section(title: str) -> str:
    """What stands under a heading of the second level."""
    return PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]


def shown_code(title: str, **given: Any) -> dict[str, Any]:
    """The names that the code of a section makes, run from the first block to the last."""
    for code in re.findall(r"```python\n(.*?)```", section(title), re.DOTALL):
        exec(code, given)  # the page's own code
    return given


def test_every_public_name_has_its_line() -> None:
    """One row each, none besides, in the order of `__all__`."""
    assert re.findall(r"^\| `(\w+)` \|", section("Every name"), re.MULTILINE) == governors.__all__


def test_the_order_around_a_call_is_the_one_of_the_page() -> None:
    """Two calls: the second learns from the usage of the first, and finds the cache warm."""
    times, bodies = iter([0.0, 20.0]), []

    def ask(body: dict[str, Any]) -> tuple[AssistantMessage, Usage]:
        bodies.append(body)
        return AssistantMessage((Text("Yes."),)), Usage(plain=40, cache_write_5m=1_000 * len(bodies), output=3)

    page = shown_code("With a cache", MODEL="m", system="Be kind. " * 300, clock=lambda: next(times), ask=ask)
    reply, economy = page["call"]([UserMessage((Text("One?"),))], page["economy"], True)
    reply, economy = page["call"]([reply, UserMessage((Text("Two?"),))], economy, True)
    assert [len(body["messages"]) for body in bodies] == [1, 3]
    assert "cache_control" in str(bodies[1])
    assert (reply.usage.prompt, economy.cache.tokens, economy.called_at) == (2_040, 2_040, 20.0)
    assert economy.experience.replies == 21


def test_a_stub_is_read_back_by_its_handle() -> None:
    """And so is what was cut when it was born; the page shows the words of both."""
    page = shown_code("With a cache", MODEL="m", system="", clock=None, ask=None)
    whole = ToolResult("c", "read_file", (Text("a line\n" * 1_000),))
    line_of_it = stub(whole).text
    handle = line_of_it.split("recall ")[1].split(":")[0]
    assert f"left out; recall {handle}: " in line_of_it
    assert "left out; recall 0123456789ab: " in PAGE
    assert page["recall"](handle, [whole], {}) == whole.text
    cut: dict[str, str] = {}
    short = page["shortened"](whole.text, cut, 500)
    assert len(short) <= 500
    assert page["recall"](short.split("recall ")[1].split()[0], [], cut) == whole.text
    assert page["recall"]("nothing", [whole], cut) == "nothing has this handle"
