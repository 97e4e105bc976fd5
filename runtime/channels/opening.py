"""The first lines of a conversation: who answers and why, where, on which session, and what is worth knowing."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from ..agent.agent import Agent
from ..providers.base import ChosenModel
from ..session.moving.finding import hidden
from ..session.naming import short_id
from .recap import recap
from .reducer import Line
from .resume import is_new
from .sanitize import clean, one_line

TOOLS_OFF = (
    "Tools are off: this small model cannot use them. For one that can, set ANTHROPIC_API_KEY or OPENAI_API_KEY, "
    "or start Ollama, LM Studio or llama.cpp on this machine, and begin again."
)


def opening_lines(agent: Agent, workspace: Path, notes: Sequence[str], home: Path | None = None) -> tuple[Line, ...]:
    """What is shown at the start, a resumed session's last exchanges with it. Names under `home` are shortened."""
    branch = agent.session.branch()
    why = f" ({one_line(agent.model.why)})" if agent.model.why else ""
    session = f"{'new session' if is_new(agent) else 'session'} {one_line(short_id(agent.session.id))}"
    parts = (f"{one_line(agent.model.name)}{why}", short_path(workspace, home), session)
    lines = [Line("info", " · ".join((*parts, "/help")))]
    if tools_off(agent.model):
        lines.append(Line("info", TOOLS_OFF))
    lines.extend(Line("info", clean(note)) for note in notes)
    lines.extend(
        Line("warning", f"The session file was damaged; what could be read is kept. {clean(str(finding))}")
        for finding in agent.session.findings
    )
    return (*lines, *recap(branch, redacted=hidden(agent.session.tree)), *waiting_lines(agent))


def way_back(agent: Agent, workspace: Path, default: Path) -> str:
    """The command that takes this conversation up again from where the workspace would be `default`."""
    words = ["moonwake", "chat"]
    if workspace != default:
        words += ["-w", str(workspace)]
    if agent.name != "assistant":
        words += ["--agent", agent.name]
    return shlex.join([*words, "--session", agent.session.id])


def tools_off(model: ChosenModel) -> bool:
    return model.info.profile == "tiny" or not model.info.abilities.tools


def waiting_lines(agent: Agent) -> tuple[Line, ...]:
    """What can be done about input that was never answered; the input itself stands above the prompt."""
    items = agent.waiting()
    lines: list[Line] = []
    if any(item.state == "held" for item in items):
        lines.append(Line("info", "Some input was held back by a stop: /send sends it, /drop drops it."))
    if any(item.state != "held" for item in items):
        lines.append(Line("info", "Some input was not answered yet; it goes along with your next message."))
    return tuple(lines)


def short_path(path: Path, home: Path | None) -> str:
    if home is not None and path.is_relative_to(home):
        inside = path.relative_to(home)
        return one_line(f"~/{inside}" if inside.parts else "~")
    return one_line(str(path))
