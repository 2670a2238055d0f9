"""What remembers earlier events lives at home and takes events from everywhere, with every strategy, whatever breaks."""

from __future__ import annotations

import dataclasses

import pytest

from tamis.service import subscribers
from tamis.service.links.talking import Talk
from tamis.service.standing import StandingHost
from tamis.standing import Change, Sequence
from tests.lengths import so_many
from tests.service.links.remembering_tree import CONDITIONS, run_remembering

STRATEGIES = ("flooding", "simple", "identity", "covering", "merging", "imperfect merging")


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_what_remembers_is_told_by_its_home_what_the_definition_tells_of_all_acknowledged_events(strategy):
    for seed in (0, 1):
        run_remembering(seed, strategy, steps=150)


@pytest.mark.slow
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("first", range(100, 100 + so_many(200), 10))
def test_what_remembers_is_told_by_its_home_what_the_definition_tells_often(strategy, first):
    for seed in range(first, first + 10):
        try:
            run_remembering(seed, strategy, steps=500)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error


def test_the_worlds_have_what_they_are_for():
    worlds = [run_remembering(seed, "covering", steps=150) for seed in (2, 3)]
    readers = [reader for world in worlds for reader in world.readers]
    told = [row for reader in readers for by_key in reader.told.values() for rows in by_key.values() for row in rows]
    assert any(row is not None and len(row[0]) == 2 for row in told)  # a sequence
    assert any(row is not None and row[2] is not None for row in told)  # a change
    assert any(
        position.event < position.head for reader in readers for position in reader.told
    )  # or what came to be due
    homes = {(writer.site, reader.site) for world in worlds for reader in world.readers for writer in world.writers}
    assert any(one != two for one, two in homes)
    assert {wish.text for reader in readers for wish in reader.wants.values()} <= CONDITIONS.keys()


# -- Nodes that are broken on purpose


def lets_only_the_first_step_travel(monkeypatch):
    whole = subscribers.interest

    def interest(subscription):
        if isinstance(subscription, Sequence):
            return subscription.steps[0].condition
        return whole(subscription)

    monkeypatch.setattr(subscribers, "interest", interest)


def lets_only_what_makes_it_true_travel(monkeypatch):
    whole = subscribers.interest

    def interest(subscription):
        return subscription.condition if isinstance(subscription, Change) else whole(subscription)

    monkeypatch.setattr(subscribers, "interest", interest)


def acknowledges_before_the_disk(monkeypatch):
    whole = Talk._relayed

    def relayed(self, events):
        request = whole(self, events)
        self._on_disk(request.request)
        return request

    monkeypatch.setattr(Talk, "_relayed", relayed)


def takes_time_from_its_clock(monkeypatch):
    whole = StandingHost.take

    def take(self, block, *rest):
        return whole(self, dataclasses.replace(block, time_us=block.time_us + 500_000), *rest)

    monkeypatch.setattr(StandingHost, "take", take)


MUTANTS = {
    lets_only_the_first_step_travel: 2,
    lets_only_what_makes_it_true_travel: 0,
    acknowledges_before_the_disk: 13,
    takes_time_from_its_clock: 0,
}
"""Each with the seed that found it first, so that the search is short while it still does."""


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_what_is_broken_on_purpose_is_found(mutant, monkeypatch):
    mutant(monkeypatch)
    for seed in (MUTANTS[mutant], *range(100)):
        try:
            run_remembering(seed, "covering", steps=300)
        except AssertionError:  # of a checker; any other error is the mutant's own
            return
    pytest.fail("not found within 100 seeds")
