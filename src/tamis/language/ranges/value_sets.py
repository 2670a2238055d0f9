"""Which values, of all that there are?

A set of values is a tuple of cuts in order, the first of which begins a stretch of the line, the second ends it, the
third begins the next. Equal sets are equal tuples (see `lines`), so a set is its own key, and each operation is one
walk over both tuples.

Source: "a sorted union of intervals" makes all constraint classes of Mühl et al. 2002, section 3.4, one class that is
  closed under conjunction, disjunction and complement (docs/bibliography.md).
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Final, TypeAlias

from tamis.language.ranges.lines import END, NULL, Cut, next_cut

if TYPE_CHECKING:
    from collections.abc import Iterator

Values: TypeAlias = tuple[Cut, ...]

NONE: Final[Values] = ()
EVERYTHING: Final[Values] = ((NULL,), (END,))


def intersection(one: Values, two: Values) -> Values:
    """Return the values that are in both.

    >>> intersection(((2,), (4,)), ((3,), (6,)))
    ((3,), (4,))
    """
    if one == two:
        return one
    if len(one) == 2 and len(two) == 2:
        low, high = max(one[0], two[0]), min(one[1], two[1])
        return (low, high) if low < high else NONE
    if not one or not two or one[-1] <= two[0] or two[-1] <= one[0]:
        return NONE
    if len(two) == 2 and two[0] <= one[0] and one[-1] <= two[1]:
        return one
    if len(one) == 2 and one[0] <= two[0] and two[-1] <= one[1]:
        return two
    cuts: list[Cut] = []
    mine = theirs = 0
    while mine < len(one) and theirs < len(two):
        low, high = max(one[mine], two[theirs]), min(one[mine + 1], two[theirs + 1])
        if low < high:
            cuts += (low, high)
        if one[mine + 1] < two[theirs + 1]:
            mine += 2
        else:
            theirs += 2
    return tuple(cuts)


def intersection_of(*sets: Values) -> Values:
    """Return the values that are in all of the sets, of which there is at least one.

    >>> intersection_of(((1,), (5,)), ((2,), (7,)), ((0,), (4,)))
    ((2,), (4,))
    """
    if len(sets) <= 3:
        together = sets[0]
        for values in sets[1:]:
            together = intersection(together, values)
        return together
    # One after the other, a thousand exclusions would be walked over a thousand times.
    return complement(union_of(*map(complement, sets)))


def union(one: Values, two: Values) -> Values:
    """Return the values that are in either.

    >>> union(((2,), (4,)), ((3,), (6,))), union(((1,), (2,)), ((2,), (3,)))
    (((2,), (6,)), ((1,), (3,)))
    """
    if one == two or not two:
        return one
    return union_of(one, two) if one else two


def union_of(*sets: Values) -> Values:
    """Return the values that are in any of the sets."""
    in_order = sorted((values[index], values[index + 1]) for values in sets for index in range(0, len(values), 2))
    cuts: list[Cut] = []
    for low, high in in_order:
        if cuts and low <= cuts[-1]:
            cuts[-1] = max(high, cuts[-1])
        else:
            cuts += (low, high)
    return tuple(cuts)


def difference(one: Values, two: Values) -> Values:
    """Return the values that are in the first set and not in the second.

    >>> difference(((1,), (8,)), ((3,), (5,)))
    ((1,), (3,), (5,), (8,))
    """
    return intersection(one, complement(two)) if two else one


def complement(values: Values) -> Values:
    """Return all other values."""
    if not values:
        return EVERYTHING
    inner = values[1:] if values[0] == EVERYTHING[0] else (EVERYTHING[0], *values)
    return inner[:-1] if inner[-1] == EVERYTHING[1] else (*inner, EVERYTHING[1])


def is_subset(one: Values, two: Values) -> bool:
    """Are all values of the first set in the second?

    >>> is_subset(((3,), (4,)), ((2,), (5,))), is_subset(((3,), (6,)), ((2,), (5,)))
    (True, False)
    """
    if len(two) == 2:
        return not one or (two[0] <= one[0] and one[-1] <= two[1])
    at = 0
    for index in range(0, len(one), 2):
        at = bisect_right(two, one[index], at)
        if at % 2 == 0 or two[at] < one[index + 1]:
            return False
    return True


def is_disjoint(one: Values, two: Values) -> bool:
    """Have the sets no value in common?"""
    if not one or not two or one[-1] <= two[0] or two[-1] <= one[0]:
        return True
    if len(one) == 2 and len(two) == 2:
        return False
    few, many = (one, two) if len(one) <= len(two) else (two, one)
    for index in range(0, len(few), 2):
        at = bisect_right(many, few[index])
        if at % 2 == 1 or (at < len(many) and many[at] < few[index + 1]):
            return False
    return True


def is_member(cut: Cut, values: Values) -> bool:
    """Is the value behind a cut in the set?"""
    return bisect_right(values, cut) % 2 == 1


def without_gaps(values: Values) -> Values:
    """Return the smallest set around another that is a single stretch on each rank.

    >>> without_gaps(((2, 1), (2, 3), (2, 5), (2, 7), (4, "a"), (4, "b")))
    ((2, 1), (2, 7), (4, 'a'), (4, 'b'))
    """
    by_rank: dict[int, tuple[Cut, Cut]] = {}
    for low, high in stretches(values):
        by_rank[low[0]] = (by_rank[low[0]][0] if low[0] in by_rank else low, high)
    return union_of(*by_rank.values())


def stretches(values: Values) -> Iterator[tuple[Cut, Cut]]:
    """Return the stretches of a set in order, cut where a rank ends.

    >>> list(stretches(((0,), (2, 5))))
    [((0,), (1,)), ((1,), (2,)), ((2,), (2, 5))]
    """
    for low, high in zip(values[::2], values[1::2], strict=True):
        start = low
        while (end := (start[0] + 1,)) < high:
            yield start, end
            start = end
        yield start, high


def points(values: Values, line: str, most: int) -> list[Cut] | None:
    """Return the cuts before the values of a set that has a few single ones; None if it has more, or stretches.

    >>> points(((3, 7), (3, 8), (3, 9), (3, 10)), "integer", 16)
    [(3, 7), (3, 9)]
    """
    if len(values) > 2 * most:
        return None
    cuts: list[Cut] = []
    for low, high in stretches(values):
        if next_cut(low, line) != high:
            return None
        cuts.append(low)
    return cuts
