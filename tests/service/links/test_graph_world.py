"""The graph in which everything goes wrong that can: what is promised holds, and what is broken on purpose is found."""

from __future__ import annotations

import pytest

from tamis.service import catching_up
from tamis.service import node as node_module
from tamis.service.links.agreement import Agreement
from tamis.service.links.graph_neighbours import GraphNeighbours
from tamis.service.links.requests import Relay
from tests.lengths import so_many
from tests.service.links.graph_world import GraphSite, GraphWorld, run

SEEDS = 10
MUTANT_SEEDS = 200


def checked(seed: int, steps: int = 400) -> GraphWorld:
    try:
        return run(seed, steps=steps)
    except AssertionError as error:
        raise AssertionError(f"seed {seed}: {error}") from error


@pytest.mark.parametrize("first", range(0, SEEDS, 5))
def test_what_is_promised_holds_in_a_graph_whatever_breaks(first):
    for seed in range(first, first + 5):
        checked(seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1_000, 1_000 + so_many(2_000), 20))
def test_what_is_promised_holds_in_a_graph_whatever_breaks_for_long(first):
    for seed in range(first, first + 20):
        checked(seed, steps=800)


def drops_the_backlog_when_a_link_leaves_the_tree(monkeypatch):
    def leave(self, neighbour, now):
        if neighbour.name in self._agreement.overlay.reachable:
            return self._let_go(neighbour, now)
        return []

    monkeypatch.setattr(GraphNeighbours, "_leave", leave)


def lets_go_before_the_new_way_is_settled(monkeypatch):
    monkeypatch.setattr(GraphNeighbours, "_is_settled_here", lambda self, tree: bool(tree))


def carries_before_both_name_the_same_tree(monkeypatch):
    monkeypatch.setattr(
        Agreement, "carries", lambda self, neighbour: neighbour in self._heard and neighbour in self.neighbours
    )
    monkeypatch.setattr(Agreement, "turns", lambda self, neighbour: (1, 1 if neighbour in self._heard else 0))


def stops_a_rerouted_event_where_it_is_known(monkeypatch):
    monkeypatch.setattr(node_module, "is_rerouted", lambda flags: False)


def gives_clients_what_is_rerouted(monkeypatch):
    whole = node_module.Node._found

    def found(self, *more, **others):
        with monkeypatch.context() as here:
            here.setattr(node_module, "is_rerouted", lambda flags: False)
            return whole(self, *more, **others)

    monkeypatch.setattr(node_module.Node, "_found", found)
    monkeypatch.setattr(catching_up, "is_rerouted", lambda flags: False)


def says_that_it_is_complete_before_it_has_sent_all(monkeypatch):
    def is_through(self, subscriber, position):
        return True

    monkeypatch.setattr(GraphNeighbours, "_is_through", is_through)


def does_not_wait_for_those_behind(monkeypatch):
    monkeypatch.setattr(Agreement, "is_complete", lambda self, neighbour: self.carries(neighbour))


def forgets_who_was_used(monkeypatch):
    whole = GraphNeighbours.restore

    def restore(self, kept, floors, head, now):
        whole(self, kept, (), head, now)

    monkeypatch.setattr(GraphNeighbours, "restore", restore)


def hears_that_all_was_sent_before_the_last_events(monkeypatch):
    whole_hear, whole_steps, whole_step = GraphSite.hear, GraphSite.steps, GraphSite.step

    def lane(site):
        return site.__dict__.setdefault("lane", [])

    def hear(self, session, request, *principal):
        if isinstance(request, Relay):
            lane(self).append((self.lives, session, request))
        else:
            whole_hear(self, session, request, *principal)

    def steps(self):
        self.lane = [each for each in lane(self) if each[0] == self.lives and self.node is not None]
        return whole_steps(self) or [("lane", None)] * bool(self.lane)

    def step(self, kind, end, chance):
        if kind == "lane":
            _, session, request = self.lane.pop(0)
            whole_hear(self, session, request)
        else:
            whole_step(self, kind, end, chance)

    for replacement in (hear, steps, step):
        monkeypatch.setattr(GraphSite, replacement.__name__, replacement)


MUTANTS = {
    drops_the_backlog_when_a_link_leaves_the_tree: 17,
    lets_go_before_the_new_way_is_settled: 1,
    carries_before_both_name_the_same_tree: 0,
    stops_a_rerouted_event_where_it_is_known: 8,
    gives_clients_what_is_rerouted: 0,
    says_that_it_is_complete_before_it_has_sent_all: 8,
    does_not_wait_for_those_behind: 15,
    forgets_who_was_used: 0,
    hears_that_all_was_sent_before_the_last_events: 15,
}
"""Each with the seed that found it first, so that the search is short while it still does."""


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_what_is_broken_on_purpose_in_a_graph_is_found(mutant, monkeypatch):
    mutant(monkeypatch)
    for seed in (MUTANTS[mutant], *range(MUTANT_SEEDS)):
        try:
            run(seed)
        except AssertionError:  # of a checker; any other error is the mutant's own
            return
    pytest.fail(f"not found within {MUTANT_SEEDS} seeds")
