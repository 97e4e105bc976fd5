"""The spend ledger: what model calls may cost, on this machine, over all its processes."""

from .base import Charge, Ledger, LedgerUnusable, NoLimits, Reservation, Spender, SpendingLimit, charge_of

__all__ = [
    "Charge",
    "Ledger",
    "LedgerUnusable",
    "NoLimits",
    "Reservation",
    "Spender",
    "SpendingLimit",
    "charge_of",
]
