"""From a list of messages to one that can be sent: repaired, and cut when it is over budget.

`govern` is pure. Repairs are stateless; a cut is a decision that the caller must keep (the runtime writes it to the
log as a head before the request leaves), because a later call must make the same one.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from .budget import Budget
from .errors import ContextOverflow
from .messages import Message, Messages, Text, ToolSpec, UserMessage
from .repair import repair
from .snip import Snip, apply_snip, snip, turn_start
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
    `boundaries` are as in `snip` and count in the repaired list; without `turn` it is read off the list. System
    patches before a cut leave with it: who keeps the decision folds them into `system`. Raises `ContextOverflow`
    with the numbers when what must stay is over budget.
    """

    def size(message: Message) -> int:
        return scaled(message_tokens(message, counter), factor)

    legal = repair(messages, id_pattern=(abilities or Abilities()).id_pattern)
    fixed_system = scaled(system_tokens(system, counter), factor)
    fixed_tools = scaled(tools_tokens(tools, counter), factor)
    fixed = fixed_system + fixed_tools
    room = budget.tokens - fixed
    sizes = [size(message) for message in legal]
    cut = snip(
        legal,
        sizes,
        room,
        turn=turn_start(legal) if turn is None else turn,
        lead=lead,
        boundaries=boundaries,
        measure=lambda text: size(UserMessage((Text(text),))),
    )
    kept = legal if cut is None else apply_snip(legal, cut, lead=lead)
    needed = sum(size(message) for message in kept)
    if needed > room:
        raise ContextOverflow(budget.window, budget.tokens, fixed_system, fixed_tools, needed)
    report = Report(budget.tokens, fixed_system, fixed_tools, fixed + sum(sizes), fixed + needed)
    return Governed(kept, () if cut is None else (cut,), report)
