"""The spend ledger: what model calls may cost, on this machine, over all its processes."""

from .base import Charge, Ledger, LedgerUnusable, NoLimits, Reservation, Spender, SpendingLimit, charge_of
from .caps import AgentCaps, Caps, Left
from .spend import Before, SpendLedger

__all__ = [
    "AgentCaps",
    "Before",
    "Caps",
    "Charge",
    "Ledger",
    "LedgerUnusable",
    "Left",
    "NoLimits",
    "Reservation",
    "SpendLedger",
    "Spender",
    "SpendingLimit",
    "charge_of",
]
