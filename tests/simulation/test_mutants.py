"""Brokers that are broken on purpose: the checker finds each of them."""

from __future__ import annotations

import pytest

from tamis.language.expressions import TRUE
from tamis.routing import Broker, Covering, Send, Simple, Unsubscribe, strategy_of
from tamis.routing.covering import CoveringSummary
from tamis.routing.identity import IdentitySummary
from tamis.routing.merging import Merging
from tamis.simulation import Scenario, simulate


class NeverComesUpAgain(CoveringSummary):
    """Forgets what a broad filter covered when the broad one leaves."""

    def _left(self, gone):
        if gone.entry >= 0 and self._entries[gone.entry] == gone.expression:
            for group in self._take(gone.entry):
                group.entry = -1  # nowhere
                self._under.setdefault(-1, {})[group] = None


class CoversTooMuch(Covering):
    """Believes that the first filter covers all others."""

    def summary(self):
        summary = CoveringSummary(self.comparisons)
        summary._coverage.covering = lambda _: min(summary._coverage._filters, default=None)
        return summary


class LeavesWithTheFirst(IdentitySummary):
    """Takes an identical filter back when the first of them leaves."""

    def remove(self, source):
        known = self._known_of[source]
        if known in self._keys and self._counts[known] > 1:
            self._drop(self._keys.pop(known))
        elif known not in self._keys:
            self._keys[known] = self._put(TRUE)
        super().remove(source)


def with_summary(strategy, summary):
    class Broken(type(strategy)):
        def summary(self):
            return summary(self.comparisons)

    return Broken()


class RemovesFirst(Broker):
    """Takes filters back a moment before it tells what takes their place."""

    def _told(self, is_removal):
        outputs = []
        for output in super()._told(is_removal):
            if isinstance(output.message, Unsubscribe) and output.message.instead:
                from tamis.routing import Subscribe

                outputs.append(Send(output.peer, Unsubscribe(output.message.keys)))
                outputs.append(Send(output.peer, Subscribe(output.message.instead)))
            else:
                outputs.append(output)
        return outputs


class SendsBack(Broker):
    """Sends events also to where they came from."""

    def _route(self, message, source, now):
        outputs = super()._route(message, source, now)
        return [*outputs, Send(source, message)] if source in self.neighbours else outputs


class TellsEverybodyTheSame(Broker):
    """Makes one summary of all filters, for all neighbours alike: one broker at least, two would never come to rest."""

    def _subscribe(self, source, entry, outputs, now):
        super()._subscribe(source, entry, outputs, now)
        if self.name == "b0" and source in self._links and (source, entry.key) in self.table:
            self._links[source].wanted.add((source, entry.key), entry.filter)


class ForgetsAdvertisements(Broker):
    """Does not look for subscriptions when an advertisement comes late."""

    def _advertise(self, source, entry, outputs, now):
        index, self._subscriptions = self._subscriptions, None
        super()._advertise(source, entry, outputs, now)
        self._subscriptions = index


class DeliversWhatNeighboursWant(Broker):
    """Gives clients what somebody else wants."""

    def _route(self, message, source, now):
        from tamis.routing import Deliver

        outputs = super()._route(message, source, now)
        if any(isinstance(each, Send) for each in outputs) and self.clients:
            outputs.append(Deliver(self.clients[0], message, ("s0",)))
        return outputs


class NeverForgets(Broker):
    """Keeps what was taken back."""

    def _unsubscribe(self, source, key, outputs, now):
        if source in self.clients or key == 0:
            super()._unsubscribe(source, key, outputs, now)


def made(broker_type=Broker, strategy="covering"):
    def make(scenario, number, name):
        chosen = strategy() if callable(strategy) else strategy_of(strategy)
        return broker_type(name, chosen, advertisements=scenario.advertisements, algorithm="naive")

    return make


MUTANTS = {
    "never comes up again": (made(strategy=lambda: with_summary(Covering(), NeverComesUpAgain)), None, "lost"),
    "covers too much": (made(strategy=CoversTooMuch), None, "lost"),
    "leaves with the first": (made(strategy=lambda: with_summary(Simple(), LeavesWithTheFirst)), None, "lost"),
    "removes first": (made(RemovesFirst, "covering"), None, "lost"),
    "sends back": (made(SendsBack), None, "twice"),
    "tells everybody the same": (made(TellsEverybodyTheSame, "simple"), None, "detour"),
    "forgets advertisements": (made(ForgetsAdvertisements), "simple", "lost"),
    "delivers what neighbours want": (made(DeliversWhatNeighboursWant), None, "unasked"),
    "never forgets": (made(NeverForgets), None, "tables"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_broken_broker_is_found(name):
    make, advertisements, kind = MUTANTS[name]
    for seed in range(120):
        scenario = Scenario.of_seed(
            seed, broker_count=5, advertisements=advertisements, has_faults=False, action_count=40
        )
        if any(problem.startswith(kind) for problem in simulate(scenario, make).problems):
            return
    raise AssertionError(f"{name} was not found in 120 runs")


def test_the_same_scenarios_find_nothing_in_brokers_that_are_whole():
    for seed in range(20):
        scenario = Scenario.of_seed(seed, broker_count=5, advertisements=None, has_faults=False, action_count=40)
        assert simulate(scenario, made()).problems == []
        assert simulate(scenario, made(strategy=Merging)).problems == []
