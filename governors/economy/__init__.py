"""When an edit pays, how long the cache should last, and whether to keep it warm: pure decisions over frozen values.

`Economy` folds them over a session; the parts can be used alone. Nothing here reads a clock: `now` is an argument.
"""

from .editing import Cache, EditForecast, Proposal, Reason, low_watermark, weigh_edit
from .experience import PERSON, TOOL, UNTAUGHT, Experience, Waiting
from .keeping import WarmingPlan, choose_lifetime, edit_when_cold, plan_warming
from .prices import LONG, SHORT, UNIT, Prices, Rates, Tier
from .state import Economy

__all__ = [
    "LONG",
    "PERSON",
    "SHORT",
    "TOOL",
    "UNIT",
    "UNTAUGHT",
    "Cache",
    "Economy",
    "EditForecast",
    "Experience",
    "Prices",
    "Proposal",
    "Rates",
    "Reason",
    "Tier",
    "Waiting",
    "WarmingPlan",
    "choose_lifetime",
    "edit_when_cold",
    "low_watermark",
    "plan_warming",
    "weigh_edit",
]
