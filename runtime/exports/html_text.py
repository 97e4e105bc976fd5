"""Text, Markdown and pictures as HTML that can do nothing: no tag of theirs, no script, no request. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from html import escape
from typing import TYPE_CHECKING, Any

from governors.messages import Document, Image

from .marks import medium, picture
from .wording import visible

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

#: What a browser shows from a `data:` address; anything else is named in words.
_PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp")
_BASE64 = re.compile(r"[A-Za-z0-9+/\s]*={0,2}\s*")
_ALIGNED = re.compile(r"text-align:(left|center|right)")
_BELOW = 2  # levels that the page's own headings take
_WRAP = ' class="wrap"'


def plain(text: str) -> str:
    """`text` as it was written, escaped."""
    return escape(visible(text), quote=True)


def rendered(source: str) -> str:
    """A model's Markdown as HTML."""
    parser = _parser()
    tokens = parser.parse(visible(source))
    for token in tokens:
        _tame(token)
    html: str = parser.renderer.render(tokens, parser.options, {})
    return html


def image(part: Image | Document) -> str:
    """A picture inside the page, or what it or a document is in words."""
    if (
        isinstance(part, Document)
        or part.media_type not in _PICTURES
        or not part.data
        or _BASE64.fullmatch(part.data) is None
    ):
        return f'<p class="dim">{plain(medium(part))}</p>'
    size = f' width="{part.width:d}" height="{part.height:d}"' if part.width and part.height else ""
    data = "".join(part.data.split())
    return f'<img alt="{plain(picture(part))}"{size} src="data:{part.media_type};base64,{data}">'


def code(text: str, *, wrap: bool = False) -> str:
    return f'<pre{_WRAP if wrap else ""} tabindex="0">{plain(text)}</pre>'


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt  # comes with rich

    parser = MarkdownIt("commonmark", {"html": False, "breaks": True}).enable(["table", "strikethrough"])
    parser.renderer.rules["image"] = _image_as_link  # type: ignore[attr-defined] # the protocol names `render` only
    return parser


def _tame(token: Token) -> None:
    """Headings below ours; links that tell nobody where they were; alignment by class, as styles are not allowed."""
    if token.type in ("heading_open", "heading_close"):
        token.tag = f"h{min(6, int(token.tag[1:]) + _BELOW)}"
    aligned = _ALIGNED.search(str(token.attrs.pop("style", "")))
    if aligned is not None:
        token.attrSet("class", aligned[1])
    for child in token.children or ():
        if child.type == "link_open":
            child.attrSet("rel", "noopener noreferrer nofollow")


def _image_as_link(tokens: Sequence[Token], place: int, options: Any, env: Any) -> str:
    """A picture that a model links to would be a request to somebody: it is a link, to be followed by hand."""
    token = tokens[place]
    address = escape(str(token.attrs.get("src", "")), quote=True)
    words = plain(token.content) or "picture"
    return f'<a href="{address}" rel="noopener noreferrer nofollow">[{words}]</a>'
