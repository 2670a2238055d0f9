from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis.matching import DuplicateIdError, Matcher
from tamis.matching.uniting import mentioned, united
from tests.strategies import conditions, events


@settings(max_examples=60)
@given(
    parts=st.lists(st.lists(st.tuples(conditions, st.integers(0, 3), st.booleans()), max_size=6), max_size=4),
    batch=st.lists(events(), max_size=40),
)
def test_matchers_compiled_apart_match_together_as_one_that_was_never_apart(parts, batch):
    matchers, whole, number = [], Matcher(), 0
    for part in parts:
        matcher, removed = Matcher(), []
        for condition, priority, is_removed in part:
            matcher.add(number, condition, priority=priority)
            if is_removed:
                removed.append(number)
            else:
                whole.add(number, condition, priority=priority)
            number += 1
        matcher.match_batch(batch)
        matcher.remove_many(removed)
        matchers.append(matcher)
    together = united(matchers)
    assert len(together) == len(whole)
    assert [together.match(event) for event in batch] == [whole.match(event) for event in batch]
    assert together.list_batch(batch).to_pylist() == whole.list_batch(batch).to_pylist()
    shown = [{name: event[name] for name, *_ in mentioned(together) if name in event} for event in batch]
    assert [together.match(event) for event in shown] == [whole.match(event) for event in batch]
    together.add("one more", "TRUE")
    assert all("one more" in together.match(event) for event in batch)


def test_an_id_may_be_registered_in_one_of_them_only():
    one, two = Matcher(), Matcher()
    one.add("cheap", "price < 20")
    two.add("cheap", "price < 30")
    with pytest.raises(DuplicateIdError):
        united([one, two])
