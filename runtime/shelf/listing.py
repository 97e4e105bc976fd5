"""Listing and searching sessions."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from ..session.index.listing import Filter, Find, SessionInfo
from .base import Shelf, columns, put, put_json, say
from .printing import find_lines, index_notes, listing_lines, listing_notes


def list_sessions(on: Shelf, wanted: Filter, *, as_json: bool) -> int:
    """Print the sessions that `wanted` lets through."""
    listing = on.store.list(on.agent, wanted)
    if as_json:
        told: dict[str, Any] = {"sessions": [info_as_json(info) for info in listing], "total": listing.total}
        state = {"fallback": listing.fallback, "behind": listing.behind, "skipped": dict(listing.skipped)}
        put_json({**told, **state})
        return 0
    if listing.total:
        put(listing_lines(listing, columns()))
    else:
        say(_none(on, wanted))
    for note in listing_notes(listing):
        say(note)
    return 0


def _none(on: Shelf, wanted: Filter) -> str:
    """Why nothing is listed."""
    agents = on.store.agents()
    if on.agent is not None and on.agent not in agents:
        named = f"; there are {', '.join(agents)}" if agents else ""
        return f"no agent {on.agent!r} has sessions here{named}"
    of_whom = "" if on.agent is None else f" of {on.agent}"
    return f"there are no sessions{of_whom}" + (" of that kind" if wanted != Filter(limit=wanted.limit) else " yet")


def search_sessions(on: Shelf, words: str, wanted: Filter, limit: int, *, as_json: bool) -> int:
    """Print the messages that say `words`; exit code 1 when there are none."""
    store = on.store
    finds = store.search(words, replace(wanted, agent=on.agent), limit)
    if as_json:
        state = store.searched
        told = {"finds": [find_as_json(find_) for find_ in finds]}
        put_json({**told, "fallback": state.fallback, "behind": state.behind, "skipped": dict(state.skipped)})
    elif finds:
        put(find_lines(finds, columns()))
    else:
        say(f"nobody said {words!r}")
    for note in index_notes(store.searched):
        say(note)
    return 0 if finds else 1


def info_as_json(info: SessionInfo) -> dict[str, Any]:
    told = {**asdict(info), "path": str(info.path), "empty": info.empty}
    return {**told, "origin": None if info.origin is None else dict(info.origin)}


def find_as_json(found: Find) -> dict[str, Any]:
    return {**asdict(found), "path": str(found.path)}
