"""`moonwake inspect`: the model calls of a session, and why its cache was missed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from ..channels.wording import dollars, plural, tokens
from ..config import load_config
from ..errors import MoonwakeError
from ..inspecting import Miss, Misses, ModelCall, Summary, added, calls_of, misses_of, summary_of
from ..providers.base import ModelInfo
from ..session.entries import Entry
from .base import Shelf, columns, put, put_json, say
from .printing import table
from .showing import known_model


def inspect_session(on: Shelf, wanted: str, entry: int | None, *, as_json: bool) -> int:
    """Print the model calls of a session, one a line; with `entry` that one whole."""
    _, reading = on.read(wanted)
    calls = calls_of(reading.entries)
    if entry is not None:
        found = next((call for call in calls if call.id == entry), None)
        if found is None:
            near = sorted((call.id for call in calls), key=lambda each: abs(each - entry))[:3]
            named = f"the nearest are {', '.join(map(str, sorted(near)))}" if near else "there is none in this session"
            raise MoonwakeError(f"entry {entry} is no request; {named}")
        calls = (found,)
    if as_json:
        put_json({"requests": [call_as_json(call) for call in calls]})
    elif entry is not None:
        put(f"{name:<10}  {value}" for name, value in _whole(calls[0]))
    elif calls:
        put(call_lines(calls, columns()))
    else:
        say("no model was asked in this session")
    return 0


def inspect_cache(on: Shelf, wanted: str, environ: Mapping[str, str], *, as_json: bool) -> int:
    """Print which requests read less from the cache than they could have, why, and what that cost."""
    _, reading = on.read(wanted)
    found = misses_of(reading.entries, known_models(on, reading.entries, environ))
    if as_json:
        put_json(misses_as_json(found))
    elif found.requests:
        put(miss_lines(found, columns()))
    else:
        say("nothing to compare: no request of this session follows another that its provider counted")
    return 0


def known_models(on: Shelf, entries: Sequence[Entry], environ: Mapping[str, str]) -> dict[str, ModelInfo | None]:
    """What is known of the models that a session's requests went to, by `provider/model`."""
    config = load_config(on.workspace.root, environ, {})
    return {call.model: known_model(config, call.request) for call in calls_of(entries)}


def call_as_json(call: ModelCall) -> dict[str, Any]:
    """The request with its outcome, JSON-ready."""
    outcome = None if call.outcome is None else asdict(call.outcome)
    return {"entry": call.id, "at": call.entry.at, "request": asdict(call.request), "outcome": outcome}


def misses_as_json(found: Misses) -> dict[str, Any]:
    """The misses with their sums, JSON-ready."""
    return {
        "misses": [{**asdict(miss), "lost": miss.lost} for miss in found.misses],
        "summary": asdict(summary_of(found)),
    }


def call_lines(calls: Sequence[ModelCall], width: int) -> Iterator[str]:
    """A table of calls, in at most `width` columns (80 are enough); a line of its own where the model changes."""
    head = ("entry", "sent", "asked", "read", "written", "plain", "out", "cost", "s", "cause")
    rows = [head, *map(_call_row, calls)]
    lines = iter(_narrow(rows, width))
    yield next(lines)
    model = None
    for call, line in zip(calls, lines, strict=True):
        if call.model != model:
            model = call.model
            yield f"{model} ({call.request.wire})"
        yield line
    yield _total(calls)


def _call_row(call: ModelCall) -> tuple[str, ...]:
    usage, outcome = call.usage, call.outcome
    counted = (
        ("",) * 4
        if usage is None
        else (
            tokens(usage.cache_read),
            tokens(usage.cache_write_5m + usage.cache_write_1h),
            tokens(usage.plain),
            tokens(usage.output),
        )
    )
    cost = "" if call.cost is None else dollars(call.cost)
    lasted = "" if outcome is None or outcome.seconds is None else f"{outcome.seconds:.0f}"
    return (str(call.id), when(call.entry.at), tokens(call.request.forecast), *counted, cost, lasted, _became(call))


def _became(call: ModelCall) -> str:
    """What is out of the ordinary about a call, in a few words."""
    outcome = call.outcome
    words = [call.request.purpose] if call.request.purpose != "turn" else []
    if outcome is None:
        words.append("no outcome")
    elif outcome.problem:
        words.append(str(outcome.problem.get("kind") or "failed"))
    elif outcome.stop == "aborted":
        words.append("stopped")
    return ", ".join([*words, *([call.cause] if call.cause else [])])


def _total(calls: Sequence[ModelCall]) -> str:
    counted = [call for call in calls if call.usage is not None]
    prompt = sum(call.usage.prompt for call in counted if call.usage is not None)
    read = sum(call.usage.cache_read for call in counted if call.usage is not None)
    cost = added(call.cost for call in counted)
    share = f", {100 * read / prompt:.0f} % of {tokens(prompt)} read from the cache" if prompt else ""
    return f"{plural(len(calls), 'request')}{share}" + ("" if cost is None else f", {dollars(cost)}")


def _whole(call: ModelCall) -> Iterator[tuple[str, str]]:
    """Every field of a call that says something."""
    yield "entry", str(call.id)
    yield "sent", call.entry.at
    outcome = {} if call.outcome is None else asdict(call.outcome)
    outcome.pop("request", None)
    for name, value in (asdict(call.request) | outcome).items():
        if value not in (None, (), {}):
            inner = value.items() if isinstance(value, dict) else ()
            shown = ", ".join(f"{key} {each}" for key, each in inner if each) if inner else str(value)
            yield name, shown
    if call.outcome is None:
        yield "outcome", "none: the program ended, or goes on"


def miss_lines(found: Misses, width: int) -> Iterator[str]:
    """A table of misses and one of their causes, in at most `width` columns (80 are enough)."""
    summary = summary_of(found)
    if found.misses:
        head = ("entry", "sent", "prompt", "could", "read", "lost", "cost", "cause")
        yield from table([head, *map(_miss_row, found.misses)], width, frozenset({0, *range(2, 7)}))
        yield ""
        rows = [("lost", "misses", "cost", "cause"), *_cause_rows(summary)]
        yield from table(rows, width, frozenset({0, 1, 2}))
        yield ""
    yield from _conclusion(summary)


def _miss_row(miss: Miss) -> tuple[str, ...]:
    why = f"{miss.cause}: {miss.detail}" if miss.detail else miss.cause
    cost = "?" if miss.cost is None else dollars(miss.cost)
    sizes = (tokens(each) for each in (miss.prompt, miss.expected, miss.read, miss.lost))
    return (str(miss.entry), when(miss.at), *sizes, cost, why)


def _cause_rows(summary: Summary) -> Iterator[tuple[str, ...]]:
    for each in summary.causes:
        cost = "?" if each.cost is None else dollars(each.cost)
        yield tokens(each.lost), f"{each.misses:,}", cost, each.cause


def _conclusion(summary: Summary) -> Iterator[str]:
    kept = 100 * (1 - summary.lost / summary.could) if summary.could else 100.0
    many = plural(summary.requests, "request")
    yield f"{many} could have read {tokens(summary.could)} tokens, and read {kept:.1f} % of them."
    if summary.lost:
        cost = "" if summary.cost is None else f", which cost {dollars(summary.cost)}"
        yield f"Lost: {tokens(summary.lost)}{cost}. Their causes are named for {100 * summary.named:.1f} %."


def _narrow(rows: Iterable[Sequence[str]], width: int) -> Iterator[str]:
    return table(list(rows), width, frozenset({0, *range(2, 9)}))


def when(at: str) -> str:
    """`11-30 22:14`, in local time."""
    try:
        return datetime.fromisoformat(at).astimezone().strftime("%m-%d %H:%M")
    except ValueError:
        return "?"
