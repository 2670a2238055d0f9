"""A group of a subscription by itself tells what it tells among all others, also if it is put away after every event."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis.standing import SavedStateError, Standing, parse_subscription
from tamis.standing.groups import group_of
from tamis.standing.solo import Solo
from tamis.topk import SettingError
from tests.standing.stories import events, gaps, texts


@settings(max_examples=300, deadline=None)
@given(texts, st.lists(st.tuples(events, gaps), min_size=1, max_size=25), st.booleans())
def test_groups_apart_tell_what_they_tell_together(text, given_events, is_put_away):
    wanted = parse_subscription(text)
    standing = Standing(retention=3)
    standing.add("s", wanted)
    solos, told, expected, now = {}, [], [], 0.0
    for number, (event, gap) in enumerate(given_events):
        now += gap
        expected += standing.process(event, now, number)
        group = repr(group_of(event, getattr(wanted, "per", ())))
        solo = solos.get(group) or Solo(wanted, retention=3)
        told += solo.take(now, number, event)
        solos[group] = Solo(wanted, solo.saved(), retention=3) if is_put_away else solo
    expected += standing.advance(now + 100)
    for solo in solos.values():
        told += solo.advance(now + 100, inclusive=True)
    key = lambda each: (each.at, [str(event) for event in each.events], str(each.change))  # noqa: E731
    assert sorted(map(key, told)) == sorted(map(key, expected))


def test_the_state_of_another_text_is_not_taken_up():
    one, two = parse_subscription("CHANGE TO a"), parse_subscription("CHANGE TO a UNTIL b")
    solo = Solo(one)
    assert len(solo.take(0.0, 1, {"a": True})) == 1
    assert Solo(one, solo.saved()).take(1.0, 2, {"a": True}) == []
    assert len(Solo(two, solo.saved()).take(1.0, 2, {"a": True})) == 1
    with pytest.raises(SavedStateError):
        Solo(one, solo.saved().replace('"format":1', '"format":9'))
    with pytest.raises(SettingError):
        Solo(parse_subscription("TOP 1 BY a OVER 1 HOUR"))
