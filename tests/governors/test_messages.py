"""The message model: what messages say of themselves, and what is kept with them."""

from __future__ import annotations

from builders import call, image, reply, result, user

from governors.messages import Thinking, Usage, remember, same_or


def test_a_message_gives_its_text_and_calls() -> None:
    """Text parts in order; pictures, reasoning and calls are not text."""
    assert user("a", image(), "b").text == "a\n\nb"
    assert result("x", "a", image()).text == "a"
    made = reply("a", Thinking("hm"), call(id="1"), "b", call(id="2"))
    assert made.text == "a\n\nb"
    assert [each.id for each in made.calls] == ["1", "2"]


def test_usage_sums_what_the_prompt_took() -> None:
    """Plain, read and both kinds of written tokens make the prompt; reasoning is part of the output."""
    usage = Usage(plain=1, cache_read=2, cache_write_5m=4, cache_write_1h=8, output=16, reasoning=5)
    assert (usage.prompt, usage.total) == (15, 31)


def test_what_is_remembered_is_computed_once_and_is_no_part_of_the_message() -> None:
    """Equal messages stay equal, and hash alike, whatever is known of one of them."""
    one, other = user("a"), user("a")
    computed: list[int] = []
    for _ in range(2):
        assert remember(one, "key", lambda: computed.append(1)) is None
    assert computed == [1]
    assert one == other and hash(one) == hash(other) and other.memo == {}


def test_a_list_of_the_same_objects_is_the_list_itself() -> None:
    """By identity, not by equality: an equal message may know less."""
    messages = (user("a"), user("b"))
    assert same_or(messages, list(messages)) is messages
    assert same_or(messages, [user("a"), messages[1]]) is not messages
    assert same_or(messages, messages[:1]) == messages[:1]
