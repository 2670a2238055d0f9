"""Which events are among the best k of a window?

A *ranked* subscription (`Ranked`) asks for the best k events of a sliding window, by a score, and is told of an event
at the moment it first belongs to them. `TopK` hosts ranked and Boolean subscriptions together, over one of several
algorithms: the naive one, which is the definition; strict, relaxed and probabilistic candidate pruning, with or without
filters over a recent buffer; and `block`, which keeps the rankings of all subscriptions in arrays.

What other nodes must know of a ranked subscription is its `Proxy`; `covers` says when one subscription makes another
one's deliveries too, a `RegionMerger` keeps one region around many, and a `Trace` of what happened says which
promises were kept.
"""

from tamis.topk.candidate_limits import candidate_limit
from tamis.topk.covering import covers, warm_up
from tamis.topk.delivery import Delivery
from tamis.topk.errors import (
    BufferSizeError,
    LateEventError,
    RankedFormError,
    SettingError,
    UnknownFilterError,
    UnusedSettingError,
    WindowError,
)
from tamis.topk.guard import OrderReport
from tamis.topk.merging import RegionMerger
from tamis.topk.processor import TopK
from tamis.topk.proxies import Proxy
from tamis.topk.ranked import Ranked
from tamis.topk.specification import Trace
from tamis.topk.windows import CountWindow, TimeWindow

__all__ = [
    "BufferSizeError",
    "CountWindow",
    "Delivery",
    "LateEventError",
    "OrderReport",
    "Proxy",
    "Ranked",
    "RankedFormError",
    "RegionMerger",
    "SettingError",
    "TimeWindow",
    "TopK",
    "Trace",
    "UnknownFilterError",
    "UnusedSettingError",
    "WindowError",
    "candidate_limit",
    "covers",
    "warm_up",
]
