"""The prompt at the bottom of a terminal: what is printed goes above it and scrolls away, as in any shell.

A thin layer over prompt_toolkit. The prompt stays usable while text is printed above it: the prompt is erased, the text
written, the prompt drawn again, all between the marks of a synchronized update (DEC mode 2026; a terminal that does not
know it ignores them), so that nothing flickers. The terminal is never asked where its cursor is: the answer would
arrive among the keys.
"""

from __future__ import annotations

import asyncio
import errno
import os
import sys
from collections.abc import Callable, Iterable
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from .keys import Actions, key_bindings
from .stray import LinesAbove

if TYPE_CHECKING:
    from prompt_toolkit.application import Application
    from prompt_toolkit.buffer import Buffer
    from prompt_toolkit.history import History
    from prompt_toolkit.input import Input
    from prompt_toolkit.layout import AnyContainer, Window
    from prompt_toolkit.output import Output
    from prompt_toolkit.widgets import SearchToolbar

#: What a write to a terminal that is not there any more is answered with.
_GONE = (errno.EIO, errno.ENXIO, errno.EBADF, errno.EPIPE)
_BEGIN_UPDATE, _END_UPDATE = "\x1b[?2026h", "\x1b[?2026l"


@dataclass(slots=True)
class HangUp:
    """Whether the terminal has gone; `call` is called when that is found out."""

    happened: bool = False
    call: Callable[[], None] = lambda: None

    def found(self) -> None:
        self.happened = True
        self.call()


@dataclass(frozen=True, slots=True)
class Devices:
    """Where keys come from and where drawing goes."""

    keyboard: Input
    display: Output
    hang_up: HangUp = field(default_factory=HangUp)


@dataclass(frozen=True, slots=True)
class Views:
    """What stands around the input, asked for whenever it is drawn: terminal text (`live`) or plain text."""

    live: Callable[[], str]
    status: Callable[[], str]
    hints: Callable[[str], str]
    mark: str


def terminal_devices(stdout: TextIO) -> Devices:
    """The terminal that this process talks to. When it goes away, nothing is drawn any more."""
    from prompt_toolkit.data_structures import Size
    from prompt_toolkit.input import create_input
    from prompt_toolkit.output import ColorDepth
    from prompt_toolkit.output.vt100 import Vt100_Output

    hang_up = HangUp()

    class Display(Vt100_Output):
        def flush(self) -> None:
            try:
                super().flush()
            except OSError as error:
                if error.errno not in _GONE:
                    raise
                hang_up.found()

    def size() -> Size:
        try:
            columns, rows = os.get_terminal_size(stdout.fileno())
        except (OSError, ValueError):
            columns, rows = 0, 0
        return Size(rows=rows or 24, columns=columns or 80)

    depth = ColorDepth.DEPTH_1_BIT if os.environ.get("NO_COLOR") else ColorDepth.from_env()
    display = Display(stdout, size, term=os.environ.get("TERM"), enable_cpr=False, default_color_depth=depth)
    return Devices(create_input(sys.stdin), display, hang_up)


def input_history(path: Path) -> History:
    """What was typed before, in a file that only its owner may read. A file that cannot be used is done without."""
    from prompt_toolkit.history import FileHistory, InMemoryHistory

    class OwnHistory(FileHistory):
        def store_string(self, string: str) -> None:
            try:
                super().store_string(string)
            except OSError:
                return  # the conversation is worth more than its history of keys

    try:
        os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, 0o600))
        path.chmod(0o600)
    except OSError:
        return InMemoryHistory()
    return OwnHistory(path)


class Screen:
    """`run` draws until `leave`; `emit` prints above the prompt, also before and after."""

    def __init__(self, devices: Devices, views: Views, actions: Actions, history: History) -> None:
        from prompt_toolkit.buffer import Buffer

        self._devices = devices
        self._display = devices.display
        devices.hang_up.call = self.leave
        self._buffer: Buffer = Buffer(multiline=True, history=history)
        self._offered = ""
        self._updating = False
        self._application = self._build(views, actions)
        self._application.after_render += self._end_update

    @property
    def columns(self) -> int:
        return self._display.get_size().columns

    @property
    def rows(self) -> int:
        return self._display.get_size().rows

    def emit(self, lines: Iterable[str]) -> None:
        """Print `lines` (terminal text, each at most `columns` cells wide) above the prompt."""
        text = "".join(f"{line}\r\n" for line in lines)
        if not text:
            return
        running = self._application.is_running
        if running:
            if not self._updating:
                self._display.write_raw(_BEGIN_UPDATE)
                self._updating = True
            self._application.renderer.erase(leave_alternate_screen=False)
        self._display.write_raw(text)
        self._display.flush()
        self._application.invalidate()

    def redraw(self) -> None:
        self._application.invalidate()

    def put_back(self, text: str) -> bool:
        """Give text back to the person to be changed and sent, if nothing else was typed meanwhile. Whoever types a
        slash next means a command instead."""
        if self._buffer.text:
            return False
        self._buffer.insert_text(text)
        self._offered = text
        return True

    def leave(self) -> None:
        if self._application.is_running and not self._application.is_done:
            self._application.exit()

    async def run(self) -> None:
        """Until `leave`. What a tool or a library prints meanwhile appears above the prompt."""
        above = LinesAbove(self.emit, asyncio.get_running_loop().call_soon_threadsafe)
        # EOFError: the terminal was closed. What else goes wrong, prompt_toolkit would show as a traceback.
        with redirect_stdout(above), redirect_stderr(above), suppress(EOFError):
            await self._application.run_async(set_exception_handler=False)
        self.emit(above.rest())

    def _end_update(self, application: Application[None]) -> None:
        if self._updating:
            self._updating = False
            self._display.write_raw(_END_UPDATE)
            self._display.flush()

    def _build(self, views: Views, actions: Actions) -> Application[None]:
        from prompt_toolkit.application import Application
        from prompt_toolkit.layout import HSplit, Layout, VerticalAlign
        from prompt_toolkit.styles import Style
        from prompt_toolkit.widgets import SearchToolbar

        search = SearchToolbar()
        window, parts = self._parts(views, search)
        return Application(
            layout=Layout(HSplit(parts, align=VerticalAlign.TOP), focused_element=window),
            key_bindings=key_bindings(self._buffer, actions, lambda: self._offered),
            style=Style.from_dict({"mark": "bold ansicyan", "status": "dim", "hints": "dim"}),
            input=self._devices.keyboard,
            output=self._display,
            erase_when_done=True,
        )

    def _parts(self, views: Views, search: SearchToolbar) -> tuple[Window, list[AnyContainer]]:
        from prompt_toolkit.filters import Condition
        from prompt_toolkit.formatted_text import ANSI, StyleAndTextTuples
        from prompt_toolkit.layout import BufferControl, ConditionalContainer, Dimension, FormattedTextControl, Window

        def prefix(line: int, wrapped: int) -> StyleAndTextTuples:
            mark = views.mark if line == 0 and wrapped == 0 else " " * len(views.mark)
            return [("class:mark", f"{mark} ")]

        window = Window(
            BufferControl(self._buffer, search_buffer_control=search.control, preview_search=True),
            get_line_prefix=prefix,
            wrap_lines=True,
            dont_extend_height=True,
            height=lambda: Dimension(min=1, max=max(1, self.rows // 3)),
        )
        live = Window(FormattedTextControl(lambda: ANSI(views.live())), dont_extend_height=True)
        hints = Window(
            FormattedTextControl(lambda: views.hints(self._buffer.text)), dont_extend_height=True, style="class:hints"
        )
        status = Window(FormattedTextControl(views.status), height=1, style="class:status")
        shown = Condition(lambda: bool(views.hints(self._buffer.text)))
        return window, [live, search, window, ConditionalContainer(hints, shown), status]
