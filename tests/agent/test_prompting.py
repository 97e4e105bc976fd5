"""The prompt as a session lives with it: patches, lack of room, faults and heads, each an ordinary entry."""

from __future__ import annotations

from pathlib import Path

from runtime.agent.fit import fit_setting
from runtime.events import Notice, TurnFinished
from runtime.exports.as_model import as_model
from runtime.prompt.builder import PromptBuilder
from runtime.providers.scripted import Scripted
from runtime.sections import LEFT_OUT
from runtime.session.entries import HeadRecord, OutcomeRecord, RequestRecord, SettingRecord, SystemRecord
from runtime.session.view.projection import system_state
from runtime.session.view.sections import SystemState, state_of
from runtime.workspace import init_workspace, open_workspace
from tests.agents import Talk, assert_prefix_law, of, talk

LONG = "A rule that is long enough to count. " * 300  # 11,100 characters


def shown(it: Talk) -> dict[str, str]:
    """The sections that hold at the end of the log on disk."""
    state = system_state(it.on_disk())
    assert state is not None
    return {section.name: section.text for section in state.sections}


def made_of_files(it: Talk) -> dict[str, str]:
    """What a new builder makes of the files as they are."""
    given = it.agent.equipment
    names = [spec.name for spec in given.toolset.specs]
    prompt = PromptBuilder(open_workspace(given.workspace)).build(given.channel, names)
    return {section.name: section.text for section in prompt.sections}


async def test_a_written_memory_costs_its_own_section(tmp_path: Path) -> None:
    """The change is one entry with one section, and the request before it is a prefix of the next."""
    init_workspace(tmp_path)
    async with talk(tmp_path, ["one", "two", "three"]) as it:
        await it.say("hello")
        (tmp_path / "memory" / "MEMORY.md").write_text("- Ann likes tea")
        await it.say("again")
        await it.say("and again")
        snapshot, patch = it.records(SystemRecord)
        assert len(snapshot.sections) > 4
        assert list(patch.sections) == ["memory/project"]
        assert shown(it) == made_of_files(it)
        assert_prefix_law(it)


async def test_a_small_window_sheds_and_a_large_one_restores(tmp_path: Path) -> None:
    """A switch of models is told by ordinary entries, once each; turns in between change nothing."""
    init_workspace(tmp_path)
    (tmp_path / "AGENTS.md").write_text(LONG)
    async with talk(tmp_path, otherwise="ok", window=200_000) as it:
        large = it.agent.model
        small = Scripted([], otherwise="ok").chosen(id="small", window=16_000)
        await it.say("one")
        whole = shown(it)
        await it.agent.switch_model(small)
        events = [*await it.say("two"), *await it.say("three")]
        assert set(shown(it)) < {*whole, LEFT_OUT}
        assert "runtime" not in shown(it)
        notices = [event.text for event in of(Notice, events) if "Left out" in event.text]
        assert len(notices) == 1
        assert "16,000" in notices[0]
        await it.agent.switch_model(large)
        await it.say("four")
        assert shown(it) == whole == made_of_files(it)
        first, shed, restored = it.records(SystemRecord)
        assert first.sections == whole
        assert shed.sections["runtime"] is None
        assert "runtime" in (shed.sections[LEFT_OUT] or "")
        assert restored.sections[LEFT_OUT] is None
        assert not it.records(HeadRecord)


async def test_a_model_for_the_tiny_profile_and_back(tmp_path: Path) -> None:
    """A model that follows no long prompt is told one paragraph only; the next gets all of it again."""
    init_workspace(tmp_path)
    async with talk(tmp_path, otherwise="ok") as it:
        large = it.agent.model
        await it.say("one")
        whole = shown(it)
        await it.agent.switch_model(Scripted([], otherwise="ok").chosen(id="tiny", profile="tiny"))
        await it.say("two")
        assert list(shown(it)) == ["identity"]
        await it.agent.switch_model(large)
        await it.say("three")
        assert list(shown(it).items()) == list(whole.items()) == list(made_of_files(it).items())


async def test_a_prompt_that_is_shed_leaves_the_request(tmp_path: Path) -> None:
    """A session with a long prompt goes on with a model whose window is smaller than that prompt, and again back."""
    init_workspace(tmp_path)
    (tmp_path / "AGENTS.md").write_text(LONG * 2)
    (tmp_path / "memory" / "MEMORY.md").write_text("- A fact that is long enough.\n" * 500)
    async with talk(tmp_path, otherwise="ok", window=200_000) as it:
        large = it.agent.model
        small = it.model.chosen(id="small", window=9_000, max_output=1_000)
        await it.say("one")
        await it.agent.switch_model(small)
        assert of(TurnFinished, await it.say("two"))[0].error is None
        (tmp_path / "TOOLS.md").unlink()
        (tmp_path / "AGENTS.md").write_text("Short rules.")
        assert of(TurnFinished, await it.say("three"))[0].error is None
        await it.agent.switch_model(large)
        assert of(TurnFinished, await it.say("four"))[0].error is None
        folded = [record for record in it.records(SettingRecord) if record.name == "fold:scripted/small"]
        assert [record.value for record in folded] == [True]
        bodies = [str(body) for body in it.bodies]
        assert [LONG[:300] in body for body in bodies] == [True, False, False, True]
        assert "Short rules." in str(it.bodies[2]["system"])
        causes = [record.cause for record in it.records(OutcomeRecord)]
        assert causes == [None, None, "system folded", None]
        models = [large.info, small.info, small.info, large.info]
        requests = [entry.id for entry in it.on_disk() if isinstance(entry.record, RequestRecord)]
        assert all(as_model(it.on_disk(), at, info).same for at, info in zip(requests, models, strict=True))


async def test_a_head_ends_the_folding(tmp_path: Path) -> None:
    """With the baseline of a head the front is short; patches stand at the tail again, and no byte moves for it."""
    init_workspace(tmp_path)
    (tmp_path / "AGENTS.md").write_text(LONG * 2)
    async with talk(tmp_path, otherwise="word " * 300, window=200_000) as it:
        await it.say("one")
        await it.agent.switch_model(it.model.chosen(id="small", window=9_000, max_output=1_000))
        for turn in range(12):
            await it.say(f"question {turn} " + "more " * 300)
        assert it.records(HeadRecord)
        folded = [record.value for record in it.records(SettingRecord) if record.name == "fold:scripted/small"]
        assert folded == [True, None]
        (tmp_path / "memory" / "MEMORY.md").write_text("- news")
        (tmp_path / "AGENTS.md").write_text("Short rules.")
        await it.say("short")
        assert "Short rules." not in str(it.bodies[-1]["system"])
        assert "Short rules." in str(it.bodies[-1]["messages"])
        assert {record.cause for record in it.records(OutcomeRecord)} == {None, "head"}


async def test_a_window_learned_from_an_overflow_counts(tmp_path: Path) -> None:
    """What a provider's refusal taught of the window holds for the prompt of the next turn, too."""
    init_workspace(tmp_path)
    (tmp_path / "AGENTS.md").write_text(LONG)
    async with talk(tmp_path, ["one", "two"], window=200_000) as it:
        await it.say("hello")
        assert LEFT_OUT not in shown(it)
        learned = SettingRecord(name=fit_setting(it.agent.model), value={"window": 16_000, "factor": 1.2})
        await it.agent.session.append(learned)
        await it.say("again")
        assert LEFT_OUT in shown(it)


async def test_a_resumed_session_sheds_the_same(tmp_path: Path) -> None:
    """What fell away is read from the log: no entry and no warning after a restart."""
    init_workspace(tmp_path)
    (tmp_path / "AGENTS.md").write_text(LONG)
    async with talk(tmp_path, ["one"], window=16_000) as it:
        await it.say("hello")
        session, before = it.agent.session.id, shown(it)
        assert LEFT_OUT in before
    async with talk(tmp_path, ["two"], session=session, window=16_000) as it:
        events = await it.say("again")
        assert not of(Notice, events)
        assert len(it.records(SystemRecord)) == 1
        assert shown(it) == before


async def test_a_share_can_be_set(tmp_path: Path) -> None:
    """`prompt.share` is how much of the window the sections may take."""
    init_workspace(tmp_path)
    async with talk(tmp_path, ["one"], window=200_000, settings={"prompt.share": 0.02}) as it:
        (tmp_path / "AGENTS.md").write_text(LONG)
        await it.say("hello")
        assert LEFT_OUT in shown(it)


async def test_a_file_that_breaks_keeps_what_was_shown_last(tmp_path: Path) -> None:
    """Overwritten with rubbish in mid-session, and read by a new process: the section stays, a person is told."""
    init_workspace(tmp_path)
    (tmp_path / "SOUL.md").write_text("Calm.")
    async with talk(tmp_path, ["one", "two"]) as it:
        await it.say("hello")
        before = shown(it)
        (tmp_path / "SOUL.md").write_bytes(b"\xff\xfe\0")
        texts = [event.text for event in of(Notice, await it.say("again"))]
        assert any("binary" in text for text in texts)
        assert "What was last shown of SOUL.md stays in the prompt." in texts
        assert shown(it) == before
        session = it.agent.session.id
    async with talk(tmp_path, ["three", "four"], session=session) as it:
        await it.say("once more")
        assert shown(it) == before
        (tmp_path / "SOUL.md").write_text("Lively.")
        await it.say("and more")
        assert "Lively." in shown(it)["SOUL.md"]
        assert len(it.records(SystemRecord)) == 2


async def test_a_new_epoch_begins_with_a_complete_baseline(tmp_path: Path) -> None:
    """A head holds every section as it was last told; older patches are not sent again, newer ones extend it."""
    init_workspace(tmp_path)
    memory = tmp_path / "memory" / "MEMORY.md"
    async with talk(tmp_path, otherwise="word " * 400, window=16_000) as it:
        turn = 0
        while not it.records(HeadRecord):
            turn += 1
            memory.write_text(f"- fact {turn}")
            await it.say(f"question {turn} " + "more " * 400)
            assert turn < 60
        (head,) = it.records(HeadRecord)
        baseline = state_of(head.baseline)
        assert {section.name: section.text for section in baseline.sections} == shown(it) == made_of_files(it)
        text = str(it.bodies[-1])
        assert f"- fact {turn}\\n" in text
        assert "- fact 1\\n" not in text
        memory.write_text("- the last fact")
        await it.say("short")
        assert list(it.records(SystemRecord)[-1].sections) == ["memory/project"]
        assert shown(it) == made_of_files(it)


async def test_replaying_the_entries_gives_what_was_told(tmp_path: Path) -> None:
    """Snapshot and patches, folded, are the files of the moment, through new, changed and deleted ones."""
    init_workspace(tmp_path)
    async with talk(tmp_path, otherwise="ok") as it:
        for change in ("write", "delete", "write"):
            for name in ("SOUL.md", "TOOLS.md", "USER.md"):
                file = tmp_path / name
                if change == "write":
                    file.write_text(f"{name} of the {change}")
                else:
                    file.unlink()
                await it.say("next")
                assert shown(it) == made_of_files(it)
        state = SystemState()
        for record in it.records(SystemRecord):
            state = state.patched(record)
        assert {section.name: section.text for section in state.sections} == shown(it)
        assert_prefix_law(it)
