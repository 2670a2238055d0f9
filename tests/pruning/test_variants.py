"""Whatever is pruned where, every client gets exactly its events."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from tamis.pruning import DuplicateEntryError, Goal, PrunedTable, UnknownEntryError
from tests.pruning.test_sequencing import filters, share

VARIANTS = {
    "none": (None, None),
    "post": (None, Goal(share=0.6)),
    "pre": (Goal(threshold=0.3), None),
    "pre, one neighbour only": ({0: Goal(count=2), 2: Goal(share=1)}, None),
    "combined": (Goal(count=1), Goal(reduction=0.5)),
}
small_events = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 2), max_size=8)


class Line:
    """Brokers in a row, which forward subscriptions to everybody and events to whom they match."""

    def __init__(self, size, forwarded):
        self.tables = [PrunedTable(share, forwarded=forwarded) for _ in range(size)]
        self.sources = [{} for _ in range(size)]

    def subscribe(self, key, condition, home):
        waiting = [(home, None, condition, 0)]
        while waiting:
            at, source, version, hops = waiting.pop()
            others = [each for each in (at - 1, at + 1) if 0 <= each < len(self.tables) and each != source]
            sent = self.tables[at].receive(
                key, version, neighbours=others, is_local=source is None, distance=max(hops, 1)
            )
            self.sources[at][key] = source
            waiting += [(other, at, sent[other], hops + 1) for other in others]

    def publish(self, event, home):
        delivered, messages, waiting = set(), 0, [(home, None)]
        while waiting:
            at, source = waiting.pop()
            targets = set()
            for key, where in self.sources[at].items():
                if (where is None or where != source) and tamis.holds(self.tables[at].expression(key), event):
                    targets.add((key, None) if where is None else (None, where))
            delivered |= {key for key, where in targets if where is None}
            waiting += [(where, at) for _, where in targets if where is not None]
            messages += sum(where is not None for _, where in targets)
        return delivered, messages


@pytest.mark.parametrize("variant", VARIANTS)
@given(
    subscriptions=st.lists(st.tuples(filters, st.integers(0, 3)), max_size=6),
    published=st.lists(st.tuples(small_events, st.integers(0, 3)), max_size=4),
)
@settings(max_examples=40)
def test_clients_get_exactly_their_events_with_every_variant(variant, subscriptions, published):
    forwarded, kept = VARIANTS[variant]
    line = Line(4, forwarded)
    for key, (condition, home) in enumerate(subscriptions):
        line.subscribe(key, condition, home)
    if kept is not None:
        for table in line.tables:
            table.prune(kept)
    for event, home in published:
        delivered, messages = line.publish(event, home)
        assert delivered == {key for key, (condition, _) in enumerate(subscriptions) if tamis.holds(condition, event)}
        assert messages <= 3
    for table in line.tables:
        for key in list(table):
            table.remove(key)
        assert len(table) == 0 == table.others.leaf_count


def test_filters_of_ones_own_clients_are_never_touched():
    table = PrunedTable(share)
    table.receive("mine", "a = 1 AND b = 1", is_local=True)
    table.receive("theirs", "a = 1 AND b = 1")
    assert table.prune(Goal(share=1)) == ["theirs"]
    assert str(table.expression("mine")) == "a = 1 AND b = 1" and "AND" not in str(table.expression("theirs"))


def test_keys_are_known_once():
    table = PrunedTable(share)
    table.receive(1, "a = 1", is_local=True)
    table.receive(2, "a = 1")
    for key, is_local in ((1, False), (2, True)):
        with pytest.raises(DuplicateEntryError):
            table.receive(key, "a = 1", is_local=is_local)
    assert list(table) == [1, 2] and len(table) == 2 and 3 not in table
    for ask in (table.remove, table.expression):
        with pytest.raises(UnknownEntryError):
            ask(3)
