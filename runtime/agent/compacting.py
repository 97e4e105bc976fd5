"""Making room: what goes out of view is folded into a summary, by one way, whenever and however it is done.

When (`timing`) and how (`strategy`) are two choices that know nothing of each other: what goes is chosen by the one,
what stands for it is made by the other, and a head and its receipt are recorded as one batch. Laws:
- Before the batch nothing has changed, after it everything: a kill, a stop or an error leaves the session as it was.
- A strategy that fails is never replaced by another one; the receipt says why, and the breaker counts it.
- Where nothing would go, or next to nothing, no attempt is made, unless somebody asked.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Literal, TypeAlias

from governors.messages import CompactionItem, Text
from governors.wire.compaction_items import ALWAYS_FIRST, UNREADABLE

from ..compaction.breaker import Breaker, breaker_from
from ..compaction.facts import missing
from ..compaction.keeping import Fold, fold_at_rest, fold_before_turn, fold_mid_turn
from ..compaction.timing import Load, Reason, Timing, made_room, wanted
from ..events import CompactionFinished, CompactionStarted
from ..ledger import SpendingLimit
from ..session.entries import CompactionRecord, Entry, HeadRecord, MessageRecord
from .by_provider import by_provider
from .desk import Desk
from .ease import at_ease
from .fit import known_fit
from .heading import Beginning, carried, head_record, size_of_pins
from .prepare import Decided, Prepared, Situation
from .summarising import SHARE, Failed, Made, Work, summarise
from .surveying import Survey, survey

Strategy: TypeAlias = Callable[[Work], Awaitable[Made | Failed]]

#: What stands for a conversation that was cleared.
CLEARED = "[What was said before was cleared from view. `recall` reads it back.]"

_LEAST = 0.05  # of the budget: what has to go for an attempt to be worth it
_SMALLEST = 150  # tokens: what has to go where somebody asked; no summary has fewer
_TAIL = 0.25  # of the budget: what stays word for word, at most
_AFTER = 0.6  # of the budget: what a request should have at most after it, summary and all, where that can be


async def _clear(work: Work) -> Made | Failed:
    return Made(CLEARED)


STRATEGIES: Mapping[str, Strategy] = MappingProxyType({"summary": summarise, "provider": by_provider, "blank": _clear})


@dataclass(frozen=True, slots=True)
class Ask:
    """A compaction that is wanted. `focus` is what the user wants to be kept above all, `turn` the entry that opened
    the turn at hand (None: nobody speaks)."""

    timing: Timing
    reason: Reason
    strategy: str
    focus: str | None = None
    turn: int | None = None


@dataclass(frozen=True, slots=True)
class Receipt:
    """What came of it. `entry` is the receipt in the log, `head` the head, where one was made; `before` and `after` are
    tokens of the whole request, `cost` US dollars (None: unknown)."""

    result: Literal["done", "nothing", "failed"]
    why: str = ""
    before: int = 0
    after: int = 0
    folded: int = 0
    dropped: tuple[str, ...] = ()
    cost: float | None = 0.0
    entry: int | None = None
    head: int | None = None


async def surveyed(desk: Desk, turn: int | None, tokens: int | None = None) -> Survey:
    """What a request would hold now. `tokens` is its forecast, where that is known."""
    model, standing = desk.model(), desk.standing()
    fit, branch = known_fit(model, standing.settings), tuple(desk.session.branch())
    situation = Situation(
        (), branch, turn or 0, model, fit, desk.drafts, desk.margin, desk.thinking, None, standing=standing
    )
    return await at_ease(len(branch), partial(survey, situation, tokens))


def reason_for(desk: Desk, here: Survey, timing: Timing, *, cold: bool = False) -> Reason | None:
    """Why a compaction is wanted of the request `here`; None when none is."""
    return wanted(here.load, desk.marks, timing, breaker_at(desk, here), cold=cold)


def breaker_at(desk: Desk, here: Survey) -> Breaker:
    """The breaker as it is for the request `here`."""
    return breaker_from(desk.standing().breaker).at(here.tokens, here.budget, here.situation.model.name)


def wants_room(desk: Desk, outcome: Prepared | Decided) -> bool:
    """Whether room may be wanted before a call, as far as its size tells: the rest costs more to find out."""
    if not desk.compacts():
        return False
    if isinstance(outcome, Decided):
        cut = any(isinstance(record, HeadRecord) for record in outcome.records)
        return cut or desk.wish.focus is not None
    return desk.wish.focus is not None or outcome.record.forecast >= desk.marks.block * outcome.record.budget


async def make_room(desk: Desk, outcome: Prepared | Decided, turn: int, *, overflowed: bool) -> bool:
    """Make room before a call of the turn that entry `turn` opened, where that is wanted; whether it was made.

    `overflowed`: the provider has just said that the request is too large. Raises `SessionError`.
    """
    focus, desk.wish.focus = desk.wish.focus, None
    tokens = outcome.record.forecast if isinstance(outcome, Prepared) else outcome.governed.report.before
    here = await surveyed(desk, turn, tokens)
    goes_on = any(entry.id > turn and _is_reply(entry) for entry in reversed(here.shown.branch))
    timing: Timing = "mid_turn" if goes_on else "before_turn"
    reason: Reason | None = "model" if focus is not None else reason_for(desk, here, timing)
    if reason is None:
        return False
    if reason == "full" and overflowed:
        reason = "overflow"
    receipt = await compact(desk, Ask(timing, reason, desk.strategy, focus or None, turn), here)
    return receipt.head is not None


def _is_reply(entry: Entry) -> bool:
    return isinstance(entry.record, MessageRecord) and entry.record.role == "assistant"


async def compact(desk: Desk, ask: Ask, here: Survey) -> Receipt:
    """Make room in the request `here`. Raises `SessionError`."""
    fold = _worth_it(desk, ask, here)
    if fold is None:
        return Receipt("nothing", "nothing can go out of view", here.tokens, here.tokens)
    desk.announcer.emit(CompactionStarted(timing=ask.timing, reason=ask.reason, strategy=ask.strategy))
    with desk.compacting(f"makes room ({ask.reason})"):
        work = Work(desk, here, fold, ask.turn, ask.focus)
        try:
            made = await STRATEGIES[ask.strategy](work)
        except SpendingLimit as limit:
            made = Failed(str(limit))
        if isinstance(made, Made):
            made = _beside_what_stays(work, made)
        receipt = await _record(desk, ask, work, made)
    desk.announcer.emit(
        CompactionFinished(
            result=receipt.result,
            why=receipt.why,
            before=receipt.before,
            after=receipt.after,
            folded=receipt.folded,
            dropped=receipt.dropped,
            cost=receipt.cost,
            entry=receipt.entry,
        )
    )
    return receipt


def _beside_what_stays(work: Work, made: Made) -> Made | Failed:
    """A summary that would leave no request at all is none; a cut without one may still leave room."""
    here, size = work.survey, work.size(made.summary, made.item)
    needed = round((here.fixed + size) * max(1.0, here.ratio))
    if needed <= here.budget:
        return made
    why = f"there is no room for the summary: with its {size:,} tokens what must stay takes {needed:,}"
    return Failed(f"{why} of {here.budget:,}", made.sent)


async def _record(desk: Desk, ask: Ask, work: Work, made: Made | Failed) -> Receipt:
    here = work.survey
    costs = [sent.cost for sent in made.sent if sent.reply.usage is not None]
    cost = None if None in costs else sum(each for each in costs if each is not None)
    model = here.situation.model.name
    common = CompactionRecord(
        timing=ask.timing,
        reason=ask.reason,
        strategy=ask.strategy,
        result="failed",
        before=here.tokens,
        after=here.tokens,
        requests=tuple(sent.request.id for sent in made.sent),
        cost=cost,
    )
    if isinstance(made, Failed):
        breaker = breaker_at(desk, here).missed(here.tokens, model)
        failed = replace(common, why=made.why, breaker=breaker.as_json())
        (entry,) = await desk.session.append(failed)
        return Receipt("failed", made.why, here.tokens, here.tokens, cost=cost, entry=entry.id)
    head = _head(ask, work, made)
    after, folded = head.after, len(work.fold.folded)
    room = made_room(Load(after, 0, here.budget, 0), desk.marks)
    breaker = Breaker() if room else breaker_at(desk, here).missed(after, model)
    dropped = missing(_said(work), "\n".join((made.summary, *(pin_text(head)))))
    record = replace(common, result="done", after=after, folded=folded, dropped=dropped, breaker=breaker.as_json())
    entries = await desk.session.append(head, record)
    desk.thrift(here.situation.model).moved()
    return Receipt("done", "", here.tokens, after, folded, dropped, cost, entries[1].id, entries[0].id)


def _head(ask: Ask, work: Work, made: Made) -> HeadRecord:
    here, fold = work.survey, work.fold
    held = size_of_pins(here.shown.earlier.pins, here.shown) if here.shown.earlier is not None else 0
    # That the old prefix was measured as less than estimated tells nothing of the new one: as the next call is judged.
    stay = set(range(len(here.sizes))).difference(fold.folded)
    estimated = here.front + sum(here.sizes[place] for place in stay) + work.size(made.summary, made.item)
    after = round(estimated * max(1.0, here.ratio))
    begin = Beginning(
        start=fold.start,
        resume=fold.resume,
        cause="compaction",
        before=here.tokens,
        after=after + held,
        budget=here.budget,
        summary=made.summary,
        placement=_placement(ask, work, made.item),
        item=made.item,
    )
    # What the summary cost, and what was said meanwhile, came after the survey.
    head = head_record(begin, replace(here.shown, standing=work.desk.standing()))
    return replace(head, after=after + size_of_pins(head.pins, here.shown))


def _placement(ask: Ask, work: Work, item: CompactionItem | None) -> Literal["first", "last"]:
    """A provider's own comes first, and does not invalidate reasoning after it; where no step stays, OpenAI's stands
    after the user's words, as OpenAI itself gives it back."""
    abilities = work.survey.situation.model.info.abilities
    bound = abilities.binds_prefix and not abilities.drop_block
    if item is None:
        return "last" if ask.timing == "mid_turn" or bound else "first"
    alone = work.fold.resume == len(work.survey.sizes)
    return "last" if alone and item.wire not in ALWAYS_FIRST else "first"


def pin_text(head: HeadRecord) -> tuple[str, ...]:
    """What a head carries word for word beside its summary."""
    return tuple(part.text for pin in head.pins for part in pin.content if isinstance(part, Text))


def _said(work: Work) -> list[str]:
    """What people said in the messages that go out of view, and what the earlier summary kept of what they had said:
    else the second summary would lose in silence what the first one was held to."""
    shown = work.survey.shown
    gone = {shown.projection.messages[place].origin for place in work.fold.folded}
    kept = carried(shown)
    earlier = [] if kept is None or kept in (CLEARED, UNREADABLE) else [kept]
    return [*earlier, *(text for entry in shown.branch if entry.id in gone for text in _words(entry))]


def _words(entry: Entry) -> list[str]:
    record = entry.record
    if not isinstance(record, MessageRecord) or record.role != "user":
        return []
    return [part.text for part in record.content if isinstance(part, Text)]


def _worth_it(desk: Desk, ask: Ask, here: Survey) -> Fold | None:
    """What goes out of view; None where that is not worth a summary. Whoever asked for it wants room all the same:
    where all would stay word for word, only the newest does."""
    marks, asked = desk.marks, ask.reason in ("asked", "model")
    limits = [(marks.keep, marks.keep_tokens)] + ([(1, 1)] if asked or ask.strategy == "blank" else [])
    if ask.strategy == "blank":
        limits = limits[1:]
    for most, tokens in limits:
        fold = _fold(ask, here, most, tokens)
        worth = _SMALLEST if (most, tokens) == (1, 1) else round(_LEAST * here.budget)
        new = () if fold is None else tuple(place for place in fold.folded if place not in here.standing)
        if fold is not None and here.tokens_of(new) >= worth:
            return replace(fold, folded=tuple(sorted({*fold.folded, *here.standing})))
    return None


def _fold(ask: Ask, here: Survey, most: int, tokens: int) -> Fold | None:
    """What goes out of view, by when it is done; at most so many messages and tokens stay word for word."""
    messages, sizes = here.shown.projection.messages, here.sizes
    free = round((_AFTER - SHARE) * here.budget) - here.fixed
    tokens = max(1, min(tokens, round(_TAIL * here.budget), free))
    if ask.timing == "before_turn":
        return fold_before_turn(
            messages,
            sizes,
            boundaries=here.openings,
            turn=here.turn,
            lead=here.lead,
            most=most,
            tokens=tokens,
        )
    if ask.timing == "mid_turn":
        abilities = here.situation.model.info.abilities
        steps = (not abilities.binds_prefix or abilities.drop_block) and ask.strategy != "blank"
        return fold_mid_turn(messages, sizes, turn=here.turn, lead=here.lead, most=most, tokens=tokens, steps=steps)
    return fold_at_rest(messages, sizes, boundaries=here.openings, lead=here.lead, most=most, tokens=tokens)
