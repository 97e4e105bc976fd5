"""From a whole list of messages to a request: what `Governor.step` does for a conversation that grows, at once."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from .budget import Budget
from .decisions import Decision
from .estimate import Estimator
from .estimate_count import Count, fixed_count, messages_count
from .estimate_list import estimator_of
from .governor import Governor
from .media import over_limits
from .messages import Message, ToolSpec
from .policy import Moment, Policy
from .report import Governed, Report
from .sound import is_sound
from .tokens import Counter, TiktokenCounter
from .wire.base import Abilities


def govern(
    messages: Sequence[Message],
    *,
    budget: Budget,
    policy: Policy | None = None,
    counter: Counter | None = None,
    abilities: Abilities | None = None,
    system: str | Sequence[str] = (),
    tools: Sequence[ToolSpec] = (),
    cache: Moment | None = None,
    decisions: Iterable[Decision] = (),
    factor: float = 1.2,
    estimator: Estimator | None = None,
    model: str | None = None,
    turn: int | None = None,
    lead: int = 0,
    since: int = 0,
    boundaries: Collection[int] | None = None,
) -> Governed:
    """Messages that are legal and within budget, and the decisions that made them so.

    Hand in the decisions of earlier calls, so that what was sent once is sent again. Arguments are as for `Governor`
    and its `step`; places count in the repaired list. The usage of replies of `model` from index `since` on (after
    the newest change that this list does not show) tells how large requests really are. Raises `ContextOverflow` with
    the numbers when what must stay is over budget.
    """
    counter, abilities, policy = counter or TiktokenCounter(), abilities or Abilities(), policy or Policy()
    text = system if isinstance(system, str) else "\n\n".join(system)
    given = tuple(decisions)
    sound = is_sound(messages, abilities.id_pattern)
    fixed = fixed_count(text, tools, counter)
    if estimator is None:
        start = len(messages) if given or not sound else since  # what was sent differs from what stands here
        takes = abilities.documents
        estimator = estimator_of(
            messages, counter, family=factor, model=model, fixed=fixed, since=start, documents=takes
        )
    if sound and not given and (cache is None or not policy.microcompact):
        total = fixed + messages_count(messages, counter, model, documents=abilities.documents)
        size = estimator.estimate(total)
        if size <= budget.tokens and not (total.pictures and over_limits(messages, abilities)):
            tokens = [part.scaled(estimator.bound) for part in _fixed_parts(text, tools, counter)]
            report = Report(budget.tokens, tokens[0], tokens[1], size, size)
            return Governed(messages, (), report, cache.economy if cache is not None else None)
    governor = Governor(
        budget,
        policy,
        counter,
        abilities,
        system=text,
        tools=tools,
        decisions=given,
        estimator=estimator,
        model=model,
        lead=lead,
    )
    governed = governor.step(messages, cache, turn=turn, boundaries=boundaries)
    return replace(governed, messages=tuple(governed.messages))


def _fixed_parts(system: str, tools: Sequence[ToolSpec], counter: Counter) -> tuple[Count, Count]:
    return fixed_count(system, (), counter), fixed_count("", tools, counter)
