"""What a skill needs of the machine and of the agent, and what of it is missing.

Forms that are read, all below `metadata`:
- ours, which keeps to the standard (text to text): `requires-bins: git rg`, `requires-any-bins`, `requires-env`,
  `requires-tools`, `requires-python` (packages), `requires-os: linux macos`;
- nanobot's and OpenClaw's: `{"nanobot": {"requires": {"bins": [], "env": []}, "os": []}}`, with `anyBins`, `config`.

Reading is pure; only `this_machine` looks at the machine.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import partial
from importlib.util import find_spec
from typing import Any

#: What others call an operating system, by our word.
_SYSTEMS = {"darwin": "macos", "mac": "macos", "osx": "macos", "win32": "windows", "win": "windows"}
_OUR_KEYS = {
    "requires-bins": "bins",
    "requires-any-bins": "any_bins",
    "requires-env": "env",
    "requires-tools": "tools",
    "requires-python": "python",
    "requires-os": "os",
}
_THEIR_KEYS = {"bins": "bins", "anyBins": "any_bins", "env": "env", "tools": "tools", "python": "python",
               "config": "config", "os": "os"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Requirements:
    """Names, each tuple in the order in which they are written. Of `any_bins` one is enough, of `os` one is right;
    `config` are settings of another program, which are never there."""

    bins: tuple[str, ...] = ()
    any_bins: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    python: tuple[str, ...] = ()
    os: tuple[str, ...] = ()
    config: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Around:
    """What there is. `tools` are those that are on; None: nobody knows, so they are not checked."""

    tools: frozenset[str] | None
    has_binary: Callable[[str], bool]
    environ: Mapping[str, str]
    has_package: Callable[[str], bool]
    system: str


def this_machine(tools: frozenset[str] | None = None, environ: Mapping[str, str] | None = None) -> Around:
    """What is here: programs on the path, variables, packages of this Python. Asks only when it is asked."""
    environ = os.environ if environ is None else environ
    return Around(tools, partial(_on_path, environ.get("PATH")), environ, _importable, system_named(sys.platform))


def system_named(name: str) -> str:
    return _SYSTEMS.get(name.lower(), name.lower())


def _on_path(path: str | None, name: str) -> bool:
    return shutil.which(name, path=path) is not None


def _importable(name: str) -> bool:
    try:
        return find_spec(name.partition(".")[0]) is not None
    except (ImportError, ValueError):
        return False


def read_requirements(metadata: Any) -> Requirements:
    """The requirements in the field `metadata`. What has no form that is known is passed over."""
    found: dict[str, list[str]] = {field.name: [] for field in fields(Requirements)}
    for key, value in _told(metadata):
        found[key] += [name for name in _names(value) if name not in found[key]]
    return Requirements(**{key: tuple(names) for key, names in found.items()})


def metadata_of(value: Any) -> dict[str, Any]:
    """The field `metadata` as a dictionary, also where it is JSON in quotes."""
    if isinstance(value, str) and value.lstrip().startswith("{"):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return {}
    return value if isinstance(value, dict) else {}


def _told(metadata: Any) -> Iterator[tuple[str, Any]]:
    for key, value in metadata_of(metadata).items():
        if ours := _OUR_KEYS.get(key):
            yield ours, value
        vendor = metadata_of(value)
        requires = vendor if key == "requires" else metadata_of(vendor.get("requires"))
        yield from ((_THEIR_KEYS[name], told) for name, told in requires.items() if name in _THEIR_KEYS)
        if key != "requires" and "os" in vendor:
            yield "os", vendor["os"]


def _names(value: Any) -> list[str]:
    if isinstance(value, str):
        return [name for name in re.split(r"[\s,]+", value) if name]
    if isinstance(value, list):
        return [str(each).strip() for each in value if isinstance(each, str | int) and str(each).strip()]
    return []


def missing(needs: Requirements, around: Around) -> tuple[str, ...]:
    """What is not there, in words for a person; empty when the skill can be used."""
    found = [f"the program {name}" for name in needs.bins if not around.has_binary(name)]
    if needs.any_bins and not any(around.has_binary(name) for name in needs.any_bins):
        found.append(f"one of the programs {', '.join(needs.any_bins)}")
    found += [f"the variable {name}" for name in needs.env if not around.environ.get(name)]
    if around.tools is not None:
        found += [f"the tool {name}" for name in needs.tools if name not in around.tools]
    found += [f"the Python package {name}" for name in needs.python if not around.has_package(name)]
    if needs.os and around.system not in {system_named(name) for name in needs.os}:
        found.append(f"another system ({', '.join(needs.os)})")
    found += [f"the setting {name} of another program" for name in needs.config]
    return tuple(found)
