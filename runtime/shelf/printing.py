"""Sessions as plain text for a terminal: lists, finds, transcripts, what a model saw. Nothing in it steers it.

Tables fit the columns that there are; text is wrapped between words, and only on a terminal.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from datetime import datetime

from governors.messages import AssistantMessage, Document, Image, Message, SystemPatch, Text, Thinking, ToolResult

from ..channels.sanitize import clean, one_line
from ..exports.as_model import Seen
from ..exports.marks import medium
from ..exports.transcript import Answer, Item, Mark, Said, Transcript
from ..exports.wording import (
    arguments,
    call_title,
    details,
    dollars,
    facts,
    moment,
    outcome,
    plural,
    result_size,
    speaker,
)
from ..session.index.listing import Find, Listing, SessionInfo, State
from ..session.naming import short_id

_LONGEST_NAME = 20
_LEAST_TITLE = 16
_INDENT = 6  # columns of an entry's number and what follows it


def table(rows: Sequence[Sequence[str]], columns: int, right: frozenset[int] = frozenset()) -> Iterator[str]:
    """Rows in columns; the last column takes what room is left of `columns`, and is cut where it does not fit."""
    if not rows:
        return
    widths = [max(_width(row[place]) for row in rows) for place in range(len(rows[0]))]
    room = columns - sum(widths[:-1]) - 2 * (len(widths) - 1)
    for row in rows:
        cells = [_filled(cell, widths[place], place in right) for place, cell in enumerate(row[:-1])]
        yield "  ".join([*cells, cut(row[-1], max(room, 1))]).rstrip()


def cut(text: str, columns: int) -> str:
    """`text` on one line, in at most `columns` columns, cut between words where there are some."""
    flat = one_line(text, max(4 * columns, 1))
    if _width(flat) <= columns:
        return flat
    while flat and _width(flat) > columns - 1:
        flat = flat[:-1]
    head, gap, _ = flat.rpartition(" ")
    return (head if gap and _width(head) > columns // 2 else flat).rstrip() + "…"


def listing_lines(listing: Listing, columns: int) -> Iterator[str]:
    """A list of sessions as a table; `*` is pinned, `a` archived."""
    many = len({info.agent for info in listing}) > 1
    rows = [_head_row(many), *(_row(info, many) for info in listing)]
    narrow = columns < 60
    kept = [row if not narrow else (row[0], row[1], row[-1]) for row in rows]
    yield from table(kept, columns, right=frozenset() if narrow else frozenset({len(rows[0]) - 3, len(rows[0]) - 2}))


def listing_notes(listing: Listing) -> Iterator[str]:
    """What a person should know of how the list came about."""
    if len(listing) < listing.total:
        yield f"{len(listing):,} of {plural(listing.total, 'session')}; --limit 0 shows all"
    yield from index_notes(listing.state)
    if listing.behind:
        yield f"{plural(listing.behind, 'session')} changed and could not be looked at in time; ask again"
    if listing.skipped:
        told = ", ".join(f"{count} {reason}" for reason, count in listing.skipped.items())
        yield f"left out, as they are no sessions: {told}"


def index_notes(state: State) -> Iterator[str]:
    """Why the index did not answer, where somebody can do something about it. One that was not there yet, or that
    another version had left, was made by the way."""
    if state.fallback not in (None, "missing", "version"):
        yield f"the index could not be used ({state.fallback}): the folder was read instead"


def find_lines(finds: Sequence[Find], columns: int) -> Iterator[str]:
    for find in finds:
        where = f"{short_id(find.session)}, entry {find.entry}"
        other = "" if find.current else ", on another branch"
        who = "you" if find.who == "user" else "the agent"
        yield cut(f"{where}: {who}, {_local(find.at)}{other} · {find.title}", columns)
        yield from wrapped(find.passage, columns, "    ")


def transcript_lines(shown: Transcript, columns: int | None, whole: int | None = None) -> Iterator[str]:
    """A transcript with entry numbers; the entry `whole` is shown with all that it holds."""
    for name, value in facts(shown):
        yield f"{name}: {clean(value)}"
    current = {segment.number for segment in shown.shown}
    for segment in (*shown.shown, *(each for each in shown.segments if each.number not in current)):
        if segment.number not in current:
            after = "the beginning" if segment.after is None else f"entry {segment.after}"
            yield f"\n══ another branch, from {after}"
        for item in segment.items:
            yield from _item(item, columns, whole)


def seen_lines(seen: Seen, columns: int | None) -> Iterator[str]:
    """What a model saw, message by message."""
    yield from seen_facts(seen)
    yield "\n── system"
    yield from wrapped(seen.system, columns)
    if seen.tools:
        yield "\n── tools"
        for tool in seen.tools:
            yield from wrapped(f"{tool.name}: {next(iter(tool.description.splitlines()), '')}", columns, hang="    ")
    for message in seen.messages:
        yield f"\n── {_role(message)} · entry {message.origin}"
        yield from _message(message, columns)


def seen_facts(seen: Seen) -> Iterator[str]:
    """Which request it is, and whether it is proved to be the one that was sent."""
    request = seen.request
    if request is not None:
        model = f"{request.provider}/{request.model}, wire {request.wire}"
        yield f"entry {seen.entry}: a request ({request.purpose}) to {clean(model)}"
        yield f"tokens: {request.forecast:,} of {request.budget:,} expected"
    elif seen.model is not None:
        model = f"{seen.model.provider}/{seen.model.id}, wire {seen.model.wire}"
        yield f"entry {seen.entry}: no request; one that left here would show this to {clean(model)}"
    else:
        yield f"entry {seen.entry}: no request; one that left here would show this"
    if seen.same is not None:
        yield f"prefix: {'same bytes' if seen.same else 'other bytes'} as recorded ({str(seen.prefix)[:16]})"
    if seen.why:
        yield f"note: {seen.why}"


def wrapped(text: str, columns: int | None, indent: str = "", hang: str = "") -> Iterator[str]:
    """The lines of `text`, cleaned, wrapped between words to `columns` (None: as they are)."""
    for line in clean(text).split("\n"):
        if columns is None or _width(line) + len(indent) <= columns:
            yield f"{indent}{line}".rstrip()
        else:
            deeper = indent + (hang or " " * (len(line) - len(line.lstrip())))
            yield from textwrap.wrap(
                line, max(columns, 20), initial_indent=indent, subsequent_indent=deeper, break_on_hyphens=False
            )


def _item(item: Item, columns: int | None, whole: int | None) -> Iterator[str]:
    match item:
        case Said():
            told = "".join(f" · {clean(each)}" for each in details(item))
            yield f"\n{item.entry:>4}  {speaker(item)} · {moment(item.at)}{told}"
            yield from _said(item, columns, whole)
        case Answer():
            yield f"\n{item.entry:>4}  result of {one_line(item.tool)}: {result_size(item)}"
            yield from _answer(item, columns, whole)
        case Mark(entry=entry, kind=kind, title=title, text=text):
            yield from wrapped(f"{'══' if kind == 'head' else '──'} {title}", columns, f"\n{entry:>4}  ", " " * _INDENT)
            if text and (kind not in ("system", "edit") or whole == entry):
                yield from wrapped(text, columns, " " * _INDENT)


def _said(said: Said, columns: int | None, whole: int | None) -> Iterator[str]:
    room = " " * _INDENT
    for part in said.content:
        match part:
            case Thinking(text=text):
                shown = text if whole == said.entry else one_line(text, 100)
                yield from wrapped(f"(thinking) {shown}", columns, room)
            case Text(text=text) if text.strip():
                yield from wrapped(text.strip("\n"), columns, room)
            case Image() | Document():
                yield room + medium(part)
            case _:
                pass
    for call in said.calls:
        answer = call.answer
        sign = "·" if answer is None else "✗" if answer.is_error else "✓"
        number = "" if answer is None else f" · entry {answer.entry}"
        yield from wrapped(f"{sign} {call_title(call)} · {outcome(call)}{number}", columns, room, "  ")
        if whole == said.entry:
            yield from wrapped(arguments(call), columns, room + "  ")
        if answer is not None and whole in (said.entry, answer.entry):
            yield from _answer(answer, columns, answer.entry)


def _answer(answer: Answer, columns: int | None, whole: int | None) -> Iterator[str]:
    if whole != answer.entry:
        return
    for part in answer.content:
        yield from wrapped(part.text if isinstance(part, Text) else medium(part), columns, " " * (_INDENT + 2))
    if isinstance(answer.whole, str):
        yield " " * _INDENT + "the whole output, of which the model saw that part:"
        yield from wrapped(answer.whole, columns, " " * (_INDENT + 2))


def _role(message: Message) -> str:
    match message:
        case AssistantMessage():
            return "assistant"
        case ToolResult(tool=tool, stand_in=stand_in, is_error=is_error):
            kind = "stand-in for the result" if stand_in else "failed result" if is_error else "result"
            return f"{kind} of {one_line(tool)}"
        case SystemPatch():
            return "system update"
        case _:
            return "user"


def _message(message: Message, columns: int | None) -> Iterator[str]:
    if isinstance(message, SystemPatch):
        yield from wrapped(message.text, columns)
        return
    for part in message.content:
        match part:
            case Text(text=text):
                yield from wrapped(text, columns)
            case Image() | Document():
                yield medium(part)
            case Thinking(text=text):
                yield from wrapped(f"(thinking) {text}", columns)
            case _:
                yield from wrapped(f"[call {part.name} {part.arguments}]", columns)


def _head_row(many: bool) -> tuple[str, ...]:
    return ("SESSION", "LAST SAID", *(("AGENT",) if many else ()), "", "SAID", "COST", "TITLE")


def _row(info: SessionInfo, many: bool) -> tuple[str, ...]:
    agent = (cut(info.agent, _LONGEST_NAME),) if many else ()
    marks = ("*" if info.pinned else "") + ("a" if info.archived else "")
    elsewhere = not info.cost and (info.origin or {}).get("kind") == "import"  # what was paid there is not told
    cost = "unknown" if info.cost is None or elsewhere else dollars(info.cost) if info.cost else "-"
    said = _local(info.said or info.created)
    name = short_id(info.id)
    shown = one_line(name, 200) if _width(name) <= _LONGEST_NAME else cut(name, _LONGEST_NAME)
    tags = f"[{', '.join(info.tags)}] " if info.tags else ""
    return (shown, said, *agent, marks, str(info.messages), cost, tags + (info.title or "(nothing said yet)"))


def _local(at: str) -> str:
    """A time of the log on this machine's clock, to the minute."""
    try:
        return datetime.fromisoformat(at).astimezone().strftime("%Y-%m-%d %H:%M")
    except (ValueError, OverflowError, OSError):
        return one_line(at, 16)


def _filled(text: str, width: int, right: bool) -> str:
    space = " " * max(0, width - _width(text))
    return space + text if right else text + space


def _width(text: str) -> int:
    """Columns on a terminal: letters of some scripts take two, some none."""
    from rich.cells import cell_len

    return cell_len(text)


__all__ = [
    "cut",
    "find_lines",
    "listing_lines",
    "listing_notes",
    "seen_facts",
    "seen_lines",
    "table",
    "transcript_lines",
    "wrapped",
]
