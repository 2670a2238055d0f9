"""Clusters of filters that come and go: nothing is lost, nothing is told in vain, and a departure costs what it must."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from tamis.language.expressions import And
from tamis.language.ranges.value_sets import is_disjoint, union
from tamis.relations import identical
from tamis.relations.forms import context_of
from tamis.relations.imperfection import BySample, imperfection_of_two, share_within
from tamis.relations.merging import mergers, united
from tamis.relations.parts import Conjunct
from tamis.relations.samples import EventSample
from tamis.routing import STRATEGIES, ImperfectMerging, Merging, Subscribe, decode, encode, strategy_of
from tamis.routing import mergers as mergers_module
from tamis.routing.members import Members
from tests.routing.test_strategies import FILTERS, fed

NAMES = "abcd"
PLACES = st.builds(
    "name IN ({}) AND x BETWEEN {} AND {}".format,
    st.sets(st.sampled_from(NAMES), min_size=1).map(lambda names: ", ".join(f"'{each}'" for each in sorted(names))),
    st.integers(0, 3),
    st.integers(2, 5),
)
THREE_TERMS = st.builds("{} AND y = {}".format, PLACES, st.integers(0, 1))
BOXES = st.one_of(PLACES, THREE_TERMS).map(tamis.parse)
STEPS = st.lists(st.tuples(st.integers(0, 9), st.one_of(BOXES, BOXES, BOXES, FILTERS)), max_size=40)
WORLD = [
    {"name": name, "x": x, "y": y}
    for name, x, y in itertools.product([*NAMES, None], [*range(6), None], [0, 1, 3, None])
]


def matched(filters):
    return [any(tamis.holds(each, event) for each in filters) for event in WORLD]


def clusters_of(summary):
    return summary._clusters.values()


def assert_clusters_are_sound(summary, is_perfect):
    for cluster in clusters_of(summary):
        told = matched([summary._entries[cluster.key]])
        meant = matched([member.form.expression for member in cluster.members])
        assert cluster.members, "a cluster that stands for nobody"
        assert all(cluster in member.clusters for member in cluster.members)
        if is_perfect:
            assert all(mean or not tell for tell, mean in zip(told, meant, strict=True)), "told in vain"
    for member in summary._by_formula.values():
        assert member.is_spread or len(member.clusters) == 1, "no newcomer would find it"
        wanted = matched([member.form.expression])
        told = matched([summary._entries[cluster.key] for cluster in member.clusters])
        assert all(tell or not want for want, tell in zip(wanted, told, strict=True)), "lost"


@pytest.fixture(params=[32, 2], ids=["pairs", "index"], scope="module")
def few(request):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mergers_module, "_COMPARED_ONE_BY_ONE", request.param)
        yield


@given(steps=STEPS)
@settings(max_examples=150)
def test_every_filter_lies_in_its_clusters_and_every_cluster_in_its_filters(few, steps):
    summary = Merging().summary()
    wanted, known = fed(summary, steps)
    assert_clusters_are_sound(summary, is_perfect=True)
    assert matched(known) == matched(wanted.values())


@given(steps=STEPS, budget=st.sampled_from([0.05, 0.2, 0.5]))
@settings(max_examples=100)
def test_imperfect_clusters_lose_nothing_and_keep_to_their_budget(few, steps, budget):
    summary = ImperfectMerging(budget=budget).summary()
    wanted, known = fed(summary, steps)
    assert_clusters_are_sound(summary, is_perfect=False)
    assert all(cluster.imperfection <= budget for cluster in clusters_of(summary))
    assert all(tell or not want for want, tell in zip(matched(wanted.values()), matched(known), strict=True))


@given(steps=STEPS, budget=st.sampled_from([0.1, 0.2, 0.5]))
@settings(max_examples=100)
def test_with_a_share_that_is_right_no_merger_matches_more_in_vain_than_the_budget_allows(few, steps, budget):
    summary = ImperfectMerging(budget=budget, share=share).summary()
    fed(summary, steps)
    assert_clusters_are_sound(summary, is_perfect=False)
    for cluster in clusters_of(summary):
        told = matched([summary._entries[cluster.key]])
        meant = matched([member.form.expression for member in cluster.members])
        vain = sum(tell and not mean for tell, mean in zip(told, meant, strict=True))
        assert vain <= budget * sum(told) + 1e-9


def test_a_merger_does_not_become_longer_than_can_be_told_again_and_again(monkeypatch):
    monkeypatch.setattr(mergers_module, "_LONGEST", 120)
    for strategy in (Merging(), ImperfectMerging(budget=0.5)):
        summary = strategy.summary()
        for number in range(60):
            summary.add(number, tamis.parse(f"name = 'n{number:02}' AND x < 9"))
        told = [str(entry.filter) for entry in summary.entries]
        assert len(told) == 6 and max(map(len, told)) <= 120
        assert sum(text.count("'n") for text in told) == 60
        for number in range(60):
            summary.remove(number)
        assert len(summary) == 0


def test_filters_at_the_limit_of_the_language_are_told_as_they_are():
    values = [", ".join(f"'{letter}{number:06}'" for number in range(60_000)) for letter in "ab"]
    summary = Merging().summary()
    for source, each in enumerate(values):
        summary.add(source, tamis.parse(f"name IN ({each})"))
    message = Subscribe(summary.changes().added)
    assert len(message.entries) == 2 and decode(encode(message)) == message


def summary_of(*texts, strategy=None):
    summary = (strategy or Merging()).summary()
    for source, text in enumerate(texts):
        summary.add(source, tamis.parse(text))
    summary.changes()
    return summary


def said(changes):
    return sorted(str(entry.filter) for entry in changes.added)


def test_what_nobody_wants_any_more_is_cut_off_and_the_merger_stays_beside_it():
    summary = summary_of(*(f"name = '{name}' AND x < 9" for name in "abcdefgh"))
    assert len(summary) == 1
    summary.remove(3)
    assert said(summary.changes()) == ["name IN ('a', 'b', 'c', 'e', 'f', 'g', 'h') AND x < 9"]


def test_a_filter_that_reaches_into_what_is_cut_off_keeps_its_place_there():
    summary = summary_of("name = 'a' AND x < 9", "name = 'b' AND x < 9", "name IN ('a', 'b') AND x < 3")
    assert len(summary) == 1
    summary.remove(1)
    assert said(summary.changes()) == ["name = 'a' AND x < 9", "name = 'b' AND x < 3"]
    summary.remove(2)
    assert said(summary.changes()) == [] and [str(entry.filter) for entry in summary.entries] == [
        "name = 'a' AND x < 9"
    ]


def test_slices_of_others_add_up_to_what_left_and_nothing_is_told():
    summary = summary_of("name IN ('a', 'b') AND x < 9", "name = 'a' AND x < 9", "name IN ('b', 'c') AND x < 9")
    summary.remove(0)
    assert not summary.changes()


def test_a_departure_looks_at_its_neighbourhood_only(monkeypatch):
    texts = [f"name = 'n{number % 50}' AND x < {10 + number % 7}" for number in range(350)]
    summary = summary_of(*texts)
    placed = []
    place = type(summary)._place

    def noted(self, cluster, expression, **options):
        placed.append(expression)
        place(self, cluster, expression, **options)

    monkeypatch.setattr(type(summary), "_place", noted)
    broadest = texts.index("name = 'n3' AND x < 16")
    summary.remove(broadest)
    assert 0 < len(placed) <= 8, "more than what is left of one name was placed anew"


def test_a_budget_may_keep_what_is_lost():
    texts = [f"name = '{name}' AND x < 9" for name in "abcdefgh"]
    perfect, imperfect = summary_of(*texts), summary_of(*texts, strategy=ImperfectMerging(budget=0.2))
    perfect.remove(3)
    imperfect.remove(3)
    assert said(perfect.changes()) == ["name IN ('a', 'b', 'c', 'e', 'f', 'g', 'h') AND x < 9"]
    (kept,) = imperfect.changes().added
    assert str(kept.filter) == "name IN ('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h') AND x < 9"
    assert kept.imperfection == pytest.approx(0.15), "an eighth, and room for more"
    imperfect.remove(4)
    (cut,) = imperfect.changes().added
    assert "'d'" not in str(cut.filter) or "'e'" not in str(cut.filter), "two of eight are more than a fifth"


def test_departures_within_what_was_told_are_told_nothing_of():
    texts = [f"name = 'n{number}' AND x < 9" for number in range(40)]
    summary = summary_of(*texts, strategy=ImperfectMerging(budget=0.4))
    told = 0
    for number in range(15):
        summary.remove(number)
        told += bool(summary.changes())
    assert told == 4, "in steps of a tenth"
    assert [entry.imperfection for entry in summary.entries] == [pytest.approx(0.4)]


def share(expression):
    return sum(matched([expression])) / len(WORLD)


INSIDE = st.tuples(BOXES, st.sampled_from(["x > 2", "x < 4", "name IN ('a', 'b')", "TRUE"]))
IMPERFECT_STEPS = st.lists(st.tuples(st.integers(0, 9), INSIDE), max_size=40)


@given(steps=IMPERFECT_STEPS, name=st.sampled_from(list(STRATEGIES)), budget=st.sampled_from([0.1, 0.3, 0.5]))
@settings(max_examples=150)
def test_what_is_told_of_a_filter_s_imperfection_holds_for_what_came_from_neighbours_too(steps, name, budget):
    strategy = ImperfectMerging(budget=budget, share=share) if name == ImperfectMerging.name else strategy_of(name)
    summary = strategy.summary()
    neighbour = {entry.key: entry for entry in summary.changes().added}
    really: dict = {}
    for source, (filter_, wanted) in steps:
        if source in really:
            summary.remove(source)
            del really[source]
        else:
            meant = And((filter_, tamis.parse(wanted)))
            imperfection = 1 - share(meant) / share(filter_) if share(filter_) else 0.0
            really[source] = filter_, meant, imperfection
            summary.add(source, filter_, imperfection)
        changes = summary.changes()
        neighbour |= {entry.key: entry for entry in changes.added}
        for key in changes.removed:
            del neighbour[key]
    assert list(neighbour.values()) == list(summary.entries)
    everything = matched([meant for _, meant, _ in really.values()])
    for entry in neighbour.values():
        told = matched([entry.filter])
        vain = sum(tell and not want for tell, want in zip(told, everything, strict=True))
        assert vain <= entry.imperfection * sum(told) + 1e-9, "more is in vain than was told"
        if name == ImperfectMerging.name:
            assert entry.imperfection <= max([budget, *(each for _, _, each in really.values())]) + 1e-9
        if name in ("simple", "identity", "covering"):
            assert entry.imperfection in {each for _, _, each in really.values()}


@given(one=BOXES, two=BOXES)
def test_two_filters_are_united_as_all_mergers_would(one, two):
    form = context_of(None).form
    found = united(form(one), form(two))
    together = mergers([one, two])
    if found is not None:
        assert len(together) == 1 and identical(found, together[0].expression)
    elif len(together) == 1:
        assert identical(together[0].expression, one) or identical(together[0].expression, two), "one covers the other"


@given(one=BOXES, two=BOXES)
def test_the_imperfection_of_two_is_what_drawing_comes_to(one, two):
    context = context_of(None)
    forms = [context.form(one), context.form(two)]
    boxes = [form.box for form in forms]
    if any(box is None for box in boxes):
        return
    around = {axis: union(values, boxes[1][axis]) for axis, values in boxes[0].items() if axis in boxes[1]}
    part = Conjunct({axis: values for axis, values in around.items() if values != axis.values}, {}, (0, 1))
    computed = BySample(forms, context, EventSample((), None))._computed(part, boxes)
    assert imperfection_of_two(*boxes) == pytest.approx(computed)
    assert 0 <= share_within(boxes[0], {}) <= 1 == share_within(boxes[0], boxes[0])


@given(filters=st.lists(st.one_of(BOXES, FILTERS), max_size=12), asked=BOXES, gone=st.sets(st.integers(0, 11)))
def test_everything_that_meets_a_place_is_found(filters, asked, gone):
    form = context_of(None).form
    members = Members()
    for number, each in enumerate(filters):
        members.add(number, form(each).hull)
    living = [number for number in range(len(filters)) if number not in gone]
    for number in gone & set(range(len(filters))):
        members.remove(number, form(filters[number]).hull)
    found, place = members.meeting(form(asked).hull), form(asked).hull
    assert len(found) == len(set(found)) and set(found) <= set(living)
    for number in living:
        hull = form(filters[number]).hull
        if all(not is_disjoint(values, place.get(axis, axis.values)) for axis, values in hull.items()):
            assert number in found


def test_a_member_that_wants_no_value_at_all_is_taken_out_after_its_neighbours():
    axis = next(iter(context_of(None).form("x = 1").hull))
    one, nothing = {axis: context_of(None).form("x = 1").hull[axis]}, {axis: ()}
    members = Members()
    members.add("nothing", nothing)
    members.add("one", one)
    assert members.meeting(one) == ["one"]
    members.remove("one", one)
    members.remove("nothing", nothing)
    assert members.meeting(one) == []
