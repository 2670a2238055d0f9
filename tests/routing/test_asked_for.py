"""A client has one filter, and neighbours are asked for another: as if two clients had them, one of whom is deaf."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis import holds, parse
from tamis.routing import Broker, Deliver, Entry, Hello, MessageError, Publish, Subscribe, Unsubscribe
from tamis.routing.errors import UnknownPeerError

FILTERS = [parse(text) for text in ("a = 1", "a = 2", "a IN (1, 2)", "b > 3", "a = 1 OR b > 3", "TRUE", "b = 5")]
EVENTS = [{"a": a, "b": b} for a in (0, 1, 2) for b in (0, 4, 5)]
KEYS = ("x", "y", "z")

steps = st.lists(
    st.one_of(
        st.tuples(st.just("subscribe"), st.sampled_from(KEYS), st.sampled_from(FILTERS)),
        st.tuples(st.just("unsubscribe"), st.sampled_from(KEYS), st.none()),
        st.tuples(st.just("ask"), st.sampled_from(KEYS), st.one_of(st.none(), st.sampled_from(FILTERS))),
        st.tuples(st.just("work"), st.just(""), st.none()),
        st.tuples(st.just("begin anew"), st.just(""), st.none()),
    ),
    max_size=12,
)


def made(strategy: str, advertisements: str | None, is_gradual: bool) -> Broker:
    broker = Broker("middle", strategy, advertisements=advertisements, algorithm="naive")
    broker.attach("ann")
    broker.connect("north", 0.0, gradually=is_gradual)
    anything = (Entry(0, parse("TRUE")),) if advertisements else ()
    broker.receive(Hello((), anything, broker.digest), "north", 0.0)
    return broker


@given(
    steps,
    st.sampled_from(("flooding", "simple", "identity", "covering", "merging")),
    st.sampled_from((None, "covering")),
    st.booleans(),
)
def test_neighbours_are_told_what_is_asked_for_and_the_client_gets_what_it_wants(
    happenings, strategy, advertisements, is_gradual
):
    broker, twin = (made(strategy, advertisements, is_gradual) for _ in range(2))
    wanted, asked = {}, {}
    for number, (what, key, filter_) in enumerate(happenings):
        now = float(number)
        match what:
            case "subscribe":
                broker.receive(Subscribe((Entry(key, filter_),)), "ann", now)
                wanted[key] = filter_
            case "unsubscribe":
                broker.receive(Unsubscribe((key,)), "ann", now)
                if wanted.pop(key, None) is not None:
                    asked.pop(key, None)
            case "ask":
                broker.ask_for("ann", key, filter_, now)
                asked[key] = filter_
            case "work":
                broker.work(3, now)
                twin.work(3, now)
            case "begin anew":
                broker.disconnect("north", now)
                broker.connect("north", now, gradually=is_gradual)
                anything = (Entry(0, parse("TRUE")),) if advertisements else ()
                broker.receive(Hello((), anything, broker.digest), "north", now)
        of_twin = {each: told for each in wanted if (told := asked.get(each, wanted[each])) is not None}
        before = twin.wanted_by("ann")
        for each in before.keys() - of_twin.keys():
            twin.receive(Unsubscribe((each,)), "ann", now)
        for each, told in of_twin.items():
            if before.get(each) != told:
                twin.receive(Subscribe((Entry(each, told),)), "ann", now)
    for one in (broker, twin):
        while one.work_count:
            one.work(100, 99.0)
    told, of_twin = ([str(entry.filter) for entry in one.told("north")] for one in (broker, twin))
    if "merging" not in strategy:  # whose mergers depend on the order
        assert sorted(told) == sorted(of_twin)
    for event in EVENTS:
        assert any(holds(parse(each), event) for each in told) == any(holds(parse(each), event) for each in of_twin)
        outputs = broker.receive(Publish(f"e{event}", event), "north", 100.0)
        keys = {key for output in outputs if isinstance(output, Deliver) for key in output.subscriptions}
        assert keys == {key for key, filter_ in wanted.items() if holds(filter_, event)}


def test_what_is_asked_for_ends_with_the_client_and_with_its_subscription():
    broker = made("simple", None, is_gradual=False)
    broker.receive(Subscribe((Entry("x", parse("a = 1")),)), "ann", 0.0)
    broker.ask_for("ann", "x", None, 1.0)
    assert broker.told("north") == ()
    broker.receive(Unsubscribe(("x",)), "ann", 2.0)
    broker.receive(Subscribe((Entry("x", parse("a = 1")),)), "ann", 3.0)
    assert [str(entry.filter) for entry in broker.told("north")] == ["a = 1"]
    broker.ask_for("ann", "later", None, 4.0)
    broker.disconnect("ann", 5.0)
    broker.attach("ann")
    broker.receive(Subscribe((Entry("later", parse("a = 2")),)), "ann", 6.0)
    assert [str(entry.filter) for entry in broker.told("north")] == ["a = 2"]


def test_what_is_no_filter_and_who_is_no_client_are_refused():
    broker = Broker("middle", schema=None, functions=None)
    broker.attach("ann")
    with pytest.raises(UnknownPeerError, match="bob"):
        broker.ask_for("bob", "x", None, 0.0)
    from tamis import Schema

    broker = Broker("middle", "simple", schema=Schema({"a": "int"}))
    broker.attach("ann")
    with pytest.raises(MessageError, match="in the place of 'x'"):
        broker.ask_for("ann", "x", parse("b = 1"), 0.0)
