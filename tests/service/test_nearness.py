"""The shortfall of an event, against trying every way in which predicates could come out."""

from __future__ import annotations

from itertools import combinations, product

from hypothesis import given
from hypothesis import strategies as st

from tamis.language import holds, parse
from tamis.language.expressions import And, AtLeast, Not, Or, Xor
from tamis.service.nearness import shortfall

NAMES = ("a", "b", "c", "d")
leaves = st.sampled_from(NAMES).map(lambda name: parse(f"{name} = TRUE"))
trees = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: And(tuple(parts))),
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: Or(tuple(parts))),
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: Xor(tuple(parts))),
        st.lists(inner, min_size=2, max_size=3).flatmap(
            lambda parts: st.integers(1, len(parts)).map(lambda count: AtLeast(count, tuple(parts)))
        ),
        inner.map(Not),
    ),
    max_leaves=4,
)


def each_once(tree):
    """Return the tree with another name for each predicate, and the names."""
    names = []

    def renamed(node):
        if not node.children or ("=" in str(node) and not isinstance(node, And | Or | Xor | AtLeast | Not)):
            names.append(f"p{len(names)}")
            return parse(f"{names[-1]} = TRUE")
        parts = tuple(renamed(child) for child in node.children)
        if isinstance(node, Not):
            return Not(parts[0])
        return AtLeast(node.count, parts) if isinstance(node, AtLeast) else type(node)(parts)

    return renamed(tree), names


@given(trees, st.lists(st.sampled_from([True, False, None]), min_size=16, max_size=16))
def test_the_shortfall_is_the_fewest_changes_that_make_it_true(tree, values):
    tree, names = each_once(tree)
    event = dict(zip(names, values, strict=False))
    for count in range(len(names) + 1):
        changed = (
            event | dict(zip(chosen, news, strict=True))
            for chosen in combinations(names, count)
            for news in product((True, False), repeat=count)
        )
        if any(holds(tree, each) for each in changed):
            assert shortfall(tree, event) == count
            return
    raise AssertionError("no assignment makes it true")


def test_what_matches_falls_short_by_nothing_and_what_is_absent_counts():
    wanted = parse("price < 20 AND at_least(2, a = 1, b = 2, c = 3)")
    assert shortfall(wanted, {"price": 12, "a": 1, "b": 2}) == 0
    assert shortfall(wanted, {"price": 12, "a": 1}) == 1
    assert shortfall(wanted, {}) == 3
    assert shortfall(parse("NOT price < 20"), {}) == 1
    assert shortfall(parse("TRUE"), {}) == 0
    assert shortfall(parse("FALSE"), {}) == 1
