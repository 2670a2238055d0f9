"""The experiments on networks run at any size, and their verdicts are those of the measurements."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from pathlib import Path
from random import Random

import numpy as np
import pytest

from tamis.language import parse
from tamis.language.meaning import holds
from tamis.pruning import Goal
from tamis.pruning.cut_off import NEVER
from tamis.relations import identical
from tamis.routing import Broker
from tamis.simulation import TrafficCounters
from tamis.simulation.topologies import names
from tamis_lab.experiments.base import SCALES, Judgement
from tamis_lab.experiments.plots import drawn
from tamis_lab.experiments.routing import (
    EXPERIMENTS,
    filter_times,
    measures,
    overlap,
    simulated,
    true_system,
    way,
)
from tamis_lab.experiments.routing.covered_tables import Covered
from tamis_lab.experiments.routing.overlays import LabOverlay
from tamis_lab.experiments.routing.prunings import FINE, Pruning
from tamis_lab.experiments.routing.sizes import SIZES, sizes_of
from tamis_lab.experiments.routing.stocks import quotes
from tamis_lab.experiments.routing.traffic import SEATS, auctions, conjunctive
from tests.tamis_lab.experiments.scales import TINY, assert_agreed, assert_all_judged, assert_told, claim_of, quiet
from tests.tamis_lab.experiments.test_page import parsed

pytestmark = pytest.mark.xdist_group("lab routing")  # so that one process runs the experiments, once

EXACT = {
    "way": ("flooding-everywhere", "merging-only-interested", "pruned-goes-farther", "same-subscribers"),
    "similarity": ("simple-knows-all", "simple-tells-all", "flooding", "nothing-lost", "same-deliveries"),
    "imperfection": ("fewer-entries", "more-messages"),
    "adaptive": ("stops-where-nearly-all-match", "messages-hardly-rise", "filters-again", "does-not-quarrel"),
    "interest": (
        "saves-less-with-more-interest",
        "all-want-all",
        "one-publisher-entries",
        "one-publisher-messages",
        "anything-from-anywhere",
    ),
    "measures": (
        "gone-after-all (accuracy)",
        "gone-after-all (efficiency)",
        "gone-after-all (memory)",
        "gone-after-all (occurrence)",
    ),
    "conjunctive": ("boolean-gone", "conjunctive-gone", "boolean-entries-smaller", "difference-shrinks"),
    "growing": ("gone-after-all", "load-rises-alike"),
    "brokers": ("lines-alike", "load-of-stars-falls"),
    "covering": ("boolean-bytes", "boolean-bytes-alike", "conjunctions-take-more", "left-by-covering"),
    "both": ("takes-more-of-the-whole", "takes-a-good-part"),
    "overlap": ("none-missed", "none-invented"),
    "advertised": ("overlapping-before",),
    "both sides": ("advertisements-add-fewer",),
}
"""What is counted, not timed, and does not need many subscriptions: it comes out as published at every size."""


@pytest.fixture(scope="module")
def results():
    played = {each.key: each.run(TINY, 1, quiet) for each in EXPERIMENTS if each.key != true_system.EXPERIMENT.key}
    return played | {true_system.EXPERIMENT.key: true_system.result_of(made_up(), 5, 10, 100)}  # it starts processes


def made_up(**of_pruned: float) -> list[dict]:
    """Rows as real brokers might have given them."""
    rows = []
    for system in true_system.SYSTEMS:
        row = {"system": system.name, "entries": {"simple": 40, "covering": 20, "merging": 10}[system.strategy]}
        row |= {"event messages": 40, "computed messages": 40, "ms": 2.0, "processor ms": 1.0, "memory, MB": 500.0}
        row |= {"memory of links, MB": 10.0, "load": 0.1, "computed load": 0.1}
        rows.append(row | (of_pruned if system.pruning else {}))
    return rows


def test_every_experiment_runs_draws_and_judges(results):
    assert_told(results)


def test_every_published_statement_is_judged(results):
    assert_all_judged("routing", results)


@pytest.mark.parametrize("key", EXACT)
def test_what_is_counted_comes_out_as_published_at_every_size(results, key):
    assert_agreed(results[key], EXACT[key])


def test_every_scale_has_sizes_and_every_question_is_asked_once():
    assert SIZES.keys() >= SCALES.keys()
    assert sizes_of(SCALES["full"]).subscriptions == 200_000
    assert sizes_of(SCALES["full"]).brokers[-1] == 100
    keys = [experiment.key for experiment in EXPERIMENTS]
    assert len(set(keys)) == len(keys)
    assert all(experiment.question.endswith("?") for experiment in EXPERIMENTS)


# -- Loads are those of brokers


@pytest.mark.parametrize(("topology", "broker_count"), [("line", 5), ("star", 5), ("random tree", 8)])
@pytest.mark.parametrize("share", [0.0, 0.4, 0.8, 1.0])
def test_simulated_brokers_carry_exactly_the_messages_that_were_computed(topology, broker_count, share):
    traffic = auctions(SIZES["tiny"], seed=3)
    pruning = Pruning(traffic, "accuracy")
    overlay = LabOverlay(topology, broker_count)
    network = simulated.built(topology, broker_count, partial(Broker, strategy="simple"), 1)
    for number, (home, wanted) in enumerate(zip(traffic.homes(broker_count).tolist(), traffic.filters, strict=True)):
        network.subscribe(simulated.client_of(f"b{home}"), number, wanted)
    network.run()
    steps = pruning.steps(share)
    threshold = pruning._ordered.firsts[steps - 1] if steps else -1.0
    steps = int(np.searchsorted(pruning._ordered.firsts, threshold, side="right"))  # brokers take equals together
    for broker in network.brokers.values():
        broker.prune(Goal(threshold=float(threshold)), traffic.share)
    counters = TrafficCounters()
    network.observers.append(counters)
    got = simulated.published(network, traffic.events, names(broker_count))
    seen = overlay.seen(pruning.reached(overlay), steps)
    assert counters.event_count == sum(map(len, seen)) - len(traffic.events)
    assert got == simulated.wanted_by(dict(enumerate(traffic.filters)), traffic.events), "clients get exactly theirs"


def test_the_load_is_the_share_of_other_brokers_that_filter_an_event():
    firsts = np.array([[9, 9], [9, 0], [3, 9]])  # brokers x events
    line = LabOverlay("line", 3)
    reached = line.reached(firsts)
    # from b0: the second event is wanted at b1; the first after 3 prunings, at b2 and so at b1
    assert reached[0].tolist() == [[0, 0], [3, 0], [3, 9]]
    assert line.loads(reached, [0, 3, 9]) == [2 / 12, 5 / 12, 1.0]


@pytest.mark.parametrize("topology", ["line", "star", "balanced tree"])
def test_a_broker_is_reached_through_the_neighbour_on_the_way(topology):
    overlay = LabOverlay(topology, 9)
    for broker in range(9):
        towards = overlay.towards(broker)
        assert towards[broker] == -1
        for other in range(9):
            at = broker
            for _ in range(9):
                if at != other:
                    at = overlay.towards(at)[other]
            assert at == other and (other == broker or towards[other] in overlay.neighbours[broker])


def test_loads_and_reductions_only_grow_and_versions_match_more():
    traffic = auctions(SIZES["tiny"], seed=2, count=40)
    for measure in measures.NAMES:
        pruning = Pruning(traffic, measure)
        loads = pruning.loads(LabOverlay("star", 10))
        assert all(one <= two for one, two in pairwise(loads))
        assert all(one <= two for one, two in pairwise([pruning.reduction(share) for share in FINE]))
        for original, half in zip(traffic.filters, pruning.versions(0.5), strict=True):
            assert all(holds(half, event) for event in traffic.events if holds(original, event))


def test_conjunctions_sit_where_their_subscription_does_and_match_the_same():
    traffic = auctions(SIZES["tiny"], seed=1, count=30)
    parts = conjunctive(traffic)
    assert parts.subscription_count == 30 and set(parts.seats) <= set(traffic.seats) and traffic.seats.max() < SEATS
    for event in traffic.events:
        whole = {seat for seat, each in zip(traffic.seats, traffic.filters, strict=True) if holds(each, event)}
        assert whole == {seat for seat, each in zip(parts.seats, parts.filters, strict=True) if holds(each, event)}


@pytest.mark.parametrize("topology", ["line", "star", "random tree"])
def test_what_crosses_every_link_on_the_way_gets_there(topology):
    overlay, chance = LabOverlay(topology, 7), np.random.default_rng(3)
    firsts = chance.integers(0, 50, (7, 20))
    crossed = {}
    for broker, neighbours in enumerate(overlay.neighbours):
        for neighbour in neighbours:
            behind = np.array(overlay.towards(broker)) == neighbour
            crossed[broker, neighbour] = firsts[behind].min(axis=0)
    assert (overlay.reached_over(crossed) == overlay.reached(firsts)).all()


def test_some_brokers_stand_for_those_like_them(monkeypatch):
    monkeypatch.setattr(filter_times, "broker_s", lambda name, traffic, ready, rows, *given: 0.5 * len(rows))
    traffic = auctions(SIZES["tiny"], seed=1)
    pruning, line = Pruning(traffic, "accuracy"), LabOverlay("line", 9)
    assert line.alike() == [[0, 8], [1, 2, 3, 4, 5, 6, 7]]
    all_of_them, some = (filter_times.network_s("boolean", pruning, 0.8, line, TINY, timed=each) for each in (None, 2))
    seen = line.seen(pruning.reached(line), pruning.steps(0.8))
    assert all_of_them == pytest.approx(0.5 * sum(map(len, seen)) / len(traffic.events))
    assert some == pytest.approx(all_of_them)


# -- Covering


def test_covering_keeps_what_covering_brokers_keep_and_changes_no_way():
    parts = conjunctive(auctions(SIZES["tiny"], seed=5, count=12))
    overlay = LabOverlay("random tree", 5)
    covered = Covered(parts, overlay, "occurrence")
    network = simulated.built("random tree", 5, partial(Broker, strategy="covering"), 1)
    for number, (home, wanted) in enumerate(zip(parts.homes(5).tolist(), parts.filters, strict=True)):
        network.subscribe(simulated.client_of(f"b{home}"), number, wanted)
        network.run()
    for (broker, neighbour), filters in covered.kept.items():
        told = list(network.brokers[f"b{broker}"].table.of(f"b{neighbour}").values())
        assert len(told) == len(filters)
        assert all(any(identical(one, two, parts.schema) for two in told) for one in filters)
    without = Pruning(parts, "occurrence")
    assert ((covered.reached() == 0) == (without.reached(overlay) == 0)).all(), "the same events go the same ways"
    assert covered.load(0.0) == without.loads(overlay, [0.0])[0]


def test_pruning_after_covering_lets_only_more_through():
    covered = Covered(conjunctive(auctions(SIZES["tiny"], seed=2, count=40)), LabOverlay("line", 4), "accuracy")
    assert covered.versions(0.0) == covered.kept
    loads = [covered.load(share) for share in (0.0, 0.3, 0.6, 1.0)]
    assert loads == sorted(loads) and covered.reached().max() <= NEVER
    some = covered.versions(0.7)
    for link, filters in covered.kept.items():
        for original, pruned in zip(filters, some[link], strict=True):
            assert all(holds(pruned, event) for event in covered.traffic.events if holds(original, event))


def test_the_shortcut_is_taken_where_there_are_destinations():
    traffic = auctions(SIZES["tiny"], seed=1)
    ready = {name: filter_times.prepared(name, traffic, traffic.filters) for name in ("boolean", "counting")}
    subject = filter_times.registered("boolean", traffic, ready["boolean"])
    assert filter_times.matching(subject).__name__ == "match_events"
    assert filter_times.matching(subject, [0] * len(traffic.filters)).func.__name__ == "reach_events"
    counting = filter_times.registered("counting", traffic, ready["counting"])
    assert filter_times.matching(counting, [0] * len(traffic.filters)).__name__ == "match_events"


# -- The event's way


def test_every_stop_of_the_event_follows_from_the_table_that_was_asked():
    for name in way.STRATEGIES:
        found = way.way(name)
        assert found.stops[0].broker == way.PUBLISHER and found.stops[0].source is None
        assert {stop.broker for stop in found.stops[1:]} == {each for stop in found.stops for each in stop.sent}
        for stop in found.stops:
            wanting = {peer for peer, filters in stop.asked if any(is_match for _, is_match in filters)}
            assert wanting == {*stop.sent, *stop.delivered}


def test_the_way_reads_without_scripts_and_needs_nothing_from_outside():
    (picture,) = way.run(TINY, 1, quiet).plots
    page = parsed(drawn(picture))
    text = " ".join(" ".join(page.texts).split())
    assert page.links == []
    for name in way.STRATEGIES:
        for stop in way.way(name).stops:
            assert f"{stop.broker} gets the event" in text
    assert "b1 gets everything." in text and "TRUE" not in text
    assert "it came in vain" in text and "It delivers to ann" in text
    assert "prefers-reduced-motion" in text and 'class="buttons" hidden' in picture.markup


def test_the_fewer_shares_the_more_alike():
    def distinct(share_count):
        return len(set(quotes(200, 0, share_count, seed=1)[0]))

    assert distinct(300) > distinct(30) > distinct(3)
    filters, events = quotes(5, 3, 2, seed=Random(1).randrange(9))
    assert all(isinstance(parse(str(each)), type(each)) for each in filters) and len(events) == 3


def test_if_more_shares_are_traded_than_subscribed_to_few_events_are_wanted():
    few, some = (quotes(60, 300, 20, seed=1, traded_count=traded) for traded in (0, 160))
    assert few[0] == some[0]
    shares = [
        sum(any(holds(each, event) for each in filters) for event in events) / 300 for filters, events in (few, some)
    ]
    assert shares[0] > 0.5 and 0.05 <= shares[1] <= 0.2


def test_imperfect_merging_is_judged_on_a_load_of_which_few_events_are_wanted(results):
    for row in results["imperfection"].rows:
        assert 0.05 <= row["wanted by somebody"] <= 0.2


def test_a_conjunctive_system_decides_each_conjunction_and_the_one_beside_it_stops_at_the_first(monkeypatch):
    known = overlap.Advertised([parse("price < 10 OR sold"), parse("price > 50")], None, is_conjunctive=True)
    asked, decide = [], known.index.overlaps_any
    monkeypatch.setattr(known.index, "overlaps_any", lambda each: asked.append(str(each)) or decide(each))
    for text in (
        "price > 60 OR price = 20 AND NOT sold OR price = 5",
        "price = 20 AND NOT sold OR price = 30 AND NOT sold",
    ):
        conjunctions = known.asked(parse(text))
        answers = []
        for decides, count in (
            (known.overlaps_any, len(conjunctions)),
            (known.overlaps_first, known.asked_count(conjunctions)),
        ):
            asked.clear()
            answers.append(decides(conjunctions))
            assert asked == [str(each) for each in conjunctions[:count]]
        assert answers[0] is answers[1] is bool(known.overlapping(conjunctions))


def test_only_one_module_says_how_many_books_are_signed():
    for path in Path(overlap.__file__).parents[1].rglob("*.py"):
        if path.name != "books.py":
            assert "Auction(" not in path.read_text("utf-8"), path


# -- Real brokers


def test_real_brokers_are_judged_by_what_they_sent_and_took():
    claims = true_system.result_of(made_up(ms=1.0, **{"processor ms": 2.0, "load": 0.3}), 5, 10, 100).claims
    verdicts = {claim.key: claim.verdict for claim in claims}
    assert verdicts["as-computed"] is verdicts["pruned-elapsed"] is Judgement.AGREES
    assert verdicts["pruned-processors"] is verdicts["load-hardly-rises"] is Judgement.TURNED
    assert verdicts["pruned-memory"] is Judgement.SAME
    rows = made_up()
    rows[1]["event messages"] += 1  # covering lets one through that is not wanted
    (computed, *_) = true_system.result_of(rows, 5, 10, 100).claims
    assert computed.verdict is Judgement.DIRECTION and "41 of 40" in computed.ours


def test_what_is_computed_for_a_line_of_processes_is_what_simulated_brokers_send():
    traffic = auctions(SIZES["tiny"], seed=3)
    network = simulated.built("line", 3, partial(Broker, strategy="covering"), 1)
    for number, (home, wanted) in enumerate(zip(traffic.homes(3).tolist(), traffic.filters, strict=True)):
        network.subscribe(simulated.client_of(f"b{home}"), number, wanted)
    network.run()
    counters = TrafficCounters()
    network.observers.append(counters)
    simulated.published(network, traffic.events, names(3))
    assert counters.event_count == true_system.computed_messages(traffic, 3, 0.0)


@pytest.mark.slow
def test_real_brokers_send_what_was_computed():
    result = true_system.run(TINY, 1, quiet)
    assert claim_of(result.claims, "as-computed").verdict is Judgement.AGREES
    assert len(result.rows) == len(true_system.SYSTEMS)
    assert all(row["ms"] > 0 and row["processor ms"] > 0 and row["memory, MB"] > 50 for row in result.rows)


def test_links_that_stop_filtering_save_decisions_and_lose_nothing(results):
    *rows, changing = results["adaptive"].rows
    assert all(row["decisions"] <= row["decisions without"] for row in rows)
    assert all(row["event messages"] >= row["messages without"] for row in rows)
    assert rows[-1]["first link filters"] is False and rows[0]["first link filters"] is True
    assert changing["switches"] > 0 and changing["in vain at first"] > 0
