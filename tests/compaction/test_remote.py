"""What counts of a provider's own compaction, by name."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from governors.snip import OMITTED_STEPS
from governors.wire.common import OPENING, patch_text
from governors.wire.compaction_items import UNREADABLE
from runtime.compaction.remote import DROPPED_KINDS, POSING, UnknownItem, compaction_in, kept
from runtime.session.view.pins import PINNED
from runtime.session.view.redaction import STALE_SUMMARY
from runtime.session.view.wrapping import OTHER_BRANCH, SUMMARY, opening_of

ITEM = {"type": "compaction", "encrypted_content": "e"}


def said(role: str, text: str) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}


KEPT = [
    said("user", "hello"),
    {"role": "user", "content": "hello"},
    said("user", "  [not a wrapping]"),
    {"type": "message", "role": "user", "content": [{"type": "input_image", "image_url": "data:"}]},
    said("user", opening_of("reminder", {})),
    said("assistant", "yes"),
    {"type": "text", "text": "said"},
    ITEM,
    {"type": "compaction", "content": "so far"},
]
DROPPED = [
    *({"type": kind} for kind in sorted(DROPPED_KINDS)),
    *(said(role, "be kind") for role in ("developer", "system", "tool")),
    *(said("user", text) for text in (SUMMARY, OTHER_BRANCH, PINNED, UNREADABLE, OMITTED_STEPS, OPENING)),
    said("user", patch_text("now")),
    said("user", "[late result of look, call 7]"),
    said("user", f"\n{SUMMARY}\nmore"),
]
each = st.sampled_from([*KEPT, *DROPPED])


@pytest.mark.parametrize("item", KEPT)
def test_what_was_said_is_kept(item: dict[str, Any]) -> None:
    """Words of users and hooks, replies, compactions: the very object."""
    assert kept([item])[0] is item


@pytest.mark.parametrize("item", DROPPED)
def test_what_was_not_said_is_dropped(item: dict[str, Any]) -> None:
    """Instructions, what poses as a user's message, calls, results, reasoning, triggers."""
    assert kept([item]) == ()


@pytest.mark.parametrize(
    "item", [{"type": "memo"}, said("critic", "no"), {}, {"type": None}, {"type": 7, "role": "user"}]
)
def test_what_has_no_name_is_an_error(item: dict[str, Any]) -> None:
    """Whatever else there is."""
    with pytest.raises(UnknownItem):
        kept([*KEPT, item])


@given(st.lists(each))
def test_filtering_keeps_order_and_does_nothing_twice(items: list[dict[str, Any]]) -> None:
    """What comes out is a part of what went in, and each by itself."""
    once = kept(items)
    assert kept(once) == once
    assert list(once) == [item for item in items if kept([item])]


@given(
    st.lists(each),
    st.text().filter(lambda kind: kind not in DROPPED_KINDS and kind not in ("compaction", "text", "message")),
)
def test_no_kind_has_a_default(items: list[dict[str, Any]], kind: str) -> None:
    """An invented one is an error wherever it stands."""
    with pytest.raises(UnknownItem):
        kept([{"type": kind}, *items])
    with pytest.raises(UnknownItem):
        kept([*items, {"type": kind}])


@pytest.mark.parametrize(
    ("items", "why"),
    [
        ([said("user", "hello")], "no compaction"),
        ([ITEM, ITEM], "2 compactions"),
        ([{"type": "compaction", "content": None}], "empty"),
        ([{"type": "compaction", "encrypted_content": " "}], "empty"),
    ],
)
def test_one_compaction_with_content_is_wanted(items: list[dict[str, Any]], why: str) -> None:
    """Anything else does not count, and the reason can be told."""
    with pytest.raises(ValueError, match=why):
        compaction_in(items)


def test_what_the_runtime_wraps_is_known_by_its_opening() -> None:
    """Each opening that is no user's begins as the list has it, and a summary that went stale poses too."""
    for text in (SUMMARY, OTHER_BRANCH, PINNED, UNREADABLE, OMITTED_STEPS, OPENING, patch_text("x")):
        assert text.startswith(POSING), text
    assert compaction_in([said("user", "a"), ITEM, said("developer", "b")]) is ITEM
    assert not STALE_SUMMARY.startswith("[late")
