"""Hooks: a guard for tools, a prompt for one turn, and somebody who watches. A script plays the model.

python examples/hooks.py
"""

import tempfile

import anyio

from runtime import Call, Hook, Refused, Reply, Runtime, Scripted
from runtime.events import TurnFinished


def guard(context, use):
    """Nothing may be written in the evening, and it is always evening here."""
    return Refused("not in the evening") if use.tool == "write_file" else None


async def tone(context, prompt):
    return "Answer in one line." if "short" in prompt.text else None


def watch(context, event):
    if isinstance(event, TurnFinished):
        print(f"watched: {event.text}")


HOOKS = [Hook("guard", before_tool=guard), Hook("tone", before_turn=tone), Hook("watch", on_event=watch)]


async def main() -> None:
    script = [Reply("", [Call("write_file", {"path": "a.txt", "content": "x"})]), "I was told to wait.", "Good night."]
    with tempfile.TemporaryDirectory() as workspace:
        async with Runtime.open(workspace, model=Scripted(script), hooks=HOOKS) as runtime:
            agent = runtime.agent("assistant")
            print(await agent.ask("Write a file."))
            print(await agent.ask("In short: what now?"))


anyio.run(main)
