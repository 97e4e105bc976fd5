"""From a list of messages to one that can be sent: repaired, and cut when it is over budget.

`govern` is pure. Repairs are stateless; a cut is a decision that the caller must keep (the runtime writes it to the
log as a head before the request leaves), because a later call must make the same one.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from .budget import Budget
from .errors import ContextOverflow
from .messages import Messages, Text, ToolSpec, UserMessage
from .repair import repair
from .snip import OMITTED_STEPS, Snip, snip, turn_start
from .tokens import Counter, message_tokens, scaled, system_tokens, tools_tokens
from .wire.base import Abilities


@dataclass(frozen=True, slots=True)
class Report:
    """What a request costs and may cost, in tokens of the model (counted, times its factor)."""

    budget: int
    system: int
    tools: int
    before: int  # the whole request, before any cut
    after: int  # and after


@dataclass(frozen=True, slots=True)
class Governed:
    """`messages` are ready for a wire's `encode`; `decisions` must be kept and made durable before sending."""

    messages: Messages
    decisions: tuple[Snip, ...]
    report: Report


def govern(
    messages: Messages,
    *,
    budget: Budget,
    counter: Counter,
    abilities: Abilities | None = None,
    system: str = "",
    tools: Sequence[ToolSpec] = (),
    factor: float = 1.2,
    turn: int | None = None,
    lead: int = 0,
    boundaries: Collection[int] | None = None,
) -> Governed:
    """Messages that are legal and within budget.

    `factor` is the upper bound of what the model's tokenizer finds for one token of `counter`. `turn`, `lead` and
    `boundaries` are as in `snip` and count in the repaired list; without `turn` it is read off the list. Raises
    `ContextOverflow` with the numbers when what must stay is over budget.
    """
    pattern = (abilities or Abilities()).id_pattern
    legal = repair(messages, id_pattern=pattern)
    fixed_system = scaled(system_tokens(system, counter), factor)
    fixed_tools = scaled(tools_tokens(tools, counter), factor)
    sizes = [scaled(message_tokens(message, counter), factor) for message in legal]
    room = budget.tokens - fixed_system - fixed_tools
    opened = turn_start(legal) if turn is None else turn
    before = fixed_system + fixed_tools + sum(sizes)
    cut = snip(legal, sizes, room, turn=opened, lead=lead, boundaries=boundaries)
    kept = legal if cut is None else apply_snip(legal, cut, lead=lead)
    needed = sum(scaled(message_tokens(message, counter), factor) for message in kept)
    if needed > room:
        raise ContextOverflow(budget.window, budget.tokens, fixed_system, fixed_tools, needed)
    report = Report(budget.tokens, fixed_system, fixed_tools, before, fixed_system + fixed_tools + needed)
    return Governed(kept, () if cut is None else (cut,), report)


def apply_snip(messages: Messages, cut: Snip, *, lead: int = 0) -> Messages:
    """`messages` as they are seen after `cut`."""
    quote = (UserMessage((Text(cut.quote),)),) if cut.quote else ()
    kept = messages[cut.start :]
    if cut.resume is not None:
        said = [m for m in messages[cut.start : cut.resume] if isinstance(m, UserMessage)]
        first = next(i for i in range(cut.start, len(messages)) if not isinstance(messages[i], UserMessage))
        ahead = first - cut.start  # user messages that stood before the first step
        marker = UserMessage((Text(OMITTED_STEPS),))
        kept = (*said[:ahead], marker, *said[ahead:], *messages[cut.resume :])
    return (*messages[:lead], *quote, *kept)
