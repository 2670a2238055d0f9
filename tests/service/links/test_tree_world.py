"""The tree in which everything goes wrong that can: what is promised holds, and what is broken on purpose is found."""

from __future__ import annotations

import pytest

from tamis.service.links import neighbours as neighbours_module
from tamis.service.links.neighbours import Neighbours
from tamis.service.links.sessions import LinkSession
from tamis.service.links.settling import LinkSettling
from tamis.service.links.talking import Talk
from tests.service.links.world import run

SEEDS = 20
MUTANT_SEEDS = 500


@pytest.mark.parametrize("first", range(0, SEEDS, 10))
def test_what_is_promised_holds_whatever_breaks(first):
    for seed in range(first, first + 10):
        try:
            run(seed)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1_000, 5_000, 200))
def test_what_is_promised_holds_whatever_breaks_for_long(first):
    for seed in range(first, first + 200):
        try:
            run(seed, steps=800)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error


def acknowledges_before_the_disk(monkeypatch):
    whole = Talk._relayed

    def relayed(self, events):
        request = whole(self, events)
        self._on_disk(request.request)
        return request

    monkeypatch.setattr(Talk, "_relayed", relayed)


def resumes_one_too_late(monkeypatch):
    whole = LinkSession.meet

    def meet(self, join):
        goes_on = whole(self, join)
        if goes_on and self._waiting:
            self._sent_through += 1
            self._waiting.popleft()
        return goes_on

    monkeypatch.setattr(LinkSession, "meet", meet)


def counts_as_settled_what_is_behind(monkeypatch):
    monkeypatch.setattr(LinkSettling, "are_settled", lambda self, marks: True)


def settles_when_the_neighbour_has_heard(monkeypatch):
    monkeypatch.setattr(LinkSettling, "marks", lambda self, besides="": {} if besides else dict(self._told))


def forwards_back_to_where_it_came_from(monkeypatch):
    whole = Neighbours._onward

    def onward(self, wanted, sources, only, records, now):
        return whole(self, wanted, [""] * len(sources), only, records, now)

    monkeypatch.setattr(Neighbours, "_onward", onward)


def forgets_the_floor(monkeypatch):
    whole = Neighbours.restore

    def restore(self, kept, floors, head, now):
        whole(self, kept, (), head, now)

    monkeypatch.setattr(Neighbours, "restore", restore)


def serves_before_it_was_told(monkeypatch):
    whole = Neighbours._joined

    def joined(self, neighbour, join, now):
        outputs = whole(self, neighbour, join, now)
        if neighbour.is_joined and neighbour.awaits_hello:
            neighbour.awaits_hello = False
            outputs += self._serve(neighbour, now)
        return outputs

    def restore(self, kept, floors, head, now):
        by_name = {each.name: each for each in floors}
        for each in kept:  # and nothing is assumed of what it wants
            floor = by_name[neighbours_module.LINK_SUBSCRIBER + each.name].floor
            deliveries = neighbours_module.Deliveries(floor)
            self._take(each.name, each.number, deliveries, each.terms, each.url, now).subscriber.settle(floor)

    monkeypatch.setattr(Neighbours, "_joined", joined)
    monkeypatch.setattr(Neighbours, "restore", restore)


def remembers_no_neighbours(monkeypatch):
    monkeypatch.setattr(Neighbours, "restore", lambda self, kept, floors, head, now: None)


MUTANTS = (
    acknowledges_before_the_disk,
    resumes_one_too_late,
    counts_as_settled_what_is_behind,
    settles_when_the_neighbour_has_heard,
    forwards_back_to_where_it_came_from,
    forgets_the_floor,
    serves_before_it_was_told,
    remembers_no_neighbours,
)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_what_is_broken_on_purpose_is_found(mutant, monkeypatch):
    mutant(monkeypatch)
    for seed in range(MUTANT_SEEDS):
        try:
            run(seed)
        except Exception:
            return
    pytest.fail(f"not found within {MUTANT_SEEDS} seeds")
