"""Replaying recorded sessions under a policy: what it would have cost, and what it would have broken.

`replay` is `moonwake replay`; the parts can be used alone:

    traces = read_traces([path], TiktokenCounter())
    run = simulate(traces[0], policy_named("moonwake"), UNIT)
"""

from .command import Wanted, examine, replay
from .hindsight import hindsight
from .policies import NAMES, Choice, Player, Policy, View, policy_named
from .reading import read_traces
from .report import Line, Report
from .simulate import Row, Run, simulate
from .trace import Call, Item, Trace

__all__ = [
    "NAMES",
    "Call",
    "Choice",
    "Item",
    "Line",
    "Player",
    "Policy",
    "Report",
    "Row",
    "Run",
    "Trace",
    "View",
    "Wanted",
    "examine",
    "hindsight",
    "policy_named",
    "read_traces",
    "replay",
    "simulate",
]
