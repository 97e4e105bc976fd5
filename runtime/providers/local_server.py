"""The child process of the local model: llama.cpp's own HTTP server, from the package xllamacpp.

It runs as a script and imports nothing of moonwake, so it starts alone and quickly. It speaks with its parent so:
- The first line on stdin is JSON: the settings of `Settings`, the key among them (an argument list can be read by
  every user of the machine).
- It answers with one JSON line on stdout: `{"url": ...}` once it serves, or `{"error": kind, "text": ...}`.
- It lives as long as stdin is open and, on Linux, as long as the process `parent` lives. A parent that is killed
  with no time to clean up closes the pipe as well.

PR_SET_PDEATHSIG is not used: Linux sends that signal when the *thread* that started the child ends (prctl(2)), and
trio starts processes from a worker thread that ends after ten idle seconds.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import threading
from typing import Any, TypedDict

MISSING, FAILED = "missing", "failed"  # kinds of error

#: llama.cpp looks between two batches whether the client is still there. Measured with SmolLM2 on two threads: 2048
#: leaves a cancelled prompt running for up to 11 seconds, 256 for under 2, and both read as many tokens a second.
BATCH = 256

#: Prompts of other conversations that are kept in memory, in MiB; llama.cpp would take 8 GiB.
PROMPT_CACHE = 512

_WARNINGS = 2  # llama.cpp's level of logging: errors and warnings, not a few lines for each request


class Settings(TypedDict):
    """`window` in tokens; `sampling` holds llama.cpp's names (`temp`, `top_p`), used where a request says nothing."""

    model: str
    key: str
    window: int
    threads: int
    parent: int
    sampling: dict[str, float]


def main() -> int:
    """Serve until the parent goes. Returns the exit code where serving could not begin."""
    answer = os.dup(1)
    os.dup2(2, 1)  # whatever the native code prints belongs in the log, not in the answer
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the turn; the parent says when to end
    first = _read_line()
    if not first:
        return 0
    settings: Settings = json.loads(first)
    threading.Thread(target=die_with_parent, args=(settings["parent"],), daemon=True).start()
    try:
        server = serve(settings)
    except ImportError as error:
        _answer(answer, {"error": MISSING, "text": str(error)})
        return 3
    except RuntimeError as error:
        _answer(answer, {"error": FAILED, "text": str(error)})
        return 4
    _answer(answer, {"url": server.listening_address})
    threading.Event().wait()
    return 0


def serve(settings: Settings) -> Any:
    """Load the model and listen on a free port of 127.0.0.1. Raises RuntimeError where llama.cpp cannot."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = settings["model"]
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [settings["key"]]
    params.offline = True
    params.ui = False
    params.n_parallel = 1
    params.n_ctx = settings["window"]
    params.n_batch = params.n_ubatch = BATCH
    params.cache_ram_mib = PROMPT_CACHE
    params.cpuparams.n_threads = settings["threads"]
    params.cpuparams_batch.n_threads = settings["threads"]
    params.verbosity = _WARNINGS
    for name, value in settings["sampling"].items():
        setattr(params.sampling, name, value)
    return xllamacpp.Server(params)


def die_with_parent(parent: int) -> None:
    """End this process at once when stdin closes or, on Linux, when the process `parent` is gone."""
    watched = select.poll() if sys.platform == "linux" else None
    if watched is None:
        while os.read(0, 4096):
            pass
        os._exit(0)
    watched.register(0, select.POLLIN)
    try:
        watched.register(os.pidfd_open(parent), select.POLLIN)
    except ProcessLookupError:
        os._exit(0)
    except OSError:
        pass  # an old kernel or a sandbox: stdin alone has to do
    while True:
        for file, _ in watched.poll():
            if file != 0 or not os.read(0, 4096):
                os._exit(0)


def _read_line() -> bytes:
    """The first line, read byte by byte: the rest of stdin stays for `die_with_parent`."""
    line = bytearray()
    while not line.endswith(b"\n"):
        byte = os.read(0, 1)
        if not byte:
            return b""
        line += byte
    return bytes(line)


def _answer(file: int, what: dict[str, str]) -> None:
    os.write(file, json.dumps(what).encode() + b"\n")
    os.close(file)


if __name__ == "__main__":
    sys.exit(main())
