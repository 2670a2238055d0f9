"""What if nothing can be left out?

A predicate may be replaced by one that covers it: `price < 15` by `price < 20`. A monotone filter then matches more, in
conjunctions and disjunctions alike; so this also helps filters that cannot be pruned. It pays only if the predicate is
replaced wherever it occurs, and by one that is there anyway: then it leaves the index of predicates.

The predicate goes first whose replacement adds the fewest events. One that took the place of others answers for
all of them: the loss counts from the rarest.

Source: Bittner 2008, section 6.2, where it is proposed (docs/bibliography.md).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Any

from tamis.language.expressions import And, Expression, Literal, Or
from tamis.language.parser import parse
from tamis.language.ranges.value_sets import is_subset
from tamis.language.rewrites.monotone import fold_monotone, joined, monotone, occurrences
from tamis.pruning.errors import GoalError
from tamis.relations.forms import context_of
from tamis.relations.formulas import Within

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tamis.language.ranges.value_sets import Values
    from tamis.language.schema import Schema
    from tamis.relations.domains import TermAxis
    from tamis.selectivity.estimates import Share

_COMPARED_PAIRWISE = 300
"""Among so many predicates of a term, all pairs are compared; of more, only those that begin or end alike."""
_NEAREST = 50
"""Of more than a few that begin or end alike, each is compared with so many that reach further, the nearest."""


@dataclass(frozen=True, slots=True)
class Replaced:
    """Filters with fewer different predicates."""

    filters: dict[Any, Expression]
    replacements: dict[Expression, Expression]
    """What was replaced, and by what."""


def replace_predicates(
    filters: Mapping[Any, str | Expression],
    share: Share,
    *,
    local: Iterable[str | Expression] = (),
    count: int | None = None,
    threshold: float | None = None,
    schema: Schema | None = None,
) -> Replaced:
    """Replace predicates by others that cover them, the least loss first.

    It ends after `count` predicates, or before one that would be true for a share of events greater by `threshold`.
    Predicates that `local` filters use stay in the index anyway, and are not replaced, though others may be by them.

    >>> shares = {"price < 15": 0.5, "price < 16": 0.55, "price < 30": 0.9, "sold = TRUE": 0.2}
    >>> found = replace_predicates(
    ...     {"s1": "price < 15 OR sold", "s2": "price < 16", "s3": "price < 30"},
    ...     lambda predicate: shares[str(predicate)],
    ...     threshold=0.1,
    ... )
    >>> print(found.filters["s1"], "|", found.filters["s3"])
    price < 16 OR sold = TRUE | price < 30
    """
    if count is None and threshold is None:
        raise GoalError("a goal", None, "a count or a threshold")
    trees = {key: monotone(parse(each, schema) if isinstance(each, str) else each) for key, each in filters.items()}
    kept: set[Expression] = set()
    for each in local:
        kept.update(occurrences(monotone(parse(each, schema) if isinstance(each, str) else each)))
    used: Counter[Expression] = Counter()
    for tree in trees.values():
        used.update({leaf: count for leaf, count in occurrences(tree).items() if not isinstance(leaf, Literal)})
    covering = _covering(list({**used, **dict.fromkeys(kept)}), schema)
    replacements = _chosen(used, kept, covering, share, count, threshold)
    return Replaced({key: _substituted(tree, replacements) for key, tree in trees.items()}, replacements)


def _covering(predicates: list[Expression], schema: Schema | None) -> dict[Expression, list[Expression]]:
    """Return, for each predicate, others that cover it."""
    context = context_of(schema)
    lines: dict[TermAxis, list[tuple[Values, Expression]]] = {}
    for predicate in predicates:
        formula = context.form(predicate).formula
        if isinstance(formula, Within):
            lines.setdefault(formula.axis, []).append((formula.values, predicate))
    coverings: dict[Expression, list[Expression]] = {}
    for members in lines.values():
        groups = [members]
        if len(members) > _COMPARED_PAIRWISE:
            by_end: dict[Any, list[tuple[Values, Expression]]] = {}
            # What may be wider comes later: it ends later, or begins earlier.
            for values, predicate in sorted(members, key=lambda member: member[0][-1]):
                by_end.setdefault(("begins", values[0]), []).append((values, predicate))
            for values, predicate in sorted(members, key=lambda member: member[0][0], reverse=True):
                by_end.setdefault(("ends", values[-1]), []).append((values, predicate))
            groups = [alike for alike in by_end.values() if len(alike) > 1]
        for group in groups:
            for place, (values, predicate) in enumerate(group):
                near = group if len(group) <= _COMPARED_PAIRWISE else group[place : place + _NEAREST]
                wider = [other for more, other in near if other is not predicate and is_subset(values, more)]
                coverings.setdefault(predicate, []).extend(wider)
    return coverings


def _chosen(
    used: Counter[Expression],
    kept: set[Expression],
    covering: dict[Expression, list[Expression]],
    share: Share,
    count: int | None,
    threshold: float | None,
) -> dict[Expression, Expression]:
    texts = {predicate: str(predicate) for predicate in {*used, *kept}}
    rarest = {predicate: share(predicate) for predicate in {*used, *kept}}
    shares = dict(rarest)
    gone: dict[Expression, Expression] = {}

    def proposal(predicate: Expression) -> tuple[float, Expression] | None:
        wider = [other for other in covering.get(predicate, ()) if other not in gone]
        if not wider:
            return None
        other = min(wider, key=lambda each: (shares[each], texts[each]))
        return max(0.0, shares[other] - rarest[predicate]), other

    candidates = [predicate for predicate in used if predicate not in kept]
    proposals = [proposal(predicate) for predicate in candidates]
    # The least loss first; of equals, the predicate that most filters use.
    queue = [
        (others[0], -used[predicate], number)
        for number, (predicate, others) in enumerate(zip(candidates, proposals, strict=True))
        if others is not None
    ]
    heapify(queue)
    while queue and (count is None or len(gone) < count):
        loss, _, number = heappop(queue)
        predicate = candidates[number]
        now = proposal(predicate)
        if now is None:
            continue
        if now[0] != loss:  # its best replacement is gone by now, or it stands for rarer ones
            heappush(queue, (now[0], -used[predicate], number))
            continue
        if threshold is not None and loss > threshold:
            break
        gone[predicate] = now[1]
        rarest[now[1]] = min(rarest[now[1]], rarest[predicate])
    return {predicate: _last(predicate, gone) for predicate in gone}


def _last(predicate: Expression, gone: Mapping[Expression, Expression]) -> Expression:
    while predicate in gone:
        predicate = gone[predicate]
    return predicate


def _substituted(tree: Expression, replacements: Mapping[Expression, Expression]) -> Expression:
    def substitute(node: Expression, below: list[Expression]) -> Expression:
        if not below:
            return replacements.get(node, node)
        if isinstance(node, And | Or):
            below = list(dict.fromkeys(below))  # what became equal is said once; at_least counts it twice
        return joined(node, below)

    return fold_monotone(tree, substitute)
