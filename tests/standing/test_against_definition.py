"""The processor tells what the definition tells: by chance, event by event and by the batch."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis.standing import NaiveStanding, Standing
from tests.lengths import so_many
from tests.standing.stories import events, gaps, play, stories, texts


def said(told):
    return [[(each.subscription, each.events, each.at, each.change) for each in some] for some in told]


@settings(max_examples=600, deadline=None)
@given(stories())
def test_the_processor_tells_what_the_definition_tells(story):
    assert said(play(Standing(retention=3), story)) == said(play(NaiveStanding(retention=3), story))


@settings(max_examples=300, deadline=None)
@given(stories(lateness=1.0))
def test_it_does_so_with_times_out_of_order(story):
    one, two = Standing(lateness=1.0, retention=3), NaiveStanding(lateness=1.0, retention=3)
    assert said(play(one, story)) == said(play(two, story))


@settings(max_examples=300, deadline=None)
@given(st.lists(texts, min_size=1, max_size=5), st.lists(st.tuples(events, gaps), min_size=2, max_size=40), st.data())
def test_a_batch_tells_what_its_events_tell_one_by_one(wanted, given_events, data):
    times, now = [], 0.0
    for _, gap in given_events:
        now += gap
        times.append(now)
    rows = [event for event, _ in given_events]
    subscriptions = dict(enumerate(wanted))
    single, batch = Standing(retention=3), Standing(retention=3)
    single.add_many(subscriptions)
    batch.add_many(subscriptions)
    cut = data.draw(st.integers(0, len(rows)))
    one_by_one = [each for row, at in zip(rows, times, strict=True) for each in single.process(row, at)]
    together = batch.process_batch(rows[:cut], times[:cut]) + batch.process_batch(rows[cut:], times[cut:])
    # At one time a batch is in order of registration, whichever event it was.
    assert sorted(map(repr, together)) == sorted(map(repr, one_by_one))
    assert [each.at for each in together] == [each.at for each in one_by_one]
    assert said([single.advance(now + 100)]) == said([batch.advance(now + 100)])


@pytest.mark.slow
@settings(max_examples=so_many(50_000), deadline=None)
@given(stories())
def test_the_processor_tells_what_the_definition_tells_in_very_many_histories(story):
    assert said(play(Standing(retention=3), story)) == said(play(NaiveStanding(retention=3), story))


@pytest.mark.slow
@settings(max_examples=so_many(50_000), deadline=None)
@given(stories(lateness=1.0))
def test_it_does_so_with_times_out_of_order_in_very_many_histories(story):
    one, two = Standing(lateness=1.0, retention=3), NaiveStanding(lateness=1.0, retention=3)
    assert said(play(one, story)) == said(play(two, story))
