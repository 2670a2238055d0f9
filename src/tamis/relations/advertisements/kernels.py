"""The compiled loop of overlaps: which trees can still be true without some predicates?

Trees are rows, from the root down and from left to right. A row is true if at least `needs` of its operands are; a
leaf, if its predicate is not among those that are false.
"""

from numba import njit


@njit(nogil=True, cache=True)
def find_overlaps(
    false_predicates,
    is_false,
    owner_starts,
    owners,
    hits,
    least_hits,
    leaf_counts,
    is_there,
    starts,
    rows,
    trues,
    found,
    order,
    most,
):
    """Mark trees that can be true without the false predicates; return how many were found, candidates, evaluated.

    Those come first of which no predicate is false. A tree that is marked already is not looked at again, so that the
    next call finds the next ones.

    false_predicates  int32[:]     the predicates that are false
    is_false          bool[:]      the same, by predicate
    owner_starts      int64[:]     the leaves of predicate p are owners[owner_starts[p]:owner_starts[p + 1]]
    owners            int32[:]     the tree of each leaf
    hits              int32[:]     zeros, by tree; they are zeros again in the end
    least_hits        int32[:]     by tree, how many true leaves it needs at least
    leaf_counts       int32[:]     by tree, how many leaves it has
    is_there          bool[:]      by tree, whether anybody is interested
    starts            int64[:]     the rows of tree t are starts[t] to starts[t + 1]
    rows              int32[:, 3]  the parent's row, how many operands are needed, the predicate of a leaf or -1
    trues             int32[:]     room for the rows of the largest tree
    found             bool[:]      by tree, updated in place
    order             int32[:]     what was found, in the order in which it was
    most              int64        how many are enough; `order` has room for them
    """
    for predicate in false_predicates:
        for leaf in range(owner_starts[predicate], owner_starts[predicate + 1]):
            hits[owners[leaf]] += 1
    found_count, candidate_count, evaluated_count = 0, 0, 0
    for is_touched in (False, True):
        for tree in range(len(least_hits)):
            if found_count == most:
                break
            if found[tree] or not is_there[tree] or (hits[tree] != 0) != is_touched:
                continue
            if least_hits[tree] + hits[tree] > leaf_counts[tree]:
                continue
            candidate_count += 1
            is_true = not is_touched
            if is_touched:
                evaluated_count += 1
                begin, size = starts[tree], starts[tree + 1] - starts[tree]
                for row in range(size):
                    trues[row] = 0
                for row in range(size - 1, -1, -1):
                    predicate = rows[begin + row, 2]
                    if predicate >= 0:
                        is_true = not is_false[predicate]
                    else:
                        is_true = trues[row] >= rows[begin + row, 1]
                    if is_true and row > 0:
                        trues[rows[begin + row, 0]] += 1
            if is_true:
                found[tree] = True
                order[found_count] = tree
                found_count += 1
    for predicate in false_predicates:
        for leaf in range(owner_starts[predicate], owner_starts[predicate + 1]):
            hits[owners[leaf]] = 0
    return found_count, candidate_count, evaluated_count
