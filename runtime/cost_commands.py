"""`moonwake cost`, as typer sees it."""

from __future__ import annotations

import os
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from .options import WorkspaceOption, workspace_folder

if TYPE_CHECKING:
    from .shelf.costs import By


class Grouping(StrEnum):
    """What calls are added up by."""

    day = "day"
    month = "month"
    agent = "agent"
    session = "session"
    model = "model"
    kind = "kind"
    workspace = "workspace"


def cost(
    by: Annotated[Grouping, typer.Option("--by", "-b", help="What to add up by.")] = Grouping.day,
    last: Annotated[
        str | None, typer.Option("--last", help="A span: 12h, 7d (today and six days before), 4w, all.")
    ] = None,
    since: Annotated[
        str | None, typer.Option("--since", help="A date or time (2026-11-30), or an age: 12h, 7d.")
    ] = None,
    until: Annotated[str | None, typer.Option("--until", help="The same; a day counts as a whole.")] = None,
    agent: Annotated[str | None, typer.Option("--agent", "-a", help="Only this agent (default: all).")] = None,
    everywhere: Annotated[
        bool, typer.Option("--everywhere", help="All workspaces on this machine, by the spend ledger.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Show what model calls did cost, by day, agent, session, model or kind. Without a span: the last 30 days."""
    from .config import load_config
    from .shelf.base import shelf
    from .shelf.costs import period_asked, print_cost, print_machine

    if last is not None and since is not None:
        raise typer.BadParameter("--last and --since both say where to begin: give one of them")
    if everywhere and agent is not None:
        raise typer.BadParameter("--everywhere counts all agents: ask --by agent, or leave one of them out")
    key: By = by.value
    period = period_asked(since, until, last, datetime.now().astimezone())
    if everywhere:
        config = load_config(workspace_folder(workspace), os.environ)
        raise typer.Exit(print_machine(key, period, os.environ, config, as_json=json))
    on = shelf(workspace_folder(workspace), agent)
    raise typer.Exit(print_cost(on, key, period, os.environ, as_json=json))
