"""What model calls did cost, by the sessions' logs, which are the truth of it."""

from .bills import Bill, bills_of
from .sums import Sum, summed

__all__ = ["Bill", "Sum", "bills_of", "summed"]
