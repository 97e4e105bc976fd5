"""Markdown and HTML hold what was said, and nothing that was said can act on them."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from governors.messages import Image, Text
from runtime.errors import SessionError
from runtime.exports import to_html, to_markdown, transcript
from runtime.exports.tame import tamed
from runtime.exports.transcript import Answer, Said
from runtime.session.entries import LeafRecord, MessageRecord, NoteRecord, OutcomeRecord, ResultRecord
from tests.session.logs import Log

from .growing_logs import HEADER, Growing, growing_logs

PIECES = (
    "```",
    "~~~",
    "````\n",
    "`",
    "<script>alert(1)</script>",
    "<!-- ",
    "</details>",
    "<img src=https://evil.example/x.png onerror=alert(1)>",
    "![p](https://evil.example/p.png)",
    "[l](javascript:alert(1))",
    "# heading",
    "title\n===",
    "- item",
    "> quote",
    "    code",
    "| a | b |\n|:-|-:|\n| 1 | 2 |",
    '" onload="x',
    "<style>*{display:none}</style>",
    "&lt;b&gt;",
    "\x1b[31m",
    "\u202e",
    "\n\n",
    "\n",
    " ",
    "word",
    "<a>",
    "\\",
    "<?php",
    "<![CDATA[",
)
nasty = st.lists(st.sampled_from(PIECES), max_size=8).map("".join)
slow = settings(deadline=None, max_examples=120)

TAGS = """
html head meta title style body div nav details summary h1 h2 ul li label input span a main dl dt dd section p article b
time pre code img ol em strong s blockquote h3 h4 h5 h6 table thead tbody tr th td hr br
"""
ATTRIBUTES = """
lang charset http-equiv content name class id href rel datetime tabindex alt src width height type checked open
aria-label start
"""


class Tags(HTMLParser):
    """Every tag of a page with its attributes."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in ("meta", "input", "img", "br", "hr"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def tags_of(page: str) -> Tags:
    tags = Tags()
    tags.feed(page)
    tags.close()
    assert not tags.open
    return tags


def log_saying(text: str) -> Log:
    log = Log()
    log.user(text)
    reply = log.calls("read_file", text=text)
    log.result(reply, text=text)
    log.reply(text)
    log.add(NoteRecord(text=text))
    log.user("the end of it")
    return log


@slow
@given(nasty)
def test_a_page_holds_only_our_tags_and_asks_nobody(text: str) -> None:
    """No script, no handler, no address that a browser would fetch."""
    tags = tags_of(to_html(HEADER, log_saying(text).tree.entries))
    for tag, attributes in tags.seen:
        assert tag in TAGS.split()
        assert set(attributes) <= set(ATTRIBUTES.split())
        assert str(attributes.get("src", "data:")).startswith("data:")
        assert not str(attributes.get("href", "")).lower().startswith(("javascript", "data"))
    policies = [a["content"] for tag, a in tags.seen if a.get("http-equiv") == "Content-Security-Policy"]
    assert len(policies) == 1 and str(policies[0]).startswith("default-src 'none'; style-src 'sha256-")


@slow
@given(nasty)
def test_markdown_keeps_everybody_in_his_place(text: str) -> None:
    """Read as Markdown with HTML on: our five headings, our folds, and the last message stand as they should."""
    document = to_markdown(HEADER, log_saying(text).tree.entries)
    tokens = MarkdownIt("commonmark").parse(document)
    html = [token.content for token in tokens if token.type == "html_block"]
    html += [child.content for token in tokens for child in token.children or () if child.type == "html_inline"]
    assert all(re.fullmatch(r"</details>\n?|<details><summary>[^<>]*</summary>\n?", each) for each in html)
    headings = [tokens[n + 1].content for n, token in enumerate(tokens) if token.type == "heading_open"]
    levels = [token.tag for token in tokens if token.type == "heading_open" and token.level == 0]
    assert levels.count("h2") == 4 and levels.count("h1") == 1
    assert headings[-1].startswith("6 · You")
    assert "the end of it" in tokens[-3].content


@slow
@given(nasty)
def test_what_stands_in_a_fence_stays_in_it(text: str) -> None:
    """The result of a tool comes back as one block with the same text."""
    log = Log()
    log.user("hi")
    log.result(log.calls("read_file"), text=text)
    tokens = MarkdownIt("commonmark").parse(to_markdown(HEADER, log.tree.entries))
    fences = [token.content for token in tokens if token.type == "fence" and token.info == "text"]
    assert len(fences) == 1
    assert fences[0] == text.replace("\x1b", "\u241b").replace("\u202e", "⟨U+202E⟩") + "\n"


@slow
@given(nasty)
def test_taming_tame_text_changes_nothing_that_shows(text: str) -> None:
    """Apart from headings, which go two levels further down each time."""
    once = tamed(text.replace("#", "").replace("===", ""))
    assert tamed(once) == once


@settings(deadline=None, max_examples=80)
@given(growing_logs())
def test_every_message_and_result_stands_in_the_transcript_once(growing: Growing) -> None:
    """Whatever the tree looks like."""
    shown = transcript(HEADER, growing.entries)
    found: list[int] = []
    for segment in shown.segments:
        for item in segment.items:
            if isinstance(item, (Said, Answer)):
                found.append(item.entry)
            if isinstance(item, Said):
                found += [call.answer.entry for call in item.calls if call.answer is not None]
    wanted = [entry.id for entry in growing.entries if isinstance(entry.record, (MessageRecord, ResultRecord))]
    assert sorted(found) == wanted
    assert shown.branches[0].current
    path = [entry.id for entry in growing.log.branch if isinstance(entry.record, MessageRecord)]
    assert [item.entry for segment in shown.shown for item in segment.items if isinstance(item, Said)] == path


def forked() -> Log:
    log = Log()
    log.user("one")
    first = log.reply("first answer")
    log.user("two")
    log.reply("second answer")
    log.add(LeafRecord(leaf=first))
    log.user("another two")
    return log


def test_branches_are_told_and_switched() -> None:
    """One page has both, with a switch; a branch alone says where the other leaves."""
    entries = forked().tree.entries
    page = to_html(HEADER, entries)
    assert page.count('type="radio"') == 2 and "body:has(#b1:checked) .s:not(.p1)" in page
    assert "# Another branch, from entry 2" in to_markdown(HEADER, entries)
    alone = to_markdown(HEADER, entries, branch=True)
    assert "second answer" not in alone and "another branch leaves here, with entry 3" in alone
    earlier = to_markdown(HEADER, entries, entry=4)
    assert "second answer" in earlier and "another two" not in earlier


def test_an_entry_that_there_is_none_of_names_the_nearest() -> None:
    """With their numbers."""
    with pytest.raises(SessionError, match=r"there is no entry 40 in this session\. The nearest are 4, 5, 6"):
        to_markdown(HEADER, forked().tree.entries, entry=40)


def test_costs_pictures_and_failures_are_told() -> None:
    """A picture stands in the page; one that a browser might run is named in words."""
    log = Log()
    log.add(MessageRecord(role="user", content=(Text("see"), Image("image/png", "aGk=", 1, 1))))
    log.add(MessageRecord(role="user", content=(Image("image/svg+xml", "aGk="), Image("image/png", '"><script>'))))
    log.add(OutcomeRecord(request=1, stop="error", problem={"text": "the provider was busy"}))
    log.add(OutcomeRecord(request=1, stop="stop", cost=0.0042))
    log.reply("done")
    page = to_html(HEADER, log.tree.entries)
    assert page.count("<img") == 1 and 'src="data:image/png;base64,aGk="' in page
    assert "[image/svg+xml, 3 bytes]" in page
    assert "the provider was busy" in page and "$0.0042" in page
    assert "$0.0042" in to_markdown(HEADER, log.tree.entries)


def test_an_empty_session_is_a_page_too() -> None:
    """With its facts and nothing else."""
    assert "0193-demo" in to_html(HEADER, ())
    assert "0193-demo" in to_markdown(HEADER, ())
