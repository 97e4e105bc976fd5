"""Output as it reaches the log."""

import re

from hypothesis import given
from hypothesis import strategies as st

from governors.messages import Image, Text
from runtime.tools.base import ToolOutput, text_output
from runtime.tools.output import LEAST_LIMIT, OUTPUT_LIMIT, cut, finish, scrub

any_text = st.text(alphabet=st.characters(), max_size=60) | st.text(
    alphabet=["\ud83d", "\ude00", "\0", "a", "é"], max_size=12
)


@given(any_text)
def test_scrubbed_text_is_valid_and_stays(text: str) -> None:
    """Scrubbed text can be encoded, holds no NUL, and scrubbing it again changes nothing."""
    clean = scrub(text)
    clean.encode()
    assert "\0" not in clean
    assert scrub(clean) == clean


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\0")))
def test_valid_text_is_untouched(text: str) -> None:
    """Scrubbing changes nothing that is valid."""
    assert scrub(text) == text


def test_surrogates_and_nul_are_shown() -> None:
    """A lone surrogate becomes U+FFFD, a pair its character, NUL a visible symbol."""
    assert scrub("a\ud800b\ud83d\ude00c\0") == "a\ufffdb😀c␀"


@given(st.integers(LEAST_LIMIT, 3_000), st.integers(0, 6_000))
def test_cut_is_bounded_and_counts(limit: int, length: int) -> None:
    """A cut text fits, keeps head and tail, and says exactly how much is missing."""
    text = "".join(chr(97 + place % 26) for place in range(length))
    short = cut(text, limit)
    assert len(short) <= limit
    if length <= limit:
        assert short == text
        return
    head, missing, tail = re.split(r"\n\[… ([\d,]+) of [\d,]+ characters cut here …\]\n", short)
    assert text.startswith(head)
    assert text.endswith(tail)
    assert len(head) + len(tail) + int(missing.replace(",", "")) == length


def test_empty_output_says_so() -> None:
    """Nothing, and nothing but white space, read as `(no output)`."""
    for empty in (ToolOutput(()), text_output(""), text_output(" \n")):
        assert finish(empty) == text_output("(no output)")


def test_pictures_pass_and_whole_outputs_are_the_same_object() -> None:
    """What needs no change is not copied, and a picture needs no text beside it."""
    for output in (ToolOutput((Image("image/png", "aGk="),)), text_output("fine", is_error=True)):
        assert finish(output) is output


def test_many_texts_share_the_limit() -> None:
    """The limit holds for all texts of an output together."""
    output = finish(ToolOutput((Text("a" * 100_000), Image("image/png", ""), Text("b" * 50_000))))
    assert sum(len(part.text) for part in output.content if isinstance(part, Text)) <= OUTPUT_LIMIT
    assert len(output.content) == 3
