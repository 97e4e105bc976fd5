"""A session as a Markdown transcript. Pure.

Laws: what stands in a fence cannot leave it (the fence is longer than any run of its mark inside); what people and
models wrote can neither open HTML nor swallow what follows it: people's words stand in a quotation, and a model's
Markdown is cut loose from what surrounds it (headings go below ours, an open fence is closed, tags are escaped).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape

from governors.messages import Document, Image, Text, Thinking

from ..session.entries import Blob, Entry, Header
from .marks import medium
from .segments import transcript
from .tame import tamed
from .transcript import Answer, Called, Item, Mark, Said, Segment, Transcript
from .wording import arguments, call_title, details, facts, moment, one_line, outcome, result_size, speaker, visible

_RUNS = re.compile("`+")


def to_markdown(
    header: Header,
    entries: Sequence[Entry],
    *,
    entry: int | None = None,
    branch: bool = False,
    problems: Sequence[str] = (),
) -> str:
    """The transcript of a session (arguments as in `transcript`). Raises `SessionError`."""
    shown = transcript(header, entries, entry=entry, branch=branch, problems=problems)
    return "\n\n".join(_document(shown)) + "\n"


def fence(text: str, language: str = "text") -> str:
    """`text` as a code block that nothing in it can end."""
    mark = "`" * max(3, 1 + max((len(run) for run in _RUNS.findall(text)), default=0))
    return f"{mark}{language}\n{visible(text)}\n{mark}"


def escaped(text: str) -> str:
    """One line of plain text, with nothing that Markdown or HTML would take for its own."""
    return re.sub(r"([\\`*_{}\[\]<>#|~!&])", r"\\\1", one_line(text, 400))


def _document(shown: Transcript) -> Iterator[str]:
    yield f"# {escaped(shown.title) or 'Session'}"
    yield "\n".join(f"- {name}: {escaped(value)}" for name, value in facts(shown))
    for segment in shown.shown:
        yield from _segment(segment)
    current = {segment.number for segment in shown.shown}
    for segment in shown.segments:
        if segment.number not in current:
            after = "the beginning" if segment.after is None else f"entry {segment.after}"
            yield "---"
            yield f"# Another branch, from {after}"
            yield from _segment(segment)


def _segment(segment: Segment) -> Iterator[str]:
    for item in segment.items:
        yield from _item(item)


def _item(item: Item) -> Iterator[str]:
    match item:
        case Said():
            yield from _said(item)
        case Answer():
            yield f"## {item.entry} · result of {escaped(item.tool)} · {moment(item.at)}"
            yield from _folded(f"{one_line(item.tool)}: {result_size(item)}", list(_answer(item)))
        case Mark():
            yield from _mark(item)


def _said(said: Said) -> Iterator[str]:
    told = "".join(f" · {escaped(each)}" for each in details(said))
    yield f"## {said.entry} · {escaped(speaker(said))} · {moment(said.at)}{told}"
    for part in said.content:
        match part:
            case Thinking(text=text, redacted=hidden):
                yield from _folded("thinking", [fence("(kept by the provider)" if hidden else text)])
            case Text(text=text) if text.strip():
                yield _quoted(text) if said.who == "user" else tamed(visible(text))
            case Image() | Document():
                yield escaped(medium(part))
            case _:
                pass
    for call in said.calls:
        yield from _call(call)


def _call(call: Called) -> Iterator[str]:
    inside = [fence(arguments(call), "json")]
    if call.answer is not None:
        inside.extend(_answer(call.answer))
    yield from _folded(f"{call_title(call)}: {outcome(call)}", inside)


def _answer(answer: Answer) -> Iterator[str]:
    told = "".join(f" · {escaped(tag)}" for tag in answer.tags)
    yield f"Result, entry {answer.entry}, {moment(answer.at)}{told}:"
    for part in answer.content:
        yield fence(part.text) if isinstance(part, Text) else escaped(medium(part))
    if isinstance(answer.whole, str):
        yield "The model saw a part of it. The whole:"
        yield fence(answer.whole)
    elif isinstance(answer.whole, Blob):
        yield f"The model saw a part of {answer.whole.size:,} bytes."


def _mark(mark: Mark) -> Iterator[str]:
    line = f"*{mark.entry} · {escaped(mark.title)}*"
    if mark.kind == "head":
        yield "---"
    if not mark.text:
        yield line
    elif mark.kind in ("system", "edit"):
        yield from _folded(f"{mark.entry} · {one_line(mark.title)}", [fence(mark.text)])
    else:
        yield line
        yield _quoted(mark.text)


def _folded(summary: str, inside: Sequence[str]) -> Iterator[str]:
    yield f"<details><summary>{escape(summary, quote=False)}</summary>"  # in this line Markdown is not read
    yield from inside
    yield "</details>"


def _quoted(text: str) -> str:
    """Words as they were typed, in a quotation; line ends stay where they were."""
    return "\n".join(f"> {line}" if line.strip() else ">" for line in tamed(visible(text), keep_lines=True).split("\n"))
