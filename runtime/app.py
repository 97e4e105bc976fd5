"""Puts a runtime together: the one module that names adapters.

`Runtime.open` reads the config of a workspace, chooses a model, gathers tools and prompt, and starts the supervisor.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from governors.tokens import Counter, TiktokenCounter, load_vocabulary

from .agent.equipment import Equipment
from .compaction.timing import Marks
from .conversation import Conversation
from .fallbacks import Opener, close_opened, openers
from .hooks.contract import Hook
from .hooks.loading import checked_hooks, find_hooks
from .ledger import Ledger, LedgerUnusable, SpendLedger
from .prompt.builder import PromptBuilder
from .prompt.context import runtime_context
from .providers.base import ChosenModel
from .reckoning.keeping import make_ledger, make_true
from .session.store import SessionStore
from .skills import skill_roots
from .supervisor import Supervisor
from .tools.base import Tool
from .tools.toolset import Toolset
from .workspace import Workspace, default_workspace, open_workspace

if TYPE_CHECKING:
    from .config import Config
    from .providers.scripted import Scripted


def utc_now() -> str:
    """The time of an entry: UTC, ISO 8601, milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def new_session_id() -> str:
    from uuid_utils import uuid7

    return str(uuid7())


class Runtime:
    """A workspace with its agents. Made by `Runtime.open`."""

    def __init__(
        self,
        workspace: Workspace,
        config: Config,
        supervisor: Supervisor,
        environ: Mapping[str, str],
        notes: Sequence[str],
    ) -> None:
        self._environ = environ
        self._providers = [supervisor.model.provider]
        self.workspace = workspace
        self.config = config
        self.supervisor = supervisor
        self.notes = tuple(notes)

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        path: str | os.PathLike[str],
        *,
        model: str | ChosenModel | Scripted | None = None,
        tools: Iterable[Tool] = (),
        channel: str = "library",
        hooks: Iterable[object] = (),
        settings: Mapping[str, Any] | None = None,
        environ: Mapping[str, str] | None = None,
        ledger: Ledger | None = None,
    ) -> AsyncIterator[Runtime]:
        """The runtime of the workspace in the folder `path`, made where it is missing.

        `model` is `provider/model`, a `ChosenModel`, a `Scripted`, or None to look for one. Its provider is closed
        with the runtime.
        `tools` come beside the standard ones. `hooks` are `Hook`s, or objects with functions of their names
        (`docs/extending.md`); they come after those that are installed. `ledger` is asked what calls may cost (None:
        that of this user on this machine, `docs/cost.md`). `settings` override the config, as dotted keys
        (`tools.exec`). Leaving the context stops running turns and records what must be recorded. Raises
        `MoonwakeError`, and `TypeError` or `ValueError` for what is no model, no tool or no hook.
        """
        from .config import load_config  # here and below: what only opening needs is not loaded by an import

        environ = os.environ if environ is None else environ
        tools, passed = _checked_tools(tools), checked_hooks(hooks)
        workspace = await anyio.to_thread.run_sync(open_workspace, Path(path))
        config = await anyio.to_thread.run_sync(partial(load_config, workspace.root, environ, settings or {}))
        chosen = await _model_of(config, environ, model)
        toolset, notes = await anyio.to_thread.run_sync(_toolset, workspace, config, tools)
        found, told = await anyio.to_thread.run_sync(partial(_hooks, workspace, config, environ, passed))
        asked = make_ledger(config, environ) if ledger is None else ledger
        stand_ins = openers(config.fallbacks, partial(_choose, config, environ))
        equipment = partial(_equipment, workspace, config, toolset, channel, TiktokenCounter(), found, asked, stand_ins)
        store = SessionStore(workspace.sessions, new_session_id, utc_now)
        try:
            async with anyio.create_task_group() as group:
                supervisor = Supervisor(store, lambda name: equipment(), chosen, group)
                if isinstance(asked, SpendLedger):
                    told += await _made_true(asked, workspace)
                    group.start_soon(asked.keep)
                runtime = cls(workspace, config, supervisor, environ, (*config.notes, *notes, *told))
                group.start_soon(_warm, chosen)
                try:
                    yield runtime
                finally:
                    try:
                        await supervisor.close()
                    finally:
                        group.cancel_scope.cancel()
                        await runtime._close_providers()
                        with anyio.CancelScope(shield=True):
                            await close_opened(stand_ins)
                        if isinstance(asked, SpendLedger):
                            await asked.close()
        except BaseExceptionGroup as group_error:
            if len(group_error.exceptions) > 1:
                raise
            error = group_error.exceptions[0]  # the body's own: callers need not know that a task group is around it
            raise error from error.__cause__

    def agent(self, name: str | None = None, *, session: str | None = None) -> Conversation:
        """The agent `name` on a session (an id or a name, opened or begun; None begins a new one on first use)."""
        return Conversation(self.supervisor, name or self.config.agent, session)

    async def choose(self, wanted: str) -> ChosenModel:
        """Another model, by `provider/model`. Raises `ModelUnavailable`."""
        chosen = await _choose(self.config, self._environ, wanted)
        self._providers.append(chosen.provider)
        return chosen

    async def _close_providers(self) -> None:
        with anyio.CancelScope(shield=True):
            for provider in self._providers:
                await provider.close()


async def _made_true(ledger: SpendLedger, workspace: Workspace) -> tuple[str, ...]:
    """Bring the ledger up to the logs; what a person should know of it. Without it calls are refused, not the chat."""
    try:
        await make_true(ledger, workspace)
    except LedgerUnusable as error:
        return (str(error),)
    return ()


async def _model_of(
    config: Config, environ: Mapping[str, str], model: str | ChosenModel | Scripted | None
) -> ChosenModel:
    if isinstance(model, ChosenModel):
        return model
    if model is None or isinstance(model, str):
        return await _choose(config, environ, model)
    from .providers.scripted import Scripted

    if isinstance(model, Scripted):
        return model.chosen()
    raise TypeError(f"model is a {type(model).__name__}: give 'provider/model', a ChosenModel, or a Scripted")


def _checked_tools(tools: Iterable[object]) -> tuple[Tool, ...]:
    checked = []
    for each in tools:
        if not isinstance(each, Tool):
            name = getattr(each, "__name__", repr(each))
            raise TypeError(f"{name} is not a tool: put @tool (from runtime import tool) above the function")
        checked.append(each)
    return tuple(checked)


async def _choose(config: Config, environ: Mapping[str, str], wanted: str | None) -> ChosenModel:
    from .choice import Surroundings, choose_model

    return await choose_model(Surroundings(config, environ), wanted)


async def _warm(chosen: ChosenModel) -> None:
    """Do what the first turn would wait for while the person still types: the vocabulary, the SDK, the server."""
    async with anyio.create_task_group() as group:
        group.start_soon(partial(anyio.to_thread.run_sync, load_vocabulary, abandon_on_cancel=True))
        group.start_soon(chosen.provider.warm)


def _toolset(workspace: Workspace, config: Config, extra: Sequence[Tool]) -> tuple[Toolset, tuple[str, ...]]:
    from .tools.compact import compact
    from .tools.shell import sandbox_problem
    from .tools.skill import skill_tool
    from .tools.standard import standard_tools

    notes = []
    mode = config.tools.exec
    if mode == "sandbox" and (problem := sandbox_problem()) is not None:
        notes.append(f"The tool exec is off: {problem}")
        mode = "off"
    tools: list[Tool] = [
        *standard_tools(mode, config.tools.network),
    ]
    if config.compaction.strategy != "off":
        tools.append(compact)
    off = set(config.tools.disabled)
    on = frozenset(tool.spec.name for tool in (*tools, *extra) if tool.spec.name not in off) | {"skill"} - off
    tools.append(skill_tool(partial(skill_roots, workspace, _user_folder(), config.skills.folders), on))
    named = {tool.spec.name for tool in extra}
    kept = [tool for tool in tools if tool.spec.name not in named and tool.spec.name not in config.tools.disabled]
    return Toolset([*kept, *extra], timeout=config.tools.timeout), tuple(notes)


def _user_folder() -> Path | None:
    folder = default_workspace()
    return folder if folder.is_dir() else None


def _hooks(
    workspace: Workspace, config: Config, environ: Mapping[str, str], passed: Sequence[Hook]
) -> tuple[tuple[Hook, ...], tuple[str, ...]]:
    """All hooks in order, and what a person should know of those that were left out. Raises `ValueError`."""
    from .config import user_config_file

    trust, disabled = config.hooks.trust, {*config.hooks.disabled, *(hook.name for hook in passed)}
    found, notes = find_hooks(workspace.root, trust, str(user_config_file(environ)), disabled)
    return (*found, *passed), notes


def _equipment(
    workspace: Workspace,
    config: Config,
    toolset: Toolset,
    channel: str,
    counter: Counter,
    hooks: tuple[Hook, ...],
    ledger: Ledger,
    fallbacks: tuple[Opener, ...],
) -> Equipment:
    return Equipment(
        workspace=workspace.root,
        channel=channel,
        toolset=toolset,
        prompt=PromptBuilder(
            workspace,
            user_folder=_user_folder(),
            user_file=config.prompt.user_file,
            skill_folders=config.skills.folders,
        ),
        counter=counter,
        context=_context(channel),
        max_steps=config.limits.max_steps,
        margin=config.limits.margin,
        thinking=config.thinking,
        warming=config.economy.warming,
        prompt_share=config.prompt.share,
        hooks=hooks,
        hook_timeout=config.hooks.timeout,
        images=config.images,
        ledger=ledger,
        fallbacks=fallbacks,
        fallback_on_refusal=config.fallback_on_refusal,
        strategy=config.compaction.strategy,
        marks=_marks(config),
    )


def _marks(config: Config) -> Marks:
    room = config.compaction
    return Marks(room.block, room.idle, room.messages, room.keep, room.keep_tokens)


def _context(channel: str) -> Callable[[str | None], str]:
    return lambda sender: runtime_context(datetime.now().astimezone(), channel, sender)
