"""Thresholds that come late: a tighter one costs messages, a looser one loses events, and neither tells anybody twice."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis.language.expressions import TRUE
from tamis.routing import Broker, Deliver, Entry, Passed, Publish, Send, Subscribe
from tamis.topk import Ranked, TopK
from tamis.topk.policies import EveryChange, Hysteresis
from tamis.topk.proxy_table import MovingFilter

BEST = Ranked.parse("TOP 2 BY euclidean(array(x, y), array(4, 4)) OVER 12 SECONDS")


class NeverRandom(Random):
    """Chance that lets nothing happen."""

    def random(self):
        return 1.0


class Pair:
    """A subscriber's home and a publisher's broker; what the one tells of its threshold may wait on its way."""

    def __init__(self, policy, keeps, chance):
        options = {"ranked": {"algorithm": "strict", "filter": "strict"}, "policy": policy, "buffer_s": 5.0}
        self.brokers = {name: Broker(name, **options) for name in ("home", "first")}
        self.keeps, self.chance = keeps, chance
        self.waiting, self.told, self.events, self.waited = [], [], 0, 0
        self.known = None
        hellos = [(name, each.connect({"home": "first", "first": "home"}[name], 0.0))
                  for name, each in self.brokers.items()]  # fmt: skip
        self.brokers["home"].attach("ann"), self.brokers["first"].attach("shop")
        for name, hello in hellos:
            self.carry(name, hello, 0.0)
        self.carry("home", self.brokers["home"].receive(Subscribe((Entry("best", BEST),)), "ann", 0.0), 0.0)
        self.arrive(0.0)

    def carry(self, source, outputs, now):
        for each in outputs:
            if isinstance(each, Deliver):
                self.told.append((each.publication.key, now))
            elif isinstance(each, Send):
                self.events += isinstance(each.message, Passed)
                moved = self.threshold(each.message)
                if source == "home" and moved is not None:
                    is_tighter = self.known is not None and moved < self.known
                    self.known = moved
                    self.waiting.append(each)
                    if self.keeps != ("tighter" if is_tighter else "looser"):
                        self.arrive(now)  # the link keeps its order, so all before it come, too
                    else:
                        self.waited += 1
                    continue
                other = {"home": "first", "first": "home"}[source]
                self.carry(other, self.brokers[other].receive(each.message, source, now), now)

    @staticmethod
    def threshold(message):
        if not isinstance(message, Subscribe) or not message.entries:
            return None
        moving = MovingFilter.of(message.entries[-1].condition)
        return float("inf") if moving is None else moving.threshold

    def arrive(self, now):
        waiting, self.waiting = self.waiting, []
        for each in waiting:
            self.carry("first", self.brokers["first"].receive(each.message, "home", now), now)

    def advance(self, now):
        for name in ("first", "home"):
            self.carry(name, self.brokers[name].advance(now), now)

    def publish(self, number, event, now):
        self.advance(now)
        self.carry("first", self.brokers["first"].receive(Publish(number, event), "shop", now), now)

    def play(self, points):
        for number, (x, y) in enumerate(points, start=1):
            now = float(number)
            self.publish(number, {"x": x, "y": y}, now)
            if self.chance.random() < 0.1:
                self.arrive(now)
        return self


POINTS = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), min_size=8, max_size=60)


@pytest.mark.parametrize("policy", [EveryChange, Hysteresis])
@settings(max_examples=15)
@given(points=POINTS, seed=st.integers(0, 100))
def test_a_tighter_threshold_that_comes_late_changes_nothing_of_what_is_told_and_when(policy, points, seed):
    at_once = Pair(policy, None, Random(seed)).play(points)
    late = Pair(policy, "tighter", Random(seed)).play(points)
    assert late.told == at_once.told
    assert late.events >= at_once.events, "it costs messages"


def streams():
    for seed in range(25):
        chance = Random(seed)
        yield seed, [(chance.randint(0, 8), chance.randint(0, 8)) for _ in range(60)]


def test_tighter_thresholds_did_come_late_and_cost_messages():
    late = [Pair(EveryChange, "tighter", Random(seed)).play(points) for seed, points in streams()]
    at_once = [Pair(EveryChange, None, Random(seed)).play(points) for seed, points in streams()]
    assert sum(each.waited for each in late) > 25
    assert sum(each.events for each in late) > sum(each.events for each in at_once)


def test_a_looser_threshold_that_comes_late_loses_events_and_tells_nobody_twice_or_of_what_was_not_published():
    lost = waited = 0
    for seed, points in streams():
        at_once = {key for key, _ in Pair(EveryChange, None, Random(seed)).play(points).told}
        pair = Pair(EveryChange, "looser", Random(seed)).play(points)
        told = [key for key, _ in pair.told]
        assert len(told) == len(set(told)) and set(told) <= set(range(1, len(points) + 1))
        lost, waited = lost + len(at_once - set(told)), waited + pair.waited
    assert waited > 25 and lost > 0, "so what loosens must travel at once"


def test_a_looser_threshold_that_comes_late_may_have_a_worse_event_told():
    """So lateness of what loosens does not only lose: who is not told of better events is told of worse ones."""
    # moment     1   2    6             15  16              18   21
    # distance   0   1                   2   3               4
    # known      inf      1 (kept back, which is inf again)  inf
    # told       0   1                   -   -               4    2, 3 (when they leave the recent buffer)
    pair, centre, moments = Pair(EveryChange, "looser", NeverRandom()), TopK("naive"), {}
    centre.add("best", BEST)
    for number, (now, distance) in enumerate(((1.0, 0), (2.0, 1), (15.0, 2), (16.0, 3), (18.0, 4)), start=1):
        if now == 18.0:
            pair.arrive(17.0)
        event = {"x": 4, "y": 4 + distance}
        pair.publish(number, event, now)
        moments |= {each.event: each.at for each in centre.process(event, now, number)}
    assert pair.told == [(1, 1.0), (2, 2.0), (5, 18.0)]
    assert moments == {1: 1.0, 2: 2.0, 3: 15.0, 4: 16.0}, "the fifth is not among the best two of what was published"
    pair.advance(20.0), pair.advance(21.0)
    assert pair.told[3:] == [(3, 20.0), (4, 21.0)], "told late, because they are sent again"
    moments |= {each.event: each.at for each in centre.advance(27.0)}
    assert moments[5] == 27.0, "and the fifth would have been told when the first of them leaves"


def test_what_is_compared_is_a_threshold():
    assert Pair.threshold(Subscribe((Entry(1, TRUE),))) == float("inf") and Pair.threshold(Subscribe(())) is None
