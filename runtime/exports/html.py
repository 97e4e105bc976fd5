"""A session as one HTML page that needs nothing else: no request, no script. Pure.

Laws: everything that people, models and tools wrote is escaped, or rendered from Markdown without HTML; the page's own
policy (CSP) allows its one style sheet and pictures inside it, and nothing more. Branches are switched by what is
checked, with CSS alone; without it every branch is shown.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence

from governors.messages import Document, Image, Text, Thinking

from ..session.entries import Blob, Entry, Header
from ..version import __version__
from .html_style import STYLE
from .html_text import code, image, plain, rendered
from .segments import transcript
from .transcript import Answer, Branch, Called, Item, Mark, Said, Segment, Transcript
from .wording import arguments, call_title, details, facts, moment, one_line, outcome, result_size, speaker

_OUTLINE = 60  # characters of a line in the side column
_BAD = ("failed", "did not finish", "cut off")


def to_html(
    header: Header,
    entries: Sequence[Entry],
    *,
    entry: int | None = None,
    branch: bool = False,
    problems: Sequence[str] = (),
) -> str:
    """The page of a session (arguments as in `transcript`). Raises `SessionError`."""
    shown = transcript(header, entries, entry=entry, branch=branch, problems=problems)
    style = STYLE + _branch_rules(shown)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"
    title = plain(shown.title or f"Session {header.id}")
    return "\n".join(
        (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="referrer" content="no-referrer">',
            f'<meta name="generator" content="moonwake {__version__}">',
            f"<title>{title}</title>\n<style>{style}</style>\n</head>\n<body>",
            f'<div class="page">\n{_side(shown)}\n<main>\n<h1>{title}</h1>',
            _facts(shown),
            *(_section(shown, segment) for segment in shown.segments),
            "</main>\n</div>\n</body>\n</html>\n",
        )
    )


def _branch_rules(shown: Transcript) -> str:
    """With a branch checked, what does not belong to it is hidden."""
    if len(shown.branches) < 2:
        return ""
    rules = (f"body:has(#b{n}:checked) .s:not(.p{n}) {{ display: none; }}" for n in range(len(shown.branches)))
    return "\n".join(rules) + "\n"


def _classes(shown: Transcript, segment: Segment) -> str:
    inside = (f"p{n}" for n, branch in enumerate(shown.branches) if segment.number in branch.path)
    return " ".join(("s", *inside))


def _facts(shown: Transcript) -> str:
    told = "".join(f"<dt>{plain(name)}</dt><dd>{plain(value)}</dd>" for name, value in facts(shown))
    return f'<dl class="facts">{told}</dl>'


def _side(shown: Transcript) -> str:
    parts = ['<nav aria-label="Outline"><details class="side" open><summary>Outline</summary>']
    if len(shown.branches) > 1:
        switches = "".join(f"<li>{_switch(shown, n, branch)}</li>" for n, branch in enumerate(shown.branches))
        parts.append(f"<h2>Branches</h2><ul>{switches}</ul><h2>Messages</h2>")
    lines = "".join(_outline(shown, segment) for segment in shown.segments)
    return "".join((*parts, f"<ul>{lines}</ul></details></nav>"))


def _switch(shown: Transcript, number: int, branch: Branch) -> str:
    """A branch by the first words that are its own."""
    own = shown.segments[branch.path[-1]].items if branch.path else ()
    said = next((item.text for item in own if isinstance(item, Said) and item.who == "user" and item.text), "")
    words = one_line(said, _OUTLINE) or f"to entry {branch.tip}"
    now = ' <span class="dim">(current)</span>' if branch.current else ""
    checked = " checked" if branch.current else ""
    return f'<label><input type="radio" name="branch" id="b{number}"{checked}><span>{plain(words)}{now}</span></label>'


def _outline(shown: Transcript, segment: Segment) -> str:
    lines = []
    for item in segment.items:
        if isinstance(item, Said) and item.who == "user":
            lines.append(f'<a href="#e{item.entry}">{plain(one_line(item.text, _OUTLINE) or "(picture)")}</a>')
        elif isinstance(item, Mark) and item.kind == "head":
            lines.append(f'<a class="cut" href="#e{item.entry}">the context begins anew</a>')
    return "".join(f'<li class="{_classes(shown, segment)}">{line}</li>' for line in lines)


def _section(shown: Transcript, segment: Segment) -> str:
    inside = "\n".join(part for item in segment.items for part in _item(item))
    fork = ""
    if segment.parent is not None and len(shown.branches) > 1:
        fork = f'<p class="fork">goes on from <a href="#e{segment.after}">entry {segment.after}</a></p>\n'
    return f'<section class="{_classes(shown, segment)}">\n{fork}{inside}\n</section>'


def _item(item: Item) -> Iterator[str]:
    match item:
        case Said():
            yield f'<article class="{item.who}" id="e{item.entry}">'
            yield _about(item.entry, item.at, speaker(item), details(item))
            yield from _said(item)
            yield "</article>"
        case Answer():
            title = f"result of <code>{plain(item.tool)}</code>"
            yield f"<article>{_fold(title, result_size(item), [*_answer(item)], failed=item.is_error)}</article>"
        case Mark():
            yield _mark(item)


def _about(entry: int, at: str, who: str, told: Sequence[str]) -> str:
    tags = "".join(f'<span class="tag{_tone(each)}">{plain(each)}</span>' for each in told)
    return (
        f'<div class="about"><a class="n" href="#e{entry}">{entry}</a><b>{plain(who)}</b>'
        f'<time datetime="{plain(at)}">{plain(moment(at))}</time>{tags}</div>'
    )


def _tone(told: str) -> str:
    return " bad" if told.startswith(_BAD) else " money" if told.startswith("$") else ""


def _said(said: Said) -> Iterator[str]:
    words: list[str] = []
    for part in said.content:
        match part:
            case Thinking(text=text, redacted=hidden):
                yield _fold(
                    "thinking", "", [f'<div class="plain">{plain("(kept by the provider)" if hidden else text)}</div>']
                )
            case Text(text=text) if text.strip():
                is_user = said.who == "user"
                words.append(
                    f'<div class="plain">{plain(text)}</div>'
                    if is_user
                    else f'<div class="text">{rendered(text)}</div>'
                )
            case Image() | Document():
                words.append(image(part))
            case _:
                pass
    if words:
        yield f'<div class="words">{"".join(words)}</div>'
    yield from (_call(call) for call in said.calls)


def _call(call: Called) -> str:
    tool, _, rest = call_title(call).partition(" ")
    inside = [code(arguments(call), wrap=True), *(_answer(call.answer) if call.answer is not None else ())]
    title = f"<code>{plain(tool)}</code> {plain(rest)}"
    return _fold(title, outcome(call), inside, failed=call.answer is not None and call.answer.is_error)


def _answer(answer: Answer) -> Iterator[str]:
    yield f'<div id="e{answer.entry}">{_about(answer.entry, answer.at, "result", answer.tags)}'
    for part in answer.content:
        yield code(part.text) if isinstance(part, Text) else image(part)
    if isinstance(answer.whole, str):
        yield f'<p class="dim">The model saw a part of it. The whole:</p>{code(answer.whole)}'
    elif isinstance(answer.whole, Blob):
        yield f'<p class="dim">The model saw a part of {answer.whole.size:,} bytes.</p>'
    yield "</div>"


def _fold(title: str, told: str, inside: Sequence[str], *, failed: bool = False) -> str:
    """A part that is folded away; `title` is HTML, `told` is text."""
    dim = f' <span class="dim">{plain(told)}</span>' if told else ""
    return (
        f'<details class="fold{" failed" if failed else ""}"><summary>{title}{dim}</summary>'
        f'<div class="inside">{"".join(inside)}</div></details>'
    )


def _mark(mark: Mark) -> str:
    line = f'<a class="n" href="#e{mark.entry}">{mark.entry}</a> {plain(mark.title)}'
    text = f'<div class="plain">{plain(mark.text)}</div>' if mark.text else ""
    if text and mark.kind in ("system", "edit"):
        return f'<div class="mark" id="e{mark.entry}">{_fold(line, "", [text])}</div>'
    return f'<div class="mark {mark.kind}" id="e{mark.entry}"><div class="line about">{line}</div>{text}</div>'
