"""Why a request read less from its provider's cache than it could have. Pure.

A **miss** is a turn request that read less than the prompt of its predecessor, the newest turn request before it on its
branch for the same model and wire that the provider counted. What it could have read is that prompt, or its own where
that is smaller; what it read less of are the tokens lost, and they were billed as written or plain instead.

The cause is named from the log alone, in this order:

1. `model change`: no request of this branch went to this model before.
2. `rounding`: nothing moved, and less is lost than the step that providers count in.
3. `expired`: more time had passed since the prefix was last sent than it was asked to be kept. Warmings, questions
   beside the conversation and requests of other branches that extend the prefix renew it. (A request that read most of
   the prompt shows that it was kept for longer: then the next reason counts.)
4. What the outcome recorded when the prefix was moved: `edit`, `head`, `redact`, `tool change`, `system folded`,
   `hook:NAME`.
5. `thinking`: another level, which on some wires begins the messages anew.
6. `too short`: the prompt is under the provider's minimal prefix.
7. `branch switch`: other branches were sent since, to a cache that holds one conversation.
8. `look-back`: more new blocks than the provider looks back over from the cache marks.
9. `provider`: it was sent in time and unchanged, and was not kept. What else it might be, the log would say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from governors.messages import Usage

from ..providers.base import ModelInfo
from ..session.entries import EditRecord, Entry, HeadRecord, LeafRecord, RedactRecord, SystemRecord
from .calls import TURN, ModelCall, calls_of

#: Tokens: OpenAI counts cached ones in steps of 128, and what stands after the last mark is not kept.
STEP = 128
#: Content blocks that the marks of a request reach back over on the Anthropic wire.
LOOK_BACK = 50
#: Causes as they stand in outcomes, and as they are told here.
_TOLD = {"system": "system folded", "folded": "system folded", "fold": "system folded"}
#: The governors' word for an edit that was made because the cache had expired in any case.
_COLD = "the cache was cold"


@dataclass(frozen=True, slots=True)
class Miss:
    """`before` is the predecessor's entry, `expected` what could have been read, `read` what was, `lost` the
    difference (tokens). `cost` is what the loss came to, in US dollars (None: the price is unknown), `idle` the
    seconds since the prefix was last used."""

    entry: int
    at: str
    model: str
    before: int
    prompt: int
    expected: int
    read: int
    cause: str
    detail: str = ""
    cost: float | None = None
    idle: float | None = None

    @property
    def lost(self) -> int:
        return self.expected - self.read


@dataclass(frozen=True, slots=True)
class Misses:
    """All misses of a session. `requests` are those that have a predecessor, `could` what they could have read."""

    requests: int
    could: int
    misses: tuple[Miss, ...]


def misses_of(entries: Sequence[Entry], known: Mapping[str, ModelInfo | None]) -> Misses:
    """The misses of a session with `entries` (all of them, in the order of writing), oldest first.

    `known` has what is known of each model by `provider/model`: prices, and the least prefix that is kept.
    """
    ledger = _Ledger(entries, known)
    misses = tuple(miss for call in ledger.turns if (miss := ledger.compare(call)) is not None)
    return Misses(ledger.compared, ledger.could, misses)


class _Ledger:
    """The calls of a session, each compared with its predecessor."""

    def __init__(self, entries: Sequence[Entry], known: Mapping[str, ModelInfo | None]) -> None:
        self._known = known
        self._entries = {entry.id: entry for entry in entries}
        self._loose = [e for e in entries if isinstance(e.record, RedactRecord | LeafRecord)]
        self._calls = calls_of(entries)
        self._by_entry = {call.id: call for call in self._calls}
        self._places = {call.id: place for place, call in enumerate(self._calls)}
        self.turns = [call for call in self._calls if call.request.purpose == TURN]
        self.compared = self.could = 0

    def compare(self, call: ModelCall) -> Miss | None:
        """The miss of one turn request; None when there is none, or nothing to compare it with."""
        usage, before = call.usage, self._predecessor(call)
        if usage is None or before is None or before.usage is None:
            return None
        expected = min(before.usage.prompt, usage.prompt)
        self.compared += 1
        self.could += expected
        if usage.cache_read >= expected:
            return None
        idle, lifetime = self._idle(call, before)
        cause, detail = self._cause(call, before, expected, idle, lifetime)
        info = self._known.get(call.model)
        return Miss(
            entry=call.id,
            at=call.entry.at,
            model=call.model,
            before=before.id,
            prompt=usage.prompt,
            expected=expected,
            read=usage.cache_read,
            cause=cause,
            detail=detail,
            cost=_price_of(info, usage, expected - usage.cache_read),
            idle=idle,
        )

    def _predecessor(self, call: ModelCall) -> ModelCall | None:
        """The newest counted turn request of the branch for the same model; where there is none, for any."""
        other: ModelCall | None = None
        place = call.before
        while place is not None:
            before = self._by_entry[place]
            if before.usage is not None and before.usage.prompt:
                if before.shares_cache(call):
                    return before
                other = other or before
            place = before.before
        return other

    def _idle(self, call: ModelCall, before: ModelCall) -> tuple[float | None, int]:
        """Seconds since the predecessor's prefix was last used, and how long it was to be kept from then on."""
        used, lifetime = before.moment, before.request.lifetime
        for other in self._calls[self._places[before.id] + 1 : self._places[call.id]]:
            if other.usage is None or not other.shares_cache(before):
                continue
            if self._extends(other, before) and other.moment is not None:
                used, lifetime = max(used or 0.0, other.moment), other.request.lifetime
        now = call.moment
        return (None, lifetime) if used is None or now is None else (now - used, lifetime)

    def _extends(self, call: ModelCall, before: ModelCall) -> bool:
        """Whether the prompt of `call` begins with that of `before`: it hangs on it, and nothing was moved between."""
        place = call.before
        if call.cause is not None:
            return False
        while place is not None and place > before.id:
            if self._by_entry[place].cause is not None:
                return False
            place = self._by_entry[place].before
        return place == before.id

    def _cause(
        self, call: ModelCall, before: ModelCall, expected: int, idle: float | None, lifetime: int
    ) -> tuple[str, str]:
        assert call.usage is not None
        if not call.shares_cache(before):
            return "model change", f"from {before.model}"
        between = self._between(call, before)
        recorded, detail = self._recorded(call, before, between)
        if recorded is None and call.usage.cache_read and expected - call.usage.cache_read < STEP:
            return "rounding", ""
        if idle is not None and idle > lifetime:
            kept_longer = recorded is not None and _COLD not in detail and 2 * call.usage.cache_read > expected
            if not kept_longer:
                return "expired", f"{_time(idle)} after its last use; kept for {_time(lifetime)}"
        if recorded is not None:
            return recorded, detail
        return self._unmoved(call, before, expected)

    def _unmoved(self, call: ModelCall, before: ModelCall, expected: int) -> tuple[str, str]:
        """Why a prefix that was sent in time and unchanged was not read."""
        assert call.usage is not None
        info = self._known.get(call.model)
        if call.request.thinking != before.request.thinking:
            return "thinking", f"{before.request.thinking or 'default'} to {call.request.thinking or 'default'}"
        if info is not None and expected < info.cache.least:
            return "too short", f"the provider keeps prefixes of {info.cache.least:,} tokens or more"
        if any(isinstance(each.record, LeafRecord) and before.id < each.id < call.id for each in self._loose):
            return "branch switch", "another branch was sent since"
        new = call.request.blocks - before.request.blocks
        if call.request.wire == "anthropic" and new > LOOK_BACK:
            return "look-back", f"{new} new blocks in one step"
        kept_any = call.usage.cache_read or before.usage is None or _kept(before.usage)
        return "provider", "" if kept_any else "it reports nothing kept"

    def _between(self, call: ModelCall, before: ModelCall) -> list[Entry]:
        """The entries of the branch after the predecessor and before the call, newest first."""
        found: list[Entry] = []
        place = call.entry.parent
        while place is not None and place > before.id and place in self._entries:
            found.append(self._entries[place])
            place = self._entries[place].parent
        return found

    def _recorded(self, call: ModelCall, before: ModelCall, between: Sequence[Entry]) -> tuple[str | None, str]:
        """What moved the prefix, by the outcomes since the predecessor (those of calls that nobody counted, too)."""
        causes = [call.cause]
        place = call.before
        while place is not None and place > before.id:
            other = self._by_entry[place]
            if other.shares_cache(call):
                causes.append(other.cause or (None if other.outcome is not None else _moved(between)))
            place = other.before
        cause = next((each for each in causes if each is not None), None)
        if cause is None:
            return None, ""
        records = [entry.record for entry in between]
        if cause == "head":
            return cause, next((each.cause for each in records if isinstance(each, HeadRecord)), "")
        if cause == "edit":
            edits = dict.fromkeys(each.cause for each in records if isinstance(each, EditRecord))
            return cause, ", ".join(edits)
        if cause == "tools":
            patches = [each for each in records if isinstance(each, SystemRecord)]
            tools = any(each.tools_added or each.tools_removed for each in patches)
            return ("tool change" if tools else "system folded"), ""
        return _TOLD.get(cause, cause), ""


def _moved(between: Sequence[Entry]) -> str | None:
    """What moved the prefix of a request that has no outcome: the program ended in its middle."""
    kinds = {type(entry.record) for entry in between}
    return "head" if HeadRecord in kinds else "edit" if EditRecord in kinds else None


def _kept(usage: Usage) -> int:
    return usage.cache_read + usage.cache_write_5m + usage.cache_write_1h


def _price_of(info: ModelInfo | None, usage: Usage, lost: int) -> float | None:
    """What `lost` tokens cost beyond reading them, at the mean of what was billed for all that was not read."""
    if info is None or info.price is None:
        return None
    price, unread = info.price.at(usage.prompt), usage.prompt - usage.cache_read
    if unread <= 0:
        return 0.0
    billed = (
        usage.plain * price.plain
        + usage.cache_write_5m * price.cache_write_5m
        + usage.cache_write_1h * price.cache_write_1h
    )
    return max(0.0, lost * (billed / unread - price.cache_read) / 1_000_000)


def _time(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7_200 else f"{seconds / 3_600:.1f} h"
