"""Does a pass find for a few what it finds among all, and does its reader leave nothing out?"""

from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from tamis.routing import Broker, Entry, Subscribe
from tamis.service.interest import CloseInterest, Interest
from tamis.service.log.base import Block
from tamis.service.log.memory import MemoryLog
from tamis.service.log.ranges import RangeReader
from tamis.service.messages import SubscriberSettings
from tamis.service.subscribers import Subscriber, Version

TEXTS = ("n < 3", "n % 2 = 0", "kind = 'a'", "kind IS NULL", "n >= 3 AND kind <> 'a'", "TRUE", "FALSE", "n < 3")
records = st.lists(st.fixed_dictionaries({}, optional={"n": st.integers(0, 6), "kind": st.sampled_from("ab")}))
steps = st.lists(st.tuples(st.sampled_from("xyz"), st.sampled_from("kl"), st.sampled_from(TEXTS)), max_size=6)


def unordered(hits):
    return {name: [(index, sorted(keys)) for index, keys in of_name] for name, of_name in hits.items()}


@settings(deadline=None)
@given(st.lists(st.tuples(steps, records, st.sets(st.sampled_from("xyz"))), max_size=4))
def test_a_pass_for_a_few_finds_what_a_pass_for_all_finds_whatever_changes_between_steps(rounds):
    broker = Broker("a", algorithm="naive")
    interest, close = Interest(broker), CloseInterest(None)
    subscribers = {name: Subscriber(name, "root", True, SubscriberSettings(), 0) for name in "xyz"}
    for name in subscribers:
        broker.attach(name)
    number = 0
    for changes, group, names in rounds:
        for name, key, text in changes:
            number += 1
            expression = tamis.parse(text)
            subscribers[name].subscriptions[key] = Version(key, number, text, expression, expression, 0)
            broker.receive(Subscribe((Entry(key, expression),)), name, 0.0)
        asked = [subscribers[name] for name in sorted(names)]
        if group:
            assert unordered(close.hits(group, asked)) == unordered(interest.hits(group, names))


@given(
    st.lists(st.tuples(st.integers(1, 4), st.integers(0, 2)), min_size=1, max_size=12),
    st.lists(st.tuples(st.integers(1, 40), st.integers(1, 9)), max_size=12),
)
def test_a_reader_that_goes_on_returns_what_the_log_has_wherever_it_is_asked(sizes, reads):
    log = MemoryLog()
    first = 1
    for count, gap in sizes:
        first += gap
        log.append([Block(first, 0, (b"{}",) * count, bytes(count))])
        first += count
    reader = RangeReader(log)
    for begin, count in reads:
        if begin > log.last:
            continue
        blocks, through = reader.read(begin, log.last, count)
        assert begin <= through <= log.last
        assert blocks == list(log.read(begin, through))
        assert through == log.last or sum(len(block.events) for block in blocks) >= count
