"""How often is a predicate true?

Matchers put what is rarely true first, and pruning leaves out what changes little. An estimate comes from a sample of
events (`samples`), from statistics of their attributes (`statistics`), from counters that a running system keeps
(`counters`, `lines`, `questions`). `estimates` makes bounds for whole expressions of it, `likely_events` makes up
events that statistics fit, and `files` keeps statistics. Matchers, which need only a share for each leaf, have
`tamis.matching.shares`.
"""

from tamis.selectivity.counters import Counters, Tallied
from tamis.selectivity.errors import HalfLifeError
from tamis.selectivity.estimates import Estimate, Share, estimate
from tamis.selectivity.samples import Sample
from tamis.selectivity.statistics import AttributeStatistics, Statistics

__all__ = [
    "AttributeStatistics",
    "Counters",
    "Estimate",
    "HalfLifeError",
    "Sample",
    "Share",
    "Statistics",
    "Tallied",
    "estimate",
]
