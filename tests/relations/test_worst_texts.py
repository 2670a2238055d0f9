"""No text within the limits of the language stalls a comparison, a merger or an index: there is a budget everywhere."""

from __future__ import annotations

from random import Random

import pytest

import tamis
from tamis.language.parser import parse
from tamis.relations import (
    CoveringIndex,
    MergingIndex,
    covers,
    covers_by_set,
    example,
    identical,
    merge,
    mergers,
    overlaps,
    satisfiable,
)
from tamis.relations.advertisements import OverlapIndex, disjoint_sets, overlaps_by_predicates
from tests.bounded import outcomes
from tests.worst_texts import (
    WORST_TEXTS,
    WorstText,
    event,
    long_lists,
    nested_counts,
    nested_truths,
    nested_xor,
    xor_of_counts,
)

PLAIN = "p0 AND x > 3"


def narrower(text: str) -> str:
    return f"({text}) AND z = 1"


def no_lie(verdict, is_so):
    """A verdict that is proven is right; one that is not is on the safe side."""
    assert verdict.holds is is_so or not verdict.proven


def compared(text):
    no_lie(covers(text, narrower(text)), True)
    covers(narrower(text), text)
    covers(text, PLAIN)
    covers(PLAIN, text)


def overlapped(text):
    possible = satisfiable(text)
    if possible.proven:
        no_lie(overlaps(text, text), possible.holds)
    overlaps(text, PLAIN)
    overlaps(text, narrower(text))


def identified(text):
    no_lie(identical(text, f"({text}) OR ({narrower(text)})"), True)
    identical(text, PLAIN)


def together(text):
    no_lie(covers_by_set([text, PLAIN], narrower(text)), True)
    covers_by_set([PLAIN, "y = 3"], text)
    example([text], [PLAIN])


def merged(text):
    merge([text, PLAIN])
    mergers([text, narrower(text), PLAIN, "p1 AND x > 4"])
    merge([text, f"({text}) OR y = 3"], budget=0.5)


def indexed_by_covering(text):
    index = CoveringIndex()
    for key, each in enumerate((PLAIN, text, narrower(text))):
        index.add(key, each)
    for each in (PLAIN, text):
        index.covering(each)
        index.covered_by(each)
    index.remove(1)


def indexed_by_merging(text):
    index = MergingIndex()
    for key, each in enumerate((PLAIN, text, narrower(text))):
        index.add(key, each)
    index.candidates(text)
    index.remove(1)


def indexed_by_overlap(text, is_exact=False):
    index = OverlapIndex(is_exact=is_exact)
    for key, each in enumerate((PLAIN, text, narrower(text), *(f"p{number} AND x > {number}" for number in range(20)))):
        index.add(key, each)
    for each in (PLAIN, text):
        index.overlapping(each)
        index.overlaps_any(each)
    index.remove(1)


def disjoint(text):
    assert overlaps_by_predicates(text, text) or not satisfiable(text)
    overlaps_by_predicates(PLAIN, text)
    disjoint_sets(text, ["p0", "x < 3", "x = 5"])


OPERATIONS = {
    "covers": compared,
    "overlaps": overlapped,
    "identical": identified,
    "sets and examples": together,
    "mergers": merged,
    "covering index": indexed_by_covering,
    "merging index": indexed_by_merging,
    "overlap index": indexed_by_overlap,
    "exact overlap index": lambda text: indexed_by_overlap(text, is_exact=True),
    "disjoint predicates": disjoint,
}
REFUSED = {"done", "BudgetError", "LimitError"}
"""What an operation may come to: a result, or an error that says that the text is too large."""

SHORT = (
    WorstText("nested XOR of 19 levels", nested_xor, 19, 3),
    WorstText("50 nested counts", nested_counts, 50, 3),
    WorstText("XOR of a dozen counts", xor_of_counts, 12, 3),
    WorstText("100 conditions about conditions", nested_truths, 100, 3),
    WorstText("lists of 1,000", long_lists, 1_000, 3),
)


def check(texts: tuple[WorstText, ...]) -> None:
    cases = [(text, name) for text in texts for name in OPERATIONS]
    found = outcomes(__name__, [(name, text.worst) for text, name in cases])
    stalled = {(text.name, name): each for (text, name), each in zip(cases, found, strict=True) if each not in REFUSED}
    assert not stalled


def test_a_short_text_stalls_no_relation_merger_or_index():
    check(SHORT)


@pytest.mark.slow
@pytest.mark.parametrize("text", WORST_TEXTS, ids=lambda text: text.name)
def test_the_worst_texts_stall_no_relation_merger_or_index(text):
    check((text,))


@pytest.mark.parametrize("text", WORST_TEXTS, ids=lambda text: text.name)
def test_small_texts_of_the_same_kinds_are_compared_as_events_show(text):
    chance = Random(3)
    drawn = [event(chance, 12) for _ in range(300)]
    one = parse(text.tame)
    for other in map(parse, (PLAIN, "p1", "x > 2 OR NOT p0", narrower(text.tame), f"NOT ({text.tame})")):
        truths = [(tamis.holds(one, each), tamis.holds(other, each)) for each in drawn]
        assert overlaps(one, other) or (True, True) not in truths
        assert not covers(one, other) or (False, True) not in truths
        assert not covers(other, one) or (True, False) not in truths
        assert not identical(one, other) or all(first is second for first, second in truths)
        either = merge([one, other]).expression
        assert all(tamis.holds(either, each) for each, truth in zip(drawn, truths, strict=True) if any(truth))
        assert overlaps_by_predicates(one, other) or (True, True) not in truths


def test_two_lists_of_a_hundred_thousand_merge_into_one():
    even, odd = (", ".join(map(str, range(first, 200_000, 2))) for first in (0, 1))
    merger = merge([f"x IN ({even})", f"x IN ({odd})"])
    assert merger.perfect and merger.expression.values == tuple(range(200_000))
    few = ", ".join(map(str, range(0, 40_000, 2)))
    excluded = merge([f"x NOT IN ({few}) AND y = 1", f"x NOT IN ({few}) AND y = 2"])
    assert excluded.perfect and len(excluded.expression.children) == 2
    words = merge([f"s IN ({', '.join(repr(str(n)) for n in range(first, 4_000, 2))})" for first in (0, 1)])
    assert set(words.expression.values) == {str(number) for number in range(4_000)}
