"""`moonwake model show`, as typer sees it."""

from __future__ import annotations

import os
from functools import partial
from typing import Annotated

import anyio
import typer

from .options import WorkspaceOption, workspace_folder


def model_show(
    model: Annotated[str, typer.Argument(help="PROVIDER/ID, a provider for its usual model, or local.")],
    every: Annotated[bool, typer.Option("--all", help="Every ability, also those that are only guessed.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Print what is known of a model: window, price, cache, abilities, and where each fact comes from."""
    from .model_shelf import explained, print_model

    told = anyio.run(partial(explained, workspace_folder(workspace), model, os.environ))
    raise typer.Exit(print_model(told, every=every, as_json=json))
