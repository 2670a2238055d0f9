"""Who is compared?

The algorithms as their sources measured them. Boolean filtering was timed with short circuits and with children in the
order in which they were written, although its author describes a better order; that one is measured too, by its name.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tamis.matching.algorithms import ALGORITHMS
from tamis_lab.experiments.measuring import Field
from tamis_lab.matching.atree.published.algorithm import (
    ATreePublished,
    ATreePublishedGeneral,
    ATreePublishedZero,
    ATreeTopDown,
)
from tamis_lab.matching.atree.published.graph import PARENTS, PRINTED
from tamis_lab.matching.boolean.algorithm import Boolean
from tamis_lab.matching.boolean.grove import GroveOptions
from tamis_lab.matching.counting import Counting
from tamis_lab.matching.surveyed.fixed_order import GryphonPublished

if TYPE_CHECKING:
    from collections.abc import Callable

    from tamis.language import Schema
    from tamis.matching.base import Algorithm

BOOLEAN, COUNTING, CLUSTER, GRYPHON = "boolean", "counting", "cluster", "gryphon"
PATHS, ZERO, GENERAL = "atree", "atree-zero", "atree-general"
A_TREES = (PATHS, ZERO, GENERAL)
PAIRS, PAIRS_ZERO, PAIRS_GENERAL = "atree-published", "atree-published, zero", "atree-published, general"
PAIRS_PRINTED, PAIRS_TOP_DOWN = "atree-published, as printed", "atree-published, from the roots"
GRYPHON_PUBLISHED = "gryphon-published"
SLICED, SEVERAL = "counting-sliced", "cluster-several"
BOOLEAN_ORDERED, BOOLEAN_SHUFFLED = "boolean, children ordered", "boolean, lists shuffled"
COUNTING_SHUFFLED = "counting, lists shuffled"

_OTHERS: dict[str, Callable[[Schema | None], Algorithm]] = {
    BOOLEAN: lambda schema: Boolean(schema, GroveOptions(child_order="written")),
    BOOLEAN_ORDERED: Boolean,
    BOOLEAN_SHUFFLED: lambda schema: Boolean(schema, GroveOptions(child_order="written", is_shuffled=True)),
    COUNTING_SHUFFLED: partial(Counting, is_shuffled=True),
    PAIRS_ZERO: ATreePublishedZero,
    PAIRS_GENERAL: ATreePublishedGeneral,
    PAIRS_PRINTED: partial(ATreePublished, arrangement=PRINTED, look_up=PARENTS),
    PAIRS_TOP_DOWN: ATreeTopDown,
    GRYPHON_PUBLISHED: GryphonPublished,
}


def field_of(*names: str, schema: Schema | None = None) -> Field:
    """Return algorithms by their names."""
    return Field.of({name: (_OTHERS.get(name) or ALGORITHMS[name])(schema) for name in names})
