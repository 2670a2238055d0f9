"""How else can the same thing be said? Normal forms and rewrite rules.

Each pass is a function from expression to expression. All but `simplify` keep the three-valued truth for
every event; `simplify`, and so `canonical`, and `monotone` keep what matters to a matcher: which events the
expression is *true* for. A pass that could explode takes a budget and says when it gives up.
"""

from tamis.language.rewrites.canonical import Interner, canonical, ordered
from tamis.language.rewrites.constants import fold_constants
from tamis.language.rewrites.disjunctive import disjuncts, dnf
from tamis.language.rewrites.flattening import flatten
from tamis.language.rewrites.monotone import monotone
from tamis.language.rewrites.negation import nnf
from tamis.language.rewrites.simplification import simplify

__all__ = [
    "Interner",
    "canonical",
    "disjuncts",
    "dnf",
    "flatten",
    "fold_constants",
    "monotone",
    "nnf",
    "ordered",
    "simplify",
]
