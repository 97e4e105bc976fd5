"""A policy of the user's own: found by its path, and blamed by its name when it fails.

`module:function` is looked for in the current folder first, as `python -m` does; `./policy.py:function` names a file.
Law: whatever a user's code raises becomes one sentence that names the policy, the error and the line.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from traceback import extract_tb
from types import ModuleType
from typing import Any

from ..errors import MoonwakeError


def load(path: str) -> Callable[..., Any]:
    """What stands at `path`. Raises `MoonwakeError` when it cannot be imported or called."""
    place, _, name = path.rpartition(":")
    is_file = place.endswith(".py")
    if is_file and not Path(place).is_file():
        raise MoonwakeError(f"the policy {path!r} cannot be imported: there is no file {Path(place).absolute()}")
    with blaming(path, "cannot be imported"):
        found = getattr(_module_in(Path(place)) if is_file else _module_named(place), name)
    if not callable(found):
        raise MoonwakeError(f"the policy {path!r} is not a function but {type(found).__name__}")
    called: Callable[..., Any] = found
    return called


@contextmanager
def blaming(path: str, what: str = "failed") -> Iterator[None]:
    """Whatever is raised inside is the fault of the policy at `path`."""
    try:
        yield
    except (Exception, SystemExit) as error:  # code of the user's own may raise anything, and it must bear its name
        raise MoonwakeError(f"the policy {path!r} {what}: {_told(error)}") from error


def _told(error: BaseException) -> str:
    frames = [frame for frame in extract_tb(error.__traceback__) if "importlib" not in frame.filename]
    own = bool(frames) and Path(frames[-1].filename).parent != Path(__file__).parent
    place = f" ({frames[-1].filename}, line {frames[-1].lineno})" if own else ""
    return f"{type(error).__name__}: {' '.join(str(error).split())}{place}"


def _module_named(name: str) -> ModuleType:
    with _importing_from(Path.cwd()):
        return importlib.import_module(name)


def _module_in(path: Path) -> ModuleType:
    spec = spec_from_file_location(f"moonwake_policy_{path.stem}", path.absolute())
    assert spec is not None  # the name ends in .py
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[module.__name__] = module  # dataclasses look their module up there
    with _importing_from(path.absolute().parent):
        spec.loader.exec_module(module)
    return module


@contextmanager
def _importing_from(folder: Path) -> Iterator[None]:
    importlib.invalidate_caches()
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
