"""Whether sessions are sound, and what nobody needs any more."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from ..channels.sanitize import clean
from ..exports.wording import plural
from ..session.care.erasing import erase_redacted
from ..session.care.gc import collect_garbage
from ..session.care.verify import Verification, verify, verify_all
from ..session.naming import short_id
from .base import Shelf, put, put_json, say


def verify_sessions(on: Shelf, wanted: str | None, *, as_json: bool) -> int:
    """Print what is wrong with one session or with all; exit code 1 when something was lost."""
    if wanted is None:
        every = list(verify_all(on.workspace.sessions, on.blobs))
        found = [each for each in every if on.agent is None or each.agent in (on.agent, None)]
    else:
        found = [verify(on.find(wanted).path, on.blobs)]
    broken = [each for each in found if not each.sound]
    if as_json:
        put_json([_as_json(each) for each in found])
        return int(bool(broken))
    for each in found:
        name = short_id(each.session) if each.session else each.path.name
        verdict = "sound" if each.sound else "damaged"
        if each.problems or wanted is not None:
            put([f"{'✓' if each.sound else '✗'} {clean(name)}: {verdict}, {each.entries:,} entries"])
        put(f"  {clean(str(problem))}" for problem in each.problems)
    put([f"{plural(len(found), 'session')} looked at, {len(broken):,} damaged"])
    return int(bool(broken))


def _as_json(found: Verification) -> dict[str, Any]:
    problems = [asdict(problem) for problem in found.problems]
    told = {"session": found.session, "agent": found.agent, "path": str(found.path), "entries": found.entries}
    return {**told, "size": found.size, "sound": found.sound, "problems": problems}


def collect(on: Shelf, redacted: str | None, *, dry_run: bool, as_json: bool) -> int:
    """Remove what no session needs, or erase for good what was redacted in one; exit code 1 when some of it stayed."""
    now = time.time()
    if redacted is not None:
        return _erase(on, redacted, now, dry_run=dry_run, as_json=as_json)
    done = collect_garbage(on.workspace.state, now=now, dry_run=dry_run)
    if as_json:
        removed = [{"path": str(each.path), "size": each.size, "why": each.why} for each in done.removed]
        put_json({"dry_run": dry_run, "removed": removed, "size": done.size, "problems": list(done.problems)})
        return int(bool(done.problems))
    put(f"{each.path.name}: {each.why} ({each.size:,} bytes)" for each in done.removed)
    verb = "would be removed" if dry_run else "removed"
    put([f"{plural(len(done.removed), 'file')}, {done.size:,} bytes {verb}"])
    for problem in done.problems:
        say(problem)
    return int(bool(done.problems))


def _erase(on: Shelf, wanted: str, now: float, *, dry_run: bool, as_json: bool) -> int:
    named = on.find(wanted)
    done = erase_redacted(named.path, on.blobs, now=now, dry_run=dry_run)
    if as_json:
        told: Mapping[str, Sequence[Any]] = {
            "entries": done.entries,
            "derived": done.derived,
            "dropped": done.dropped,
            "removed": [str(path) for path in done.removed],
            "problems": done.problems,
        }
        put_json({"session": named.id, "dry_run": dry_run, "redacted": done.redacted, **told})
        return int(bool(done.problems))
    verb = "would be erased" if dry_run else "erased"
    if not done.redacted:
        put([f"nothing is redacted in {short_id(named.id)}"])
    else:
        said = plural(len(done.entries), "entry", "entries")
        put([f"{said} {verb}; so is what was made from them in {plural(len(done.derived), 'other')}"])
        put(f"  {each}" for each in (*done.dropped, *(f"{path.name} removed" for path in done.removed)))
    for problem in done.problems:
        say(problem)
    return int(bool(done.problems))
