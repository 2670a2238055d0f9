"""What a broker has accepted it can do: no message that is one makes it raise anything but a refusal."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import tamis
from tamis.routing import (
    STRATEGIES,
    Advertise,
    Broker,
    Entry,
    Hello,
    ImperfectMerging,
    MessageError,
    Publish,
    Subscribe,
    Unadvertise,
    Unsubscribe,
)
from tests.strategies import conditions, events, simple_predicates

TERMS = ("x", "s", "length(s)", "size(a)", "distance(x, y, 1, 2)", "abs(x)", "x + y", "lower(s)", "at.x")
sets = st.builds(
    lambda term, operator, operand: tamis.parse(f"{term} {operator} {operand}"),
    st.sampled_from([term for term in TERMS if term != "lower(s)"]),
    st.sampled_from(["=", "<", "<=", ">", ">=", "<>", "<=>"]),
    st.sampled_from(["-1", "0", "1", "2", "2.5", "3D", "1e300D", "double('NaN')", "NULL"]),
)
pools = st.lists(st.one_of(sets, sets, simple_predicates, conditions), min_size=2, max_size=6)


def strategy_named(name):
    return ImperfectMerging(budget=0.5) if name == ImperfectMerging.name else name


def messages(pool, chance, peer):
    """Return everything that a peer says: filters come and go, and none is left at the end."""
    said, live, count = [], {Subscribe: [], Advertise: []}, 0
    for _ in range(10):
        kind = chance.choice((Subscribe, Advertise))
        keys = [live[kind].pop(chance.randrange(len(live[kind])))] if live[kind] and chance.random() < 0.4 else []
        entries = []
        for _ in range(chance.choice((0, 1, 1, 2))):
            count += 1
            entries.append(Entry(count if peer == "north" else f"k{count}", chance.choice(pool)))
        live[kind] += [each.key for each in entries]
        if chance.random() < 0.5:
            said.append(kind(entries, keys))
        else:
            said.append((Unsubscribe if kind is Subscribe else Unadvertise)(keys, entries))
    for kind, keys in live.items():
        chance.shuffle(keys)
        said += [(Unsubscribe if kind is Subscribe else Unadvertise)((key,)) for key in keys]
    return said


@pytest.mark.parametrize("advertisements", [None, "flooding", "imperfect merging"])
@pytest.mark.parametrize("strategy", STRATEGIES)
@given(pool=pools, chance=st.randoms(use_true_random=False), event=events())
@example(
    pool=[tamis.parse("length(s) = 1"), tamis.parse("length(s) = 2"), tamis.parse("distance(x, y, 1, 2) < 3")],
    chance=Random(1),
    event={"s": "a"},
)
@settings(max_examples=8)
def test_no_message_that_passed_acceptance_raises(strategy, advertisements, pool, chance, event):
    spread = None if advertisements is None else strategy_named(advertisements)
    broker = Broker("me", strategy_named(strategy), advertisements=spread, algorithm="naive")
    broker.connect("south", 0.0)
    broker.connect("north", 0.0)
    broker.attach("ann")
    broker.receive(Hello((), (Entry(0, pool[0]),)), "south", 0.0)
    broker.receive(Hello(), "north", 0.0)
    queues = {peer: messages(pool, chance, peer) for peer in ("north", "ann")}
    number = 0
    while any(queues.values()):
        peer = chance.choice([name for name, queue in queues.items() if queue])
        try:
            broker.receive(queues[peer].pop(0), peer, 1.0)
        except MessageError as error:  # the one refusal that there is
            pytest.fail(f"a message of ours is none: {error}")
        number += 1
        if number % 5 == 0:
            broker.receive(Publish(number, event), "north", 1.0)
    assert not broker.table.of("ann") and not broker.table.of("north")
    assert [str(each.filter) for each in broker.told("south")] == (["TRUE"] if strategy == "flooding" else [])
