"""A million subscriptions, as a data engineer has them: a table of texts."""

from __future__ import annotations

import numpy as np
import pytest

import tamis
from tamis.matching import Matcher
from tamis.workloads import Synthetic

MOST_BYTES = 1 << 30


@pytest.mark.slow
def test_a_million_subscriptions_of_five_predicates_register_from_a_table_of_texts_within_a_gigabyte():
    workload = Synthetic("W1")
    table = workload.subscriptions(1_000_000, seed=1)
    matcher = Matcher()
    matcher.add_many(table)
    assert len(matcher) == 1_000_000
    assert matcher.memory() <= MOST_BYTES
    events = workload.events(256, seed=2)
    found = matcher.match_batch(events)
    assert matcher.memory() <= MOST_BYTES
    # Every match is one, and of some subscriptions every one is found.
    pairs = set(zip(found["event"].to_pylist(), found["subscription"].to_pylist(), strict=True))
    assert len(pairs) == found.num_rows > 50_000
    rows, ids = events.to_pylist(), table["subscription_id"].to_pylist()
    chance = np.random.default_rng(3)
    for event, subscription in chance.permutation(sorted(pairs))[:500].tolist():
        assert matcher.explain(subscription, rows[event]).truth
    some = chance.choice(len(ids), 300, replace=False).tolist()
    for number in some:
        expression = tamis.parse(table["condition"][number].as_py())
        expected = {event for event, row in enumerate(rows) if tamis.holds(expression, row)}
        assert {event for event in range(len(rows)) if (event, ids[number]) in pairs} == expected
