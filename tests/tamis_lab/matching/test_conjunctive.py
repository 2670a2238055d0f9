"""What the algorithms for conjunctions have in common: the book, layouts, removal, snapshots."""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from tamis.matching import UnsupportedExpressionError
from tamis.matching.columns import Events
from tamis_lab.matching.boolean.algorithm import Boolean
from tamis_lab.matching.cluster import Cluster
from tamis_lab.matching.conjunctive import Book
from tamis_lab.matching.counting import Counting
from tamis_lab.matching.gryphon import Gryphon
from tests.strategies import conditions_over, events, simple_predicates
from tests.tamis_lab.matching.auction_examples import CLASSES, EVENT

CONJUNCTIVE = [Counting, Cluster, Gryphon]
PUBLISHED = [*CONJUNCTIVE, Boolean]
conjunctive = pytest.mark.parametrize("kind", CONJUNCTIVE, ids=lambda kind: kind.name)
published = pytest.mark.parametrize("kind", PUBLISHED, ids=lambda kind: kind.name)


def registered(kind, *texts):
    algorithm = kind()
    algorithm.add(range(len(texts)), algorithm.prepare(map(tamis.parse, texts)))
    return algorithm


def predicates_of(algorithm):
    return algorithm._groves[None].predicates if isinstance(algorithm, Boolean) else algorithm._predicates


# -- The book


@given(rows=st.lists(st.lists(st.lists(st.integers(0, 30), max_size=4), max_size=3), max_size=12), data=st.data())
def test_a_book_keeps_what_is_kept(rows, data):
    book = Book()
    cut = data.draw(st.integers(0, len(rows)))
    for some in (rows[:cut], rows[cut:]):
        book.write([([number for way in ways for number in way], [len(way) for way in ways]) for ways in some])

    def ways_of(pages, slot):
        first, last = (int(pages.slot_ends[slot - 1]) if slot else 0), int(pages.slot_ends[slot])
        return [pages.predicates[(pages.ends[c - 1] if c else 0) : pages.ends[c]].tolist() for c in range(first, last)]

    before = book.pages
    assert [ways_of(before, slot) for slot in range(len(rows))] == rows
    assert [sorted(book.predicates_of(slot)) for slot in range(len(rows))] == [
        sorted({n for way in ways for n in way}) for ways in rows
    ]
    kept = sorted(data.draw(st.sets(st.sampled_from(range(len(rows)))))) if rows else []
    book.keep(np.array(kept, np.int64))
    assert [ways_of(book.pages, slot) for slot in range(len(kept))] == [rows[slot] for slot in kept]
    assert book.pages.owners.tolist() == [slot for slot, old in enumerate(kept) for _ in rows[old]]
    assert [ways_of(before, slot) for slot in range(len(rows))] == rows, "what was handed out stays"


# -- De-duplication


@published
def test_a_subscription_that_matches_in_several_ways_is_found_once(kind):
    algorithm = registered(kind, "a = 1 OR b = 1 OR a > 0 AND b > 0", "a = 1 AND (b = 1 OR b > 0)")
    for _ in range(2):
        assert sorted(algorithm.snapshot().match_event({"a": 1, "b": 1}).tolist()) == [0, 1]
        numbers, handles = algorithm.snapshot().match_events(Events([{"a": 1, "b": 1}] * 3))
        assert sorted(zip(numbers.tolist(), handles.tolist(), strict=True)) == [
            (n, h) for n in range(3) for h in (0, 1)
        ]
        algorithm.compile()


@conjunctive
def test_equal_predicates_and_equal_conjunctions_are_one(kind):
    algorithm = registered(kind, "p AND (p OR q)", "a = 1 AND 1 = a", "(p OR q) AND (q OR p)")
    pages = algorithm._book.pages
    assert len(pages.ends) == 2 + 1 + 3  # {p} {p q}, {a}, {p} {p q} {q}
    assert Counter(pages.owners.tolist()) == {0: 2, 1: 1, 2: 3}
    assert sorted(algorithm.snapshot().match_event({"p": True, "q": False, "a": 1}).tolist()) == [0, 1, 2]


def test_counting_on_the_normal_form_finds_the_golden_match_and_the_published_sizes():
    for kind in PUBLISHED:
        algorithm = kind()
        algorithm.add(range(3), algorithm.prepare(CLASSES))
        assert algorithm.snapshot().match_event(EVENT).tolist() == [0]
    pages = registered(Counting)._book.pages
    assert len(pages.ends) == 0
    counting = Counting()
    counting.add(range(3), counting.prepare(CLASSES))
    pages = counting._book.pages
    assert np.diff(pages.slot_ends, prepend=0).tolist() == [2, 4, 6]
    ends = [int(pages.ends[last - 1]) for last in pages.slot_ends]
    assert np.diff(ends, prepend=0).tolist() == [8, 20, 18]


# -- Layout


@published
@given(
    conditions=st.lists(conditions_over(simple_predicates), max_size=8),
    batch=st.lists(events(), max_size=4),
    data=st.data(),
)
@settings(max_examples=40)
def test_what_is_laid_out_and_what_came_since_are_matched_alike(kind, conditions, batch, data):
    algorithm = kind()
    cut = data.draw(st.integers(0, len(conditions)))
    try:
        prepared = algorithm.prepare(conditions)
    except UnsupportedExpressionError:
        return
    algorithm.add(range(cut), prepared[:cut])
    algorithm.compile()
    algorithm.add(range(cut, len(conditions)), prepared[cut:])
    expected = [[n for n, each in enumerate(conditions) if tamis.holds(each, event)] for event in batch]
    assert [sorted(algorithm.snapshot().match_event(event).tolist()) for event in batch] == expected
    algorithm.compile()
    assert [sorted(algorithm.snapshot().match_event(event).tolist()) for event in batch] == expected


@published
def test_a_snapshot_stays_what_it_was(kind):
    algorithm = registered(kind, *(f"a < {number} AND b = {number % 3}" for number in range(200)))
    event = {"a": 50, "b": 1}
    moments = []
    living = set(range(200))
    chance = Random(3)
    for handle in range(200, 900):
        expected = {each for each in living if each % 200 > 50 and (each % 200) % 3 == 1}
        moments.append((algorithm.snapshot(), expected))
        if chance.random() < 0.5:
            gone = chance.choice(sorted(living))
            algorithm.remove(gone)
            living.remove(gone)
        algorithm.add([handle], algorithm.prepare([tamis.parse(f"a < {handle % 200} AND b = {handle % 200 % 3}")]))
        living.add(handle)
        if handle % 100 == 0:
            algorithm.compile()
    for snapshot, expected in moments:
        assert set(snapshot.match_event(event).tolist()) == expected
        numbers, handles = snapshot.match_events(Events([event, {"a": 500, "b": 1}]))
        assert set(handles.tolist()) == expected
        assert not numbers.any()


@published
def test_after_any_life_it_is_as_if_only_the_survivors_had_ever_been_registered(kind):
    chance = Random(5)
    algorithm = kind()
    living: dict[int, str] = {}
    for handle in range(1500):
        if living and chance.random() < 0.45:
            gone = chance.choice(sorted(living))
            algorithm.remove(gone)
            del living[gone]
        else:
            text = f"(a = {chance.randrange(40)} OR b < {chance.randrange(40)}) AND c <> {chance.randrange(40)}"
            algorithm.add([handle], algorithm.prepare([tamis.parse(text)]))
            living[handle] = text
        if chance.random() < 0.1:
            algorithm.snapshot()
    fresh = kind()
    fresh.add(list(living), fresh.prepare(map(tamis.parse, living.values())))
    for _ in range(50):
        event = {"a": chance.randrange(40), "b": chance.randrange(40), "c": chance.randrange(40)}
        found, expected = (sorted(each.snapshot().match_event(event).tolist()) for each in (algorithm, fresh))
        assert found == expected == [h for h, text in living.items() if tamis.holds(tamis.parse(text), event)]
    mine, theirs = predicates_of(algorithm), predicates_of(fresh)
    assert len(mine) == len(theirs), "predicates are shared, and forgotten with their last user"
    used = {theirs.predicate(number): theirs.users(number) for number in range(theirs.number_count)}
    for predicate, users in used.items():
        number = mine.add(predicate)
        assert mine.users(number) == users + 1
        mine.release(number)


@published
def test_nothing_is_left_when_the_last_one_goes(kind):
    algorithm = registered(kind, *(f"a = {number} OR b = {number} AND c > {number}" for number in range(500)))
    algorithm.snapshot()
    full = algorithm.memory()
    for handle in range(500):
        algorithm.remove(handle)
    algorithm.compile()
    assert len(predicates_of(algorithm)) == 0
    assert algorithm.snapshot().match_event({"a": 3, "b": 3, "c": 9}).tolist() == []
    assert algorithm.memory() < full / 4, "only numbers that can be given out again"


@published
def test_registering_and_removing_cost_the_same_however_much_is_registered(kind):
    # What is counted is how many subscriptions are laid out, for each one that comes or goes while others match.
    laid_out = 0

    class Watched(kind):
        def compile(self):
            nonlocal laid_out
            super().compile()
            laid_out += len(self._roll) if hasattr(self, "_roll") else 0

    algorithm = Watched()
    count = 4_000
    for handle in range(count):
        algorithm.add([handle], algorithm.prepare([tamis.parse(f"a = {handle % 7} AND b < {handle % 5}")]))
        if handle % 3 == 0:
            algorithm.remove(handle // 3)
        algorithm.snapshot()
    assert laid_out < 100 * count


@conjunctive
def test_threads_find_what_one_thread_finds(kind, monkeypatch):
    monkeypatch.setattr("tamis_lab.matching.snapshots.BLOCK", 50)
    algorithm = registered(kind, *(f"a < {number} OR b = {number}" for number in range(100)))
    chance = Random(1)
    batch = Events([{"a": chance.randrange(120), "b": chance.randrange(120)} for _ in range(1020)])
    one = algorithm.snapshot().match_events(batch)
    two = algorithm.snapshot().match_events(batch, threads=3)
    assert len(one[0]) > 1000
    order, other = np.lexsort(one[::-1]), np.lexsort(two[::-1])
    assert (one[0][order] == two[0][other]).all()
    assert (one[1][order] == two[1][other]).all()
    assert (np.diff(one[0]) >= 0).all()
    assert (np.diff(two[0]) >= 0).all()


# -- One by one


def test_a_conjunction_of_more_than_255_predicates_gets_wider_counters():
    algorithm = registered(Counting, " AND ".join(f"a <> {number}" for number in range(300)), "a <> 5 AND b = 1")
    algorithm.compile()
    assert algorithm._index.needs.dtype == np.uint16
    assert algorithm.snapshot().match_event({"a": 300, "b": 1}).tolist() == [0, 1]
    assert algorithm.snapshot().match_event({"a": 299, "b": 1}).tolist() == [1]
    assert algorithm.snapshot().match_event({"a": 44, "b": 0}).tolist() == []


def test_shuffled_lists_find_the_same():
    texts = [f"a < {number} AND (b = {number % 4} OR c = {number % 3})" for number in range(300)]
    plain, shuffled = Counting(), Counting(is_shuffled=True)
    for algorithm in (plain, shuffled):
        algorithm.add(range(300), algorithm.prepare(map(tamis.parse, texts)))
        algorithm.compile()
    assert plain._index.associations.values.tolist() != shuffled._index.associations.values.tolist()
    event = {"a": 150, "b": 1, "c": 2}
    assert plain.snapshot().match_event(event).tolist() == shuffled.snapshot().match_event(event).tolist()


def test_conjunctions_of_equal_size_and_access_predicate_are_one_cluster():
    texts = [
        "t = 'x' AND a < 1",
        "t = 'x' AND a < 2",
        "t = 'x' AND a < 3 AND b < 1",
        "t = 'y' AND a < 4",
        "a < 5",
        "b < 6",
        "a < 1 AND b < 2",
    ]
    algorithm = registered(Cluster, *texts)
    algorithm.compile()
    assert algorithm.statistics()["clusters"] == 5  # x of two, x of three, y; without access: of one, of two
    assert algorithm.statistics()["without_access"] == 3


def test_the_access_predicate_follows_what_is_learned():
    texts = [f"t = {number} AND kind = 'only'" for number in range(20)]
    algorithm = registered(Cluster, *texts)
    batch = [{"t": 3, "kind": "only" if number == 7 else "other"} for number in range(300)]
    algorithm.observe(Events(batch))  # t = 3 always holds, kind = 'only' hardly ever
    index = algorithm._index
    kind, three, four = (
        predicates_of(algorithm).add(tamis.parse(text)) for text in ("kind = 'only'", "t = 3", "t = 4")
    )

    def clusters_of(number):
        return int(index.table.starts[number + 1] - index.table.starts[number])

    assert clusters_of(kind) == 1, "the conjunction with t = 3 is found by its kind"
    assert clusters_of(three) == 0
    assert clusters_of(four) == 1
    numbers, handles = algorithm.snapshot().match_events(Events(batch))
    assert (numbers.tolist(), handles.tolist()) == ([7], [3])


def test_a_boolean_attribute_gives_access_and_a_pattern_does_not():
    algorithm = registered(Cluster, "sold AND a < 1", "name LIKE '%x%' AND a < 1", "name LIKE 'x%'")
    algorithm.compile()
    assert algorithm.statistics()["without_access"] == 2


def test_the_matching_tree_shares_prefixes_and_looks_equalities_up():
    texts = [f"t = 'x' AND n = {number}" for number in range(50)] + [
        "t = 'x'",
        "n = 3",
        "a < 4 AND t = 'x'",
        "t = 'y' AND a < 4",
    ]
    algorithm = registered(Gryphon, *texts)
    algorithm.compile()
    told = algorithm.statistics()
    # t = 'x' is shared by 52 of them; below it 50 values of n and a < 4; then t = 'y', a < 4, and n = 3 at the root.
    assert told["edges"] == 1 + 50 + 1 + 2 + 1
    assert told["nodes"] == told["edges"] + 1
    # The root tests t and n; below x: n and a; below y: a.
    assert told["tests"] == 2 + 2 + 1
    assert sorted(algorithm.snapshot().match_event({"t": "x", "n": 3, "a": 1}).tolist()) == [3, 50, 51, 52]


@conjunctive
def test_true_and_false_are_subscriptions_too(kind):
    algorithm = registered(kind, "TRUE", "FALSE", "a = 1 OR TRUE", "a = 1 AND NULL")
    for _ in range(2):
        assert sorted(algorithm.snapshot().match_event({}).tolist()) == [0, 2]
        algorithm.compile()
