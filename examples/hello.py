"""Say something to an agent and watch the answer come.

python examples/hello.py                      # a scripted model: no key, no network
python examples/hello.py anthropic "Hello!"   # a real one (see `moonwake chat --help`)
"""

import sys
import tempfile

import anyio

from runtime import Runtime, Scripted
from runtime.events import TextDelta, TurnFinished


async def main(model: str | None, text: str) -> None:
    rehearsal = Scripted(["Hello! I am a script, so I always say this."])
    with tempfile.TemporaryDirectory() as workspace:
        async with Runtime.open(workspace, model=model or rehearsal.chosen()) as runtime:
            async for event in runtime.agent("assistant").send(text):
                match event:
                    case TextDelta(text=piece):
                        print(piece, end="", flush=True)
                    case TurnFinished(error=error):
                        print(f"\n[{error or 'done'}]")


anyio.run(main, sys.argv[1] if len(sys.argv) > 1 else None, sys.argv[2] if len(sys.argv) > 2 else "hello")
