"""Commands that a user ran in a shell of their own, which other programs write into a message of the user's.

Claude Code writes two lines, `<bash-input>` and then `<bash-stdout>` with `<bash-stderr>`; Codex one, whose text is
`<user_shell_command>` with the command and its result (`codex-rs/core/src/user_shell_command.rs`). Laws: only a message
that is nothing else is taken for one; what is told of the output is what our own entries of the kind tell.
"""

from __future__ import annotations

import re
from dataclasses import replace

from governors.messages import Text

from ..entries import ExtensionRecord
from ..view.wrapping import SHELL
from .drafts import Draft

NO_OUTPUT = "(no output)"

_INPUT = re.compile(r"<bash-input>(.*)</bash-input>", re.DOTALL)
_OUTPUT = re.compile(
    r"(?:<bash-stdout>(?P<out>.*?)</bash-stdout>)?\s*(?:<bash-stderr>(?P<err>.*)</bash-stderr>)?", re.DOTALL
)
_CODEX = re.compile(
    r"<user_shell_command>\s*<command>\n?(.*?)\n?</command>\s*<result>\n?(.*)\n?</result>\s*</user_shell_command>",
    re.DOTALL,
)
_RESULT = re.compile(r"Exit code: (-?\d+)\nDuration: ([0-9.]+) seconds\nOutput:\n?(.*)", re.DOTALL)


def shell_record(command: str, output: str, seconds: float | None = None) -> ExtensionRecord:
    """The entry of a command and its output."""
    data = {"command": command, **({} if seconds is None else {"seconds": seconds})}
    return ExtensionRecord(name=SHELL, data=data, content=(Text(output.strip("\n") or NO_OUTPUT),))


def claude_command(text: str) -> ExtensionRecord | None:
    """The command of a `<bash-input>`; what came of it is told by the next line."""
    found = _INPUT.fullmatch(text.strip())
    return None if found is None else shell_record(found[1].strip(), "")


def claude_output(text: str) -> str | None:
    """What a `<bash-stdout>` and a `<bash-stderr>` tell."""
    found = _OUTPUT.fullmatch(text.strip()) if text.strip() else None
    if found is None:
        return None
    return "\n".join(told.strip("\n") for told in (found["out"], found["err"]) if told and told.strip())


def codex_command(text: str) -> ExtensionRecord | None:
    """The command and the output of a `<user_shell_command>`."""
    found = _CODEX.fullmatch(text.strip())
    if found is None:
        return None
    told = _RESULT.fullmatch(found[2].rstrip("\n"))
    if told is None:
        return shell_record(found[1], found[2])
    code, seconds, output = told.groups()
    output = output.rstrip("\n")
    try:
        took = float(seconds)
    except ValueError:
        took = None
    return shell_record(found[1], f"{output}\n[exit code {code}]" if output else f"[exit code {code}]", took)


def is_unanswered(draft: Draft | None) -> bool:
    """Whether `draft` is a command of which no output was told yet."""
    record = draft.record if draft is not None else None
    return isinstance(record, ExtensionRecord) and record.name == SHELL and record.content == (Text(NO_OUTPUT),)


def answer(draft: Draft, output: str) -> None:
    """Put the output in that was told after the command."""
    record = draft.record
    assert isinstance(record, ExtensionRecord)
    draft.record = replace(record, content=(Text(output or NO_OUTPUT),))
