"""One ledger, several processes: no cap is passed by anything, whatever interleaves and whoever dies."""

from __future__ import annotations

import signal
import sqlite3
import sys
import time
from dataclasses import replace
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from anyio.streams.buffered import BufferedByteReceiveStream

from governors.messages import Usage
from runtime.ledger import Caps, SpendingLimit, SpendLedger
from runtime.ledger.process import is_gone, this_process
from tests.ledger.books import WHO, assert_sound, day_total, totals
from tests.ledger.trials import ROOT, trial

LAST_CENT = """
import sys, time, anyio
from pathlib import Path
from runtime.ledger import Caps, SpendLedger, SpendingLimit
from tests.ledger.books import WHO

async def main():
    book = SpendLedger(Path(sys.argv[1]), Caps(day=0.01))
    print("ready", flush=True)
    sys.stdin.readline()
    try:
        await book.reserve(WHO, "m", 0.01)
        print("got", flush=True)
    except SpendingLimit:
        print("refused", flush=True)
    sys.stdin.readline()

anyio.run(main)
"""


@pytest.mark.parametrize("seed", range(3))
def test_no_cap_is_passed_whatever_interleaves_and_whoever_is_killed(tmp_path: Path, seed: int) -> None:
    """Three processes of three tasks each, twice; some die by SIGKILL at any statement."""
    trial(tmp_path, seed)


async def test_two_processes_at_once_on_the_last_cent(tmp_path: Path) -> None:
    """One gets it. When that one is killed, the cent stays taken until a log tells what became of it."""
    path = tmp_path / "ledger.sqlite"
    command = [sys.executable, "-c", LAST_CENT, str(path)]
    async with await anyio.open_process(command, cwd=ROOT) as one, await anyio.open_process(command, cwd=ROOT) as two:
        both = (one, two)
        outputs = [BufferedByteReceiveStream(each.stdout) for each in both if each.stdout is not None]
        assert [await each.receive_until(b"\n", 99) for each in outputs] == [b"ready", b"ready"]
        for each in both:
            assert each.stdin is not None
            await each.stdin.send(b"go\n")
        assert sorted([await each.receive_until(b"\n", 99) for each in outputs]) == [b"got", b"refused"]
        book = SpendLedger(path, Caps(day=0.01), now=time.time)
        assert await book.lost() == ()
        for each in both:
            each.send_signal(signal.SIGKILL)
            await each.wait()
        with pytest.raises(SpendingLimit, match="under way or were lost"):
            await book.reserve(WHO, "m", 0.001)
        (lost,) = await book.lost()
        await book.reconcile(lost, 0.004, Usage())
        await book.reserve(WHO, "m", 0.006)
        await book.close()


def test_a_process_is_gone_only_when_that_is_sure() -> None:
    """Its id may be used again, the machine may have started anew, and others are out of sight."""
    here = this_process()
    assert not is_gone(here)
    assert is_gone(replace(here, started="1"))  # another process has its id now
    assert is_gone(replace(here, boot="another", pid=1, started="1"))
    assert not is_gone(replace(here, place="elsewhere/pid:[1]", started="1"))
    assert not is_gone(replace(here, place=here.place + "1", started="1"))  # another container
    assert is_gone(replace(here, pid=2**22 + 1, started=""))


async def test_a_ledger_that_another_process_holds_is_waited_for(tmp_path: Path) -> None:
    """A transaction of another one ends before the patience does."""
    path = tmp_path / "ledger.sqlite"
    book = SpendLedger(path, Caps(day=1.0))
    await book.settle(await book.reserve(WHO, "m", 0.1), 0.1, Usage())
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    async with anyio.create_task_group() as group:
        group.start_soon(book.reserve, WHO, "m", 0.1)
        await anyio.lowlevel.checkpoint()
        other.execute("COMMIT")
    other.close()
    (day,) = [key for scope, key in totals(path) if scope == "day"]
    assert day_total(path, day) == (100_000_000, 100_000_000)
    assert_sound(path)
    await book.close()
