"""How much memory does an algorithm take for what is its own?

The formulas count the bytes of some structures, and so does `Subject.payload`: to compare the two is to compare a
formula with itself. Here memory is that of all arrays that an algorithm has allocated: where lists begin, which
conjunction belongs to whom, and whatever else the formulas leave out. The index of predicates, which all algorithms
have, is left out as in the source: one is built by itself, and its memory is taken off.

Source: Bittner 2008, section 5.6 (docs/bibliography.md), where the memory of the process was read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis_lab.matching.predicates import PredicateRegistry
from tamis_lab.matching.shapes import shaped

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tamis.language import Expression
    from tamis_lab.experiments.measuring import Field

ALLOCATED = " allocated"
"""Ends the names of columns that have this memory, in bytes a subscription."""


def own_memory(field: Field, names: Iterable[str], expressions: Iterable[Expression]) -> dict[str, float]:
    """Return the bytes a subscription that algorithms have allocated for these, without the index of predicates."""
    index = PredicateRegistry()
    for expression in expressions:
        index.add_all(shaped(expression, "lab").predicates)
    index.view()
    return {name: (field[name].engine.memory() - index.memory()) / field[name].count for name in names}
