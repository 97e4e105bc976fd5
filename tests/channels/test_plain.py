"""The conversation without a terminal: lines in, plain text out."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from runtime import Reply
from runtime.channels.plain import PlainAudience, plain_chat
from runtime.channels.talk import Talk
from runtime.channels.terminal import chat, is_terminal
from runtime.errors import MoonwakeError
from runtime.providers.scripted import Script
from tests.agents import talk as opened


async def converse(folder: Path, lines: bytes, *script: Script, first: str | None = None) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    async with opened(folder, script) as scene:
        audience = PlainAudience(out, err, lambda: 0.0)
        talk = Talk(scene.runtime, scene.agent, audience)
        code = await plain_chat(talk, audience, first, io.TextIOWrapper(io.BytesIO(lines)))
    return code, out.getvalue(), err.getvalue()


async def test_each_line_is_a_message_and_each_answer_plain_text(tmp_path: Path) -> None:
    """Markdown comes as it was written, answers end in a newline, and the exit code is 0."""
    code, out, _ = await converse(tmp_path, b"one\r\n\n\xfftwo\n", "**First.**", "Second.\n", "zero", first="nought")
    assert (code, out) == (0, "**First.**\nSecond.\nzero\n")


async def test_no_control_codes_come_out(tmp_path: Path) -> None:
    """Not from the model either, however it cuts them."""
    _, out, err = await converse(tmp_path, b"go\n", "a\x1b[31mb\x1b]0;title that is rather long\x07c")
    assert out == "abc\n"
    assert "\x1b" not in err


async def test_errors_go_to_stderr_and_into_the_exit_code(tmp_path: Path) -> None:
    """A failed last turn is exit code 1; one that was made good is not."""
    code, out, err = await converse(tmp_path, b"go\n", Reply(error="auth"))
    assert (code, out) == (1, "")
    assert "auth" in err
    code, out, _ = await converse(tmp_path, b"go\ngo\n", Reply(error="auth"), "fine")
    assert (code, out) == (0, "fine\n")


async def test_commands_work_without_a_terminal(tmp_path: Path) -> None:
    """What follows /quit is not read, and what is shown is no answer."""
    code, out, err = await converse(tmp_path, b"/help\n/quit\nnever\n")
    assert (code, out) == (0, "")
    assert "/tokens" in err


async def test_chat_falls_back_to_plain_when_piped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On both backends: the plain conversation needs no asyncio."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"and again\n")))
    async with opened(tmp_path, ["Hello.", "Bye."]) as scene:
        code = await chat(scene.runtime, agent="assistant", session=scene.agent.session.id, resume=False, first="hi")
    printed = capsys.readouterr()
    assert (code, printed.out) == (0, "Hello.\nBye.\n")
    assert scene.agent.session.id in printed.err


async def test_continue_with_nothing_to_continue_begins_a_new_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And says so in one line; what follows goes on with the session that was begun so."""
    for said, answer in (("first", "One."), ("second", "Two.")):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
        async with opened(tmp_path, [answer]) as scene:
            code = await chat(scene.runtime, agent="assistant", session=None, resume=True, first=said)
            (request,) = scene.bodies
        printed = capsys.readouterr()
        assert (code, printed.out) == (0, f"{answer}\n")
        assert ("nothing to continue yet: this is a new session" in printed.err) == (said == "first")
        assert ("first" in str(request["messages"][:-1])) == (said == "second")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("anyio_backend", ["trio"])
async def test_a_terminal_needs_asyncio(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On trio the error says so, before anything is opened."""
    for name in ("stdin", "stdout"):
        monkeypatch.setattr(sys, name, Terminal())
    monkeypatch.setenv("TERM", "xterm")
    async with opened(tmp_path) as scene:
        with pytest.raises(MoonwakeError, match="asyncio"):
            await chat(scene.runtime, agent="assistant", session=None, resume=True)


def test_what_counts_as_a_terminal() -> None:
    """Both ends must be one, and it must be able to move its cursor."""
    pipe, terminal = io.StringIO(), Terminal()
    assert is_terminal(terminal, terminal, {"TERM": "xterm-256color"})
    assert not is_terminal(terminal, pipe, {"TERM": "xterm"})
    assert not is_terminal(pipe, terminal, {"TERM": "xterm"})
    assert not is_terminal(terminal, terminal, {"TERM": "dumb"})
    assert not is_terminal(terminal, terminal, {})
