"""What docs/cost.md shows is so: its settings are some, its commands exist, its program runs."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import anyio
import pytest

from runtime.config import load_config
from runtime.config.schema import SpendConfig
from runtime.cost_commands import Grouping
from runtime.ledger import AgentCaps, Caps
from runtime.reckoning.keeping import caps_of
from tests.servers import chat_text
from tests.shell import served, shell_in

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "cost.md").read_text(encoding="utf-8")
COMMANDS = sorted({line.strip() for line in re.findall(r"^    (moonwake [^#\n]*)", PAGE, re.MULTILINE)})


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """The program chooses its own."""
    return "asyncio"


def test_the_settings_are_caps(tmp_path: Path) -> None:
    (settings,) = re.findall(r"^```toml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    user = tmp_path / "user.toml"
    user.write_text(settings, encoding="utf-8")
    caps = Caps(day=5.0, month=60.0, session=3.0, turn=1.0, agents={"dreamer": AgentCaps(day=0.5, month=5.0)})
    assert caps_of(load_config(tmp_path, {}, user_file=user)) == caps


async def test_the_program_runs_as_it_stands(tmp_path: Path) -> None:
    (program,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    shell = shell_in(tmp_path)
    async with served(shell, chat_text("A hundredth.")):
        command = [sys.executable, "-W", "error", "-c", program]
        done = await anyio.run_process(command, cwd=shell.home, env=shell.environ, check=False)
    assert (done.returncode, done.stderr.decode(), done.stdout.decode()) == (0, "", "A hundredth.\n")
    assert not list(tmp_path.rglob("ledger.sqlite*"))


@pytest.mark.parametrize("command", COMMANDS)
async def test_a_command_is_one(tmp_path: Path, command: str) -> None:
    """It finds no calls in a new workspace, and says so."""
    shell = shell_in(tmp_path)
    await shell("init", ".")
    done = await shell(*shlex.split(command)[1:])
    assert (done.code, done.err) == (0, "")
    assert "No model was asked" in done.out or '"calls": 0' in done.out
    assert len(COMMANDS) == 5


def test_every_cap_and_every_kind_of_sum_is_told() -> None:
    assert all(re.search(rf"\b{name}\b", PAGE) for name in (*SpendConfig.model_fields, *Grouping))
