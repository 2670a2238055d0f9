"""Brokers that are broken on purpose: the checker finds each of them, and nothing in their whole twins."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from tamis.language.expressions import And
from tamis.language.parser import parse
from tamis.pruning import Goal
from tamis.routing import (
    Adaptation,
    Broker,
    Covering,
    Deliver,
    Hello,
    ImperfectMerging,
    Merging,
    Pruned,
    Publish,
    Send,
    Simple,
    Subscribe,
    Unsubscribe,
    links,
    strategy_of,
)
from tamis.routing.covering import CoveringSummary
from tamis.routing.identity import IdentitySummary
from tamis.routing.mergers import MergingSummary
from tamis.simulation import Scenario, simulate
from tamis.simulation.schemas import SCHEMAS


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
        kind = self._kind_of[source]
        super().remove(source)
        if kind.sources and kind.key in self._entries:
            self._drop(kind.key)

    def _take(self, kind):
        self._entries.setdefault(kind.key, kind.known.form.expression)  # it is gone already
        super()._take(kind)


class NeverShrinks(MergingSummary):
    """Tells a merger as it is until the last of its filters is gone."""

    def _shrink(self, cluster, gone):
        if not cluster.members:
            super()._shrink(cluster, gone)


class LosesReach(MergingSummary):
    """Forgets what a filter wants in the stretch that is cut off its merger."""

    def _clipped(self, member, axis, values):
        return parse("x > 5 AND x < 3")


def with_summary(strategy, summary):
    class Broken(type(strategy)):
        def summary(self):
            return summary(self.comparisons)

    return Broken()


class SaysThatItIsPerfect(ImperfectMerging):
    """Merges what is nearly one filter, and denies it."""

    is_perfect = True


class PrunesToLess(Pruned):
    """Adds a condition instead of leaving one out."""

    def _pruning(self, inner, goal, known):
        summary = super()._pruning(inner, goal, known)
        summary._table.prune_new = lambda goal: [
            (number, And((summary._table.original(number), parse("z > 0")))) for number in summary._numbers.values()
        ]
        return summary


# -- Subscriptions


class RemovesFirst(Broker):
    """Takes filters back a moment before it tells what takes their place."""

    def _told(self, now, is_removal):
        outputs = []
        for output in super()._told(now, is_removal):
            if isinstance(output.message, Unsubscribe) and output.message.instead:
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

    def _subscribe(self, source, entry, now):
        super()._subscribe(source, entry, now)
        if self.name == "b0" and source in self._links and (source, entry.key) in self.table:
            self._links[source].wanted.add((source, entry.key), entry.filter)


# -- Advertisements


class ForgetsAdvertisements(Broker):
    """Does not look for subscriptions when an advertisement comes late."""

    def _advertise(self, source, entry, now):
        index, self._subscriptions = self._subscriptions, None
        super()._advertise(source, entry, now)
        self._subscriptions = index


class AsksEverywhere(Broker):
    """Tells filters also to neighbours that nothing of it comes from."""

    def connect(self, neighbour, now):
        outputs = super().connect(neighbour, now)
        self._links[neighbour].reason = lambda _: -1
        return outputs


class KeepsAsking(Broker):
    """Does not take subscriptions back when nothing more is advertised that they want."""

    def _unadvertise(self, source, key, now):
        if source in self._links:
            self._links[source].forget_reasons()
        super()._unadvertise(source, key, now)


# -- Events, leases, adaptation


class DeliversWhatNeighboursWant(Broker):
    """Gives clients what somebody else wants."""

    def _route(self, message, source, now):
        outputs = super()._route(message, source, now)
        if any(isinstance(each, Send) for each in outputs) and self.clients:
            outputs.append(Deliver(self.clients[0], message, ("s0",)))
        return outputs


class NeverForgets(Broker):
    """Keeps what was taken back."""

    def _unsubscribe(self, source, key, now):
        if source in self.clients or key == 0:
            super()._unsubscribe(source, key, now)


class KeepsLeases(Broker):
    """Lets no lease end."""

    def advance(self, now):
        return []


class EndsLeasesEarly(Broker):
    """Lets leases end after half their time."""

    def receive(self, message, source, now):
        if isinstance(message, Subscribe) and message.lease_s is not None:
            message = replace(message, lease_s=message.lease_s / 2)
        return super().receive(message, source, now)


class MutesForGood(Broker):
    """Sends nothing any more to neighbours for which it has stopped filtering."""

    def _route(self, message, source, now):
        return [
            each
            for each in super()._route(message, source, now)
            if isinstance(each, Deliver) or not isinstance(each.message, Publish) or self.is_filtering(each.peer)
        ]


# -- Faults


class RemembersNoEvents(Broker):
    """Takes an event that comes again for another one."""

    def _route(self, message, source, now):
        outputs = super()._route(message, source, now)
        self._seen.clear()
        return outputs


class TakesEveryNumberForNew(Broker):
    """Takes a filter that comes again, after it was taken back, for another one."""

    def connect(self, neighbour, now):
        outputs = super().connect(neighbour, now)
        self._links[neighbour].filters.numbers.take = lambda _: True
        return outputs


class KeepsTheDead(Broker):
    """Forgets nothing of a neighbour that is gone."""

    def disconnect(self, peer, now):
        if peer in self.clients:
            return super().disconnect(peer, now)
        self.table.unmute(peer)
        self._links.pop(peer).close()
        return []


class GreetsInSilence(Broker):
    """Does not say what it wants when a link comes up."""

    def connect(self, neighbour, now):
        return [Send(each.peer, Hello((), each.message.advertisements)) for each in super().connect(neighbour, now)]


# -- Gradual links, renewals, greetings in parts


class EndsTrueTooSoon(Broker):
    """Replaces TRUE before the summary is complete."""

    def work(self, budget, now):
        for link in self._links.values():
            if link._wanting is not None and link._wanting.summary.is_provisional:
                link._wanting.summary.tell(1)
        return super().work(budget, now)


class ForgetsWhatComesMeanwhile(Broker):
    """Forgets a filter that comes while it is worked out what a neighbour must know."""

    def _subscribe(self, source, entry, now):
        working = [each for link in self._links.values() if (each := link._wanting) is not None and each.agenda]
        for each in working:
            each.has_begun = False
        super()._subscribe(source, entry, now)
        for each in working:
            each.has_begun = True


class ForgetsWhoLeavesMeanwhile(Broker):
    """Forgets that a filter leaves while it is worked out what a neighbour must know."""

    def _unsubscribe(self, source, key, now):
        for link in self._links.values():
            if link._wanting is not None and link._wanting.agenda:
                link.unwant = lambda source, expression: None
        super()._unsubscribe(source, key, now)
        for link in self._links.values():
            link.__dict__.pop("unwant", None)


class LetsGoFirst(Broker):
    """Lets go whom nobody wants any more before it has looked at whoever takes its place."""

    def connect(self, neighbour, now, *, gradually=False):
        outputs = super().connect(neighbour, now, gradually=gradually)
        if gradually:
            agenda = self._links[neighbour]._wanting.agenda
            step = agenda.step

            def hasty():
                coming, agenda._coming = agenda._coming, {} if agenda._going else agenda._coming
                many, agenda._many = agenda._many, [] if agenda._going else agenda._many
                step()
                agenda._coming, agenda._many = coming | agenda._coming, many

            agenda.step = hasty
        return outputs


class TellsTrueOn(Broker):
    """Tells others what a neighbour wants for the time being only."""

    def _subscribe(self, source, entry, now):
        super()._subscribe(source, entry, now)
        for key, number in self._links[source].filters.provisional.items() if source in self._links else ():
            if number == entry.key:
                for neighbour, link in self._links.items():
                    if neighbour != source and (source, key) not in link.wanted:
                        link.wanted.add((source, key), entry.filter)


class DropsAtOnce(Broker):
    """Forgets what a neighbour said that is started anew."""

    def renew(self, neighbour, now):
        outputs = super().renew(neighbour, now)
        for key in list(self.table.of(neighbour)):
            self._unsubscribe(neighbour, key, now)
        return [*outputs, *self._told(now, is_removal=True)]


class NeverDrops(Broker):
    """Keeps what a neighbour said in its life before and does not say again."""

    def _end_renewal(self, kind, source, now):
        self._links[source].filters.names.unsaid()
        super()._end_renewal(kind, source, now)


class CountsTheFirstPart(Broker):
    """Takes the first part of a greeting for all of it."""

    def _hello(self, source, hello, now):
        super()._hello(source, replace(hello, more=False), now)


class LetsEverythingPass(Broker):
    """Keeps no guard, neither when it asks nor when it sends; one of both is enough to keep it."""

    def connect(self, neighbour, now, *, may_leave=None, may_enter=None):
        return super().connect(neighbour, now)


class LetsNothingLeave(Broker):
    """Takes a guard for a wall."""

    def connect(self, neighbour, now, *, may_leave=None, may_enter=None):
        wall = None if may_leave is None else parse("FALSE")
        return super().connect(neighbour, now, may_leave=wall, may_enter=may_enter)


# -- All of them, beside what they would be if they were whole


class TrustsEverybody(Broker):
    """Takes every event for one that fits the schema."""

    def _fitting(self, message):
        return message


def made(broker_type, strategy):
    def make(scenario, number, name):
        return broker_type(
            name,
            strategy() if callable(strategy) else strategy_of(strategy, SCHEMAS.get(scenario.schema)),
            advertisements=scenario.advertisements,
            schema=SCHEMAS.get(scenario.schema),
            algorithm="naive",
            adaptation=Adaptation(0.6, 0.5, event_count=4, wait_s=0.01) if scenario.adapts else None,
            most_entries=2 if scenario.short_messages else 20,
        )

    return make


@dataclass
class Mutant:
    """A broken broker or strategy, what it would be if it were whole, and what the checker says."""

    says: str
    broker: Any = Broker
    strategy: Any = "covering"
    whole: Any = None
    within: int = 12
    """After so many seeds it is found."""
    first: int = 0
    """With which seed to begin: the one that showed it when this was written. The smaller ones come last."""
    at_once: int = links.AT_ONCE
    """How many filters of a message a gradual link works out at once."""
    scenario: dict[str, Any] = field(default_factory=dict)


IN_VAIN, TOO_LITTLE = "what nobody wants", "all that is wanted"
WITH_FAULTS = {"has_faults": True}
GRADUAL = {"gradual": True, "topology": "graph", "action_count": 60, **WITH_FAULTS}
MUTANTS = {
    "never comes up again": Mutant("lost", strategy=lambda: with_summary(Covering(), NeverComesUpAgain), first=3),
    "covers too much": Mutant("lost", strategy=CoversTooMuch),
    "leaves with the first": Mutant(
        "lost", strategy=lambda: with_summary(Simple(), LeavesWithTheFirst), whole="identity", first=6
    ),
    "removes first": Mutant(
        "lost",
        RemovesFirst,
        first=21,
        within=24,
        scenario={"topology": "line", "broker_count": 8, "round_count": 12, "action_count": 12},
    ),
    "never shrinks": Mutant(IN_VAIN, strategy=lambda: with_summary(Merging(), NeverShrinks), whole="merging"),
    "never shrinks, seen on the way": Mutant(
        "in vain", strategy=lambda: with_summary(Merging(), NeverShrinks), whole="merging"
    ),
    "loses reach": Mutant(
        TOO_LITTLE,
        strategy=lambda: with_summary(Merging(), LosesReach),
        whole="merging",
        first=3,
        scenario={"leaves_one_by_one": True},
    ),
    "says that it is perfect": Mutant(
        "in vain",
        strategy=lambda: SaysThatItIsPerfect(budget=0.5),
        whole=lambda: ImperfectMerging(budget=0.5),
    ),
    "prunes to less": Mutant(
        "lost",
        strategy=lambda: PrunesToLess(Covering(), Goal(count=1), lambda _: 0.5),
        whole=lambda: Pruned(Covering(), Goal(count=1), lambda _: 0.5),
    ),
    "sends back": Mutant("twice", SendsBack),
    "tells everybody the same": Mutant("detour", TellsEverybodyTheSame, "simple"),
    "delivers what neighbours want": Mutant("unasked", DeliversWhatNeighboursWant),
    "never forgets": Mutant("still knows", NeverForgets),
    "forgets advertisements": Mutant("lost", ForgetsAdvertisements, scenario={"advertisements": "simple"}),
    "asks everywhere": Mutant("nothing like it", AsksEverywhere, scenario={"advertisements": "covering"}),
    "keeps asking": Mutant("nothing like it", KeepsAsking, scenario={"advertisements": "covering"}),
    "keeps leases": Mutant("unasked", KeepsLeases, scenario={"leases": True}),
    "ends leases early": Mutant("lost", EndsLeasesEarly, scenario={"leases": True}),
    "mutes for good": Mutant("lost", MutesForGood, scenario={"adapts": True}),
    "remembers no events": Mutant("twice", RemembersNoEvents, scenario=WITH_FAULTS),
    "takes every number for new": Mutant("said", TakesEveryNumberForNew, first=9, scenario=WITH_FAULTS),
    "keeps the dead": Mutant("which is gone", KeepsTheDead, scenario=WITH_FAULTS),
    "trusts everybody": Mutant("though it was refused", TrustsEverybody, scenario={"schema": "numbers"}),
    "trusts everybody to be whole": Mutant("though it was refused", TrustsEverybody, scenario={"schema": "mandatory"}),
    "trusts every type": Mutant("though it was refused", TrustsEverybody, scenario={"schema": "hierarchy"}),
    "ends TRUE too soon": Mutant("too soon", EndsTrueTooSoon, scenario=GRADUAL),
    "forgets what comes meanwhile": Mutant(TOO_LITTLE, ForgetsWhatComesMeanwhile, within=60, scenario=GRADUAL),
    "forgets who leaves meanwhile": Mutant(IN_VAIN, ForgetsWhoLeavesMeanwhile, first=3, within=60, scenario=GRADUAL),
    "lets go first": Mutant(
        "lost", LetsGoFirst, first=6, within=60, at_once=0, scenario={"gradual": True, "action_count": 80}
    ),
    "tells TRUE on": Mutant(IN_VAIN, TellsTrueOn, scenario={"gradual": True}),
    "drops at once": Mutant("lost", DropsAtOnce, scenario={"renews": True}),
    "never drops": Mutant(IN_VAIN, NeverDrops, scenario={"renews": True}),
    "counts the first part": Mutant("sent it", CountsTheFirstPart, scenario={"short_messages": True, **WITH_FAULTS}),
    "lets everything pass": Mutant("where it may not go", LetsEverythingPass, scenario={"guards": True}),
    "lets nothing leave": Mutant("lost", LetsNothingLeave, scenario={"guards": True}),
    "greets in silence": Mutant("sent it", GreetsInSilence, scenario=WITH_FAULTS),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_broken_broker_is_found_and_its_whole_twin_is_not(name, monkeypatch):
    mutant = MUTANTS[name]
    monkeypatch.setattr(links, "AT_ONCE", mutant.at_once)
    broken = made(mutant.broker, mutant.strategy)
    whole = made(Broker, mutant.whole or (mutant.strategy if isinstance(mutant.strategy, str) else "covering"))
    for seed in (*range(mutant.first, mutant.within), *range(mutant.first)):
        scenario = Scenario(seed, **{"action_count": 40, **mutant.scenario})
        assert simulate(scenario, whole).problems == []
        if any(mutant.says in problem for problem in simulate(scenario, broken).problems):
            return
    raise AssertionError(f"{name} was not found in {mutant.within} runs")
