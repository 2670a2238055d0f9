"""What every algorithm promises of destinations: they are those of the subscriptions that match, each once."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis.matching import Matcher, SavedMatcherError, UnknownIdError, UnsupportedExpressionError
from tamis.matching.algorithms import ALGORITHMS
from tamis.matching.errors import BadTableError
from tests.strategies import conditions, conditions_over, events, simple_predicates

every_algorithm = pytest.mark.parametrize("algorithm", ALGORITHMS)
shared = st.lists(st.one_of(conditions, conditions_over(simple_predicates)), min_size=1, max_size=6)
names = st.sampled_from([None, None, "north", "south", "östlich", ""])
event_lists = st.lists(events(), min_size=1, max_size=6)


def reached(matcher, event, among=None):
    """The definition, by way of what `match` returns."""
    found = {matcher.destination(each) for each in matcher.match(event, among=among)} - {None}
    return [name for name in matcher.destinations() if name in found]


def undirected(matcher, event, among=None):
    return [each for each in matcher.match(event, among=among) if matcher.destination(each) is None]


def agrees(matcher, batch, among=None):
    """Whether single events, few events, and a block of them are all answered as the definition says."""
    for event in batch:
        assert matcher.match_destinations(event, among=among) == reached(matcher, event, among)
        assert matcher.match_shortcut(event, among=among)[0] == undirected(matcher, event, among)
    for repeat in (1, 1 + 40 // len(batch)):
        table = matcher.match_destinations_batch(batch * repeat, among=among).to_pydict()
        assert list(zip(table["event"], table["destination"], strict=True)) == [
            (number, name) for number, event in enumerate(batch * repeat) for name in reached(matcher, event, among)
        ]


@every_algorithm
@given(data=st.data())
@settings(max_examples=25)
def test_destinations_are_those_of_the_matches_whatever_is_added_and_removed(algorithm, data):
    matcher = Matcher(algorithm)
    if algorithm == "block":
        matcher._engine.merge_always = data.draw(st.booleans(), label="merge at every step")
    pool = data.draw(shared, label="conditions")  # few, so that many ask the same
    registered: list[int] = []
    batch = data.draw(event_lists, label="events")
    number = 0
    for _ in range(data.draw(st.integers(1, 4), label="rounds")):
        entries = data.draw(st.lists(st.tuples(st.sampled_from(pool), names), max_size=24), label="added")
        for condition, name in entries:
            try:
                matcher.add(number, condition, destination=name, priority=number % 2)
            except UnsupportedExpressionError:
                continue
            registered.append(number)
            number += 1
        if registered:
            gone = data.draw(st.lists(st.sampled_from(registered), unique=True, max_size=4), label="removed")
            matcher.remove_many(gone)
            registered = [each for each in registered if each not in gone]
        agrees(matcher, batch)
        if registered and data.draw(st.booleans(), label="some only"):
            agrees(matcher, batch, data.draw(st.lists(st.sampled_from(registered), unique=True), label="among"))


@every_algorithm
@given(entries=st.lists(st.tuples(simple_predicates, names), max_size=20), batch=event_lists)
@settings(max_examples=10)
def test_destinations_are_saved_and_loaded(algorithm, tmp_path_factory, entries, batch):
    path = tmp_path_factory.mktemp("saved") / "matcher"
    matcher = Matcher(algorithm)
    for number, (condition, name) in enumerate(entries):
        try:
            matcher.add(number, condition, destination=name)
        except UnsupportedExpressionError:
            continue
        if number % 5 == 4:
            matcher.remove(number)
    matcher.save(path)
    for recompile in (False, True):
        loaded = Matcher.load(path, recompile=recompile)
        assert loaded.destinations() == matcher.destinations()
        agrees(loaded, batch)
        for event in batch:
            assert loaded.match_shortcut(event) == matcher.match_shortcut(event)
        loaded.add("new", "TRUE", destination="new")
        assert loaded.match_destinations({})[-1] == "new"


@every_algorithm
def test_an_id_registered_anew_may_have_another_destination(algorithm):
    matcher = Matcher(algorithm)
    matcher.add("x", "a = 1", destination="north")
    matcher.add("y", "a = 1")
    assert matcher.match_shortcut({"a": 1}) == (["y"], ["north"])
    matcher.remove("x")
    assert (matcher.match_shortcut({"a": 1}), matcher.destinations()) == ((["y"], []), [])
    matcher.add("x", "a = 1", destination=("south", 2))
    assert matcher.match_shortcut({"a": 1}) == (["y"], [("south", 2)])
    assert (matcher.destination("x"), matcher.destination("y")) == (("south", 2), None)
    with pytest.raises(UnknownIdError):
        matcher.destination("z")
    with pytest.raises(SavedMatcherError, match="destinations"):
        matcher.save("/nowhere")


def test_of_destinations_that_come_and_go_none_is_left_behind():
    matcher = Matcher()
    for number in range(1_000):
        matcher.add(number, f"a > {number % 7}", destination=f"client {number}")
        if number >= 5:
            matcher.remove(number - 5)
        if number % 50 == 49:
            agrees(matcher, [{"a": 3}, {"a": 9}])
    assert len(matcher._register.destinations) < 200
    assert matcher.destinations() == [f"client {number}" for number in range(995, 1_000)]


@pytest.mark.parametrize("few", [0.0, 24.0, 1e9], ids=["passed over", "as it is", "listed"])
def test_the_same_destinations_are_reached_whether_matches_are_listed_or_passed_over(few, monkeypatch):
    monkeypatch.setattr("tamis.matching.block.match_rate._LISTED_MATCHES", few)
    monkeypatch.setattr("tamis.matching.block.match_rate._ONE_OF", 7)
    matcher = Matcher()
    rare = {number: f"a = {number}" for number in range(40)}
    matcher.add_many(rare, destinations=[None if n % 5 == 4 else f"d{n % 5}" for n in rare])
    agrees(matcher, [{"a": number % 60} for number in range(130)])
    matcher.add_many(
        {100 + n: f"a >= {n % 3}" for n in range(300)}, destinations=["all" if n else None for n in range(300)]
    )
    agrees(matcher, [{"a": number % 60} for number in range(130)])
    agrees(matcher, [{"a": number % 60} for number in range(130)], among=[1, 4, 100, 101])


def test_a_batch_of_many_matches_is_not_listed_again_once_that_was_seen(monkeypatch):
    from tamis.matching.block.algorithm import BlockSnapshot

    listed = []
    honest = BlockSnapshot._listed
    monkeypatch.setattr(BlockSnapshot, "_listed", lambda self, *given: listed.append(1) or honest(self, *given))
    matcher = Matcher()
    matcher.add_many({n: f"a > {n % 3}" for n in range(200)}, destinations=["north"] * 200)
    rare = [{"a": 0}] * 1_024
    assert matcher.match_destinations_batch(rare).num_rows == 0 and len(listed) == 1
    often = [{"a": 0 if n in (0, 1_023) else 9} for n in range(1_024)]  # the sampled ones are no warning
    assert matcher.match_destinations_batch(often).num_rows == 1_022 and len(listed) == 2
    assert matcher.match_destinations_batch(often).num_rows == 1_022 and len(listed) == 2


def test_more_destinations_than_maps_are_made_of_are_found_too(monkeypatch):
    monkeypatch.setattr("tamis.matching.block.algorithm._MOST_DESTINATIONS", 3)
    matcher = Matcher()
    matcher.add_many({number: f"a > {number}" for number in range(20)}, destinations=[f"d{n % 9}" for n in range(20)])
    agrees(matcher, [{"a": number} for number in range(5)])


@pytest.mark.parametrize(
    ("destinations", "message"),
    [
        (["north"], "2 subscriptions and 1 destinations"),
        ("ab", "not the text 'ab'"),
        ({3: "north"}, "not registered here: 3"),
        ([["a", "list"], None], "hashable"),
    ],
)
def test_destinations_that_fit_no_subscription_are_refused_and_nothing_is_registered(destinations, message):
    matcher = Matcher()
    with pytest.raises(BadTableError, match=message):
        matcher.add_many({1: "a = 1", 2: "a = 2"}, destinations=destinations)
    assert len(matcher) == 0
    assert matcher.destinations() == []


def test_of_rejected_subscriptions_the_destinations_are_left_out_too():
    matcher = Matcher()
    rows = [(1, "a = 1"), (2, "a ="), ((3, []), "a = 1"), (4, "a > 0")]
    rejected = matcher.add_many(rows, destinations=["north", "south", "west", "east"], on_error="skip")
    assert [row.id for row in rejected] == [2, (3, [])]
    assert matcher.match_destinations({"a": 1}) == matcher.destinations() == ["north", "east"]
    assert [row.id for row in matcher.add_many([((5, []), "a = 1")], destinations={}, on_error="skip")] == [(5, [])]


def test_destinations_of_several_types_have_no_column():
    matcher = Matcher()
    matcher.add_many({1: "a = 1", 2: "a = 1"}, destinations=["north", 5])
    assert matcher.match_destinations({"a": 1}) == ["north", 5]
    with pytest.raises(BadTableError, match="destinations of several types"):
        matcher.match_destinations_batch([{"a": 1}])
