"""Options that several commands of `moonwake` take, and where the workspace is that they name."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from .workspace import default_workspace, find_workspace

AgentOption = Annotated[
    str | None, typer.Option("--agent", "-a", help="Which agent (default: agent in moonwake.toml).")
]
WorkspaceOption = Annotated[
    Path | None,
    typer.Option("--workspace", "-w", help="The workspace (default: $MOONWAKE_WORKSPACE, else the nearest one)."),
]


def workspace_folder(named: Path | None) -> Path:
    """Where the workspace is: named, in the environment, the nearest one, or the user's own."""
    if named is not None:
        return named
    if in_environment := os.environ.get("MOONWAKE_WORKSPACE"):
        return Path(in_environment)
    return find_workspace(Path.cwd()) or default_workspace()
