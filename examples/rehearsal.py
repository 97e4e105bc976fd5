"""Test an agent without a key: a model that plays a script in plain text, then one that fails on purpose.

python examples/rehearsal.py
"""

import tempfile

import anyio

from runtime import Chaos, ChosenModel, Runtime, Scripted
from runtime.events import TextDelta, ToolFinished, TurnFinished

SCRIPT = """\
@# The model looks at a file, then says what it found.
@reply
@text Let me look.
@call read_file {"path": "note.md"}

@reply
The note says that the moon is full.

@otherwise
That is all I know.
"""


async def talk(model: ChosenModel, workspace: str) -> None:
    async with Runtime.open(workspace, model=model) as runtime:
        async with await anyio.open_file(runtime.workspace.root / "note.md", "w") as note:
            await note.write("The moon is full.\n")
        agent = runtime.agent("assistant")
        for question in ("What does the note say?", "And what else?", "Are you sure?"):
            print(f"> {question}")
            async for event in agent.send(question):
                match event:
                    case TextDelta(text=text):
                        print(text, end="")
                    case ToolFinished(text=text):
                        print(f" [read {len(text)} characters] ", end="")
                    case TurnFinished(error=error):
                        print(f" ({error})" if error else "")


async def main() -> None:
    with tempfile.TemporaryDirectory() as workspace:
        model = Scripted.from_text(SCRIPT)
        await talk(model.chosen(), workspace)
        print("--- the same in chaos ---")
        model = Scripted.from_text(SCRIPT)
        chaos = Chaos(model, seed=4, rates={"cut": 0.5, "overloaded": 0.2})
        await talk(ChosenModel(model.model(), chaos), workspace)
        print("faults:", dict(chaos.made))


anyio.run(main)
