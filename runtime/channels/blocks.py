"""Splits Markdown that is still being written into blocks that can be shown for good.

Pure. Laws:
- The texts of all blocks and of the rest, one after another, are the text that was fed.
- The blocks do not depend on how the text was cut into pieces.
- A block ends at a blank line outside fences; a list goes on over blank lines while what follows is indented.

Very long fences and lists are handed out in portions (`joined` to the one before), so that no block grows without
bound; a portion of a fence carries the line that opened it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

MOST_LINES = 120  # of a portion: what is rendered anew while it grows

_FENCE = re.compile(r"[ \t]*(`{3,}(?=[^`]*$)|~{3,})")
_LIST = re.compile(r" {0,3}(?:[-*+]|\d{1,9}[.)])(?:[ \t]|$)")
_HEADING = re.compile(r" {0,3}#{1,6}(?:[ \t]|$)")


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of Markdown. `fence` is the opening line when `text` goes on in a fence that began before it."""

    text: str
    fence: str = ""
    joined: bool = False

    @property
    def source(self) -> str:
        """The block as Markdown that stands alone."""
        return f"{self.fence}\n{self.text}" if self.fence else self.text


@dataclass(frozen=True, slots=True)
class Splitter:
    """What is open: complete `lines`, and a `tail` whose line is not finished yet."""

    lines: str = ""
    tail: str = ""
    fence: str = ""  # the line that opened the fence we are in
    count: int = 0  # lines of the block that are not blank at its front
    listing: bool = False
    after_blank: bool = False
    carried: str = ""  # the fence that the block goes on with
    joined: bool = False

    @property
    def rest(self) -> Block:
        """The block that is being written."""
        return Block(self.lines + self.tail, self.carried, self.joined)


NOTHING_WRITTEN = Splitter()


def feed(splitter: Splitter, text: str) -> tuple[Splitter, tuple[Block, ...]]:
    """Take in more text; the blocks that it finished."""
    pieces = (splitter.tail + text).split("\n")
    blocks: list[Block] = []
    splitter = replace(splitter, tail="")
    for line in pieces[:-1]:
        splitter = _line(splitter, line, blocks)
    tail = pieces[-1]
    if _leaves_list(splitter, tail):
        splitter = _close(splitter, blocks)
    return replace(splitter, tail=tail), tuple(blocks)


def finish(splitter: Splitter) -> Block | None:
    """The last block, as the text is over; None when nothing is left."""
    rest = splitter.rest
    return rest if rest.text else None


def _line(now: Splitter, line: str, blocks: list[Block]) -> Splitter:
    if now.fence:
        return _fenced(now, line, blocks)
    if not line.strip():
        now = replace(now, lines=f"{now.lines}{line}\n", after_blank=now.listing)
        return now if now.listing or not now.count else _close(now, blocks)
    opening = _FENCE.match(line) is not None and (now.listing or not line.startswith(("    ", "\t")))
    heading = _HEADING.match(line) is not None
    if _leaves_list(now, line) or (now.count and not now.listing and (opening or heading)):
        now = _close(now, blocks)
    elif now.listing and now.count >= MOST_LINES and _LIST.match(line):
        now = _close(now, blocks, joined=True)
    listing = now.listing if now.count else _LIST.match(line) is not None
    now = replace(
        now,
        lines=f"{now.lines}{line}\n",
        count=now.count + 1,
        listing=listing,
        after_blank=False,
        fence=line if opening else "",
    )
    return _close(now, blocks) if heading and now.count == 1 else now


def _fenced(now: Splitter, line: str, blocks: list[Block]) -> Splitter:
    fence = now.fence
    closing = _closes(line, fence)
    now = replace(now, lines=f"{now.lines}{line}\n", count=now.count + 1, fence="" if closing else fence)
    if now.listing:
        return now
    if closing:
        return _close(now, blocks)
    if now.count >= MOST_LINES:
        return replace(_close(now, blocks, joined=True), fence=fence, carried=fence)
    return now


def _close(now: Splitter, blocks: list[Block], *, joined: bool = False) -> Splitter:
    blocks.append(Block(now.lines, now.carried, now.joined))
    return Splitter(joined=joined)


def _leaves_list(now: Splitter, line: str) -> bool:
    return now.after_blank and not now.fence and bool(line) and not line[0].isspace()


def _closes(line: str, fence: str) -> bool:
    match = _FENCE.match(fence)
    bare = line.strip()
    if match is None or not bare:
        return False
    mark = match.group(1)
    return len(bare) >= len(mark) and set(bare) == {mark[0]}
