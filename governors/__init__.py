"""Governors: from a list of messages to a request that is legal, within budget and stable for the cache.

A pure library: no network, no files (but the token vocabulary that ships with it), no clock. In three lines:

    decoded = WIRES["openai_chat"].decode(messages)
    governed = govern(decoded.messages, budget=Budget(128_000, 4_096), counter=TiktokenCounter(), system=decoded.system)
    payload = WIRES["openai_chat"].encode(governed.messages, system=decoded.system, tools=(), abilities=Abilities())
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .budget import Budget
    from .decisions import Cut, Decision, DropDocuments, DropImages, DropThinking, Missed, Stub
    from .economy import Economy, Prices
    from .errors import ContextOverflow, GovernorError, IllegalPayload, ImpossibleBudget
    from .governor import Governor
    from .pipeline import govern
    from .policy import Moment, Policy
    from .repair import backfill, drop_orphans, normalise, order_results
    from .report import Action, Governed, Report
    from .snip import Snip
    from .tokens import ByteCounter, Counter, TiktokenCounter, load_vocabulary
    from .wire.base import Abilities, Violation
    from .wire.binding import check_binding
    from .wire.encoder import Encoder, encode_bytes
    from .wire.protocol import Wire
    from .wire.registry import WIRES

#: Where each name lives: it is loaded when it is first used, so that importing the package costs next to nothing. No
#: name here may be that of a module beside this file: a loaded module would hide it.
_HOMES = {
    "Abilities": ".wire.base",
    "Action": ".report",
    "Budget": ".budget",
    "ByteCounter": ".tokens",
    "ContextOverflow": ".errors",
    "Counter": ".tokens",
    "Cut": ".decisions",
    "Decision": ".decisions",
    "DropDocuments": ".decisions",
    "DropImages": ".decisions",
    "DropThinking": ".decisions",
    "Economy": ".economy",
    "Encoder": ".wire.encoder",
    "Governed": ".report",
    "Governor": ".governor",
    "GovernorError": ".errors",
    "IllegalPayload": ".errors",
    "ImpossibleBudget": ".errors",
    "Missed": ".decisions",
    "Moment": ".policy",
    "Policy": ".policy",
    "Prices": ".economy",
    "Report": ".report",
    "Snip": ".snip",
    "Stub": ".decisions",
    "TiktokenCounter": ".tokens",
    "Violation": ".wire.base",
    "WIRES": ".wire.registry",
    "Wire": ".wire.protocol",
    "backfill": ".repair",
    "check_binding": ".wire.binding",
    "drop_orphans": ".repair",
    "encode_bytes": ".wire.encoder",
    "govern": ".pipeline",
    "load_vocabulary": ".tokens",
    "normalise": ".repair",
    "order_results": ".repair",
}

__all__ = [
    "WIRES",
    "Abilities",
    "Action",
    "Budget",
    "ByteCounter",
    "ContextOverflow",
    "Counter",
    "Cut",
    "Decision",
    "DropDocuments",
    "DropImages",
    "DropThinking",
    "Economy",
    "Encoder",
    "Governed",
    "Governor",
    "GovernorError",
    "IllegalPayload",
    "ImpossibleBudget",
    "Missed",
    "Moment",
    "Policy",
    "Prices",
    "Report",
    "Snip",
    "Stub",
    "TiktokenCounter",
    "Violation",
    "Wire",
    "backfill",
    "check_binding",
    "drop_orphans",
    "encode_bytes",
    "govern",
    "load_vocabulary",
    "normalise",
    "order_results",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name], __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
