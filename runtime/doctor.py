"""`moonwake doctor`: looks at everything a conversation needs and says, for what is wrong, what to do.

`examine` gathers findings and changes nothing; `report` prints them.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import platform
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from importlib import resources
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

import anyio.to_thread

from governors.tokens import VOCABULARY

from .choice import Surroundings, WeightsMissing, choose_model
from .config import Config, load_config, user_config_file
from .errors import ConfigError, ModelUnavailable
from .providers.catalog import KNOWN_PROVIDERS
from .providers.discover import PORTS, find_servers
from .version import __version__
from .workspace import default_workspace

_PACKAGES = ("anyio", "pydantic", "tiktoken", "tenacity", "openai", "anthropic", "httpx2", "jinja2", "rich")
_VOCABULARY_SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"  # as tiktoken checks it
_MARKS = {"good": "✓", "note": "·", "bad": "✗"}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at. `advice` says what to do; empty when nothing needs doing."""

    subject: str
    verdict: Literal["good", "note", "bad"]
    text: str
    advice: str = ""


async def examine(folder: Path, environ: Mapping[str, str]) -> list[Finding]:
    """Look at versions, folders, config, vocabulary, tools, keys, servers and the model that would answer."""
    findings = [_versions()]
    findings += await anyio.to_thread.run_sync(lambda: list(folder_findings(folder)))
    config, finding = await anyio.to_thread.run_sync(_config, folder, environ)
    findings.append(finding)
    findings.append(await anyio.to_thread.run_sync(_vocabulary))
    findings.append(await anyio.to_thread.run_sync(_sandbox, config))
    findings.append(_keys(environ))
    servers = await find_servers(PORTS)
    found = ", ".join(f"{server.kind} at {server.url} ({len(server.models)} models)" for server in servers)
    findings.append(Finding("local servers", "good" if found else "note", found or "none found on this machine"))
    findings.append(await anyio.to_thread.run_sync(_embedded_model))
    findings.append(await _model(config, environ))
    return findings


def report(findings: list[Finding], *, as_json: bool) -> int:
    """Print the findings; the exit code is 1 when something is broken."""
    broken = any(finding.verdict == "bad" for finding in findings)
    if as_json:
        sys.stdout.write(json.dumps([asdict(finding) for finding in findings], indent=2) + "\n")
        return int(broken)
    width = max(len(finding.subject) for finding in findings)
    for finding in findings:
        sys.stdout.write(f"{_MARKS[finding.verdict]} {finding.subject:<{width}}  {finding.text}\n")
        if finding.advice:
            sys.stdout.write(f"  {'':<{width}}  -> {finding.advice}\n")
    sys.stdout.write("Something needs mending (✗).\n" if broken else "All is well.\n")
    return int(broken)


def _versions() -> Finding:
    found = []
    for package in _PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            return Finding("versions", "bad", f"{package} is not installed", "install again: pip install moonwake")
    own = f"moonwake {__version__}, Python {platform.python_version()}"
    return Finding("versions", "good", f"{own}; {', '.join(found)}")


def _writable(folder: Path) -> bool:
    return os.access(folder, os.W_OK | os.X_OK)


def folder_findings(folder: Path, writable: Callable[[Path], bool] = _writable) -> Iterator[Finding]:
    """Whether the workspace can be used, or made where it is missing."""
    folder = Path(os.path.abspath(folder.expanduser()))  # noqa: PTH100 - absolute, but links stay as they were named
    if os.path.isfile(folder):  # noqa: PTH113 - never raises, as Path.is_file may below a locked folder
        yield Finding("workspace", "bad", f"{folder} is a file", "name a folder: moonwake doctor -w FOLDER")
    elif not os.path.isdir(folder):  # noqa: PTH112 - as above
        yield _missing(folder, writable)
    elif not writable(folder):
        yield Finding("workspace", "bad", f"{folder} is not writable", "give yourself write permission (chmod u+w)")
    else:
        sessions = sum(1 for _ in (folder / ".moonwake" / "sessions").glob("*/*.jsonl"))
        yield Finding("workspace", "good", f"{folder} ({sessions} sessions)")


def _missing(folder: Path, writable: Callable[[Path], bool]) -> Finding:
    """What stands in the way of making `folder`: looked for in the nearest parent that exists."""
    nearest = next((parent for parent in folder.parents if os.path.lexists(parent)), folder)
    text = f"{folder} does not exist and cannot be made: {nearest} is"
    if not os.path.isdir(nearest):  # noqa: PTH112 - never raises, as Path.is_dir may
        return Finding("workspace", "bad", f"{text} not a folder", "name another: moonwake doctor -w FOLDER")
    if not writable(nearest):
        return Finding("workspace", "bad", f"{text} not writable", f"name another, or make it writable: {nearest}")
    if folder == default_workspace():
        how = "moonwake chat makes it"
    else:
        how = f"{'' if nearest == folder.parent else f'mkdir -p {folder.parent} && '}moonwake init {folder}"
    return Finding("workspace", "note", f"{folder} does not exist yet", how)


def _config(folder: Path, environ: Mapping[str, str]) -> tuple[Config, Finding]:
    try:
        config = load_config(folder, environ, {})
    except ConfigError as error:
        return Config(), Finding("config", "bad", str(error), "mend the file or the variable that is named")
    files = [str(file) for file in (folder / "moonwake.toml", user_config_file(environ)) if file.is_file()]
    text = ", ".join(files) or "no moonwake.toml; defaults hold"
    return config, Finding("config", "note" if config.notes else "good", text, " ".join(config.notes))


def _vocabulary() -> Finding:
    again = "install again: pip install --force-reinstall moonwake"
    try:
        packed = resources.files("governors").joinpath("data/o200k_base.tiktoken.gz").read_bytes()
        digest = hashlib.sha256(gzip.decompress(packed)).hexdigest()
    except (OSError, EOFError, zlib.error) as error:
        return Finding("vocabulary", "bad", f"the token vocabulary cannot be read ({error})", again)
    if digest != _VOCABULARY_SHA256:
        return Finding("vocabulary", "bad", "the token vocabulary is damaged: its checksum is wrong", again)
    return Finding("vocabulary", "good", f"{VOCABULARY}, as published")


def _sandbox(config: Config) -> Finding:
    from .tools.shell import sandbox_problem

    mode = config.tools.exec
    if mode == "off":
        return Finding("exec", "note", "the tool exec is turned off (tools.exec)")
    if mode == "unconfined":
        return Finding("exec", "note", "commands run unconfined, with your own rights (tools.exec)")
    problem = sandbox_problem()
    if problem is not None:
        return Finding("exec", "note", f"the tool exec is off: {problem}")
    return Finding("exec", "good", "commands run in a sandbox that sees the workspace only")


def _keys(environ: Mapping[str, str]) -> Finding:
    known = [entry.key_variable for entry in KNOWN_PROVIDERS.values()]
    found = [variable for variable in known if environ.get(variable, "").strip()]
    if found:
        return Finding("keys", "good", f"{', '.join(found)} set")
    return Finding("keys", "note", "no key is set", f"for a strong model set {known[0]} or {known[1]}")


def _embedded_model() -> Finding:
    from .providers.local import is_installed
    from .providers.weights import find_model

    if not is_installed():
        return Finding("embedded model", "note", "not installed", "pip install 'moonwake[local]'")
    path = find_model()
    if path is None:
        return Finding("embedded model", "note", "its weights are not here yet", "moonwake model get smollm2")
    return Finding("embedded model", "good", str(path))


async def _model(config: Config, environ: Mapping[str, str]) -> Finding:
    try:
        chosen = await choose_model(Surroundings(config, environ))
    except WeightsMissing:
        return Finding("model", "note", "the embedded model would answer, once fetched", "moonwake model get smollm2")
    except (ModelUnavailable, ConfigError) as error:
        return Finding("model", "bad", str(error))
    info = chosen.info
    tools = "with tools" if info.abilities.tools else "without tools"
    return Finding("model", "good", f"{chosen.name} ({chosen.why}), window {info.window:,} tokens, {tools}")
