"""`moonwake skills`, as typer sees it. Each command turns its options into one call and an exit code."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .options import WorkspaceOption, workspace_folder

skills = typer.Typer(help="Skills: list, show, begin a new one, check.", no_args_is_help=True)

Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


@skills.command("list")
def list_(json: Json = False, workspace: WorkspaceOption = None) -> None:
    """List the skills here: where each comes from, whether it can be used, and what is missing or wrong."""
    from .skill_shelf import list_skills

    raise typer.Exit(list_skills(workspace_folder(workspace), as_json=json))


@skills.command()
def show(
    name: Annotated[str, typer.Argument(help="The skill's name.")],
    json: Json = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Print a skill: what is known of it, its other files, and its text."""
    from .skill_shelf import show_skill

    raise typer.Exit(show_skill(workspace_folder(workspace), name, as_json=json))


@skills.command()
def new(
    name: Annotated[str, typer.Argument(help="Its name: a-z, 0-9 and hyphens.")],
    user: Annotated[bool, typer.Option("--user", help="For all your workspaces, not only for this one.")] = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Begin a skill with a text that shows how one is written. Nothing is overwritten."""
    from .skill_shelf import begin_skill

    raise typer.Exit(begin_skill(workspace_folder(workspace), name, user=user))


@skills.command()
def check(
    paths: Annotated[
        list[Path] | None, typer.Argument(help="A SKILL.md, its folder, or a folder of skills (default: all here).")
    ] = None,
    json: Json = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Name every fault with its file and line. Exit code 1: there is one."""
    from .skill_shelf import check_skills

    raise typer.Exit(check_skills(workspace_folder(workspace), paths or [], as_json=json))
