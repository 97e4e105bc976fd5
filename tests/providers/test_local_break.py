"""Connections that break: a stand-in server does on purpose what llama.cpp's does now and then."""

from __future__ import annotations

import sys
from pathlib import Path

from runtime.providers.base import Finished, Request, Retry, StreamEvent, TextPiece
from runtime.providers.local import Local

from .local_files import write_gguf

# For each request the server does what the next letter says: a(nswer), b(reak at once), t(ext, then break), d(ie).
# The text is what the request's `Connection` header says.
SERVER = """
import json, os, sys
from http.server import BaseHTTPRequestHandler, HTTPServer

settings = json.loads(sys.stdin.readline())
plan = list(sys.argv[1])

def line(delta, reason):
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    return b"data: " + json.dumps({"id": "1", "choices": [choice]}).encode() + b"\\n\\n"

class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        assert self.headers["Authorization"] == "Bearer " + settings["key"]
        step = plan.pop(0)
        self.close_connection = True
        if step == "d":
            os._exit(7)
        if step == "b":
            return
        body = line({"content": self.headers["Connection"]}, None)
        if step == "a":
            body += line({}, "stop") + b"data: [DONE]\\n\\n"
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Content-Length", str(len(body) + (step == "t")))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass

server = HTTPServer(("127.0.0.1", 0), Handler)
print(json.dumps({"url": f"http://127.0.0.1:{server.server_port}"}), flush=True)
server.serve_forever()
"""


async def events_of(tmp_path: Path, plan: str) -> tuple[list[StreamEvent], Finished]:
    """The events of one call to a server that follows `plan` (anew each time it is started)."""
    local = Local(write_gguf(tmp_path / "m.gguf"), command=(sys.executable, "-c", SERVER, plan))
    async with local.stream(Request.of(local.model_info(), {"messages": []})) as events:
        seen = [event async for event in events]
    await local.close()
    last = seen.pop()
    assert isinstance(last, Finished)
    return seen, last


async def test_every_call_has_a_connection_of_its_own(tmp_path: Path) -> None:
    """llama.cpp breaks reused connections now and then, so none is."""
    seen, end = await events_of(tmp_path, "a")
    assert seen == [TextPiece("close")]
    assert end.problem is None and end.message.stop == "stop"


async def test_a_connection_that_breaks_before_any_text_is_tried_once_more(tmp_path: Path) -> None:
    """The second attempt answers."""
    seen, end = await events_of(tmp_path, "ba")
    assert [type(event) for event in seen] == [Retry, TextPiece]
    assert end.problem is None


async def test_a_connection_that_breaks_twice_is_a_problem(tmp_path: Path) -> None:
    """Once more is once: further patience is up to whoever stands before the provider."""
    seen, end = await events_of(tmp_path, "bba")
    assert [type(event) for event in seen] == [Retry]
    assert end.problem is not None and end.problem.kind == "network"


async def test_a_call_is_never_repeated_after_text_was_shown(tmp_path: Path) -> None:
    """What was shown stays the only answer."""
    seen, end = await events_of(tmp_path, "ta")
    assert [type(event) for event in seen] == [TextPiece]
    assert end.problem is not None and end.message.text == "close"


async def test_a_server_that_dies_under_a_call_is_started_anew(tmp_path: Path) -> None:
    """Before any text that is one retry; dying again says how it ended."""
    seen, end = await events_of(tmp_path, "d")
    assert len(seen) == 1 and isinstance(seen[0], Retry) and "ended with code 7" in seen[0].why
    assert end.problem is not None and "ended with code 7 while answering" in end.problem.text
