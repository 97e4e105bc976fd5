"""The `moonwake` command in a home of its own, and a model on loopback that it talks to."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio

from runtime.session.entries import Record
from runtime.session.opening import read_log
from tests.servers import KEY as SERVER_KEY
from tests.servers import Handler, Server, model_server


@dataclass
class Shell:
    """Runs `moonwake` in a home of its own, with nothing of this machine's settings."""

    home: Path
    environ: dict[str, str]

    async def __call__(self, *arguments: str, said: bytes = b"", **environ: str) -> Done:
        done = await anyio.run_process(
            [sys.executable, "-m", "runtime.cli", *arguments],
            input=said,
            check=False,
            cwd=self.home,
            env={**self.environ, **environ},
        )
        return Done(done.returncode, done.stdout.decode(), done.stderr.decode())

    def recorded(self, session: str) -> list[Record]:
        """What stands in the log of the session of that name."""
        (log,) = self.home.rglob(f"{session}.jsonl")
        return [entry.record for entry in read_log(log).entries]


@dataclass
class Done:
    code: int
    out: str
    err: str


def shell_in(tmp_path: Path) -> Shell:
    """A shell whose home lies in `tmp_path`."""
    home = tmp_path / "home"
    home.mkdir()
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "LANG", "PYTHONPATH", "VIRTUAL_ENV")}
    root = str(Path(__file__).parents[1])
    return Shell(home, {**kept, "HOME": str(home), "PYTHONPATH": root, "MOONWAKE_DEBUG": "", "NO_COLOR": "1"})


@asynccontextmanager
async def served(shell: Shell, *replies: Handler) -> AsyncIterator[Server]:
    """A model behind the provider `mine`, chosen by the environment."""
    async with model_server(replies) as server:
        shell.environ |= {
            "MOONWAKE_PROVIDERS__MINE__BASE_URL": f"{server.url}/v1",
            "MOONWAKE_PROVIDERS__MINE__KEY_ENV": "MINE_KEY",
            "MINE_KEY": SERVER_KEY,
            "MOONWAKE_MODEL": "mine/any-model",
        }
        yield server
