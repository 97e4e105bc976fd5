"""The commands that move about in the tree and mark its entries, as a person types them."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from governors.messages import Image, Text, ToolCall
from runtime import Call, Reply, tool
from runtime.channels.commands import COMMANDS, Command, parse_command
from runtime.channels.entry_lines import entry_lines, entry_title
from runtime.channels.reducer import Line
from runtime.channels.render import Renderer
from runtime.channels.talk import ACTS, Talk
from runtime.session.entries import Entry, Header, MessageRecord, PinRecord, RedactRecord, ResultRecord, SettingRecord
from runtime.session.format.codec import encode_entry, encode_header
from tests.channels.test_talk import Hold, Watching, sitting
from tests.session.logs import Log
from tests.session.records import AT, user


async def type_(talk: Talk, *lines: str) -> None:
    for line in lines:
        command = parse_command(line)
        if command is None:
            await talk.say(line)
        else:
            await talk.run(command)
        await talk.settle()


def number_of(talk: Talk, text: str) -> int:
    """The newest entry that says `text`."""
    entries = talk.agent.session.tree.entries
    return next(e.id for e in reversed(entries) if getattr(e.record, "content", None) == (Text(text),))


def new(audience: Watching, before: int) -> list[str]:
    return audience.texts[before:]


def test_every_command_is_carried_out_by_something() -> None:
    assert set(ACTS) == set(COMMANDS)


async def test_undo_gives_the_message_back_to_be_changed(tmp_path: Path) -> None:
    """And says what it did and the way back, which is a command that works."""
    async with sitting(tmp_path, "One.", "Two.", "Better two.") as (talk, audience):
        await type_(talk, "first", "second thing")
        entry = number_of(talk, "second thing")
        await type_(talk, "/undo")
        assert audience.offered == ["second thing"]
        told = f"info: Took back 1 turn, from #{entry} on. Nothing is deleted: /tree {entry} goes back there."
        assert audience.texts[-1] == told
        assert audience.moves == 1
        await type_(talk, "second, better")
        assert audience.texts[-2:] == ["user: second, better", "Better two."]
        before = len(audience.texts)
        await type_(talk, f"/tree {entry}")
        assert new(audience, before)[0].startswith("past: … 1 earlier")
        assert "past: › second thing" in audience.texts
        assert f"/tree {number_of(talk, 'second, better')} goes back" in audience.texts[-1]


async def test_undo_in_the_middle_of_a_turn(tmp_path: Path) -> None:
    """The turn is stopped first; what was typed meanwhile is held, not sent."""
    hold = Hold()
    async with sitting(tmp_path, Reply("Half", hold=hold)) as (talk, audience):
        await talk.say("go")
        await hold.reached.wait()
        await talk.say("and this")
        with anyio.fail_after(5):
            await type_(talk, "/undo")
        assert talk.waiting() == [("held", "and this")]
        assert audience.offered == ["go"]
        assert [text for text in audience.texts if text.startswith("info: ")][:2] == [
            "info: Stopped.",
            "info: Held back: 1 message. /send sends, /drop drops.",
        ]


async def test_retry_shows_the_message_and_the_new_answer(tmp_path: Path) -> None:
    """Again and again, each time once."""
    async with sitting(tmp_path, "Bad.", "Better.", "Best.") as (talk, audience):
        await type_(talk, "/retry")
        assert audience.texts[-1].startswith("error: there is nothing to try again")
        await type_(talk, "a joke", "/retry", "/retry")
        assert audience.texts[1:] == ["user: a joke", "Bad.", "user: a joke", "Better.", "user: a joke", "Best."]
        await type_(talk, "/retry nobody/nothing")
        assert audience.texts[-1].startswith("error: there is no model 'nobody/nothing'")


async def test_the_tree_and_going_about_in_it(tmp_path: Path) -> None:
    """What it shows are numbers that can be typed."""
    async with sitting(tmp_path, "One.", "Two.", "Other two.", "They asked for b.") as (talk, audience):
        await type_(talk, "/tree")
        assert audience.texts[-1] == "info: Nothing was said yet."
        await type_(talk, "a", "b", "/undo", "other b", "/tree")
        a, b, other = (number_of(talk, text) for text in ("a", "b", "other b"))
        assert audience.texts[-2] == (
            f"tree: {'#' + str(a):>6}  a\n        ├ #{b}  b\n{'#' + str(other):>6}  other b  ← you are here"
        )
        await type_(talk, f"/tree {other}")
        assert audience.texts[-1] == "info: You are there already."
        await type_(talk, f"/tree {b} edit")
        assert audience.offered[-1] == "b"
        await type_(talk, f"/tree {b}", f"/tree {other} summary")
        assert audience.texts[-1] == "info: The model was told of the branch that you left: They asked for b."
        for wrong, words in (
            ("/tree 999", "there is no entry 999"),
            ("/tree b", "/tree shows the turns"),
            (f"/tree {b} away", "takes `edit` or `summary`"),
            ("/undo all", "how many turns"),
            ("/undo 99", "only 2 turns"),
        ):
            await type_(talk, wrong)
            assert audience.texts[-1].startswith("error: ")
            assert words in audience.texts[-1]


async def test_a_summary_that_fails_says_so_and_stays(tmp_path: Path) -> None:
    async with sitting(tmp_path, "One.", "Two.", Reply("", error="server")) as (talk, audience):
        await type_(talk, "a", "b")
        leaf = number_of(talk, "Two.")
        await type_(talk, f"/tree {number_of(talk, 'a')} summary")
        assert audience.texts[-1].startswith("error: No summary: ")
        assert talk.agent.session.tree.holds(talk.agent.session.tree.leaf, leaf)


async def test_fork_goes_on_in_a_new_session(tmp_path: Path) -> None:
    """With what was said, under the same numbers; the old one is closed and as it was."""
    async with sitting(tmp_path, "One.", "Two.", "Three.") as (talk, audience):
        await type_(talk, "a", "b")
        old, b = talk.agent.session, number_of(talk, "b")
        data = old.path.read_bytes()
        await type_(talk, f"/fork {number_of(talk, 'One.')}")
        assert talk.agent.session.id != old.id
        assert audience.agents == [talk.agent]
        assert "New session" in audience.texts[-1]
        await type_(talk, "c")
        assert audience.texts[-2:] == ["user: c", "Three."]
        assert old.path.read_bytes() == data
        assert talk.agent.session.tree.get(b) is None or number_of(talk, "c") >= b
        await type_(talk, "/fork 999")
        assert audience.texts[-1].startswith("error: there is no entry 999")


async def test_a_fork_talks_to_the_model_of_its_branch(tmp_path: Path) -> None:
    """The one that was chosen on it; before that, the one that the runtime chose."""
    async with sitting(tmp_path, "One.", "Two.") as (talk, _):
        await type_(talk, "a")
        first = talk.agent.model
        await talk.agent.switch_model(first.provider.chosen(id="stronger"))  # type: ignore[attr-defined] # scripted
        await type_(talk, "b", "/fork")
        assert talk.agent.model.name == "scripted/stronger"
        await type_(talk, f"/fork {number_of(talk, 'One.')}")
        assert talk.agent.model.name == "scripted/scripted"
        settings = [e.record for e in talk.agent.session.tree.entries if isinstance(e.record, SettingRecord)]
        assert settings == []


async def test_marks(tmp_path: Path) -> None:
    """Each says what it did, with the number and the way back."""
    async with sitting(tmp_path, "One.") as (talk, audience):
        await type_(talk, "a")
        a, one = number_of(talk, "a"), number_of(talk, "One.")
        for line, words in (
            ("/pin", f"Pinned #{one}"),
            (f"/unpin #{one}", f"#{one} is not pinned any more"),
            ("/label beans", f"#{one} is called beans now"),
            (f"/label {a} my question", f"#{a} is called my question now"),
            (f"/label {a}", f"#{a} is not called my question any more"),
            (f"/label {a}", f"#{a} has no name"),
            ("/label", "/label needs a name"),
            ("/note 12 eggs", "Noted as #"),
            ("/note", "/note needs a text"),
            (f"/omit {a}", f"does not see #{a} any more"),
            (f"/restore {a}", f"sees #{a} again"),
            (f"/restore {a}", "nothing to restore"),
            ("/omit", "needs the number of an entry"),
            ("/omit two", "takes the number of an entry"),
            ("/pin 999", "there is no entry 999"),
        ):
            await type_(talk, line)
            assert words in audience.texts[-1], line
        pins = [e.record.on for e in talk.agent.session.tree.entries if isinstance(e.record, PinRecord)]
        assert pins == [True, False]


@tool(read_only=True)
def secret() -> str:
    """Tell a secret."""
    return "hunter2"


async def test_redact_asks_first_and_tells_what_may_still_hold_it(tmp_path: Path) -> None:
    """Nothing is hidden before the yes; afterwards it is shown nowhere."""
    script = (Reply("I look.", calls=[Call("secret", {})]), "Done.", "Two.")
    async with sitting(tmp_path, *script, tools=[secret]) as (talk, audience):
        await type_(talk, "what is it?")
        reply = next(e.id for e in talk.agent.session.tree.entries if "I look." in str(e.record))
        result = number_of(talk, "hunter2")
        await type_(talk, f"/redact {reply}")
        assert "cannot be taken back" in audience.texts[-1]
        assert audience.offered == [f"/redact {reply} yes"]
        assert not [e for e in talk.agent.session.tree.entries if isinstance(e.record, RedactRecord)]
        await type_(talk, audience.offered[0])
        assert f"not redacted: #{result}." in audience.texts[-1]
        await type_(talk, f"/redact {result} yes", f"/show {result}")
        assert audience.texts[-1] == "plain: [redacted]"
        await type_(talk, f"/redact {result}")
        assert audience.texts[-1] == f"error: entry {result} is redacted already"
        await type_(talk, "next")
        assert "hunter2" not in str(talk.agent.model.provider.requests[-1].body)  # type: ignore[attr-defined] # scripted
        for wrong in ("/redact", "/redact two", f"/redact {result} maybe"):
            await type_(talk, wrong)
            assert "needs the number" in audience.texts[-1]


async def test_show_prints_an_entry_whole(tmp_path: Path) -> None:
    """The last message by default; any other by its number."""
    async with sitting(tmp_path, "One\n\ntwo\nthree.") as (talk, audience):
        await type_(talk, "/show")
        assert audience.texts[-1].startswith("error: nothing was said")
        await type_(talk, "a", "/show")
        number = number_of(talk, "One\n\ntwo\nthree.")
        assert audience.texts[-2].startswith(f"info: #{number} · reply of scripted · ")
        assert audience.texts[-1] == "plain: One\n\ntwo\nthree."
        await type_(talk, "/show 2")
        assert '"sections"' in audience.texts[-1]


@pytest.mark.parametrize(
    ("record", "title", "text"),
    [
        (user("hi"), "message of the user", "hi"),
        (
            MessageRecord(role="user", content=(Image("image/png", "aGk="),)),
            "message of the user",
            "(picture, image/png)",
        ),
        (
            MessageRecord(
                role="assistant", content=(Text("So."), ToolCall("c", "x", "{}")), stop="tool_use", model="m"
            ),
            "reply of m",
            "So.\n\n(call) x {}",
        ),
        (MessageRecord(role="assistant", content=(), stop="aborted"), "reply", "(nothing; it ended with: aborted)"),
        (ResultRecord(call=(3, 0), tool="x", content=(Text("short"),)), "result of x, called in #3", "short"),
        (SettingRecord(name="model", value="m"), "setting", '{\n  "name": "model",\n  "value": "m"\n}'),
    ],
)
def test_what_an_entry_says(record: MessageRecord | ResultRecord | SettingRecord, title: str, text: str) -> None:
    """A person reads words, a program's entry as it stands in the file."""
    entry = Entry(7, 6, AT, record)
    assert entry_title(entry) == f"#7 · {title} · {AT} · after #6"
    assert entry_lines(entry) == text
    assert entry_lines(entry, redacted=True) == "[redacted]"


def test_a_line_of_the_tree_stays_a_line() -> None:
    """It is cut where the terminal ends."""
    shown = Line("tree", "\n".join(f"{number}  a question that is longer than that" for number in range(3)))
    lines = Renderer().draw(shown, 24)
    assert lines == [f"{number}  a question that is l…" for number in range(3)]


def test_a_long_output_is_shown_whole() -> None:
    entry = Entry(7, 6, AT, ResultRecord(call=(3, 0), tool="x", content=(Text("sho"),), whole="short and long"))
    assert entry_lines(entry, output="short and long") == "short and long"


async def test_an_unknown_number_stops_nothing(tmp_path: Path) -> None:
    """A slip of the keys leaves the running turn alone when a fork is asked for."""
    hold = Hold()
    async with sitting(tmp_path, Reply("Half", hold=hold)) as (talk, audience):
        await talk.say("go")
        await hold.reached.wait()
        await talk.run(Command("/fork", "999"))
        assert talk.working
        assert "there is no entry 999" in audience.texts[-1]


#: What is typed in a session that was read from its tail, and what is shown of it; `{a}` is an entry that was not read.
_BEHIND = (
    ("/show {a}", "the oldest"),
    ("/pin {a}", "Pinned #{a}"),
    ("/unpin {a}", "#{a} is not pinned"),
    ("/label {a} beans", "#{a} is called beans"),
    ("/label {a}", "#{a} has no name"),
    ("/omit {a}", "does not see #{a}"),
    ("/restore {a}", "entry {a} is shown as it was recorded"),
    ("/redact {a}", "Hide this for good"),
    ("/redact {a} yes", "Redacted #{a}"),
    ("/tree", "the oldest"),
    ("/tree all", "the oldest"),
    ("/tree {a}", "/tree {b} goes back"),
    ("/tree {a} edit", "/tree {b} goes back"),
    ("/fork {a}", "New session"),
    ("/undo 3", "Took back 3 turns"),
    ("/retry", "Again."),
    ("/tokens", "kept free"),
    ("/note x", "Noted as"),
)


@pytest.mark.parametrize(("typed", "told"), _BEHIND, ids=[typed for typed, _ in _BEHIND])
async def test_commands_find_what_a_resume_did_not_read(tmp_path: Path, typed: str, told: str) -> None:
    """They are those of a session that was read whole."""
    log = Log()
    a = log.user("the oldest")
    log.reply("word " * 60_000)
    log.user("older")
    log.reply("ok")
    b = log.user("here")
    log.reply("ok")
    log.head(b, summary="They spoke.")
    folder = tmp_path / ".moonwake" / "sessions" / "assistant"
    folder.mkdir(parents=True)
    header = Header(id="s", agent="assistant", created=AT)
    (folder / "s.jsonl").write_bytes(encode_header(header) + b"".join(map(encode_entry, log.tree.entries)))
    async with sitting(tmp_path, "Again.", session="s") as (talk, audience):
        assert talk.agent.session.tree.get(a) is None and talk.agent.session.tree.get(b) is not None
        await type_(talk, typed.format(a=a))
        assert any(told.format(a=a, b=b) in text for text in audience.texts), audience.texts
        assert not talk.agent.session.findings
