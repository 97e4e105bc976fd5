"""Which pictures and documents go when a request holds too many."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from governors import Budget, govern
from governors.decisions import DropDocuments, DropImages
from governors.documents import documents_in
from governors.governor import Governor
from governors.media import Media
from governors.messages import Document, Image, UserMessage, UserPart
from governors.microcompact import images_in
from governors.tokens import ByteCounter
from governors.wire import WIRES
from governors.wire.base import Abilities
from tests.builders import document, image, reply, user

COUNTER = ByteCounter()
LARGE = Budget(100_000_000, 100, margin=0)

parts: st.SearchStrategy[UserPart] = st.one_of(
    st.builds(image, data=st.integers(1, 400).map(lambda size: "A" * 4 * size)),
    st.builds(
        document, pages=st.none() | st.integers(0, 60), data=st.integers(0, 400).map(lambda size: "A" * 4 * size)
    ),
    st.just("words").map(lambda text: user(text).content[0]),
)
talks = st.lists(st.lists(parts, min_size=1, max_size=4).map(tuple).map(UserMessage), min_size=1, max_size=8)
limits = st.builds(
    Abilities,
    images=st.booleans(),
    documents=st.booleans(),
    max_images=st.integers(1, 8),
    max_document_pages=st.integers(1, 100),
    max_image_bytes=st.sampled_from([400, 10_000]),
    max_document_bytes=st.sampled_from([400, 10_000]),
    max_body_bytes=st.integers(4_000, 12_000),
)


@given(talks, limits)
def test_what_is_left_fits_and_nothing_goes_without_need(messages: list[UserMessage], abilities: Abilities) -> None:
    """By count, pages and bytes; no more than there is; and doing it again drops nothing."""
    governor = Governor(LARGE, counter=COUNTER, abilities=abilities)
    for message in messages:
        governed = governor.step((message, reply("ok")))
    shown = tuple(governed.messages)
    left = Media()
    for place, message in enumerate(shown):
        left.take(place, message)
    assert not left.over(abilities)
    sent = [piece for piece in left.pieces if _can_be_sent(piece.is_image, piece.pages, piece.size, abilities)]
    assert sum(piece.is_image for piece in sent) <= abilities.max_images
    assert sum(piece.pages for piece in sent) <= abilities.max_document_pages
    assert sum(piece.size for piece in sent) <= 0.75 * abilities.max_body_bytes
    whole = Media()
    for place, message in enumerate(messages):
        whole.take(place, message)
    if not whole.over(abilities):
        assert governed.decisions == ()
        assert [each for each in shown if isinstance(each, UserMessage)] == messages


def _can_be_sent(is_image: bool, pages: int, size: int, abilities: Abilities) -> bool:
    if is_image:
        return abilities.images and size <= abilities.max_image_bytes
    fits = 0 < size <= abilities.max_document_bytes and pages <= abilities.max_document_pages
    return abilities.documents and fits


@given(talks, limits)
def test_decisions_handed_in_again_give_the_same_messages(messages: list[UserMessage], abilities: Abilities) -> None:
    given_ = [each for message in messages for each in (message, reply("ok"))]
    governed = govern(tuple(given_), budget=LARGE, counter=COUNTER, abilities=abilities)
    for decision in governed.decisions:
        assert isinstance(decision, DropImages | DropDocuments)
        counted = images_in if isinstance(decision, DropImages) else documents_in
        assert 0 < decision.count <= counted(given_[decision.place])
    again = govern(tuple(given_), budget=LARGE, counter=COUNTER, abilities=abilities, decisions=governed.decisions)
    assert again.messages == governed.messages and again.decisions == ()


def test_the_oldest_documents_go_first_and_the_newest_message_is_spared() -> None:
    abilities = Abilities(documents=True, max_document_pages=10)
    messages = (user(document("a.pdf", 4)), user(document("b.pdf", 4)), user("now", document("c.pdf", 9)))
    governed = govern(messages, budget=LARGE, counter=COUNTER, abilities=abilities)
    assert governed.decisions == (DropDocuments(0, 1), DropDocuments(1, 1))
    assert governed.messages[2] is messages[2]
    assert [action.what for action in governed.report.actions] == ["17 pages of documents, the oldest left out"]
    assert "Read out of it." in governed.messages[0].text


def test_a_request_stays_under_the_bytes_that_a_provider_takes() -> None:
    """Twenty pictures that are each small enough were too much together (A12)."""
    abilities = Abilities(images=True, max_images=100, max_body_bytes=1_000_000)
    big = [user(f"number {number}", image(10, 10, data="A" * 200_000)) for number in range(20)]
    wire = WIRES["anthropic"]
    governor = Governor(LARGE, counter=COUNTER, abilities=abilities)
    for message in big:
        shown = tuple(governor.step((message,)).messages)
        body = wire.body(
            wire.encode(shown, system="", tools=(), abilities=abilities), model="m", max_output=10, abilities=abilities
        )
        assert [each for each in wire.check(body, abilities) if each.severity != "$"] == []
    kept = [part for message in shown for part in getattr(message, "content", ()) if isinstance(part, Image)]
    assert 1 <= len(kept) <= 3


def test_documents_that_are_not_sent_count_for_nothing() -> None:
    abilities = Abilities(documents=False, max_document_pages=1)
    messages = (user(document(pages=50)), user(document(pages=50)))
    assert govern(messages, budget=LARGE, counter=COUNTER, abilities=abilities).decisions == ()
    one_too_long = Abilities(documents=True, max_document_pages=60)
    messages = (user(document(pages=70)), user(document(pages=50)))
    assert govern(messages, budget=LARGE, counter=COUNTER, abilities=one_too_long).decisions == ()
    assert isinstance(messages[0].content[0], Document)
