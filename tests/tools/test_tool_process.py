"""Running programs: bounded memory, bounded end."""

import os
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.tools.process import Finished, Tape, run_process
from runtime.tools.shell import output_text, shown

from .tool_calls import text_of


async def run(script: str, limit: float = 20.0, keep: int = 1000) -> Finished:
    with anyio.fail_after(15):
        return await run_process(
            ["sh", "-c", script], folder="/", environment=dict(os.environ), timeout=limit, head=keep, tail=keep
        )


@given(st.lists(st.binary(max_size=9), max_size=12), st.integers(0, 12), st.integers(0, 12))
def test_a_tape_keeps_both_ends(chunks: list[bytes], head: int, tail: int) -> None:
    """However the output is chunked, the first and last bytes are kept, nothing twice, and all are counted."""
    tape = Tape(head, tail)
    for chunk in chunks:
        tape.feed(chunk)
    data = b"".join(chunks)
    first, last = tape.kept()
    rest = data[head:]
    assert first == data[:head]
    assert last == rest[max(0, len(rest) - tail) :]
    assert tape.total == len(data)


@given(st.text(min_size=1, max_size=60), st.integers(0, 20))
def test_cuts_fall_between_characters(text: str, keep: int) -> None:
    """Cutting valid text never makes an invalid character of it."""
    data = text.replace("\ufffd", "x").encode("utf-8", "replace")
    tape = Tape(keep, keep)
    tape.feed(data)
    first, last = tape.kept()
    assert "\ufffd" not in output_text(Finished(first, last, tape.total, 0, timed_out=False, held=False))


async def test_output_and_errors_come_in_order() -> None:
    """Stdout and stderr are one stream, the input is empty, the code is told."""
    finished = await run("echo a; echo b >&2; echo c; cat; exit 3")
    assert finished == Finished(b"a\nb\nc\n", b"", 6, 3, timed_out=False, held=False)


async def test_a_flood_is_kept_in_bounded_memory() -> None:
    """100 MB are counted, two ends are kept."""
    finished = await run("echo start; head -c 100000000 /dev/zero; echo end")
    assert finished.total == 100_000_010
    assert finished.head.startswith(b"start\n\0")
    assert finished.tail.endswith(b"\0end\n")
    assert len(finished.head) + len(finished.tail) == 2000
    assert "99,998,010 of 100,000,010 bytes cut here" in text_of(shown(finished, 1))


async def test_time_is_up() -> None:
    """What was printed before the end of the time is kept."""
    finished = await run("echo a; sleep 1000", limit=0.3)
    assert (finished.timed_out, finished.head) == (True, b"a\n")
    assert finished.code == -9


async def test_a_program_that_is_not_there_is_an_os_error() -> None:
    """Nothing leaks when nothing could be started."""
    before = descriptors()
    with pytest.raises(FileNotFoundError):
        await run_process(["/none"], folder="/", environment={}, timeout=1, head=1, tail=1)
    assert descriptors() == before


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def test_fault_155_grandchild_in_the_group_is_ended(tmp_path: Path) -> None:
    """A background process that holds the pipe is ended with its command, which returns at once."""
    fifo = tmp_path / "alive"
    os.mkfifo(fifo)
    watch = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    ready = tmp_path / "ready"  # the command must not end, and take its group along, before the pipe is held
    holder = f"(exec 3>{fifo}; echo up >&3; : > {ready}; exec sleep 1000)"
    finished = await run(f"{holder} & while [ ! -e {ready} ]; do :; done; echo done")
    assert (finished.head, finished.code, finished.held) == (b"done\n", 0, False)
    await until_closed(watch)


async def test_fault_155_grandchild_outside_the_group_does_not_hang_the_call(tmp_path: Path) -> None:
    """A process that left the group and holds the pipe delays the return by a moment, and this is told."""
    before = descriptors()
    script = (
        "setsid sh -c 'echo $$ > pid.new; mv pid.new pid; exec sleep 1000' & while [ ! -e pid ]; do :; done; echo ok"
    )
    finished = await run(f"cd {tmp_path}; {script}")
    os.kill(int((tmp_path / "pid").read_text()), 9)
    assert (finished.head, finished.code, finished.held) == (b"ok\n", 0, True)
    assert "still running" in text_of(shown(finished, 1))
    assert descriptors() == before


async def test_cancelling_ends_the_group(tmp_path: Path) -> None:
    """When the turn is cancelled, no process of the command is left, and no descriptor."""
    fifo = tmp_path / "alive"
    os.mkfifo(fifo)
    before = descriptors()
    watch = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    async with anyio.create_task_group() as group:
        group.start_soon(run, f"exec 3>{fifo}; echo up >&3; sleep 1000 & sleep 1000")
        with anyio.fail_after(10):
            await anyio.wait_readable(watch)
        assert os.read(watch, 100) == b"up\n"
        group.cancel_scope.cancel()
    await until_closed(watch)
    assert descriptors() == before


async def until_closed(watch: int) -> None:
    """Wait until nobody writes to the pipe any more; fails if somebody still does."""
    with anyio.fail_after(10):
        while True:
            await anyio.wait_readable(watch)
            if not os.read(watch, 100):
                break
    os.close(watch)


async def test_a_signal_is_named() -> None:
    """A command that was killed says by what."""
    assert "signal 15, SIGTERM" in text_of(shown(await run("kill -TERM $$"), 1))


async def test_many_programs_at_once() -> None:
    """Programs run side by side without mixing their output."""
    outputs: dict[int, bytes] = {}

    async def one(number: int) -> None:
        outputs[number] = (await run(f"echo {number}")).head

    async with anyio.create_task_group() as group:
        for number in range(30):
            group.start_soon(one, number)
    assert outputs == {number: b"%d\n" % number for number in range(30)}
