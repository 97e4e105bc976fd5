"""Sections: the difference replays to what was wanted, and its text tells exactly that."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from runtime.sections import Section, Sections, apply, diff, patch_text, place, render, replay, tagged

NAMES = (
    "identity",
    "AGENTS.md",
    "SOUL.md",
    "memory/global",
    "memory/project",
    "skill/a",
    "skill/b",
    "skills",
    "runtime",
    "hook/x",
)


def sections(*pairs: tuple[str, str]) -> Sections:
    return tuple(Section(name, text) for name, text in pairs)


any_order = st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from("12")), unique_by=lambda pair: pair[0]).map(
    lambda pairs: sections(*pairs)
)
in_order = any_order.map(lambda found: tuple(sorted(found, key=lambda section: place(section.name))))


@given(any_order, any_order)
def test_applying_the_difference_gives_what_was_desired(shown: Sections, desired: Sections) -> None:
    """Any two states, in any order: the changes lead from the one to the other."""
    assert apply(shown, diff(shown, desired)) == desired


@given(any_order)
def test_no_difference_no_changes(shown: Sections) -> None:
    """An unchanged prompt has no patch."""
    assert diff(shown, shown) == {}
    assert apply(shown, {}) == shown
    assert patch_text({}) == ""


@given(st.lists(any_order, max_size=6))
def test_replay_equals_the_last_desired_state(states: list[Sections]) -> None:
    """A session's patches, folded, are the newest state."""
    patches = []
    shown: Sections = ()
    for desired in states:
        patches.append(diff(shown, desired))
        shown = desired
    assert replay(patches) == shown


@given(in_order, in_order)
def test_between_ordered_states_only_the_difference_is_told(shown: Sections, desired: Sections) -> None:
    """What the builder makes is ordered; then each change costs its own size only, insertions too."""
    before, after = dict(_pairs(shown)), dict(_pairs(desired))
    changes = diff(shown, desired)
    assert set(changes) == {name for name in {*before, *after} if before.get(name) != after.get(name)}


def _pairs(found: Sections) -> list[tuple[str, str]]:
    return [(section.name, section.text) for section in found]


def test_removed_is_none_and_new_memory_costs_itself() -> None:
    """A removed section is None; memory that comes to life goes between its neighbours without touching them."""
    shown = sections(("identity", "i"), ("USER.md", "u"), ("skills", "s"))
    desired = sections(("identity", "i"), ("memory/project", "m"), ("skills", "s"))
    assert diff(shown, desired) == {"USER.md": None, "memory/project": "m"}


def test_changed_order_is_all_none_then_all_anew() -> None:
    """When the order changed everything is told again, removed ones first."""
    shown = sections(("identity", "i"), ("gone", "g"), ("x", "x"), ("y", "y"))
    desired = sections(("y", "y"), ("x", "x"), ("identity", "i"))
    changes = diff(shown, desired)
    assert list(changes.items()) == [("gone", None), ("y", "y"), ("x", "x"), ("identity", "i")]


def test_rendering_joins_what_is_final() -> None:
    """A section's text is what a model reads; its tag is put on once, by who makes it."""
    assert render(()) == ""
    assert render((Section("identity", "one"),)) == "one"
    assert render((tagged(Section("a", "one")), Section("b", "two"))) == '<section name="a">\none\n</section>\n\ntwo'


def test_patch_describes_state_and_commands_nothing() -> None:
    """The text of a patch says what holds now, in constant words."""
    memory = tagged(Section("memory/project", "m")).text
    assert patch_text({"USER.md": None, "memory/project": memory}) == (
        "The system prompt has changed. These sections now read as follows, in place of earlier ones.\n\n"
        '<section name="memory/project">\nm\n</section>\n\n'
        "These sections are no longer part of the system prompt: USER.md."
    )
    assert "now read" not in patch_text({"USER.md": None})
    assert "no longer" not in patch_text({"USER.md": "u"})
