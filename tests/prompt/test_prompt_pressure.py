"""Sections fall away from the back and come back, and nothing flaps; a section that failed keeps what was shown."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from runtime.prompt.pressure import CALM, LEAST, TOKEN_BYTES, keep_shown, room_of, shed
from runtime.sections import LEFT_OUT, Section, Sections, place

ORDER = (
    "identity",
    "../../AGENTS.md",
    "../AGENTS.md",
    "AGENTS.md",
    "SOUL.md",
    "USER.md",
    "TOOLS.md",
    "memory/global",
    "memory/project",
    "skill/a",
    "skill/b",
    "skills",
    "runtime",
)
#: From the first to go to the last.
FALLING = (*reversed(ORDER[4:]), "../../AGENTS.md", "../AGENTS.md", "AGENTS.md")
TOOLS = ("read_file", "skill")

states = st.lists(st.tuples(st.sampled_from(ORDER), st.integers(0, 400)), unique_by=lambda pair: pair[0]).map(
    lambda pairs: tuple(Section(name, "x" * size) for name, size in sorted(pairs, key=lambda pair: place(pair[0])))
)


def size_of(sections: Sections) -> int:
    return sum(len(section.text) + 2 for section in sections)


@given(states, st.integers(1, 900))
def test_layers_fall_from_the_back_and_no_more_than_must(desired: Sections, room: int) -> None:
    """What is left out is the shortest run from the back that makes the rest fit."""
    told = shed(desired, room, (), TOOLS)
    there = [name for name in FALLING if name in {section.name for section in desired}]
    assert set(told.left_out) == set(there[: len(told.left_out)])
    shown = [section for section in told.sections if section.name != LEFT_OUT]
    assert shown == [section for section in desired if section.name not in told.left_out]
    assert (LEFT_OUT in {section.name for section in told.sections}) == bool(told.left_out)
    if len(told.left_out) < len(there):
        assert size_of(told.sections) <= room * TOKEN_BYTES
    if not told.left_out:
        assert told.sections is desired
    else:
        assert size_of(desired) > room * TOKEN_BYTES * CALM


@given(states, st.lists(st.integers(1, 900), min_size=1, max_size=6))
def test_what_was_decided_is_decided_again(desired: Sections, rooms: list[int]) -> None:
    """Whatever models came before: with the same files and model, the next turn shows the same."""
    shown: Sections = ()
    for room in rooms:
        shown = shed(desired, room, shown, TOOLS).sections
    assert shed(desired, rooms[-1], shown, TOOLS).sections == shown


@given(states, st.integers(1, 900), st.integers(1, 900))
def test_a_large_room_restores_everything(desired: Sections, small: int, much: int) -> None:
    """Back on a model with room to spare, nothing is missing."""
    shown = shed(desired, small, (), TOOLS).sections
    large = int(size_of(desired) / TOKEN_BYTES / CALM) + 1 + much
    assert shed(desired, large, shown, TOOLS).sections is desired


def test_a_file_at_the_threshold_does_not_flap() -> None:
    """A file that grows and shrinks around the limit takes a section once; it comes back when there is air."""
    room = 1_000  # tokens: 3,000 bytes

    def sections(memory: int) -> Sections:
        return (
            Section("identity", "i" * 1_000),
            Section("memory/project", "m" * memory),
            Section("runtime", "r" * 500),
        )

    shown = shed(sections(1_480), room, (), TOOLS).sections
    assert [section.name for section in shown] == ["identity", "memory/project", "runtime"]
    left_out = []
    for memory in (1_600, 1_480, 1_600, 1_480, 1_180):
        told = shed(sections(memory), room, shown, TOOLS)
        shown = told.sections
        left_out.append(told.left_out)
    assert left_out == [("runtime",)] * 4 + [()]


def test_the_note_names_what_went_and_how_to_read_it() -> None:
    """A model knows what it does not see."""
    desired = (Section("identity", "i"), Section("memory/project", "m" * 900), Section("skills", "s" * 900))
    note = shed(desired, 100, (), TOOLS).sections[-1]
    assert note.name == LEFT_OUT
    assert "memory/project, skills." in note.text
    assert "read_file opens memory/MEMORY.md" in note.text
    assert "skill tool" in note.text
    assert "read_file" not in shed(desired, 100, (), ()).sections[-1].text


def test_the_nearest_rules_stay_longest() -> None:
    """Of several AGENTS.md the workspace's own is the last to go."""
    files = [Section(name, "x" * 1_000) for name in ("../../AGENTS.md", "../AGENTS.md", "AGENTS.md", "SOUL.md")]
    kept = [shed((Section("identity", "i"), *files), room, (), ()).left_out for room in (1_200, 900, 550, 100)]
    assert kept[0] == ("SOUL.md",)
    assert kept[1] == ("../../AGENTS.md", "SOUL.md")
    assert kept[2] == ("../../AGENTS.md", "../AGENTS.md", "SOUL.md")
    assert len(kept[3]) == 4


def test_the_room_follows_from_window_and_setting() -> None:
    """A quarter; a small window gives at least what rules and identity need, but never more than half of it."""
    assert room_of(200_000) == 50_000
    assert room_of(8_192) == LEAST
    assert room_of(2_000) == 1_000
    assert room_of(200_000, 0.1) == 20_000


@given(states, states, st.sets(st.sampled_from(ORDER)))
def test_a_failed_section_keeps_what_was_shown(desired: Sections, shown: Sections, failed: set[str]) -> None:
    """At its place, with its last text; everything else is as desired; again gives the same."""
    told, kept = keep_shown(desired, failed, shown)
    before = {section.name: section.text for section in shown}
    wanted = {section.name: section.text for section in desired}
    wanted |= {name: text for name, text in before.items() if name in failed}
    assert {section.name: section.text for section in told} == wanted
    assert [section.name for section in told] == sorted(wanted, key=place)
    assert set(kept) == failed & set(before)
    assert keep_shown(desired, failed, told)[0] == told


def test_a_folder_of_skills_that_cannot_be_listed_takes_no_skill_away() -> None:
    """Those shown in full stay, too."""
    shown = (Section("skill/a", "a"), Section("skills", "list"))
    assert keep_shown((Section("runtime", "r"),), {"skills", "skill/"}, shown)[0] == (*shown, Section("runtime", "r"))
