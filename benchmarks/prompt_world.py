"""A workspace that people and agents change at random, and what its prompt must therefore show.

Every text that is written bears a mark of its own (`mark-17`), so what a section shows can be told from its text alone,
without asking the builder. What a section must show is worked out from what was written, by rules of its own.
"""

from __future__ import annotations

import os
import random
import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from governors.messages import ToolSpec
from runtime.prompt.builder import PromptBuilder
from runtime.workspace import MEMORY_FILE, TEMPLATES, open_workspace, shipped_path

FILES = {  # section -> its file, below the folder of the simulation
    "../../AGENTS.md": "home/project/AGENTS.md",
    "../AGENTS.md": "home/project/part/AGENTS.md",
    "AGENTS.md": "home/project/part/desk/AGENTS.md",
    "SOUL.md": "home/project/part/desk/SOUL.md",
    "TOOLS.md": "home/project/part/desk/TOOLS.md",
    "memory/global": f"home/own/{MEMORY_FILE}",
    "memory/project": f"home/project/part/desk/{MEMORY_FILE}",
}
USER_HERE, USER_OWN = "home/project/part/desk/USER.md", "home/own/USER.md"
WORK = "home/project/part/desk"
SKILLS = [f"skill-{letter}" for letter in "abcdefgh"]
POOL = [
    "read_file",
    "write_file",
    "edit_file",
    "grep",
    "exec",
    "skill",
    *(f"server_tool_{number}" for number in range(8)),
]
BROKEN = 0  # stands for a mark where the file cannot be read

Marks = Mapping[str, frozenset[int]]


def marks_in(text: str) -> frozenset[int]:
    return frozenset(int(found) for found in re.findall(r"mark-(\d+)", text))


class World:
    """`step` makes one change and says which kind; `expected` are the marks of each section that must be shown."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder.resolve()
        self.chance = random.Random(seed)
        self.files: dict[str, int] = {}  # path -> mark; no entry: nothing there, or nothing to show
        self.skills: dict[str, tuple[int, bool]] = {}  # name -> mark, always
        self.tools = dict.fromkeys(POOL[:6], 1)  # name -> version of its definition
        self.away = False  # whether the folder of skills was renamed
        self._mark = 0
        self._past = time.time_ns() - 10**15
        for place in (WORK, f"home/own/{MEMORY_FILE}", f"{WORK}/{MEMORY_FILE}", f"{WORK}/skills/x"):
            (self.folder / place if place == WORK else (self.folder / place).parent).mkdir(parents=True, exist_ok=True)
        (self.folder / "home/project/.git").mkdir()
        for path in (*FILES.values(), USER_HERE, USER_OWN):
            self._write(path)

    def builder(self) -> PromptBuilder:
        home = self.folder / "home"
        return PromptBuilder(open_workspace(self.folder / WORK), user_folder=home / "own", home=home)

    @property
    def specs(self) -> list[ToolSpec]:
        return [self._spec(name, version) for name, version in sorted(self.tools.items())]

    @staticmethod
    def _spec(name: str, version: int) -> ToolSpec:
        text = f"What {name} does, in its version {version}. " + "It has a rule or two that a model should know. " * 6
        return ToolSpec(name, text, {"type": "object", "properties": {"what": {"type": "string"}}})

    def step(self) -> str:
        kinds: dict[Callable[[], None], int] = {
            self.change_memory: 30,
            self.change_file: 20,
            self.delete_file: 6,
            self.break_file: 4,
            self.reset_user: 2,
            self.change_skill: 14,
            self.delete_skill: 5,
            self.rename_skill: 4,
            self.break_skill: 5,
            self.move_skills: 2,
            self.add_tool: 8,
            self.remove_tool: 6,
            self.redefine_tool: 2,
        }
        (kind,) = self.chance.choices(list(kinds), list(kinds.values()))
        kind()
        return kind.__name__

    def rest(self) -> None:
        """Time passes: what was just written is old now, each at a time of its own."""
        young = time.time_ns() - 10**12
        for path in (self.folder, *self.folder.rglob("*")):
            if path.lstat().st_mtime_ns > young:
                self._past += 10**9
                os.utime(path, ns=(self._past, self._past))

    def expected(self, shown: Marks) -> dict[str, frozenset[int]]:
        """The marks of each section that has some, or may have; `shown` is what was shown before."""
        wanted: dict[str, frozenset[int]] = {}
        for section, path in FILES.items():
            self._expect(wanted, section, self.files.get(path), shown)
        here, own = self.files.get(USER_HERE), self.files.get(USER_OWN)
        broken = here == BROKEN or (here is None and own == BROKEN)
        readable = own if here in (None, BROKEN) and own != BROKEN else here
        kept = broken and "USER.md" in shown
        self._expect(wanted, "USER.md", BROKEN if kept or readable == BROKEN else readable, shown)
        there = {} if self.away else self.skills
        for name, (mark, always) in there.items():
            if always or mark == BROKEN:
                self._expect(wanted, f"skill/{name}", mark, shown)
        if "skill" in self.tools:
            wanted["skills"] = frozenset(mark for mark, always in there.values() if mark != BROKEN and not always)
        return wanted

    @staticmethod
    def _expect(wanted: dict[str, frozenset[int]], section: str, mark: int | None, shown: Marks) -> None:
        if mark == BROKEN and section in shown:
            wanted[section] = shown[section]
        elif mark is not None and mark != BROKEN:
            wanted[section] = frozenset({mark})

    def change_memory(self) -> None:
        self._write(self.chance.choice([FILES["memory/project"], FILES["memory/global"]]))

    def change_file(self) -> None:
        self._write(self.chance.choice([*FILES.values(), USER_HERE, USER_OWN]))

    def delete_file(self) -> None:
        self._remove(self.chance.choice([*FILES.values(), USER_HERE, USER_OWN]))

    def break_file(self) -> None:
        path = self.chance.choice([*FILES.values(), USER_HERE, USER_OWN])
        self._remove(path)
        if self.chance.random() < 0.5:
            (self.folder / path).mkdir()
        else:
            (self.folder / path).write_bytes(b"\0rubbish" * 9)
        self.files[path] = BROKEN

    def reset_user(self) -> None:
        self._remove(USER_HERE)
        (self.folder / USER_HERE).write_text((shipped_path(TEMPLATES) / "USER.md").read_text())

    def change_skill(self) -> None:
        name, always = self.chance.choice(SKILLS), self.chance.random() < 0.5
        self.skills[name] = (self._new_mark(), always)
        front = f"name: {name}\ndescription: For mark-{self._mark}.\n" + ("always: true\n" if always else "")
        file = self._skill(name)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"---\n{front}---\n" + self._lines())

    def delete_skill(self) -> None:
        if self.skills:
            name = self.chance.choice(sorted(self.skills))
            del self.skills[name]
            self._skill(name).unlink()
            self._skill(name).parent.rmdir()

    def rename_skill(self) -> None:
        free = [name for name in SKILLS if name not in self.skills]
        if self.skills and free:
            old, new = self.chance.choice(sorted(self.skills)), self.chance.choice(free)
            mark, always = self.skills.pop(old)
            self.skills[new] = (mark, always)
            self._skill(old).parent.rename(self._skill(new).parent)
            if mark != BROKEN:
                file = self._skill(new)
                file.write_text(file.read_text().replace(f"name: {old}", f"name: {new}"))

    def break_skill(self) -> None:
        if self.skills:
            name = self.chance.choice(sorted(self.skills))
            self.skills[name] = (BROKEN, False)
            self._skill(name).write_bytes(b"\0")

    def move_skills(self) -> None:
        folder = self._skill("x").parents[1]
        self.away = not self.away
        folder.rename(self._skill("x").parents[1])

    def add_tool(self) -> None:
        if off := [name for name in POOL if name not in self.tools]:
            self.tools[self.chance.choice(off)] = 1

    def remove_tool(self) -> None:
        if len(self.tools) > 2:
            del self.tools[self.chance.choice(sorted(self.tools))]

    def redefine_tool(self) -> None:
        self.tools[self.chance.choice(sorted(self.tools))] += 1

    def _skill(self, name: str) -> Path:
        return self.folder / WORK / ("skills-away" if self.away else "skills") / name / "SKILL.md"

    def _write(self, path: str) -> None:
        file = self.folder / path
        if self.chance.random() < 0.5 or self.files.get(path) == BROKEN:
            self._remove(path)
        self.files[path] = self._new_mark()
        file.write_text(f"# mark-{self._mark}\n" + self._lines())

    def _remove(self, path: str) -> None:
        file = self.folder / path
        if file.is_dir():
            file.rmdir()
        else:
            file.unlink(missing_ok=True)
        self.files.pop(path, None)

    def _new_mark(self) -> int:
        self._mark += 1
        return self._mark

    def _lines(self) -> str:
        return "".join(
            f"- Something that was worth a line, {number}.\n" for number in range(self.chance.randint(1, 60))
        )
