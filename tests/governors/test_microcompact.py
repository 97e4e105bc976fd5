"""Stubs, cuts at birth, and pictures that are left out: functions of the message alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from governors.messages import Messages, Text, ToolResult, UserPart
from governors.microcompact import (
    LEAST_SIZE,
    cut_at_birth,
    handle_of,
    image_stub,
    images_in,
    is_bulky,
    is_stub,
    stub,
    text_handle,
    without_images,
)
from governors.repair import stand_in
from tests.adversarial import results
from tests.builders import call, image, patch, reply, result, user

LONG = result("a", "first line\n\tsecond   line\n" * 60, tool="exec")


def test_a_stub_says_what_it_was_and_how_to_read_it() -> None:
    """Tool, size, the first 80 characters on one line, the handle."""
    made = stub(LONG)
    assert made.text == (
        f"[exec result, 1,560 characters, left out; recall {handle_of(LONG.content)}: "
        f"{' '.join(LONG.text.split())[:80]}]"
    )
    assert (made.call_id, made.tool, made.is_error) == ("a", "exec", False)
    assert stub(LONG) is made and stub(made) is made and is_stub(made)
    assert not is_stub(LONG) and not is_stub(ToolResult("a", "exec", ()))
    assert "and 2 images" in stub(result("a", "x", image(), image())).text
    assert stub(ToolResult("a", "", (Text("x"),))).text.startswith("[tool result, 1 characters")


@given(results)
def test_a_stub_is_clean_short_and_its_own(one: ToolResult) -> None:
    """Whatever the tool said, and whatever it is called."""
    made = stub(one)
    made.text.encode()
    assert len(made.text) < LEAST_SIZE and stub(made) is made
    assert stub(ToolResult(one.call_id, "n" * 2_000, one.content)).text.count("n") < 100


def test_the_handle_is_of_the_content() -> None:
    """Equal content, equal handle; the parts are told apart."""
    assert handle_of(LONG.content) == handle_of(result("other", LONG.text).content) == text_handle(LONG.text)
    different: list[tuple[UserPart, ...]] = [
        (Text("ab"),),
        (Text("a"), Text("b")),
        (image(data="ab"),),
        (),
        (Text(""),),
    ]
    assert len({handle_of(content) for content in different}) == len(different)
    assert len(text_handle("half \ud800")) == 12


@pytest.mark.parametrize(
    ("message", "bulky"),
    [
        (LONG, True),
        (result("a", "x" * LEAST_SIZE, tool="exec"), False),
        (result("a", "x" * (LEAST_SIZE + 1), tool="exec"), True),
        (result("a", image(), tool="exec"), True),
        (result("a", "x" * 999, tool="write_file"), False),
        (stand_in(call("exec")), False),
        (user("x" * 999), False),
    ],
)
def test_what_a_stub_may_stand_for(message: ToolResult, bulky: bool) -> None:
    """Long results of bulky tools."""
    assert is_bulky(message) is bulky
    assert is_bulky(message, {"other"}) is False


@given(st.text(max_size=400), st.integers(0, 300))
def test_a_text_is_cut_at_birth_within_its_limit(text: str, limit: int) -> None:
    """Head and tail stay, the line between them names the handle of the whole."""
    cut = cut_at_birth(text, limit)
    if len(text) <= limit:
        assert cut is text
        return
    line = cut_at_birth(text, 0)
    assert len(cut) <= max(limit, len(line) + 5)
    assert text_handle(text) in cut
    head, tail = cut.split("\n\n[… ")[0], cut.split(" …]\n\n")[-1]
    assert text.startswith(head) and (text.endswith(tail) or not tail)


def test_head_and_tail_and_what_is_missing_add_up() -> None:
    """Two thirds of what stays are the head."""
    text = "".join(f"{number:04}" for number in range(500))
    cut = cut_at_birth(text, 600)
    head, rest = cut.split("\n\n[… ")
    tail = rest.split(" …]\n\n")[1]
    left_out = int(rest.split(" ")[0].replace(",", ""))
    assert len(head) + len(tail) + left_out == len(text) and 1.8 < len(head) / len(tail) < 2.2
    assert len(cut) <= 600


def test_the_oldest_pictures_of_a_message_are_left_out() -> None:
    """Each by a line with its size, where that is known; made once."""
    one, two = image(40, 30), image()
    message = user("look", one, two)
    assert without_images(message, 1) == user("look", image_stub(one), two)
    assert without_images(message, 1) is without_images(message, 1)
    assert without_images(message, 9) == user("look", image_stub(one), image_stub(two))
    assert "40x30" in image_stub(one).text and "pixels" not in image_stub(two).text
    from_tool = without_images(result("a", one), 1)
    assert isinstance(from_tool, ToolResult) and from_tool.content == (image_stub(one),)
    assert without_images(message, 0) is message
    untouched: Messages = (reply("x"), patch())
    assert all(without_images(each, 1) is each and images_in(each) == 0 for each in untouched)
    assert images_in(message) == 2
