"""The bubblewrap sandbox: what a command can see and change.

It sees the workspace (writable, at its own path), the system's programs and libraries (read-only), a new /tmp,
/proc and /dev, and nothing else of the host: no home folders, no keys, no other processes, no network unless
allowed. In the workspace, `.moonwake` is hidden and `moonwake.toml` is read-only. The kernel enforces this; the
text of the command is never looked at, as no scan of it can see what variables and substitutions will become.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from ..errors import ToolError
from ..workspace import MARKER, STATE_FOLDER

_TRIAL = 10.0  # seconds
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
# Only these of /etc: the rest may hold keys and password hashes, which root could read.
_SETTINGS = (
    "alternatives", "ca-certificates", "ca-certificates.conf", "crypto-policies", "group", "gai.conf", "host.conf",
    "hosts", "inputrc", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "locale.alias", "localtime", "login.defs",
    "magic", "mime.types", "nsswitch.conf", "os-release", "passwd", "pki/ca-trust", "pki/tls/certs", "profile",
    "protocols", "services", "ssl/certs", "ssl/openssl.cnf", "terminfo", "timezone", "java", "python3", "perl",
)  # fmt: skip
_PLACEHOLDER = """\
# Settings of Moonwake. This file is here, even if it sets nothing, so that a command that an agent runs
# cannot create it and grant itself rights.
"""


def sandbox_problem() -> str | None:
    """Why commands cannot run in the sandbox here, in one sentence with what to do; None if they can.

    Starts a trial process (30 ms), so call it in a thread where that matters.
    """
    if not sys.platform.startswith("linux"):
        return f"the sandbox for commands needs Linux and bubblewrap; this is {sys.platform}"
    program = shutil.which("bwrap")
    if program is None:
        return "bubblewrap is not installed; install it (Debian, Ubuntu: `apt install bubblewrap`) to run commands"
    try:
        trial = subprocess.run(
            [*_base(program, network=False), "--", "true"],
            stdin=subprocess.DEVNULL, capture_output=True, timeout=_TRIAL, check=False,
            env=reduced_environment(os.environ, "/"),
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bubblewrap ({program}) cannot be used: {error}"
    if trial.returncode == 0:
        return None
    said = trial.stderr.decode("utf-8", "replace").strip() or f"exit code {trial.returncode}"
    return (
        f"bubblewrap is installed, but this system refuses it: {said}. It needs user namespaces (or root); in a "
        "container they are often switched off"
    )


def reduced_environment(environment: Mapping[str, str], home: str) -> dict[str, str]:
    """What a command gets of the environment: no keys, nothing but where programs are and what language to use."""
    return {
        "PATH": environment.get("PATH") or "/usr/local/bin:/usr/bin:/bin",
        "HOME": home,
        "LANG": environment.get("LANG") or "C.UTF-8",
        "TERM": "dumb",
    }


def sandboxed(command: list[str], workspace: str, *, network: bool) -> list[str]:
    """`command` wrapped so that it runs confined to `workspace` (a real, absolute path).

    Raises `ToolError` if the workspace cannot be protected or bubblewrap is missing.
    """
    program = shutil.which("bwrap")
    if program is None:
        raise ToolError("commands cannot run: bubblewrap is not installed any more; tell the user to install it")
    if workspace == "/":
        raise ToolError("commands cannot be confined to a workspace that is the whole file system; choose a folder")
    _protect(workspace)
    logs, settings = f"{workspace}/{STATE_FOLDER}", f"{workspace}/{MARKER}"
    return [
        *_base(program, network=network),
        *("--bind", workspace, workspace, "--tmpfs", logs, "--ro-bind", settings, settings),
        *("--remount-ro", logs, "--remount-ro", "/", "--chdir", workspace, "--", *command),
    ]


def _base(program: str, *, network: bool) -> list[str]:
    arguments = [program, "--unshare-all", "--die-with-parent", "--cap-drop", "ALL"]
    if network:
        arguments.append("--share-net")
    for path in _SYSTEM:
        if Path(path).is_symlink():
            arguments += ["--symlink", str(Path(path).readlink()), path]
        elif Path(path).is_dir():
            arguments += ["--ro-bind", path, path]
    for name in _SETTINGS:
        arguments += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    if network:
        # Often a symlink into /run, which the sandbox does not have.
        arguments += ["--ro-bind-try", os.path.realpath("/etc/resolv.conf"), "/etc/resolv.conf"]
    return [*arguments, "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]


def _protect(workspace: str) -> None:
    """Make what is to be hidden or read-only exist: a mount needs a place, and what is absent can be created."""
    logs, settings = Path(workspace, STATE_FOLDER), Path(workspace, MARKER)
    if logs.is_symlink() or settings.is_symlink():
        raise ToolError(
            f"commands cannot run: {STATE_FOLDER} and {MARKER} in the workspace must not be symlinks, as a "
            "command could replace them; tell the user to put the real folder and file there"
        )
    try:
        logs.mkdir(mode=0o700, exist_ok=True)
        with suppress(FileExistsError), settings.open("x", encoding="utf-8") as handle:
            handle.write(_PLACEHOLDER)
    except OSError as error:
        raise ToolError(f"commands cannot run: the workspace {workspace} cannot be prepared: {error}") from None
