"""What a caller may choose about governing."""

from __future__ import annotations

from dataclasses import dataclass

from .economy import Economy


@dataclass(frozen=True, slots=True)
class Policy:
    """`keep_results`: the newest results stay whole unless nothing else helps. `bulky`: names of tools whose old output
    may become one line; None takes them from the tools' own `ToolSpec`s, or a usual list where there are none.
    `microcompact` off leaves results alone unless the request cannot fit otherwise; `spared` are
    the handles of results that somebody wants to see whole: they, too, become a line only when nothing else helps.
    `keep_patches`: what a cut takes away of system patches leads what is kept. Off is for callers who write a new
    system prompt, and a new array of tools, at each cut."""

    keep_results: int = 10
    bulky: frozenset[str] | None = None
    microcompact: bool = True
    spared: frozenset[str] = frozenset()
    keep_patches: bool = True


@dataclass(frozen=True, slots=True)
class Moment:
    """What is known of the provider's cache when a request is wanted: `now` is on `economy`'s clock (seconds)."""

    economy: Economy
    now: float
