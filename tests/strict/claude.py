"""What each Claude model takes, as its documentation says (November 2026)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Claude:
    """`most_pictures` in a request. `binds`: thinking is bound to what was sent before it. `gentle`: the account may
    ask that such thinking is dropped and not refused. `alternates`: the host wants the roles in turn."""

    thinking: str  # "budget", "adaptive", or "none"
    binds: bool = False
    gentle: bool = True
    system_inside: bool = False
    sampling: bool = True
    forced: bool = True
    prefill: bool = False
    most_pictures: int = 600
    alternates: bool = False
    checks_signatures: bool = True
    inline_tools: bool = True


_OLD = Claude("budget", prefill=True, most_pictures=100)
_BOUND = Claude("adaptive", binds=True, system_inside=True, sampling=False)

CLAUDES = {
    "claude-haiku-4-5": _OLD,
    "claude-sonnet-4-5": _OLD,
    "claude-opus-4-6": Claude("adaptive"),
    "claude-sonnet-5": Claude("adaptive", sampling=False),
    "claude-opus-5": Claude("adaptive", sampling=False, system_inside=True),
    "claude-fable-5": Claude("adaptive", sampling=False, system_inside=True, forced=False),
    "claude-fable-5-1": Claude("adaptive", True, sampling=False, system_inside=True, forced=False),
    "claude-fable-5-2": Claude("adaptive", True, sampling=False, system_inside=True, forced=False),
    "claude-opus-5-5": _BOUND,
    "claude-sonnet-5-5": _BOUND,
    "claude-haiku-5-5": _BOUND,
    "MiniMax-M3": Claude("none", alternates=True, checks_signatures=False, inline_tools=False),
}
