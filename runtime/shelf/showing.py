"""Showing a session, exporting it, and showing what a model saw of it."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal
from uuid import uuid4

from governors.messages import (
    AssistantMessage,
    Document,
    Image,
    Message,
    SystemPatch,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)

from ..config import Config, load_config
from ..errors import ConfigError, MoonwakeError
from ..exports import Seen, as_model, chosen, request_at, to_atif, to_html, to_jsonl, to_markdown, transcript, veiled
from ..exports.jsonl import inlined
from ..providers.base import ModelInfo
from ..session.entries import Entry, Part, RequestRecord
from ..session.format.codec import encode_entry, encode_header
from ..session.format.reading import Reading
from ..session.tree import Tree
from .base import Shelf, line_columns, put, put_json, say
from .printing import seen_lines, transcript_lines

Format = Literal["markdown", "html", "jsonl", "atif"]
FORMATS: tuple[Format, ...] = ("markdown", "html", "jsonl", "atif")
_ENDINGS: Mapping[str, Format] = {
    ".md": "markdown",
    ".markdown": "markdown",
    ".html": "html",
    ".htm": "html",
    ".jsonl": "jsonl",
    ".json": "atif",
}


def show(on: Shelf, wanted: str, entry: int | None, *, all_branches: bool, as_json: bool) -> int:
    """Print a session: its current branch, or the one that ends with `entry`, or all."""
    _, reading = on.read(wanted)
    if as_json:
        put_json(_as_json(reading, entry, all_branches))
        return 0
    problems = [str(finding) for finding in reading.findings]
    shown = transcript(reading.header, reading.entries, entry=entry, branch=not all_branches, problems=problems)
    put(transcript_lines(shown, line_columns(), entry))
    return 0


def _as_json(reading: Reading, entry: int | None, all_branches: bool) -> dict[str, Any]:
    import json

    entries = chosen(veiled(reading.entries), entry=entry, branch=not all_branches)
    leaf = entry if entry is not None else Tree(reading.entries).leaf
    return {
        "session": json.loads(encode_header(reading.header)),
        "leaf": leaf,
        "branch": [each.id for each in Tree(reading.entries).branch_to(leaf)],
        "entries": [json.loads(encode_entry(each)) for each in entries],
        "problems": [str(finding) for finding in reading.findings],
    }


def show_as_model(on: Shelf, wanted: str, entry: int | None, *, as_json: bool, environ: Mapping[str, str]) -> int:
    """Print what the model saw at `entry` (by default at the newest request of the branch)."""
    _, reading = on.read(wanted)
    entries = reading.entries
    place = _newest_request(entries) if entry is None else entry
    if place is None:
        raise MoonwakeError("nothing was said in this session yet, so no model saw anything")
    config = load_config(on.workspace.root, environ, {})
    request = request_at(entries, place)
    model = None if request is None else known_model(config, request)
    seen = as_model(entries, place, model, config.thinking)
    if as_json:
        put_json(seen_as_json(seen))
    else:
        put(seen_lines(seen, line_columns()))
    return 0


def known_model(config: Config, request: RequestRecord) -> ModelInfo | None:
    """What is known of the model that a request went to: the catalog, the settings, and for the embedded one its file.

    None when its data cannot be had.
    """
    from ..providers.catalog import lookup

    if request.provider == "local":
        return _embedded(config, request.model)
    own = config.models.get(f"{request.provider}/{request.model}") or config.models.get(request.model)
    given = own.model_dump(exclude_none=True) if own is not None else {}
    if config.limits.max_output is not None:
        given.setdefault("max_output", config.limits.max_output)
    provider = config.providers.get(request.provider)
    address = provider.base_url if provider is not None else None
    try:
        return lookup(request.provider, request.model, {**given, "base_url": address, "wire": request.wire})
    except ConfigError:
        return None


def _embedded(config: Config, model: str) -> ModelInfo | None:
    from ..providers.local import Local, is_installed
    from ..providers.weights import chosen_file, find_model

    if not is_installed():
        return None
    for path in (chosen_file().path, find_model()):
        with suppress(MoonwakeError):  # a file that is not there any more, or is none
            if path is not None:
                info = Local(path, window=config.local.window, threads=config.local.threads).model_info()
                if info.id == model:
                    return info
    return None


def _newest_request(entries: Sequence[Entry]) -> int | None:
    branch = Tree(entries).branch()
    asked = [entry for entry in branch if isinstance(entry.record, RequestRecord)]
    requests = [entry.id for entry in asked if getattr(entry.record, "purpose", "") == "turn"] or [e.id for e in asked]
    return requests[-1] if requests else branch[-1].id if branch else None


def seen_as_json(seen: Seen) -> dict[str, Any]:
    """`Seen` as JSON-ready values (docs/exporting.md says what stands where)."""
    request = seen.request
    return {
        "entry": seen.entry,
        "request": None if request is None else asdict(request),
        "model": None if seen.model is None else f"{seen.model.provider}/{seen.model.id}",
        "wire": None if seen.model is None else seen.model.wire,
        "same_bytes": seen.same,
        "prefix": seen.prefix,
        "note": seen.why,
        "system": seen.system,
        "tools": [asdict(tool) for tool in seen.tools],
        "messages": [_message(message) for message in seen.messages],
        "body": seen.body,
    }


def _message(message: Message) -> dict[str, Any]:
    match message:
        case SystemPatch(text=text):
            return {"role": "system", "entry": message.origin, "content": [{"type": "text", "text": text}]}
        case AssistantMessage():
            told: dict[str, Any] = {"role": "assistant", "entry": message.origin, "stop": message.stop}
        case ToolResult():
            told = {"role": "tool", "entry": message.origin, "tool": message.tool, "call": message.call_id}
            told |= {"is_error": message.is_error, "stand_in": message.stand_in}
        case _:
            told = {"role": "user", "entry": message.origin}
    return {**told, "content": [_part(part) for part in message.content]}


def _part(part: Part) -> dict[str, Any]:
    kinds = {Text: "text", Image: "image", Document: "document", Thinking: "thinking", ToolCall: "call"}
    return {"type": kinds[type(part)], **asdict(part)}


def export(
    on: Shelf, wanted: str, output: str, format: str | None, entry: int | None, *, branch: bool, force: bool
) -> int:
    """Write a session to a file, or to standard output (`-`). Nothing is overwritten without `force`."""
    form = _format(format, output)
    _, reading = on.read(wanted)
    data = exported(reading, form, entry=entry, branch=branch, on=on)
    if output == "-":
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return 0
    path = Path(output).expanduser()
    write_file(path, data, force=force)
    say(f"wrote {path} ({form}, {len(data):,} bytes)")
    return 0


def exported(reading: Reading, form: Format, *, entry: int | None, branch: bool, on: Shelf) -> bytes:
    """A session in a format. Raises `MoonwakeError`."""
    import json

    header, problems = reading.header, [str(finding) for finding in reading.findings]
    entries: Sequence[Entry] = reading.entries
    if form == "jsonl":
        return to_jsonl(header, entries, entry=entry, branch=branch, blobs=on.blobs)
    entries = [inlined(each, on.blobs) for each in entries]
    match form:
        case "atif":
            return (json.dumps(to_atif(header, entries, entry=entry), ensure_ascii=False, indent=2) + "\n").encode()
        case "html":
            return _utf8(to_html(header, entries, entry=entry, branch=branch, problems=problems))
        case "markdown":
            return _utf8(to_markdown(header, entries, entry=entry, branch=branch, problems=problems))


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def _format(format: str | None, output: str) -> Format:
    if format is None:
        return _ENDINGS.get(Path(output).suffix.lower(), "markdown")
    wanted = {"md": "markdown"}.get(format.lower(), format.lower())
    for each in FORMATS:
        if wanted == each:
            return each
    raise MoonwakeError(f"there is no format {format!r}: give one of {', '.join(FORMATS)}")


def write_file(path: Path, data: bytes, *, force: bool) -> None:
    """Write `data` to `path`, whole or not at all. Raises `MoonwakeError`."""
    fresh = path.with_name(f".{path.name}.{uuid4().hex[:8]}.part")
    try:
        if path.is_dir():
            raise IsADirectoryError(None, "it is a folder")
        if not path.parent.is_dir():
            raise MoonwakeError(f"cannot write {path}: there is no folder {path.parent}. Make it first")
        if os.path.lexists(path) and not force:
            raise FileExistsError
        if path.exists() and not path.is_file():  # a device, a pipe: there is nothing to replace
            path.write_bytes(data)
            return
        fresh.write_bytes(data)
        if force:
            fresh.replace(path)
        else:
            os.link(fresh, path)  # unlike a renaming, it overwrites nothing that came meanwhile
    except FileExistsError:
        raise MoonwakeError(f"{path} is there already: name another file, or say --force to overwrite it") from None
    except OSError as error:
        raise MoonwakeError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        with suppress(OSError):
            fresh.unlink(missing_ok=True)


__all__ = [
    "FORMATS",
    "Format",
    "export",
    "exported",
    "known_model",
    "seen_as_json",
    "show",
    "show_as_model",
    "write_file",
]
