"""Give an agent a tool of your own: a plain function. Its schema comes from the type hints and the docstring.

python examples/own_tool.py              # a scripted model calls the tool twice at once
python examples/own_tool.py openai       # a real model decides for itself
"""

import sys
import tempfile

import anyio

from runtime import Call, Reply, Runtime, Scripted, tool
from runtime.events import ToolFinished, ToolStarted


@tool(read_only=True)
async def moon_phase(date: str) -> str:
    """Tell the phase of the moon.

    Args:
        date: A day, such as 2026-11-30.
    """
    year, month, day = (int(part) for part in date.split("-"))
    age = (year * 365.2425 + month * 30.6 + day - 4.6) % 29.53
    return f"on {date} the moon is about {age:.0f} days old"


async def main(model: str | None) -> None:
    calls = [Call("moon_phase", {"date": "2026-12-24"}), Call("moon_phase", {"date": "2026-12-31"})]
    rehearsal = Scripted([Reply("Let me see.", calls), "The moon will be up on both evenings."])
    with tempfile.TemporaryDirectory() as workspace:
        async with Runtime.open(workspace, model=model or rehearsal.chosen(), tools=[moon_phase]) as runtime:
            agent = runtime.agent("assistant")
            async for event in agent.send("Is there a moon on Christmas Eve and on New Year's Eve?"):
                match event:
                    case ToolStarted(tool=name, arguments=arguments):
                        print(f"-> {name} {arguments}")
                    case ToolFinished(text=text):
                        print(f"<- {text}")
            print(await agent.ask("Thank you. In short?") if model else "done")


anyio.run(main, sys.argv[1] if len(sys.argv) > 1 else None)
