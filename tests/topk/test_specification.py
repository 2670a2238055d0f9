"""The promises of the specification hold for what a processor does, and mutants that break one of them are found."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis.language import parse
from tamis.topk import Ranked, TopK
from tamis.topk.algorithms import RANKINGS
from tamis.topk.happenings import Drop, NotifyStep, PublishStep, SubscribeStep, UnpublishStep, UnsubscribeStep
from tamis.topk.naive import NaiveRankings
from tamis.topk.specification import Trace
from tamis.topk.windows import TimeWindow
from tests.topk.stories import VARIANTS, made

TICK = 0.5


def is_timed(wanted):
    return isinstance(wanted, Ranked) and isinstance(wanted.window, TimeWindow)


class Recorder:
    """Does to a processor what a story says, and writes down everything that happens, departures from windows included.

    Times are multiples of a tick, and so are the lengths of time windows: so the time is let pass from tick to tick, and what
    has left a window by then was dropped at that tick. Only the naive algorithm keeps whole windows and shows that.
    """

    def __init__(self, processor):
        self.processor = processor
        self.happenings, self.wanted, self.contents = [], {}, {}
        self.now = 0.0
        self.owners, self.inside = {}, set()

    def subscribe(self, client, name, wanted):
        self.happenings.append(SubscribeStep(self.now, client, name))
        self.wanted[name], self.owners[name] = wanted, client
        self.processor.add(name, wanted, client=client)

    def unsubscribe(self, name):
        self.processor.remove(name)
        self.inside = {each for each in self.inside if each[0] != name}
        self.happenings.append(UnsubscribeStep(self.now, self.owners[name], name))

    def publish(self, event):
        name = f"e{len(self.contents)}"
        self.contents[name] = event
        self.happenings.append(PublishStep(self.now, "publisher", name))
        self.note(self.processor.process(event, self.now, name))

    def withdraw(self, name):
        self.happenings.append(UnpublishStep(self.now, "publisher", name))
        self.note(self.processor.withdraw(name, self.now))

    def move(self, until):
        while self.now < until:
            self.note(self.processor.advance(self.now))
            self.now += TICK
        self.now = until

    def note(self, deliveries):
        self.happenings += [NotifyStep(each.at, self.owners[each.subscription], each.event) for each in deliveries]
        if self.processor.algorithm == "naive":
            timed = [name for name in self.owners if name in self.processor and is_timed(self.wanted[name])]
            inside = {(name, event) for name in timed for event in self.processor.kept(name)}
            self.happenings += [Drop(self.now, *each) for each in sorted(self.inside - inside)]
            self.inside = inside

    def trace(self, happenings=None, **settings):
        settings = {"until": self.now - TICK, **settings}
        return Trace(self.happenings if happenings is None else happenings, self.wanted, self.contents, **settings)


WANTED = (
    Ranked("x", 1, "2 SECONDS"),
    Ranked("x", 2, "3 SECONDS", "y > 1", order="DESC"),
    Ranked("x", 1, "3 EVENTS"),
    Ranked("x + y", 2, "1 SECOND"),
    parse("x > 2"),
)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("move"), st.sampled_from([0.5, 0.5, 1.0, 2.0])),
        st.tuples(st.just("publish"), st.fixed_dictionaries({"x": st.integers(0, 4), "y": st.integers(0, 3)})),
        st.tuples(st.just("publish"), st.fixed_dictionaries({"x": st.integers(0, 4), "y": st.integers(0, 3)})),
        st.tuples(st.just("subscribe"), st.sampled_from(WANTED), st.sampled_from(["ann", "bob"])),
        st.tuples(st.just("unsubscribe"), st.integers(0, 9)),
        st.tuples(st.just("withdraw"), st.integers(0, 9)),
    ),
    max_size=25,
)


def recorded(story, processor):
    recorder = Recorder(processor)
    for wanted, client in zip(WANTED[:3], ("ann", "ann", "bob"), strict=True):
        recorder.subscribe(client, f"s{len(recorder.wanted)}", wanted)
    active = list(recorder.wanted)
    for verb, *arguments in story:
        if verb == "move":
            recorder.move(recorder.now + arguments[0])
        elif verb == "publish":
            recorder.publish(*arguments)
        elif verb == "subscribe":
            wanted, client = arguments
            active.append(f"s{len(recorder.wanted)}")
            recorder.subscribe(client, active[-1], wanted)
        elif verb == "unsubscribe" and active:
            recorder.unsubscribe(active.pop(arguments[0] % len(active)))
        elif verb == "withdraw" and recorder.contents:
            recorder.withdraw(f"e{arguments[0] % len(recorder.contents)}")
    recorder.move(recorder.now + 5.0)
    return recorder


@settings(max_examples=60)
@given(story=steps)
def test_responsiveness_validity_legality_uniqueness_regularity_and_correctness_hold(story):
    assert recorded(story, TopK("naive")).trace().violations() == []


@pytest.mark.parametrize("variant", VARIANTS)
@settings(max_examples=8)
@given(story=steps)
def test_whatever_the_algorithm_what_clients_see_keeps_the_promises(variant, story):
    trace = recorded(story, made(**VARIANTS[variant])).trace()
    for promise in (trace.responsiveness, trace.validity, trace.legality, trace.uniqueness):
        assert list(promise()) == []


# -- Mutants


@pytest.fixture
def recorder():
    """A story in which everything happens: departures, a withdrawal, an end, a promotion, two clients."""
    recorder = Recorder(TopK("naive"))
    recorder.subscribe("ann", "best", Ranked("x", 1, "2 SECONDS"))
    recorder.subscribe("bob", "high", parse("x > 2"))
    for at, x in ((0.0, 1), (0.5, 3), (1.0, 2), (1.5, 4), (3.0, 0)):
        recorder.move(at)
        recorder.publish({"x": x})
    recorder.move(3.5)
    recorder.withdraw("e4")
    recorder.unsubscribe("high")
    recorder.move(8.0)
    assert recorder.trace().violations() == []
    return recorder


def broken(recorder, happenings, **settings):
    return {each.promise for each in recorder.trace(happenings, **settings).violations()}


def without(recorder, kind):
    return [each for each in recorder.happenings if not isinstance(each, kind)]


def test_a_system_that_tells_nobody_is_not_responsive(recorder):
    assert broken(recorder, without(recorder, NotifyStep)) == {"responsiveness"}


def test_a_system_that_tells_everybody_everything_is_not_legal(recorder):
    everybody = [
        NotifyStep(each.at, client, each.event)
        for each in recorder.happenings
        if isinstance(each, PublishStep)
        for client in ("ann", "bob")
    ]
    assert broken(recorder, without(recorder, NotifyStep) + everybody) == {"legality"}


def test_who_is_told_twice_notices(recorder):
    again = next(each for each in recorder.happenings if isinstance(each, NotifyStep))
    assert broken(recorder, [*recorder.happenings, again]) == {"uniqueness"}


def test_what_is_told_late_is_neither_responsive_nor_legal_unless_delays_allow_it(recorder):
    late = [
        replace(each, at=each.at + 1.0) if each == NotifyStep(0.5, "bob", "e1") else each
        for each in recorder.happenings
    ]
    assert broken(recorder, late) == {"responsiveness", "legality"}
    assert broken(recorder, late, publication_delay=1.0, subscription_delay=1.0) == set()


def test_nobody_may_be_told_of_what_was_withdrawn_or_never_published(recorder):
    assert broken(recorder, [*recorder.happenings, NotifyStep(4.0, "bob", "e4")]) == {"validity", "legality"}
    assert broken(recorder, [*recorder.happenings, NotifyStep(4.0, "ann", "ghost")]) == {"validity", "legality"}


def test_nobody_may_be_told_after_he_has_unsubscribed(recorder):
    recorder.publish({"x": 9})
    recorder.move(9.0)
    told = NotifyStep(8.0, "bob", "e5")
    assert broken(recorder, [*recorder.happenings, told]) == {"legality"}


def test_an_event_may_leave_a_window_neither_early_nor_late_nor_never(recorder):
    drops = [each for each in recorder.happenings if isinstance(each, Drop)]
    assert len(drops) == 5
    others = without(recorder, Drop)
    early = [replace(each, at=each.at - TICK) for each in drops]
    late = [replace(each, at=each.at + TICK) for each in drops]
    assert broken(recorder, others + early) == {"correctness"}
    assert broken(recorder, others + late) == {"regularity"}
    assert broken(recorder, others) == {"regularity"}


@pytest.mark.parametrize(("change", "promise"), [(+1, "legality"), (-1, "responsiveness")])
def test_a_processor_that_takes_one_too_many_or_too_few_is_found_out(monkeypatch, change, promise):
    monkeypatch.setitem(RANKINGS, "naive", lambda ranked, settings: NaiveRankings(ranked.k + change))
    recorder = Recorder(TopK("naive"))
    recorder.subscribe("ann", "s", Ranked("x", 2, "3 SECONDS"))
    for x in (1, 2, 3):
        recorder.publish({"x": x})
        recorder.move(recorder.now + TICK)
    recorder.move(2.0)
    assert broken(recorder, recorder.happenings) == {promise}


def test_a_withdrawal_changes_nothing_but_what_is_told_of_the_event_itself():
    story = [("publish", {"x": x, "y": 2}) for x in (0, 1, 3)] + [("move", 1.0), ("publish", {"x": 2, "y": 2})]
    told = [
        {
            (each.client, each.event)
            for each in recorded(more, TopK("strict")).happenings
            if isinstance(each, NotifyStep)
        }
        for more in (story, [*story, ("withdraw", 1)])
    ]
    assert told[0] - told[1] <= {("ann", "e1"), ("bob", "e1")}
    assert told[1] <= told[0]


# -- The Boolean special case


conditions = st.sampled_from(["x > 2", "x = y", "NOT x > 1", "x > 1 OR y IS NULL", "TRUE", "FALSE"])


@settings(max_examples=40)
@given(
    texts=st.lists(conditions, min_size=1, max_size=4),
    contents=st.lists(st.fixed_dictionaries({"x": st.integers(0, 4)}, optional={"y": st.integers(0, 3)}), max_size=12),
    window=st.sampled_from(["1 EVENT", "1e-9 SECONDS"]),
    algorithm=st.sampled_from(["naive", "strict", "relaxed", "block"]),
)
def test_boolean_subscriptions_are_ranked_ones_with_a_vanishing_window_and_two_scores(
    texts, contents, window, algorithm
):
    boolean, ranked = TopK(algorithm), TopK(algorithm)
    for name, text in enumerate(texts):
        boolean.add(name, text)
        ranked.add(name, Ranked("1", 1, window, text))  # what fails the condition has the worst score: none
    for place, event in enumerate(contents):
        at = float(place // 3)  # some at one instant
        assert boolean.process(event, at, place) == ranked.process(event, at, place)
    assert ranked.advance(100.0) == []


@settings(max_examples=40)
@given(contents=st.lists(st.fixed_dictionaries({"x": st.integers(0, 4)}), max_size=10), k=st.integers(1, 3))
def test_where_only_strictly_better_events_count_all_that_match_are_told_in_any_window(contents, k):
    recorder = Recorder(TopK("naive"))
    recorder.subscribe("ann", "s", parse("x > 2"))
    for event in contents:
        recorder.publish(event)
        recorder.move(recorder.now + TICK)
    recorder.move(recorder.now + 5.0)
    recorder.wanted["s"] = Ranked("1", k, "1000 SECONDS", "x > 2")  # the same, as a ranked subscription
    trace = recorder.trace(all_ties=True)
    for promise in (trace.responsiveness, trace.validity, trace.legality, trace.uniqueness):
        assert list(promise()) == []


# -- The limits of the parameters


@given(keys=st.lists(st.integers(0, 9), max_size=30), algorithm=st.sampled_from(["strict", "relaxed", "block"]))
def test_with_an_endless_window_only_records_are_told_and_with_a_large_k_everything(keys, algorithm):
    processor = TopK(algorithm)
    processor.add("records", Ranked("x", 2, f"{10**9} EVENTS"))
    processor.add("all", Ranked("x", 10**6, f"{10**9} EVENTS"))
    for place, key in enumerate(keys):
        told = [each.subscription for each in processor.process({"x": key}, float(place))]
        is_record = sum(other < key for other in keys[:place]) < 2  # of equal ones the younger is better
        assert told == (["records", "all"] if is_record else ["all"])
