"""Governors: from a list of messages to a request that is legal, within budget and stable for the cache.

A pure library: no network, no files (but the token vocabulary that ships with it), no clock. In three lines:

    decoded = WIRES["openai_chat"].decode(messages)
    governed = govern(decoded.messages, budget=Budget(128_000, 4_096), counter=TiktokenCounter(), system=decoded.system)
    payload = WIRES["openai_chat"].encode(governed.messages, system=decoded.system, tools=(), abilities=Abilities())
"""

from .budget import Budget
from .decisions import Cut, Decision, DropImages, Missed, Stub
from .economy import Economy, Prices
from .errors import ContextOverflow, GovernorError, IllegalPayload, ImpossibleBudget
from .governor import Governor
from .pipeline import govern
from .policy import Moment, Policy
from .repair import backfill, drop_orphans, normalise, order_results, repair
from .report import Action, Governed, Report
from .snip import Snip, snip
from .tokens import ByteCounter, Counter, TiktokenCounter, load_vocabulary
from .wire import WIRES, Abilities, Violation, Wire

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
    "DropImages",
    "Economy",
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
    "drop_orphans",
    "govern",
    "load_vocabulary",
    "normalise",
    "order_results",
    "repair",
    "snip",
]
