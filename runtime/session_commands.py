"""`moonwake sessions`, as typer sees it. Each command turns its options into one call and an exit code."""

from __future__ import annotations

import os
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import anyio
import typer

from .options import AgentOption, WorkspaceOption, workspace_folder

if TYPE_CHECKING:
    from .session.index.listing import Filter
    from .shelf.base import Shelf

sessions = typer.Typer(
    help="Sessions: list, show, search, fork, export, import, put away, check.", no_args_is_help=True
)

Session = Annotated[str, typer.Argument(help="A session's id, 6 letters or more of its end as shown, or a name.")]
Agent = Annotated[str | None, typer.Option("--agent", "-a", help="Only sessions of this agent (default: of all).")]
Entry = Annotated[int | None, typer.Option("--entry", "-e", min=1, help="The number of an entry, as `show` has it.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Undo = Annotated[bool, typer.Option("--undo", help="Take it back.")]
Channel = Annotated[str | None, typer.Option("--channel", help="Begun on this channel (terminal, library ...).")]
Since = Annotated[str | None, typer.Option("--since", help="A date or time (2026-11-30), or an age: 12h, 7d, 4w.")]
Until = Annotated[str | None, typer.Option("--until", help="The same; a day counts as a whole.")]
Pinned = Annotated[bool | None, typer.Option("--pinned/--not-pinned", help="Only pinned ones, or none of them.")]
Archived = Annotated[bool, typer.Option("--archived", help="Those that were put away, which are left out else.")]
Tag = Annotated[str | None, typer.Option("--tag", help="With this tag (see `label`).")]
CostOver = Annotated[float | None, typer.Option("--cost-over", min=0, help="More expensive than this (US dollars).")]
Model = Annotated[str | None, typer.Option("--model", "-m", help="Answered by this model.")]


def _shelf(workspace: Path | None, agent: str | None) -> Shelf:
    from .shelf.base import shelf

    return shelf(workspace_folder(workspace), agent)


def _filter(
    channel: str | None = None,
    since: str | None = None,
    until: str | None = None,
    pinned: bool | None = None,
    archived: bool | None = False,
    tag: str | None = None,
    cost_over: float | None = None,
    model: str | None = None,
    limit: int | None = None,
) -> Filter:
    from .session.index.listing import Filter
    from .shelf.times import moment_asked, moment_asked_until

    now = datetime.now().astimezone()
    return Filter(
        channel=channel,
        since=None if since is None else moment_asked(since, now),
        until=None if until is None else moment_asked_until(until, now),
        pinned=pinned,
        archived=archived,
        tag=tag,
        min_cost=cost_over,
        model=model,
        limit=limit or None,
    )


@sessions.command("list")
def list_(
    agent: Agent = None,
    channel: Channel = None,
    since: Since = None,
    until: Until = None,
    pinned: Pinned = None,
    archived: Archived = False,
    tag: Tag = None,
    cost_over: CostOver = None,
    model: Model = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=0, help="How many at most; 0: all.")] = 30,
    json: Json = False,
    workspace: WorkspaceOption = None,
) -> None:
    """List sessions, the one with the newest message first. In the table `*` is pinned, `a` archived."""
    from .shelf.listing import list_sessions

    wanted = _filter(channel, since, until, pinned, archived, tag, cost_over, model, limit)
    raise typer.Exit(list_sessions(_shelf(workspace, agent), wanted, as_json=json))


@sessions.command()
def search(
    words: Annotated[list[str], typer.Argument(help="Words that a message has; '\"in quotes\"': just so.")],
    agent: Agent = None,
    channel: Channel = None,
    since: Since = None,
    until: Until = None,
    archived: Archived = False,
    tag: Tag = None,
    model: Model = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="How many at most.")] = 20,
    json: Json = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Find what people and agents said, the newest first. Exit code 1: nobody said it."""
    from .shelf.listing import search_sessions

    wanted = _filter(channel, since, until, None, None if archived else False, tag, None, model)
    raise typer.Exit(search_sessions(_shelf(workspace, agent), " ".join(words), wanted, limit, as_json=json))


@sessions.command()
def show(
    session: Session,
    entry: Entry = None,
    all_branches: Annotated[bool, typer.Option("--all-branches", help="Other branches too.")] = False,
    as_model: Annotated[
        bool, typer.Option("--as-model", help="What the model saw: the request at --entry, or what one there would be.")
    ] = False,
    json: Json = False,
    agent: Agent = None,
    workspace: WorkspaceOption = None,
) -> None:
    """Print a session with the numbers of its entries; with --entry the branch up to it, and that entry whole."""
    from .shelf.showing import show as show_session
    from .shelf.showing import show_as_model

    on = _shelf(workspace, agent)
    if as_model:
        raise typer.Exit(show_as_model(on, session, entry, as_json=json, environ=os.environ))
    raise typer.Exit(show_session(on, session, entry, all_branches=all_branches, as_json=json))


@sessions.command()
def export(
    session: Session,
    output: Annotated[str, typer.Option("--output", "-o", help="A file, or - for standard output.")] = "-",
    format: Annotated[
        str | None,
        typer.Option(
            "--format", "-f", help="markdown, html, jsonl or atif (default: by the file's ending, else markdown)."
        ),
    ] = None,
    branch: Annotated[bool, typer.Option("--branch", help="The current branch alone.")] = False,
    entry: Entry = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file.")] = False,
    agent: Agent = None,
    workspace: WorkspaceOption = None,
) -> None:
    """Write a session as Markdown, as one HTML page, as a session file, or as an ATIF trajectory. --entry: the branch
    that ends there. Nothing redacted is written."""
    from .shelf.showing import export as export_session

    raise typer.Exit(
        export_session(_shelf(workspace, agent), session, output, format, entry, branch=branch, force=force)
    )


@sessions.command()
def fork(
    session: Session,
    at: Annotated[
        int | None, typer.Option("--at", min=1, help="The last entry to take; one that opened a turn: all of that.")
    ] = None,
    agent: Agent = None,
    workspace: WorkspaceOption = None,
) -> None:
    """Make a session of its own of a branch, and print its id. The old one stays as it is."""
    from .shelf.changing import fork as fork_session

    raise typer.Exit(anyio.run(partial(fork_session, _shelf(workspace, agent), session, at)))


@sessions.command("import")
def import_(
    files: Annotated[list[Path] | None, typer.Argument(help="Session files of other programs.")] = None,
    source: Annotated[
        str | None, typer.Option("--from", help="pi, claude-code, codex, nanobot, chat (default: told by the file).")
    ] = None,
    list_found: Annotated[bool, typer.Option("--list", help="Show which there are, and import none.")] = False,
    everything: Annotated[
        bool, typer.Option("--all", help="All that --from finds where that program keeps them.")
    ] = False,
    again: Annotated[bool, typer.Option("--again", help="Also what was imported before.")] = False,
    agent: AgentOption = None,
    workspace: WorkspaceOption = None,
) -> None:
    """Import sessions of pi, Claude Code, Codex or nanobot, and tell of every line that was not carried over."""
    from .shelf.importing import import_files

    work = partial(
        import_files,
        _shelf(workspace, agent),
        files or (),
        source,
        everything=everything,
        listed=list_found,
        again=again,
    )
    raise typer.Exit(anyio.run(work))


@sessions.command()
def archive(session: Session, undo: Undo = False, agent: Agent = None, workspace: WorkspaceOption = None) -> None:
    """Put a session away: lists leave it out."""
    from .shelf.changing import archive as archive_session

    raise typer.Exit(anyio.run(partial(archive_session, _shelf(workspace, agent), session, undo=undo)))


@sessions.command()
def pin(
    session: Session, entry: Entry = None, undo: Undo = False, agent: Agent = None, workspace: WorkspaceOption = None
) -> None:
    """Pin a session in lists; with --entry, keep that entry in the model's view."""
    from .shelf.changing import pin as pin_session

    raise typer.Exit(anyio.run(partial(pin_session, _shelf(workspace, agent), session, entry, undo=undo)))


@sessions.command()
def label(
    session: Session,
    text: Annotated[str, typer.Argument(help="The tag, or the name of the entry.")],
    entry: Entry = None,
    undo: Undo = False,
    agent: Agent = None,
    workspace: WorkspaceOption = None,
) -> None:
    """Give a session a tag; with --entry, give that entry a name."""
    from .shelf.changing import label as label_session

    raise typer.Exit(anyio.run(partial(label_session, _shelf(workspace, agent), session, text, entry, undo=undo)))


@sessions.command()
def verify(
    session: Annotated[str | None, typer.Argument(help="A session (default: all).")] = None,
    json: Json = False,
    agent: Agent = None,
    workspace: WorkspaceOption = None,
) -> None:
    """Check session files, line by line, and what they name. Exit code 1: something was lost. Nothing is changed."""
    from .shelf.keeping import verify_sessions

    raise typer.Exit(verify_sessions(_shelf(workspace, agent), session, as_json=json))


@sessions.command()
def gc(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Tell what would go, and change nothing.")] = False,
    redacted: Annotated[
        str | None, typer.Option("--redacted", metavar="SESSION", help="Erase for good what was redacted in it.")
    ] = None,
    json: Json = False,
    agent: Agent = None,
    workspace: WorkspaceOption = None,
) -> None:
    """Remove what no session needs any more. Exit code 1: some of it stayed, and stderr says why."""
    from .shelf.keeping import collect

    raise typer.Exit(collect(_shelf(workspace, agent), redacted, dry_run=dry_run, as_json=json))
