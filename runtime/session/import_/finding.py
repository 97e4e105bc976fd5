"""Where other programs keep their sessions, and what lies there.

The folders, with the variables that move them: pi `~/.pi/agent/sessions` (`PI_CODING_AGENT_DIR`), Claude Code
`~/.claude/projects` (`CLAUDE_CONFIG_DIR`), Codex `~/.codex/sessions` and `archived_sessions` (`CODEX_HOME`), nanobot
`~/.nanobot/workspace/sessions` and, as older and newer versions have it, `~/.nanobot/sessions`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

from ...errors import SessionError
from .formats import FORMATS, recognise
from .lines import Source
from .parts import Object, a_text, an_object, text_of, title_of

_LOOKED_AT = 200  # lines of a file, for its title and folder
_NAMES = ("*.jsonl", "*.jsonl.gz")


@dataclass(frozen=True, slots=True)
class Found:
    """A session file of another program: `changed` is when it was written last (UTC, ISO 8601), `size` in bytes;
    `of_agent`: it is the thread of a sub-agent."""

    path: Path
    format: str
    title: str
    cwd: str
    changed: str
    size: int
    of_agent: bool = False


def find_sources(format: str, home: Path, environ: Mapping[str, str] | None = None) -> list[Found]:
    """The session files of a program, newest first. What is there and is none is left out, and so are the threads of
    sub-agents: whoever wants one names its file.

    Raises `SessionError` for a format that has no place of its own.
    """
    folders = folders_of(format, home, environ or {})
    paths: dict[Path, Path] = {}
    for path in sorted((path for folder in folders for path in _files(folder)), key=lambda path: path.is_symlink()):
        paths.setdefault(path.resolve(), path)  # a link to a session that is there itself is no other one
    looked = (look(path) for path in paths.values())
    found = [each for each in looked if each is not None and _is_of(each.format, format) and not each.of_agent]
    return sorted(found, key=lambda each: (each.changed, str(each.path)), reverse=True)


def folders_of(format: str, home: Path, environ: Mapping[str, str]) -> list[Path]:
    """Where a program keeps its sessions."""

    def moved(variable: str, usual: str) -> Path:
        told = environ.get(variable, "").strip()
        return Path(told).expanduser() if told else home / usual

    match format:
        case "pi":
            return [moved("PI_CODING_AGENT_DIR", ".pi/agent") / "sessions"]
        case "claude-code":
            return [moved("CLAUDE_CONFIG_DIR", ".claude") / "projects", home / ".config/claude/projects"]
        case "codex":
            root = moved("CODEX_HOME", ".codex")
            return [root / "sessions", root / "archived_sessions"]
        case "nanobot":
            root = home / ".nanobot"
            return [root / "workspace/sessions", root / "sessions"]
        case _:
            places = ", ".join(each for each in FORMATS if each != "chat")
            raise SessionError(
                f"{format!r} has no place of its own to look in: name the files, or give one of {places}"
            )


def look(path: Path) -> Found | None:
    """What a file is, by its first lines; None for one that is no session of a known format, or cannot be read."""
    try:
        facts = path.stat()
        with path.open("rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
        lines = list(islice(Source(path, facts.st_size, "", packed).lines(), _LOOKED_AT))
    except (OSError, SessionError):
        return None
    values = [line.value for line in lines if line.value is not None]
    name = recognise(values[:50])
    if name not in FORMATS:
        return None
    changed = datetime.fromtimestamp(facts.st_mtime, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    sides = [value["isSidechain"] is True for value in values if "isSidechain" in value]
    of_agent = bool(sides) and all(sides)
    return Found(path, name, _title(values), _folder(values), changed, facts.st_size, of_agent)


def _files(folder: Path) -> Iterator[Path]:
    try:
        for pattern in _NAMES:
            yield from (path for path in folder.rglob(pattern) if path.is_file())
    except OSError:  # a folder that cannot be read has nothing for us
        return


def _is_of(found: str, wanted: str) -> bool:
    return found == wanted or (found, wanted) == ("chat", "nanobot")


def _folder(values: list[Object]) -> str:
    for value in values:
        cwd = a_text(value.get("cwd")) or a_text(an_object(value.get("payload")).get("cwd"))
        if cwd:
            return cwd
    return ""


def _title(values: list[Object]) -> str:
    """The name that the session was given, else the first words of a user."""
    named = [name for value in values if (name := _name(value))]
    return named[-1] if named else next((text for value in values if (text := _first_words(value))), "")


def _name(value: Object) -> str:
    metadata = an_object(value.get("metadata")) if value.get("_type") == "metadata" else {}
    match value.get("type"):
        case "session_info":
            return a_text(value.get("name")).strip()
        case "summary":
            return a_text(value.get("summary")).strip()
        case "custom-title" | "ai-title":
            return (a_text(value.get("customTitle")) or a_text(value.get("aiTitle"))).strip()
        case _:
            return a_text(metadata.get("title")).strip()


def _first_words(value: Object) -> str:
    message = value.get("message") or value.get("payload") or value
    if not isinstance(message, dict) or message.get("role") != "user" or value.get("isMeta"):
        return ""
    text = text_of(message.get("content")).strip()
    return "" if text.startswith(("<", "# AGENTS.md")) else title_of(text)
