"""Whether reasoning stands where it was produced (A6, O3).

Some models bind reasoning to all that was sent before it: system prompt, tools, every earlier message. Change any of
it and the reasoning is refused or dropped. Laws:
- Reasoning is known by its signature, and where it was produced by the `prefix_hash` of the request that it answers.
- It is valid when that hash is the rolling hash of this body up to the start of its reply (a reply may be several
  blocks, or be merged with its neighbours), and nothing else stands between.
- Cache marks are no part of the hash.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .base import Abilities, Severity, Violation
from .encoded import last, message_blocks, roll
from .protocol import Wire


def check_binding(
    produced: Mapping[str, str], body: Mapping[str, Any], wire: Wire, abilities: Abilities
) -> tuple[Violation, ...]:
    """The reasoning in `body` that is no longer valid, in order; none for models that bind nothing.

    `produced` says of each signature (or encrypted content) the `prefix_hash` of the request that brought it. What it
    does not name is not judged. Where the provider drops such reasoning by itself (`drop_block`) and on wires that
    only ever drop, the loss is silent (S); elsewhere the request is refused (E).
    """
    if not abilities.binds_prefix:
        return ()
    rule = wire.stepwise.binding_rule
    severity: Severity = "S" if rule == "O3" or abilities.drop_block else "E"
    found = []
    for where, signature, starts in _reasoning(body, wire):
        prefix = produced.get(signature)
        if prefix is not None and prefix not in starts:
            problem = "this reasoning was produced under another prefix: what stands before it has changed since"
            found.append(Violation(rule, severity, where, problem))
    return tuple(found)


def _reasoning(body: Mapping[str, Any], wire: Wire) -> Iterator[tuple[str, str, set[str]]]:
    """Each reasoning block: its place, its signature, and the hashes of the prefixes at which its reply may start."""
    way = wire.stepwise
    digest = last(roll(b"", wire.prefix_blocks({key: value for key, value in body.items() if key != way.part})))
    starts: set[str] = set()
    messages = body.get(way.part)
    for position, message in enumerate(messages if isinstance(messages, list) else ()):
        for index, (block, (reply, signature)) in enumerate(
            zip(message_blocks(message, way.split), way.reasoning(message), strict=True)
        ):
            starts = {*starts, digest.hex()} if reply else set()
            if signature is not None:
                place = f"{way.part}[{position}]"
                yield (place if way.binding_rule == "O3" else f"{place}.content[{index}]"), signature, starts
            digest = last(roll(digest, (block,)))
