"""What takes up the model's window right now, from the log: the command /tokens. Blocks: call it in a thread."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from governors.documents import as_text
from governors.errors import ImpossibleBudget
from governors.messages import SystemPatch
from governors.repair import normalise
from governors.tokens import Counter, messages_tokens, scaled, system_tokens, tools_tokens
from governors.wire import WIRES

from ..agent.fit import budget_of, known_fit
from ..agent.folding import as_told
from ..providers.base import ChosenModel
from ..session.entries import Entry
from ..session.view.projection import projection_of, rendering_of
from ..session.view.sections import front
from ..session.view.standing import Standing
from .reducer import Line


@dataclass(frozen=True, slots=True)
class WindowUse:
    """Estimated tokens, as the model counts them at most. `kept_free` is for the reply and the error of counting."""

    window: int
    system: int
    tools: int
    messages: int
    kept_free: int
    count: int  # of messages

    @property
    def free(self) -> int:
        return max(0, self.window - self.system - self.tools - self.messages - self.kept_free)


def window_use(
    branch: Sequence[Entry],
    model: ChosenModel,
    counter: Counter,
    standing: Standing = Standing(),  # noqa: B008 - frozen
) -> WindowUse:
    """What the next request would take, as it would leave: with the front folded where it is for this model, and the
    definitions of tools where they would stand. `standing` is what holds in the session: what was learned of the model
    counts on every branch."""
    rendering = rendering_of(branch, standing.redacted)
    projection = projection_of(rendering, normalise(tuple(rendering.messages)))
    fit = known_fit(model, standing.settings)
    try:
        budget = budget_of(model, fit)
        kept_free = budget.max_output + budget.reserve
    except ImpossibleBudget:
        kept_free = 0
    info = as_told(model.info, projection.settings)
    inline, folds = WIRES[info.wire].inline_tools(info.abilities), info.abilities.folds_patches
    system, array = front(projection.baseline, projection.state, inline=inline, folds=folds)
    tools = (*array, *(rendering.brought if inline and not folds else ())) if info.abilities.tools else ()
    messages = tuple(each for each in projection.messages if not (folds and isinstance(each, SystemPatch)))
    if not info.abilities.documents:
        messages = tuple(map(as_text, messages))
    return WindowUse(
        window=fit.window,
        system=scaled(system_tokens(system, counter), fit.factor),
        tools=scaled(tools_tokens(tools, counter), fit.factor),
        messages=scaled(messages_tokens(messages, counter), fit.factor),
        kept_free=kept_free,
        count=len(messages),
    )


def window_lines(use: WindowUse, measured: int, room: str = "") -> Line:
    """`measured` is what the provider counted last (prompt and output), 0 when it did not; `room` tells when room is
    made."""
    rows = (
        ("system prompt", use.system, ""),
        ("tools", use.tools, ""),
        ("messages", use.messages, f"  ({use.count:,})"),
        ("kept free", use.kept_free, "  (reply, and the error of counting)"),
        ("free", use.free, ""),
    )
    lines = [f"{name:<14}{count:>10,}  {100 * count / use.window:3.0f} %{note}" for name, count, note in rows]
    lines.append(f"{'window':<14}{use.window:>10,}")
    lines.append(
        "Estimates, rather too many than too few." + (f" The provider counted {measured:,}." if measured else "")
    )
    return Line("plain", "\n".join([*lines, *([room] if room else [])]))
