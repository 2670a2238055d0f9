"""A trial says what the definition says of the events that its principal may receive, and of no others."""

from __future__ import annotations

from itertools import count
from time import monotonic

from hypothesis import given
from hypothesis import strategies as st

import tamis
from tamis.service.cloud_events import record_of
from tamis.service.comparing import Named, compared
from tamis.service.history import Range
from tamis.service.nearness import shortfall
from tamis.service.trials import Budget, tried

from .test_history import FILTERS, VALUES, Blocks, bodies_of


def events_in(log, first, until):
    return [
        (block.first + index, body)
        for block in log.blocks
        for index, body in enumerate(block.events)
        if first <= block.first + index < until
    ]


@given(
    st.lists(st.fixed_dictionaries({}, optional={"price": VALUES, "region": VALUES}), max_size=90),
    st.lists(st.sampled_from([1, 2, 7, 70]), min_size=90, max_size=90),
    st.integers(1, 60),
    st.integers(1, 200),
    st.sampled_from(FILTERS),
    st.none() | st.sampled_from(FILTERS),
)
def test_a_trial_counts_what_holds_says_of_what_may_be_seen(datas, sizes, first, until, where, receive):
    log = Blocks(bodies_of(datas), sizes)
    wanted = tamis.parse(where)
    allowed = None if receive is None else tamis.parse(receive)
    visible = [
        (position, body)
        for position, body in events_in(log, first, until)
        if allowed is None or tamis.holds(allowed, record_of(body))
    ]
    matching = [position for position, body in visible if tamis.holds(wanted, record_of(body))]
    trial = tried(log, Range(first, until), wanted, allowed, None, clock=monotonic, budget=Budget(10**9, 1e9))
    assert (trial.seen, trial.matched) == (len(visible), len(matching))
    assert [each.position for each in trial.examples] == matching[-5:]
    assert trial.is_complete and trial.through == max(first, until) - 1
    _, spans = trial.spans()
    assert sum(span.seen for span in spans) == trial.seen and sum(span.matched for span in spans) == trial.matched
    near = [(each.shortfall, each.position) for each in trial.near_misses]
    others = [(shortfall(wanted, record_of(body)), position) for position, body in visible if position not in matching]
    assert near == sorted(others, key=lambda each: (each[0], -each[1]))[:5]


def test_a_trial_that_has_used_up_its_budget_says_how_far_it_came():
    log = Blocks(bodies_of([{"price": 1}] * 20), [5] * 4)
    wanted = tamis.parse("price = 1")
    trial = tried(log, Range(1, 1_000), wanted, None, None, clock=monotonic, budget=Budget(events=7))
    assert not trial.is_complete and trial.matched == 10
    rest = tried(log, Range(trial.through + 1, 1_000), wanted, None, None, clock=monotonic)
    assert rest.is_complete and rest.matched == 10
    ticks = count()
    hurried = tried(log, Range(1, 1_000), wanted, None, None, clock=lambda: next(ticks), budget=Budget(seconds=2))
    assert not hurried.is_complete and 0 < hurried.matched < 20


def test_a_trial_of_nothing_is_complete():
    trial = tried(Blocks([], []), Range(5, 5), tamis.parse("TRUE"), None, None, clock=monotonic)
    assert trial.is_complete and trial.seen == 0 and trial.spans() == (1, [])


def test_spans_are_as_long_as_the_time_asks_for():
    log = Blocks(bodies_of([{"price": 1}] * 3), [1, 1, 1])
    times = (0, 3_600_000_000, 86_400_000_000)
    log.blocks = [
        type(block)(block.first, time, block.events, block.flags) for block, time in zip(log.blocks, times, strict=True)
    ]
    trial = tried(log, Range(1, 100), tamis.parse("TRUE"), None, None, clock=monotonic)
    length, spans = trial.spans()
    assert length == 900 and len(spans) == 97
    assert [index for index, span in enumerate(spans) if span.seen] == [0, 4, 96]


def test_a_filter_is_compared_with_what_one_has_as_long_as_there_is_time():
    mine = [
        Named("ann", key, tamis.parse(text))
        for key, text in {
            "wider": "price < 20",
            "equal": "NOT price >= 10",
            "narrower": "price < 5",
            "other": "bids = 3",
        }.items()
    ]
    result = compared(tamis.parse("price < 10"), mine, None, clock=monotonic, longest_s=1e9)
    assert [[each.key for each in group] for group in (result.covered_by, result.same, result.covers)] == [
        ["wider"], ["equal"], ["narrower"],
    ]  # fmt: skip
    assert result.compared == 4 and result.is_complete
    ticks = count()
    hurried = compared(tamis.parse("price < 10"), mine, None, clock=lambda: next(ticks), longest_s=3)
    assert not hurried.is_complete and hurried.compared == 2


def test_behind_very_many_events_the_latest_are_still_looked_at(monkeypatch):
    monkeypatch.setattr("tamis.service.trials.NEARNESS_JUDGED", 10)
    datas = [{"price": 30, "bids": 9}] * 40 + [{"price": 30, "bids": 2}]
    trial = tried(
        Blocks(bodies_of(datas), [5] * 9),
        Range(1, 1_000),
        tamis.parse("price < 20 AND bids < 3"),
        None,
        None,
        clock=monotonic,
    )
    assert [each.shortfall for each in trial.near_misses] == [1, 2, 2, 2, 2]
