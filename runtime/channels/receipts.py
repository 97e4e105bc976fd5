"""What compactions are worded as, for people: that room is being made, what came of it, what it did cost. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import MappingProxyType

from ..events import CompactionFinished
from ..providers.base import Price
from ..session.entries import CompactionRecord
from .sanitize import clean, one_line
from .wording import dollars, plural, tokens

#: What a compaction is made for, as the beginning of a sentence.
REASONS = MappingProxyType(
    {
        "full": "The model's window is nearly full",
        "overflow": "The provider says that the request is too large",
        "model": "The model asks for room",
        "asked": "As you asked",
        "cold": "The cache is about to expire",
        "messages": "The conversation has many messages",
    }
)
_TIMINGS = MappingProxyType(
    {"before_turn": "before a turn", "mid_turn": "inside a turn", "manual": "by hand", "idle": "while nobody talked"}
)
_MOST_NAMED = 6  # of what a summary lacks, in a receipt that is not whole
_LONGEST_NAMED = 60  # characters of one of them


def beginning(timing: str, reason: str, strategy: str) -> str:
    """What is told when room begins to be made."""
    if strategy == "blank":
        what = "the conversation is cleared from its view"
    elif timing == "manual":
        what = "the conversation is summed up"
    else:
        what = "the older part of the conversation is summed up"
    return f"{REASONS.get(reason, 'The conversation is long')}: {what} …"


def end(event: CompactionFinished) -> str:
    """What is told when a compaction inside a turn has ended."""
    record = CompactionRecord(
        timing="",
        reason="",
        strategy="",
        result="done" if event.result == "done" else "failed",
        why=event.why,
        before=event.before,
        after=event.after,
        folded=event.folded,
        dropped=event.dropped,
        cost=event.cost,
    )
    return result_line(record, entry=event.entry)


def result_line(record: CompactionRecord, *, entry: int | None = None) -> str:
    """What came of it, in a line; `entry` is the receipt, where it can be looked up."""
    if record.result == "failed":
        return f"No room was made: {why(record)} Nothing has changed."
    cost = f" for {dollars(record.cost)}" if record.cost else ""
    line = f"Room was made{cost}: {_sizes(record)}, {_gone(record)}."
    if not record.dropped:
        return line
    where = "" if entry is None else f" (/show {entry})"
    return f"{line} The summary lacks {plural(len(record.dropped), 'detail')}{where}."


def saving(record: CompactionRecord, price: Price | None) -> str:
    """What each call costs less from now on, with what it did cost to get there; nothing where prices are unknown."""
    saved = record.before - record.after
    if price is None or saved <= 0 or not any((price.plain, price.cache_read)):
        return ""
    rates = price.at(record.before)
    read, plain = (saved * rate / 1_000_000 for rate in (rates.cache_read, rates.plain))
    cost = f"It cost {dollars(record.cost)}, and each" if record.cost else "Each"
    if rates.cache_read == rates.plain:
        return f"{cost} call costs {dollars(plain)} less from now on."
    return f"{cost} call costs {dollars(read)} less from now on, {dollars(plain)} where the cache is cold."


def lacking(dropped: Sequence[str], receipt: int | None) -> str:
    """The first of what the summary lacks; nothing where it lacks nothing."""
    if not dropped:
        return ""
    named = ", ".join(one_line(each, _LONGEST_NAMED) for each in dropped[:_MOST_NAMED])
    more = len(dropped) - _MOST_NAMED
    rest = "" if more <= 0 else f" and {more:,} more" + ("" if receipt is None else f" (/show {receipt})")
    return f"The summary lacks {plural(len(dropped), 'detail')} of what you said: {named}{rest}."


def receipt_text(record: CompactionRecord) -> str:
    """A receipt, whole."""
    return clean("\n".join(_receipt(record)))


def label(record: CompactionRecord) -> str:
    """When it was made, how, and what for: `by hand (summary)`, `inside a turn (summary; full)`."""
    why_ = "" if record.reason in ("asked", "cold") else f"; {record.reason}"
    return one_line(f"{_TIMINGS.get(record.timing, record.timing)} ({record.strategy}{why_})")


def why(record: CompactionRecord) -> str:
    """Why it failed, as a sentence."""
    text = one_line(record.why, 400).rstrip(".") or "no reason was told"
    return f"{text}."


def _sizes(record: CompactionRecord) -> str:
    return f"{tokens(record.before)} to {tokens(record.after)} tokens"


def _gone(record: CompactionRecord) -> str:
    return f"{plural(record.folded, 'message')} went out of view"


def _receipt(record: CompactionRecord) -> Iterator[str]:
    yield f"A compaction {label(record)}. {result_line(record)}"
    if record.requests:
        numbers = ", ".join(f"#{number}" for number in record.requests)
        yield f"Its {'request' if len(record.requests) == 1 else 'requests'}: {numbers}."
    misses = record.breaker.get("misses")
    if isinstance(misses, int) and misses:
        yield f"Attempts in a row that brought nothing: {misses}."
    if record.dropped:
        yield ""
        yield "What you said there and the summary lacks (the log has it, `recall` and search find it):"
        yield from (f"  {one_line(each, 300)}" for each in record.dropped)
