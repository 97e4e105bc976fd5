"""The `moonwake` command: the entry point, kept so small that `moonwake --version` loads nothing.

No traceback reaches a user: an error of ours is one sentence on stderr and exit code 1; wrong usage is exit code 2;
Ctrl-C is exit code 130, SIGTERM 143, SIGHUP 129. `MOONWAKE_DEBUG=1` shows tracebacks to those who want them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import NoReturn

from .version import __version__


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    if list(arguments) in (["--version"], ["-V"]):
        sys.stdout.write(f"moonwake {__version__}\n")
        sys.exit(0)
    code = _run(arguments)
    if code > 128:
        _leave_at_once(code)
    sys.exit(code)


def _leave_at_once(code: int) -> NoReturn:
    """After a signal: everything is recorded and closed, but a thread may wait for a line that nobody types."""
    with suppress(OSError):  # whoever read our output may have gone
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


def _run(arguments: Sequence[str]) -> int:
    from .channels.sanitize import clean
    from .commands import application
    from .errors import MoonwakeError

    try:
        return application(arguments)
    except MoonwakeError as error:
        sys.stderr.write(f"moonwake: {clean(str(error))}\n")  # it may quote a server
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # whoever read our output has gone, as `| head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:  # the boundary of the program
        if os.environ.get("MOONWAKE_DEBUG"):
            raise
        kind = type(error).__name__
        sys.stderr.write(
            f"moonwake: a fault in Moonwake itself ({kind}: {clean(str(error))}). Your sessions are safe. "
            "Run it again with MOONWAKE_DEBUG=1 to see where it happened\n"
        )
        return 70


if __name__ == "__main__":
    main()
