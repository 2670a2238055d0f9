"""The tree in which everything goes wrong that can: what is promised holds, and what is broken on purpose is found."""

from __future__ import annotations

import pytest

from tamis.routing import Settlement
from tamis.service import unwanted
from tamis.service.links import frames, talking
from tamis.service.links import neighbours as neighbours_module
from tamis.service.links.neighbours import Neighbours
from tamis.service.links.sessions import LinkSession
from tamis.service.links.talking import Talk
from tamis.service.log.base import LATE, UNWANTED
from tamis.service.messages import Incoming
from tests.lengths import so_many
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


def test_events_of_a_publisher_come_in_order_or_are_marked_also_while_links_resume():
    run(50)  # in which an event came behind later ones, because nobody had wanted it before a broker was started anew


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1_000, 1_000 + so_many(1_000), 20))
def test_what_is_promised_holds_whatever_breaks_for_long(first):
    for seed in range(first, first + 20):
        try:
            run(seed, steps=800)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error


def test_acceptance_14_what_is_unwanted_is_exactly_what_no_subscription_of_the_network_wants():
    for seed in range(104, 134, 5):  # in which subscriptions ask for that
        try:
            run(seed, steps=200)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error


def forgets_neighbours_when_it_judges(monkeypatch):
    def marked(group, sources, interest):
        hits, _ = interest.hits_and_counts([each.record for each in group])
        wanted = {index for of_name in hits.values() for index, _ in of_name}
        return [
            each
            if index in wanted or sources[index]
            else Incoming(each.key, each.body, {**each.record, "unwanted": True}, each.flags | UNWANTED)
            for index, each in enumerate(group)
        ]

    monkeypatch.setattr(unwanted, "marked", marked)


def forgets_the_mark_on_links(monkeypatch):
    monkeypatch.setattr(neighbours_module, "PASSED_ON", LATE)


def sends_what_is_late_without_a_mark(monkeypatch):
    monkeypatch.setattr(talking, "LATE", 0)


def sends_the_newest_first(monkeypatch):
    whole = frames.event_frames

    def event_frames(passed):
        return whole([each._replace(body=other.body) for each, other in zip(passed, passed[::-1], strict=True)])

    monkeypatch.setattr(frames, "event_frames", event_frames)


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
    monkeypatch.setattr(Settlement, "are_settled", lambda self, marks: True)


def settles_when_the_neighbour_has_heard(monkeypatch):
    monkeypatch.setattr(Settlement, "marks", lambda self, besides="": {} if besides else dict(self._told))


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
            deliveries = neighbours_module.InFlight(floor)
            self._take(each.name, each.number, deliveries, each.terms, each.url, now).subscriber.settle(floor)

    monkeypatch.setattr(Neighbours, "_joined", joined)
    monkeypatch.setattr(Neighbours, "restore", restore)


def remembers_no_neighbours(monkeypatch):
    monkeypatch.setattr(Neighbours, "restore", lambda self, kept, floors, head, now: None)


MUTANTS = {
    acknowledges_before_the_disk: 67,
    resumes_one_too_late: 16,
    counts_as_settled_what_is_behind: 0,
    settles_when_the_neighbour_has_heard: 0,
    forwards_back_to_where_it_came_from: 0,
    forgets_the_floor: 2,
    serves_before_it_was_told: 2,
    remembers_no_neighbours: 0,
    sends_what_is_late_without_a_mark: 50,
    sends_the_newest_first: 0,
    forgets_neighbours_when_it_judges: 4,
    forgets_the_mark_on_links: 4,
}
"""Each with the seed that found it first, so that the search is short while it still does."""


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_what_is_broken_on_purpose_is_found(mutant, monkeypatch):
    mutant(monkeypatch)
    for seed in (MUTANTS[mutant], *range(MUTANT_SEEDS)):
        try:
            run(seed)
        except AssertionError:  # of a checker; any other error is the mutant's own
            return
    pytest.fail(f"not found within {MUTANT_SEEDS} seeds")
