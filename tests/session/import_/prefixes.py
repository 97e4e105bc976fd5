"""Whether what an imported session shows a model is legal, at every prefix, on every wire."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from governors.messages import AssistantMessage, Messages, Text, ToolSpec, UserMessage
from governors.repair import repair
from governors.wire import WIRES, Abilities, Encoder
from runtime.session.entries import OFF_BRANCH, Entry
from runtime.session.format.codec import decode_batch, encode_entry
from runtime.session.tree import Tree
from runtime.session.view.projection import project

KINDS = (Abilities(), Abilities(images=True, system_anywhere=True))


def as_on_disk(entries: Sequence[Entry]) -> tuple[Entry, ...]:
    """`entries` as a file gives them back."""
    return decode_batch(b"".join(map(encode_entry, entries)))


def tips(entries: Sequence[Entry]) -> list[Entry]:
    """Every entry that a conversation could go on from."""
    return [entry for entry in entries if not isinstance(entry.record, OFF_BRANCH)]


def wrong(entries: Sequence[Entry], every: int = 1) -> Iterator[str]:
    """What is wrong with the tree, or with a request that ends with an entry of it (each `every`th, and the last)."""
    tree = Tree(entries)
    for entry in entries:
        if entry.parent is not None and (entry.parent >= entry.id or entry.parent not in tree):
            yield f"entry {entry.id} hangs on {entry.parent}"
    shown = tips(entries)
    for number, entry in enumerate(shown, 1):
        if number % every == 0 or number == len(shown):
            for violation in violations(tree.branch_to(entry.id)):
                yield f"the branch to entry {entry.id}: {violation}"


def violations(branch: Sequence[Entry]) -> Iterator[str]:
    """The rules that a request with this branch breaks, on every wire. What ends with a reply is no request: the user's
    next message is added."""
    messages = project(branch).messages
    if not messages or isinstance(messages[-1], AssistantMessage):
        messages = (*messages, UserMessage((Text("Go on."),)))
    tools = _tools(messages)
    for wire, rules in WIRES.items():
        for abilities in KINDS:
            encoder = Encoder(rules, system="Ours.", tools=tools, abilities=abilities, model="a-model", max_output=1000)
            encoder.append(repair(messages, id_pattern=abilities.id_pattern))
            yield from (f"{wire}: {each}" for each in encoder.violations() if each.severity != "$")


def _tools(messages: Messages) -> tuple[ToolSpec, ...]:
    names = {call.name for each in messages if isinstance(each, AssistantMessage) for call in each.calls}
    return tuple(ToolSpec(name, "", {"type": "object"}) for name in sorted(names) if name.strip())
