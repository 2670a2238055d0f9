"""Where test traffic comes from.

A workload makes events and subscriptions that belong together, from a count and a seed (`base`). `auction` is the
book-auction scenario in which Boolean filters were first measured, with its bidders and sellers; `expressions` turns
one knob of random Boolean expressions at a time; `synthetic` is the ground on which other engines were measured; `real`
asks made-up questions about real events. Events come as Arrow tables, subscriptions as texts of the language.
"""

from collections.abc import Callable
from functools import partial

from tamis.workloads.auction import Auction
from tamis.workloads.base import Workload
from tamis.workloads.errors import MissingPackageError, ParameterError
from tamis.workloads.expressions import AND_ONLY, AND_OR, AND_OR_XOR, Expressions
from tamis.workloads.real import RealWorkload, flights, storms
from tamis.workloads.synthetic import SharedTemplates, Synthetic

WORKLOADS: dict[str, Callable[..., Workload]] = {
    "auction": Auction,
    "expressions": Expressions,
    "w1": partial(Synthetic, "W1"),
    "w2": partial(Synthetic, "W2"),
    "w3": partial(Synthetic, "W3"),
    "w4": partial(Synthetic, "W4"),
    "templates": SharedTemplates,
    "flights": flights,
    "storms": storms,
}
"""Every workload by its name; a call takes its knobs. `flights` and `storms` need packages of their own."""

__all__ = [
    "AND_ONLY",
    "AND_OR",
    "AND_OR_XOR",
    "WORKLOADS",
    "Auction",
    "Expressions",
    "MissingPackageError",
    "ParameterError",
    "RealWorkload",
    "SharedTemplates",
    "Synthetic",
    "Workload",
    "flights",
    "storms",
]
