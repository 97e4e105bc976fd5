"""Finds hooks: in installed packages, and in the folder `hooks` of a workspace.

A hook is code that runs with all the rights of the user, and an agent can write files into a workspace. So a file of a
workspace is run only if the user trusts it as it is: the SHA-256 of its bytes stands in `hooks.trust`, which a project
cannot set. Laws: the bytes that are run are the bytes whose hash was compared; a file that has changed is not trusted
any more; whatever is not loaded is told, with the reason. Synchronous, and runs code of others: call it in a thread.
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys
from collections.abc import Collection, Iterable, Iterator
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType

from ..tools.apart import words_of
from .contract import POINTS, Hook, hook_of

GROUP = "moonwake.hooks"
FOLDER = "hooks"
_LARGEST = 1_000_000  # bytes of one file


def find_hooks(
    workspace: Path, trust: Collection[str], user_file: str, disabled: Collection[str] = ()
) -> tuple[tuple[Hook, ...], tuple[str, ...]]:
    """The hooks of installed packages and of the workspace, in order, and what a person should know of those that were
    left out. `trust` are hashes (hex), `user_file` where they are set."""
    found: list[Hook] = []
    notes: list[str] = []
    for named in (_installed(notes, disabled), _files(workspace, trust, user_file, notes, disabled)):
        for hook in named:
            if any(other.name == hook.name for other in found):
                notes.append(f"A second hook called {hook.name} was left out; give it another name.")
            elif hook.name not in disabled:
                found.append(hook)
    return tuple(found), tuple(notes)


def checked_hooks(things: Iterable[object]) -> tuple[Hook, ...]:
    """The hooks that a program passed. Raises `TypeError` or `ValueError` for what can be none."""
    hooks = tuple(hook_of(thing) for thing in things)
    names = [hook.name for hook in hooks]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"two hooks are called {twice[0]!r}; give one of them another name")
    return hooks


def _installed(notes: list[str], disabled: Collection[str]) -> Iterator[Hook]:
    for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        if point.name not in disabled:
            yield from _loaded(point, notes)


def _loaded(point: EntryPoint, notes: list[str]) -> Iterator[Hook]:
    where = f"The hook {point.name} of the package {point.dist.name if point.dist else '?'}"
    try:
        yield hook_of(point.load(), point.name)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the boundary to code of others: it is left out
        notes.append(f"{where} was not loaded: {_told(error)}.")


def _files(
    workspace: Path, trust: Collection[str], user_file: str, notes: list[str], disabled: Collection[str]
) -> Iterator[Hook]:
    folder = workspace / FOLDER
    try:
        paths = sorted(path for path in folder.iterdir() if path.suffix == ".py" and not path.name.startswith("_"))
    except OSError:
        return
    trusted = {each.strip().lower() for each in trust}
    for path in paths:
        if path.stem not in disabled:
            yield from _file(path, trusted, user_file, notes)


def _file(path: Path, trusted: Collection[str], user_file: str, notes: list[str]) -> Iterator[Hook]:
    shown = f"{FOLDER}/{path.name}"
    try:
        code = _read(path)
    except OSError as error:
        notes.append(f"The hook {shown} was not loaded: {error.strerror or error}.")
        return
    if not any(point.encode() in code for point in POINTS):
        return  # a file of some other tool's
    digest = hashlib.sha256(code).hexdigest()
    if digest not in trusted:
        notes.append(
            f"The hook {shown} was not loaded, as you have not trusted it as it is now. It would run with all your "
            f"rights, outside the sandbox, and an agent can write there. Read it; to allow it, put its hash into "
            f'{user_file}, under [hooks]: trust = ["{digest}"]. After any change it has to be allowed again.'
        )
        return
    module = ModuleType(f"moonwake_hook_{digest[:12]}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # dataclasses and the like look there
    try:
        exec(compile(code, str(path), "exec"), module.__dict__)
        yield hook_of(module, path.stem)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the boundary to code of others: it is left out
        notes.append(f"The hook {shown} was not loaded: {_told(error)}.")


def _read(path: Path) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # a named pipe must not hang the start
    with os.fdopen(descriptor, "rb") as stream:
        if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
            raise OSError("it is no file")
        code = stream.read(_LARGEST + 1)
    if len(code) > _LARGEST:
        raise OSError(f"it is larger than {_LARGEST:,} bytes")
    return code


def _told(error: BaseException) -> str:
    return f"{type(error).__name__}: {words_of(error)[:300]}"
