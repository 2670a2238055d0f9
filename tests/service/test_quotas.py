from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.service.errors import TooLargeError, TooManyError
from tamis.service.messages import Principal
from tamis.service.quotas import ROUNDING_S, Connections, Quotas
from tamis.service.settings import Duration, LimitSettings, Size

ANN, BOB = Principal("ann"), Principal("bob")


def limits(rate: float, burst_s: float = 1.0, batch: int = 1) -> LimitSettings:
    return LimitSettings(
        events_per_s=rate, bytes_per_s=Size(0), subscriptions_per_s=0.0, burst=Duration(burst_s), batch_events=batch
    )


requests = st.lists(st.tuples(st.floats(0, 3), st.integers(0, 12)), max_size=60)


class Plain:
    """The definition: a bucket with a level, filled as time passes."""

    def __init__(self, rate: float, capacity: float) -> None:
        self.rate, self.capacity, self.level, self.at = rate, capacity, capacity, 0.0

    def level_at(self, now: float) -> float:
        return min(self.capacity, self.level + (now - self.at) * self.rate)

    def take(self, amount: int, now: float) -> None:
        self.level, self.at = self.level_at(now) - amount, now


@given(st.sampled_from([0.5, 1.0, 3.0, 7.7]), st.floats(0, 4), st.integers(1, 12), requests, st.floats(0, 1e9))
def test_a_bucket_admits_what_its_definition_admits(rate, burst_s, batch, steps, start):
    quotas = Quotas(limits(rate, burst_s, batch))
    capacity = max(rate * burst_s, batch)
    plain, now = Plain(rate, capacity), start
    plain.at = now
    slack = 1e-4 * max(1.0, rate)  # floats near a billion seconds are 1e-7 apart
    for pause_s, amount in steps:
        now += pause_s
        level = plain.level_at(now)
        try:
            quotas.take(ANN, events=amount, now=now)
        except TooLargeError:
            assert amount > capacity
        except TooManyError as refused:
            retry_s = refused.retry_s
            assert level < amount + slack
            assert retry_s == pytest.approx((amount - level) / rate, abs=1e-3)
        else:
            assert level > amount - slack
            plain.take(amount, now)


@given(st.sampled_from([0.5, 1.0, 3.0, 7.7, 50_000.0]), st.floats(0, 4), requests)
def test_no_while_admits_more_than_its_rate_and_one_burst(rate, burst_s, steps):
    quotas = Quotas(limits(rate, burst_s, batch=12))
    capacity, now, taken = max(rate * burst_s, 12), 0.0, []
    for pause_s, amount in steps:
        now += pause_s
        try:
            quotas.take(ANN, events=amount, now=now)
        except TooManyError:
            continue
        taken.append((now, amount))
    for first in range(len(taken)):
        for last in range(first, len(taken)):
            while_s = taken[last][0] - taken[first][0]
            amount = sum(amount for _, amount in taken[first : last + 1])
            assert amount <= capacity + rate * (while_s + 2 * ROUNDING_S) + 1e-6


@given(st.sampled_from([0.1, 1.0, 3.3, 1e6]), requests, st.floats(0, 1e9))
def test_who_waits_as_long_as_it_was_told_is_let_in(rate, steps, start):
    quotas, now = Quotas(limits(rate, batch=12)), start
    for pause_s, amount in steps:
        now += pause_s
        try:
            quotas.take(ANN, events=amount, now=now)
        except TooManyError as refused:
            retry_s = refused.retry_s
            assert retry_s > 0
            now += retry_s
            quotas.take(ANN, events=amount, now=now)


def test_a_refusal_takes_nothing_and_waits_for_the_slowest():
    quotas = Quotas(
        LimitSettings(events_per_s=1.0, bytes_per_s=Size(10), subscriptions_per_s=1.0, batch_events=10, event_bytes=Size(10),
                      batch_bytes=Size(100), texts=5, burst=Duration(0))
    )  # fmt: skip
    quotas.take(ANN, events=10, size_bytes=100, now=0.0)
    for _ in range(5):
        with pytest.raises(
            TooManyError, match=r"used up its bytes; expected at most 10 a second \(limits.bytes_per_s\)"
        ) as refused:
            quotas.take(ANN, events=1, size_bytes=100, subscriptions=5, now=0.0)
        assert refused.value.retry_s == pytest.approx(10.0)
    quotas.take(ANN, subscriptions=5, now=0.0)
    quotas.take(BOB, events=10, now=0.0)


def test_what_can_never_pass_is_too_large():
    with pytest.raises(
        TooLargeError, match=r"11 events at once are more than limits.events_per_s ever allows; expected at most 10"
    ):
        Quotas(limits(1.0, batch=10)).take(ANN, events=11, now=0.0)


def test_a_rate_of_zero_is_no_limit():
    quotas = Quotas(limits(0.0))
    for _ in range(10):
        quotas.take(ANN, events=10**9, size_bytes=10**12, subscriptions=10**9, now=0.0)


def test_full_buckets_are_forgotten():
    quotas = Quotas(limits(1.0, batch=10))
    for number in range(20_000):
        quotas.take(Principal(f"p{number}"), events=1, now=number * 0.01)
    assert len(quotas) <= 2_048, "a hundred are not full at any time"
    quotas.take(ANN, events=10, now=1e6)
    with pytest.raises(TooManyError):
        quotas.take(ANN, events=1, now=1e6)


def test_other_limits_count_from_then_on_and_who_waits_still_waits():
    quotas = Quotas(limits(1.0, batch=10))
    quotas.take(ANN, events=10, now=0.0)
    quotas.change(limits(10.0, burst_s=1.0, batch=10))
    with pytest.raises(TooManyError):
        quotas.take(ANN, events=10, now=0.0)
    quotas.take(ANN, events=10, now=10.0)


def test_connections_are_counted_of_each_and_of_all():
    connections = Connections(LimitSettings(connections=3, connections_each=2))
    connections.enter(ANN)
    connections.enter(ANN)
    with pytest.raises(TooManyError, match=r"limits.connections_each"):
        connections.enter(ANN)
    connections.enter(BOB)
    with pytest.raises(TooManyError, match=r"limits.connections at a time"):
        connections.enter(BOB)
    connections.leave(ANN)
    connections.enter(BOB)
    for principal in (ANN, BOB, BOB):
        connections.leave(principal)
    assert connections.count == 0
    connections.enter(ANN)
