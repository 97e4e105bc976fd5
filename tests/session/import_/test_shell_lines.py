"""Commands that users ran in a shell of Claude Code or Codex: entries of the kind that `!COMMAND` makes."""

from __future__ import annotations

from pathlib import Path

import pytest

from governors.messages import Text
from runtime.session.entries import ExtensionRecord, MessageRecord
from runtime.session.tree import Tree
from runtime.session.view.projection import project
from tests.session.import_.samples import claude_reply, claude_user, codex, codex_said, read

CODEX = "<user_shell_command>\n<command>\n{}\n</command>\n<result>\n{}\n</result>\n</user_shell_command>"


def test_claude_code_tells_the_command_and_its_output_on_two_lines(tmp_path: Path) -> None:
    """Both become one entry; a message that only quotes such a line stays one."""
    lines = [
        claude_user(1, None, "<bash-input>ls -l</bash-input>"),
        claude_user(2, 1, "<bash-stdout>total 0\n</bash-stdout><bash-stderr>odd</bash-stderr>"),
        claude_user(3, 2, "Why did <bash-input>ls</bash-input> say so?"),
        claude_reply(4, 3, "m-1", "It is empty."),
        claude_user(5, 4, "<bash-input>true</bash-input>"),
        claude_user(6, 5, "Go on."),
    ]
    result = read(tmp_path, lines)
    first, second = result.records(ExtensionRecord)
    assert (first.name, first.data, first.content) == ("shell", {"command": "ls -l"}, (Text("total 0\nodd"),))
    assert (second.data, second.content) == ({"command": "true"}, (Text("(no output)"),))
    assert result.of_line(1) is result.of_line(2)
    shown = [message.text for message in project(Tree(result.entries).branch()).messages]
    assert shown[0] == "[The user ran this command in a shell:]\nls -l\n\ntotal 0\nodd"
    assert shown[1:3] == ["Why did <bash-input>ls</bash-input> say so?", "It is empty."]


def test_an_output_without_its_command_stays_a_message(tmp_path: Path) -> None:
    """The command may have been cut away."""
    result = read(tmp_path, [claude_user(1, None, "<bash-stdout>x</bash-stdout>"), claude_user(2, 1, "So?")])
    assert not result.records(ExtensionRecord) and len(result.records(MessageRecord)) == 2


@pytest.mark.parametrize(
    ("told", "output", "seconds"),
    [
        ("Exit code: 2\nDuration: 0.1250 seconds\nOutput:\nno such file\n", "no such file\n[exit code 2]", 0.125),
        ("Exit code: 0\nDuration: 0.1 seconds\nOutput:\n", "[exit code 0]", 0.1),
        ("aborted", "aborted", None),
    ],
)
def test_codex_tells_it_in_one_message(tmp_path: Path, told: str, output: str, seconds: float | None) -> None:
    """With its exit code and how long it took."""
    quoted = f"What is {CODEX.format('id', told)} about?"
    lines = [
        codex(0, "session_meta", id="x", cwd="/srv"),
        codex_said(1, "user", CODEX.format("cat x", told)),
        codex_said(2, "user", quoted),
    ]
    result = read(tmp_path, lines)
    (record,) = result.records(ExtensionRecord)
    took = {} if seconds is None else {"seconds": seconds}
    assert (record.name, record.data, record.content) == ("shell", {"command": "cat x", **took}, (Text(output),))
    (message,) = result.records(MessageRecord)
    assert message.content == (Text(quoted),)
