"""What keeping the system prompt up to date costs a turn, against the file system's own calls and a peer, in one run.

    python benchmarks/prompt_speed.py [--files 12] [--calls 2000] [--rounds 7] [--nanobot PYTHON]

Builds a workspace of which FILES files matter (bootstrap files, memory, skills), lets it rest, then times in turn: as
many `os.stat` calls as there are files; a build that hits; a build after one file changed; a build whose every file is
read anew; the first build of a process, templates compiled included. The skills that come with the program are watched
and read beside the files. Prints medians over the rounds in microseconds of the processor (other work on the machine is
not in those), what the interpreter opened, and the promises: a hit costs at most 3 times the stats, a rebuild takes
less than 5 ms. `--nanobot` names a Python that has nanobot-ai installed (`benchmarks/peers/setup.sh` makes one): its
builder gets a workspace with the same files.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).parents[1]))

from runtime.prompt.builder import PromptBuilder
from runtime.workspace import MEMORY_FILE, Workspace, open_workspace

TOOLS = ("read_file", "write_file", "edit_file", "list_dir", "grep", "exec", "skill")
FIXED = ("AGENTS.md", "SOUL.md", "USER.md", "TOOLS.md", MEMORY_FILE)
MOST_TIMES, MOST_MS = 3.0, 5.0


def fill(folder: Path, files: int) -> tuple[Workspace, list[str]]:
    """A workspace with `files` files of some 2 KB that end up in the prompt, and their paths."""
    workspace = open_workspace(folder)
    paths = [folder / name for name in FIXED][:files]
    paths += [folder / "skills" / f"skill-{number}" / "SKILL.md" for number in range(files - len(paths))]
    for number, path in enumerate(paths):
        path.parent.mkdir(parents=True, exist_ok=True)
        front = (
            f"---\nname: {path.parent.name}\ndescription: For task {number}.\n---\n" if path.name == "SKILL.md" else ""
        )
        path.write_text(f"{front}# Part {number}\n\n" + f"- A line of part {number}, as people write them.\n" * 45)
    rest(folder)
    return workspace, [str(path) for path in paths]


def rest(folder: Path) -> None:
    """Make everything look as if it had been written a minute ago."""
    then = time.time_ns() - 60 * 10**9
    for path in (*folder.rglob("*"), folder):
        os.utime(path, ns=(then, then))


def per_call(action: Callable[[], object], calls: int) -> float:
    """Microseconds of the processor, the kernel's share included, that a call takes."""
    began = time.process_time_ns()
    for _ in range(calls):
        action()
    return (time.process_time_ns() - began) / calls / 1e3


def opened_by(action: Callable[[], object]) -> int:
    opened: list[object] = []
    listening = True

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if listening and event == "open" and not isinstance(arguments[0], int):
            opened.append(arguments[0])

    sys.addaudithook(hook)
    action()
    listening = False
    return len(opened)


class Bench:
    """One workspace and its builder; `measure` gives microseconds by case."""

    def __init__(self, folder: Path, files: int) -> None:
        self.workspace, self.paths = fill(folder, files)
        self.builder = self.fresh()
        self.round = 0

    def fresh(self) -> PromptBuilder:
        return PromptBuilder(self.workspace, home=self.workspace.root)

    def hit(self) -> object:
        return self.builder.build("terminal", TOOLS)

    def stats(self) -> None:
        for path in self.paths:
            os.stat(path)  # noqa: PTH116 (what is measured is the call itself)

    def changed(self) -> object:
        return self.builder.build("terminal", TOOLS)

    def anew(self) -> object:
        return self.fresh().build("terminal", TOOLS)

    def measure(self, calls: int) -> dict[str, float]:
        stats = per_call(self.stats, calls)
        hit = per_call(self.hit, calls)
        changed = []
        for _ in range(20):
            self.round += 1
            Path(self.paths[1]).write_text(f"version {self.round}\n" + "- a line that somebody changed\n" * 60)
            then = time.time_ns() - 50 * 10**9 + self.round
            os.utime(self.paths[1], ns=(then, then))
            changed.append(per_call(self.changed, 1))
        return {"stats": stats, "hit": hit, "changed": statistics.median(changed), "anew": per_call(self.anew, 20)}


def peer(python: str, workspace: Path, calls: int, home: Path) -> dict[str, Any]:
    script = Path(__file__).parent / "peers" / "bench_nanobot_prompt.py"
    environ = {**os.environ, "HOME": str(home)}
    done = subprocess.run(
        [python, str(script), str(workspace), str(calls)], check=True, capture_output=True, text=True, env=environ
    )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def report(bench: Bench, rounds: list[dict[str, float]], first: float) -> bool:
    """Print the table; whether the promises held."""
    median = {case: statistics.median(each[case] for each in rounds) for case in rounds[0]}
    times = statistics.median(each["hit"] / each["stats"] for each in rounds)
    files = len(bench.paths)
    print(f"{'stat of the ' + str(files) + ' files':44}{median['stats']:10.1f} us")
    print(f"{'a build that hits':44}{median['hit']:10.1f} us  {times:.2f} times the stats")
    print(f"{'a build after one file changed':44}{median['changed']:10.1f} us")
    print(f"{'a build that reads every file':44}{median['anew']:10.1f} us")
    print(f"{'the first build of a process':44}{first:10.1f} us")
    print(f"{'opened by a hit, by a build that reads':44}{opened_by(bench.hit):10} {opened_by(bench.anew):4}")
    kept = times <= MOST_TIMES and max(median["changed"], median["anew"]) < MOST_MS * 1e3
    verdict = "kept" if kept else "MISSED"
    print(f"promised: a hit at most {MOST_TIMES:g} times the stats, a rebuild under {MOST_MS:g} ms: {verdict}")
    return kept


def main() -> None:
    parser = argparse.ArgumentParser(description="What keeping the system prompt up to date costs.")
    parser.add_argument("--files", type=int, default=12)
    parser.add_argument("--calls", type=int, default=2_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--nanobot", metavar="PYTHON", help="a Python with nanobot-ai, to be measured beside ours")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        root = Path(name).resolve()
        bench = Bench(root / "work", options.files)
        first = per_call(bench.hit, 1)
        rounds = [bench.measure(options.calls) for _ in range(options.rounds)]
        kept = report(bench, rounds, first)
        if options.nanobot:
            copy = root / "peer"
            shutil.copytree(bench.workspace.root, copy)
            found = peer(options.nanobot, copy, 40, root)
            cpu, wall = (statistics.median(found[kind]) for kind in ("cpu", "wall"))
            hit = statistics.median(each["hit"] for each in rounds)
            print(
                f"{'nanobot, build_system_prompt':44}{cpu * 1e3:10.1f} us  {cpu * 1e3 / hit:,.0f} times our hit; "
                f"on the clock {wall:.1f} ms, {found['opened']} files opened each time"
            )
        sys.exit(0 if kept else 1)


if __name__ == "__main__":
    main()
