"""Which process holds a reservation, and whether it is gone for sure."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from functools import cache
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Process:
    """A process that another one cannot be taken for: its id is used again, and so its start and the machine's are
    kept with it. `place` is where ids are counted: the host, and within it a container. "" is what cannot be told."""

    pid: int
    started: str
    boot: str
    place: str


def this_process() -> Process:
    return _process(os.getpid())


@cache
def _process(pid: int) -> Process:  # by id: a fork is another process
    return Process(pid, _started(pid) or "", _boot(), _place())


def is_gone(process: Process) -> bool:
    """Whether `process` has ended for sure. One of another host or container may go on, for all that is known here."""
    here = this_process()
    host, _, _ = process.place.partition("/")
    if host != here.place.partition("/")[0]:
        return False
    if process.boot and here.boot and process.boot != here.boot:
        return True
    if process.place != here.place:
        return False
    if process.started and here.started:
        return _started(process.pid) != process.started
    try:
        os.kill(process.pid, 0)  # sends nothing
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


def _started(pid: int) -> str | None:
    """When a process began, in the kernel's ticks since the boot; None where that cannot be told, or it has ended."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    fields = stat[stat.rfind(b")") + 2 :].split()  # the name before may hold anything
    state, started = fields[0], fields[19]
    return None if state in (b"Z", b"X") else started.decode()


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def _place() -> str:
    try:
        space = os.readlink("/proc/self/ns/pid")  # noqa: PTH115 - its text, which is no path
    except OSError:
        space = ""
    return f"{platform.node()}/{space}"
