"""Traffic in parts is the same whoever makes which part."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.workloads import WORKLOADS, Expressions, ParameterError
from tamis.workloads.distributions import OPERAND_DISTRIBUTIONS
from tamis.workloads.parts import TrafficOrder
from tamis.workloads.timed import PUBLISHED_AT, published_rates, timed

AUCTION = WORKLOADS["auction"]()


@given(st.integers(0, 30), st.integers(4, 15), st.sampled_from(["events", "subscriptions", "advertisements"]))
def test_parts_are_numbered_through_and_the_first_is_what_the_workload_makes(count, part_rows, kind):
    order = TrafficOrder(AUCTION, kind, count, seed=3, part_rows=part_rows)
    parts = list(order.parts())
    assert sum(part.num_rows for part in parts) == count and len(parts) == order.part_count >= 1
    assert order.part(order.part_count - 1).equals(parts[-1])
    assert parts[0].equals(getattr(AUCTION, kind)(min(count, part_rows), seed=3))
    if kind != "events":
        assert [number for part in parts for number in part[0].to_pylist()] == list(range(count))
    if len(parts) > 2:
        assert (
            not parts[0].drop_columns(parts[0].column_names[0]).equals(parts[1].drop_columns(parts[1].column_names[0]))
        )


@given(st.integers(1, 60), st.integers(8, 50), st.floats(0.01, 1e4))
def test_times_ascend_over_all_parts_at_the_rate(count, part_rows, rate):
    parts = list(TrafficOrder(AUCTION, "events", count, 1, rate, part_rows).parts())
    times = pa.chunked_array([chunk for part in parts for chunk in part[PUBLISHED_AT].chunks])
    taken = pc.subtract(times.cast(pa.int64()), 1_120_780_800_000_000).to_pylist()  # the 8th of July 2005
    assert taken == sorted(taken) and taken[0] >= 0 and taken[-1] <= count / rate * 1e6
    for number, part in enumerate(parts[:-1]):
        assert taken[(number + 1) * part_rows - 1] <= (number + 1) * part_rows / rate * 1e6
        assert part[PUBLISHED_AT].type == pa.timestamp("us", tz="UTC")


def test_gaps_between_events_are_those_of_a_poisson_process():
    table = timed(pa.table({"a": range(20_000)}), published_rates()["books"], seed=1)
    gaps = pc.divide(pc.pairwise_diff(table[PUBLISHED_AT].combine_chunks().cast(pa.int64())).cast("double"), 1e6)
    mean = 1 / 24.61
    assert pc.mean(gaps).as_py() == pytest.approx(mean, rel=0.02)
    assert pc.stddev(gaps).as_py() == pytest.approx(mean, rel=0.05)  # of an exponential distribution


def test_events_with_times_of_their_own_get_no_others():
    with pytest.raises(ParameterError, match="left out where events have times"):
        timed(pa.table({PUBLISHED_AT: [1]}), 1.0, seed=1)


@pytest.mark.parametrize("distribution", OPERAND_DISTRIBUTIONS)
def test_skewed_operands_leave_the_share_of_matches_where_it_was_asked_for(distribution):
    workload = Expressions(operand_distribution=distribution, match_share=0.15)
    achieved = workload.achieved(1_500, 150, seed=1)
    assert achieved.match_share == pytest.approx(0.15, abs=0.03)
    texts = workload.subscriptions(300, seed=1)["condition"].to_pylist()
    operands = [int(word.strip("()")) for text in texts for word in text.split() if word.strip("()").isdigit()]
    low = sum(operand <= 500_000 for operand in operands) / len(operands)
    expected = {"uniform": (0.2, 0.3), "normal": (0.6, 0.75), "zipf": (0.85, 1), "reversed_normal": (0, 0.05)}
    least, most = expected.get(distribution, (0, 0.06))
    assert least <= low <= most


def test_where_values_are_pooled_operands_have_no_other_distribution():
    with pytest.raises(ParameterError, match="uniform where = has a share of matches"):
        Expressions(comparison="=", operand_distribution="zipf")
    assert Expressions(comparison="=", match_share=None, operand_distribution="zipf").subscriptions(5, 1).num_rows == 5
