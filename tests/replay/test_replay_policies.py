"""Policies of a user's own: where they are found, and who is blamed when they fail."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from governors.economy import UNIT
from runtime.errors import MoonwakeError
from runtime.replay import policy_named, simulate
from tests.shell import Shell, shell_in

from .traces import SEGMENTS, steady

PAGE = (Path(__file__).parents[2] / "docs" / "replay.md").read_text(encoding="utf-8")
FAULTY = """
from runtime.replay.policies import Rule

def raises(view):
    return 1 / 0

def no_arguments():
    return True

def nothing(view):
    pass

def leaves(view):
    raise SystemExit(3)

class Bare:
    pass

class Needy:
    def __init__(self, prices, budget):
        pass

class Timeless(Rule):
    def __init__(self, prices, budget):
        super().__init__(lambda view, prices: False, prices, "long")
"""


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """What is tested is another process; it does not see what this one runs on."""
    return "asyncio"


@pytest.fixture
def moonwake(tmp_path: Path) -> Shell:
    return shell_in(tmp_path)


def test_the_policy_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a module in the current folder and as a file, and it decides by what the page says."""
    (example,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "policy_of_the_page.py").write_text(example)
    monkeypatch.chdir(tmp_path)
    before = list(sys.path)
    trace = steady(30)
    module, file = (
        simulate(trace, policy_named(f"{place}:rare"), UNIT)
        for place in ("policy_of_the_page", "./policy_of_the_page.py")
    )
    assert module == file
    assert 0 < sum(row.broke for row in file.rows) < 20
    assert sys.path == before


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("raises", r"ZeroDivisionError: division by zero \(.*faulty\.py, line 5\)$"),
        ("no_arguments", "TypeError: .*takes 0 positional arguments"),
        ("nothing", "answered None, not True, False or a Choice"),
        ("leaves", "SystemExit: 3"),
        ("Bare", "TypeError: .*takes no arguments"),
        ("Needy", "AttributeError: 'Needy' object has no attribute 'decide'"),
        ("Timeless", "answered 'long', not a lifetime"),
        ("missing", "cannot be imported: AttributeError: .*missing"),
    ],
)
def test_a_fault_in_a_policy_bears_its_name(tmp_path: Path, name: str, told: str) -> None:
    """Whatever it is, in one sentence."""
    path = tmp_path / "faulty.py"
    path.write_text(FAULTY)
    with pytest.raises(MoonwakeError, match=told) as raised:
        simulate(steady(3), policy_named(f"{path}:{name}"), UNIT)
    assert str(raised.value).startswith(f"the policy '{path}:{name}' ")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("text", ["def (", "raise ValueError('no')", "import no_such_module", "import sys; sys.exit()"])
def test_a_file_that_cannot_be_imported_is_told_of(tmp_path: Path, text: str) -> None:
    """With the path as it was given."""
    path = tmp_path / "broken.py"
    path.write_text(text)
    with pytest.raises(MoonwakeError, match=r"broken\.py:rare' cannot be imported: \w+:"):
        policy_named(f"{path}:rare")
    with pytest.raises(MoonwakeError, match=r"there is no file .*none\.py"):
        policy_named("./none.py:rare")


async def test_two_policy_options_keep_both(moonwake: Shell) -> None:
    """The second does not replace the first; commas may stand in either."""
    done = await moonwake("replay", str(SEGMENTS), "--policy", "append-only", "-p", "cold-only,pays-15")
    assert [line.split()[0] for line in done.out.splitlines()[1:4]] == ["append-only", "cold-only", "pays-15"]


async def test_a_faulty_policy_is_no_fault_of_the_program(moonwake: Shell) -> None:
    """One sentence on stderr, exit code 1."""
    (moonwake.home / "faulty.py").write_text(FAULTY)
    done = await moonwake("replay", str(SEGMENTS), "--policy", "faulty:raises")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("moonwake: the policy 'faulty:raises' failed: ZeroDivisionError")
    assert len(done.err.splitlines()) == 1


async def test_the_help_says_what_a_policy_gets(moonwake: Shell) -> None:
    """And that a picture may be a PNG."""
    words = " ".join((await moonwake("replay", "--help")).out.split())
    assert "View" in words
    assert "Choice" in words
    assert ".png" in words
