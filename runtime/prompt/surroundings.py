"""What skills were held against beside files: programs on the path, variables, packages. Blocks.

Their requirements are asked of this machine while a prompt is built; whoever asks again with the same answers needs no
new build. Laws, for `Surroundings`:
- A program that was found is watched itself. One that was not may turn up in any folder of the path, so those are
  watched; that costs a `stat` each, and only then.
- A variable is compared by its value; the path itself always is.
- Packages of this Python are looked for in the folders of `sys.path`.
A program that lacks only the right to be run is seen once its folder changes.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias

from ..skills import Around, this_machine

Values: TypeAlias = tuple[tuple[str, str | None], ...]


@dataclass(slots=True)
class _Asked(Mapping[str, str]):
    """The variables of this process, and which of them somebody looked at."""

    seen: dict[str, str | None] = field(default_factory=dict)

    def __getitem__(self, name: str) -> str:
        value = self.seen[name] = os.environ.get(name)
        if value is None:
            raise KeyError(name)
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(os.environ)

    def __len__(self) -> int:
        return len(os.environ)


class Surroundings:
    """`watch` is told each path that an answer rests on, before the answer is looked for."""

    def __init__(self, tools: frozenset[str], watch: Callable[[Path], None]) -> None:
        self._watch, self._variables = watch, _Asked()
        self._machine = this_machine(tools, self._variables)
        self.around: Around = replace(self._machine, has_binary=self._has_binary, has_package=self._has_package)

    @property
    def values(self) -> Values:
        """The variables that were asked for, as they were."""
        return tuple(self._variables.seen.items())

    def _has_binary(self, name: str) -> bool:
        path = self._variables.get("PATH")
        if (found := shutil.which(name, path=path)) is not None:
            self._watch(Path(found))
            if os.path.exists(found):  # noqa: PTH110 - as the path was given
                return True
        self._watch_all((os.defpath if path is None else path).split(os.pathsep))
        return self._machine.has_binary(name)

    def _has_package(self, name: str) -> bool:
        self._watch_all(sys.path)
        return self._machine.has_package(name)

    def _watch_all(self, folders: list[str]) -> None:
        # by their real names: /bin is /usr/bin on most machines, and half a path is often named twice
        for folder in dict.fromkeys(os.path.realpath(folder) for folder in folders if folder):
            self._watch(Path(folder))


def hold(values: Values) -> bool:
    """Whether variables are what they were."""
    return all(os.environ.get(name) == value for name, value in values)
