"""The experiments on networks without a centre judge what they claim, and count what peers send."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest

import tamis
from tamis.routing.distributed import RankingSettings
from tamis.routing.dzalaps import CellGrid, Space, Zones
from tamis.simulation.peers import PeerNetwork
from tamis.topk import Ranked
from tamis.topk.settings import TopKSettings
from tamis_lab.experiments.base import Judgement
from tamis_lab.experiments.distributed import EXPERIMENTS, windows
from tamis_lab.experiments.distributed.counting import THESIS, Convention, RankingChoice, count_boolean, count_ranked
from tamis_lab.experiments.distributed.sizes import SIZES
from tamis_lab.experiments.distributed.worlds import BOOLEAN, RAPF, counted
from tests.tamis_lab.experiments.scales import TINY, assert_all_judged, assert_told, quiet

RANKINGS = {
    "PA": RankingChoice("probabilistic", TopKSettings(), 2, 30),
    "RAPF": RankingChoice("relaxed", TopKSettings(filter="probabilistic", buffer=6), 2, 30, 6),
    "SASF": RankingChoice("strict", TopKSettings(filter="strict", buffer=6), 2, 30, 6),
    "RARF": RankingChoice("relaxed", TopKSettings(filter="relaxed", buffer=6), 2, 30, 6),
}


@pytest.mark.parametrize("name", [*RANKINGS, "Boolean"])
@pytest.mark.parametrize("convention", [Convention("clip"), THESIS], ids=lambda each: each.border)
def test_what_is_counted_is_what_simulated_peers_send(name, convention):
    chance, grid, warm_up = Random(3), CellGrid(2, 5), 40
    points = [(f"P{number}", (chance.random(), chance.random())) for number in range(6)]
    centres = np.array([[chance.random(), chance.random()] for _ in range(8)])
    events = np.array([[chance.random(), chance.random()] for _ in range(160)])
    zones = Zones.joined(points, 2)
    if name == "Boolean":
        warm_up = 0
        expected = count_boolean(zones, grid, centres, 0.2, events, convention)
        settings = RankingSettings()
    else:
        ranking = RANKINGS[name]
        expected = count_ranked(zones, grid, centres, ranking, events, warm_up, convention)
        settings = RankingSettings(ranking.algorithm, ranking.settings, ranking.buffer, is_numbered=True)
    network = PeerNetwork(
        points, Space(("x", "y"), 5), Random(1), delays_s=(0.0, 0.0), numbers=True,
        settings=settings, border=convention.border, counts_own=convention.counts_own,
    )  # fmt: skip
    for number, (x, y) in enumerate(centres.tolist()):
        network.attach(f"c{number}", f"P{number % 6}")
        near = f"euclidean(array(x, y), array({x!r}, {y!r}))"
        best = f"TOP 2 BY {near} OVER 30 EVENTS"
        network.subscribe(f"c{number}", 1, tamis.parse(f"{near} <= 0.2D") if name == "Boolean" else Ranked.parse(best))
        network.run()
    for number, (x, y) in enumerate(events.tolist()):
        if number == warm_up:
            for peer in network.peers.values():
                peer.tally.clear()
        network.now += 1.0
        network.publish("c0", number, {"x": x, "y": y})
        network.run()
    sent = {kind: sum(peer.tally[kind] for peer in network.peers.values()) for kind in ("interested", "interest")}
    assert sent == {"interested": expected.interested, "interest": expected.interest}
    assert network.delivered_count >= expected.owner > 0


def test_the_published_boolean_total_comes_out_with_the_conventions_that_are_named():
    """3,865,667 messages for a million events; 64 peers fewer or more change it by some percent."""
    sizes = replace(SIZES["full"], boolean_events=20_000)
    totals = {
        convention: (counts.total - 400) / counts.rendezvous
        for convention in (Convention("clip"), Convention("clip", True), Convention("wrap"), THESIS)
        for counts in [counted(BOOLEAN, sizes, 1, convention=convention)]
    }
    assert min(totals, key=lambda convention: abs(totals[convention] - 3.866)) == THESIS
    assert totals[THESIS] == pytest.approx(3.866, rel=0.1)


def test_at_the_default_size_mergers_of_rapf_move_and_do_not_reach_all_of_space():
    """Otherwise all that is said of RAPF is said of a system where everything interests everybody."""
    sizes = replace(SIZES["default"], events=150, warm_up=1_500)
    for k in (sizes.ks[1], sizes.ks[-1]):
        counts = counted(RAPF, sizes, 1, k=k)
        assert counts.interest > 0 and counts.interested < 0.8 * 2 * sizes.peers * counts.rendezvous


def test_what_is_said_of_rapf_is_not_judged_where_its_mergers_never_move():
    sizes = replace(SIZES["tiny"], subscriptions=60, buffer=6, window=40, events=60, warm_up=60, boolean_events=60)
    result = windows.run_of(sizes, 1, quiet)
    assert all(row["interest"] == 0 for row in result.rows if row["algorithm"] == RAPF)
    verdicts = {claim.statement: claim.verdict for claim in result.claims}
    said = [statement for statement in verdicts if "RAPF" in statement]
    assert len(said) == 3, said
    assert all(verdicts[each] is Judgement.PREMISE for each in said)


def test_every_experiment_runs_draws_and_judges_every_published_statement():
    results = {experiment.key: experiment.run(TINY, 1, quiet) for experiment in EXPERIMENTS}
    assert_told(results)
    assert_all_judged("distributed", results)
