"""Tool-heavy conversations in the dicts of the Chat Completions protocol: the same ones for every contender.

A user's message, then 5 to 15 steps of a short reply with a call and its result of 500 to 4,000 characters, then a
closing reply. Results are code (the standard library's own), search hits over it, test logs and JSON. The standard
library only, and a fixed seed, so that each run on one version of Python measures the same texts.
"""

from __future__ import annotations

import json
import random
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Dict = dict[str, Any]

SHORTEST, LONGEST = 500, 4_000  # characters of a result
LATER = 400  # steps that follow a history, to be appended while it is measured; enough to fill a usual window
PHRASES = (
    "Please find out why the second import of the same archive fails.",
    "The test for empty input is still red, have a look at the reader.",
    "I see where the value is lost; the caller passes it on unchecked.",
    "Now I will look at the function that calls this one.",
    "That is not it. The error comes from the branch for relative paths.",
    "Let me run the tests again before I change anything else.",
    "Keep the public names as they are, other packages use them.",
)
TOOLS: tuple[Dict, ...] = tuple(
    {
        "type": "function",
        "function": {
            "name": name,
            "description": description + " Long output is cut in the middle; ask again with a narrower range.",
            "parameters": {
                "type": "object",
                "properties": {
                    "path": {"type": "string", "description": "Where to look, relative to the project."},
                    "query": {"type": "string", "description": "What to look for, or the command to run."},
                },
                "required": ["path"],
            },
        },
    }
    for name, description in (
        ("read_file", "Reads lines of a text file."),
        ("grep", "Searches file contents for a pattern."),
        ("exec", "Runs a command and returns what it wrote."),
    )
)
SYSTEM = "You are a careful engineer who works in a repository by means of tools.\n" + "\n".join(
    f"- Rule {number}: {PHRASES[number % len(PHRASES)]}" for number in range(1, 56)
)


class Texts:
    """Pieces of text as tools return them."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        library = Path(sysconfig.get_paths()["stdlib"])
        files = [path for path in sorted(library.glob("*.py")) if path.stat().st_size > 20_000]
        self._files = {path.name: path.read_text("utf-8").splitlines() for path in files}

    def result(self, tool: str) -> tuple[str, str]:
        """The path that a call names, and the text that comes back."""
        name = self._rng.choice(list(self._files))
        size = self._rng.randint(SHORTEST, LONGEST)
        lines = {"read_file": self._read, "grep": self._hits, "exec": self._log}[tool](name)
        text, length = [], 0
        for line in lines:
            text.append(line)
            length += len(line) + 1
            if length > size:
                break
        return f"src/{name}", "\n".join(text)[:size]

    def _from(self, name: str) -> Iterator[tuple[int, str]]:
        lines = self._files[name]
        start = self._rng.randrange(len(lines))
        for number in range(start, start + 10_000):
            yield number % len(lines) + 1, lines[number % len(lines)]

    def _read(self, name: str) -> Iterator[str]:
        return (f"{number:5}  {line}" for number, line in self._from(name))

    def _hits(self, name: str) -> Iterator[str]:
        return (f"src/{name}:{number}:{line}" for number, line in self._from(name) if "self" in line or "(" in line)

    def _log(self, name: str) -> Iterator[str]:
        for number, line in self._from(name):
            spent = self._rng.randint(1, 4_000) / 1_000
            yield f"tests/test_{name}::test_case_{number} PASSED [{number % 100:3}%] {spent:.3f}s"
            yield json.dumps({"level": "info", "line": number, "source": line.strip()[:60], "pid": 4242})


def step(rng: random.Random, texts: Texts, number: int, calls: int = 1) -> list[Dict]:
    """A reply with calls, and their results."""
    made, results = [], []
    for place in range(calls):
        tool = rng.choice(("read_file", "read_file", "grep", "exec"))
        path, text = texts.result(tool)
        identity = f"call_{number:08x}_{place}"
        arguments = json.dumps({"path": path, "query": rng.choice(PHRASES)[: rng.randint(10, 40)]})
        made.append({"id": identity, "type": "function", "function": {"name": tool, "arguments": arguments}})
        results.append({"role": "tool", "tool_call_id": identity, "name": tool, "content": text})
    return [{"role": "assistant", "content": rng.choice(PHRASES), "tool_calls": made}, *results]


def history(size: int, seed: int = 7) -> Dict:
    """`messages`: `size` of them after the system prompt, the last of them a result. `later`: steps that follow.
    `users`: user's messages of about 200 characters."""
    rng = random.Random(seed)
    texts = Texts(rng)
    messages: list[Dict] = []
    number = 0
    while len(messages) < size:
        messages.append({"role": "user", "content": " ".join(rng.sample(PHRASES, 3))})
        for _ in range(rng.randint(5, 15)):
            number += 1
            messages += step(rng, texts, number)
        messages.append({"role": "assistant", "content": " ".join(rng.sample(PHRASES, 5))})
    del messages[size - 3 :]
    while messages[-1]["role"] == "user" or "tool_calls" in messages[-1]:  # no call without its result
        messages.pop()
    messages.append({"role": "user", "content": " ".join(rng.sample(PHRASES, 3))})
    while len(messages) < size:  # the next call is the one after a result
        number += 1
        messages += step(rng, texts, number, 2 if size - len(messages) == 3 else 1)
    later = [step(rng, texts, number + 1 + extra) for extra in range(LATER)]
    users = [{"role": "user", "content": " ".join(rng.sample(PHRASES, 3))} for _ in range(LATER)]
    return {"system": SYSTEM, "tools": list(TOOLS), "messages": messages, "later": later, "users": users}
