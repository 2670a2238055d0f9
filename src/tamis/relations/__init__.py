"""How do filters relate?

A broker sends less if it knows which filter covers another, which overlap, and which become one. The relations are
exact on the whole language wherever the predicates can be decided, and say so (`Verdict.proven`); elsewhere they
err on the safe side.

A filter becomes a *formula* over sets of values (`language.ranges`, `domains`, `translation`). Two filters are
compared by what is seen at once (`quick`), by a short `search`, and by a solver (`satisfiability`, `deciding`). An
index finds, among many, the filters that cover one or are covered by it (`covering_index`); `merging` makes fewer of
many.
"""

from typing import TYPE_CHECKING, Any

from tamis.relations.base import Merger, Verdict
from tamis.relations.errors import DuplicateKeyError, NoFiltersError, NotAFilterError, UnknownKeyError
from tamis.relations.merging_index import MergingIndex
from tamis.relations.refuting import Refutation, refute
from tamis.relations.relations import covers, covers_by_set, example, identical, overlaps, satisfiable

if TYPE_CHECKING:
    from tamis.relations.covering_index import CoveringIndex
    from tamis.relations.merging import merge, mergers

__all__ = [
    "CoveringIndex",
    "DuplicateKeyError",
    "Merger",
    "MergingIndex",
    "NoFiltersError",
    "NotAFilterError",
    "Refutation",
    "UnknownKeyError",
    "Verdict",
    "covers",
    "covers_by_set",
    "example",
    "identical",
    "merge",
    "mergers",
    "overlaps",
    "refute",
    "satisfiable",
]


def __getattr__(name: str) -> Any:
    """Import the index and what stands on it when somebody asks: its compiler takes a second to load."""
    if name == "CoveringIndex":
        from tamis.relations.covering_index import CoveringIndex

        return CoveringIndex
    if name in ("merge", "mergers"):
        from tamis.relations import merging

        return getattr(merging, name)
    raise AttributeError(f"module 'tamis.relations' has no attribute {name!r}")
