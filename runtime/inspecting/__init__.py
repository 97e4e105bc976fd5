"""What the model calls of a session were and cost, and why a cache was missed: pure functions over its entries."""

from .calls import ModelCall, calls_of
from .causes import Miss, Misses, misses_of
from .summary import CauseTotal, Summary, added, summary_of

__all__ = ["CauseTotal", "Miss", "Misses", "ModelCall", "Summary", "added", "calls_of", "misses_of", "summary_of"]
