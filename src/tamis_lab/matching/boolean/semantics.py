"""How many predicates are true at least, when some follow from others?

The tree alone says how many must be true for a match (p_min). But predicates on one attribute know of each other: where
`price < 10` holds, `price < 20` does, and who is not new is used. So for each conjunction of the disjunctive normal
form that can be true at all, all predicates count that follow from it.

    price < 10 AND new  OR  price < 20 AND used

    the tree says           2
    price < 10 and new      price < 20 follows: 3
    price < 20 and used     nothing follows:    2         the least of them is what a match has at least

Source: Bittner 2008, section 4.5.5 (docs/bibliography.md), which names the idea and leaves it to the future.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.errors import BudgetError
from tamis.language.ranges.rewording import Ranged, ranged
from tamis.language.ranges.value_sets import intersection_of, is_subset
from tamis_lab.matching.predicates import spelled
from tamis_lab.matching.shapes import ALWAYS, NEVER, Shaped, conjunctions, least_hits

if TYPE_CHECKING:
    from tamis.language.expressions import Expression
    from tamis.language.ranges.value_sets import Values

_MOST_CONJUNCTIONS = 1_000
"""With more of them, the syntactic count of the tree is used."""


def semantic_least_hits(shaped: Shaped) -> int:
    """Return the fewest predicates, by occurrence, that are true in any match.

    >>> from tamis.language import parse
    >>> from tamis_lab.matching.shapes import shaped
    >>> semantic_least_hits(shaped(parse("a < 10 AND b = 1 OR a < 20 AND b = 2 AND a < 30"), "boolean"))
    3
    """
    syntactic = least_hits(shaped.shape)
    if shaped.shape in (ALWAYS, NEVER):
        return syntactic
    try:
        ways = conjunctions(shaped.shape)
    except BudgetError:
        return syntactic
    if len(ways) > _MOST_CONJUNCTIONS:
        return syntactic
    predicates = [spelled(predicate) for predicate in shaped.predicates]
    sets = [ranged(predicate) for predicate in predicates]
    counts = (_true_in(set(way), predicates, sets) for way in ways)
    return min((count for count in counts if count is not None), default=syntactic)


def _true_in(way: set[int], predicates: list[Expression], sets: list[Ranged | None]) -> int | None:
    """Return how many predicates are true where all of some are; None where these contradict each other."""
    asked: dict[Expression, list[Values]] = {}
    for position in way:
        predicate_range = sets[position]
        if predicate_range is not None:
            asked.setdefault(predicate_range.term, []).append(predicate_range.values)
    left = {term: intersection_of(*values) for term, values in asked.items()}
    if not all(left.values()):
        return None
    given = {predicates[position] for position in way}
    count = 0
    for position, predicate in enumerate(predicates):
        predicate_range = sets[position]
        if predicate in given:
            count += 1
        elif predicate_range is not None and (values := left.get(predicate_range.term)) is not None:
            count += is_subset(values, predicate_range.values)
    return count
