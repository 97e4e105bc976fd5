"""`moonwake inspect`, as typer sees it."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from .options import AgentOption, WorkspaceOption, workspace_folder


def inspect(
    session: Annotated[str, typer.Argument(help="A session's id, 6 letters or more of its end, or a name.")],
    cache: Annotated[
        bool, typer.Option("--cache", help="Which requests read less from the cache than they could have, and why.")
    ] = False,
    compactions: Annotated[
        bool, typer.Option("--compactions", help="How room was made: when, what for, what went, what is lost.")
    ] = False,
    entry: Annotated[int | None, typer.Option("--entry", "-e", min=1, help="One request or receipt, whole.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
    agent: AgentOption = None,
    workspace: WorkspaceOption = None,
) -> None:
    """Show the model calls of a session: tokens, costs, why the provider's cache was missed, how room was made."""
    from .shelf.base import shelf
    from .shelf.inspecting import inspect_cache, inspect_session
    from .shelf.receipts import inspect_compactions

    if cache and entry is not None:
        raise typer.BadParameter("--cache tells of all requests, --entry of one: give one of them")
    if cache and compactions:
        raise typer.BadParameter("--cache tells of requests, --compactions of receipts: give one of them")
    on = shelf(workspace_folder(workspace), agent)
    if compactions:
        raise typer.Exit(inspect_compactions(on, session, entry, as_json=json))
    if cache:
        raise typer.Exit(inspect_cache(on, session, os.environ, as_json=json))
    raise typer.Exit(inspect_session(on, session, entry, as_json=json))
