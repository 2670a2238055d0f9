"""Generated ranked subscriptions and streams, and the definition once more, written down independently of the package.

Attributes and values come from small pools, so that scores are equal often; times from small steps, so that events share an
instant, and leave at the instant of another's arrival.
"""

from __future__ import annotations

import math
from decimal import Decimal

from hypothesis import strategies as st

from tamis.topk import Ranked
from tamis.topk.windows import CountWindow, TimeWindow

STEPS = (0.0, 0.0, 0.5, 1.0, 1.0, 2.5)

windows = st.one_of(
    st.sampled_from([1, 2, 3, 5, 8, 20]).map(CountWindow),
    st.sampled_from([0.5, 1.0, 2.0, 3.5, 10.0, 1e-9]).map(TimeWindow),
)
numbers = st.one_of(
    st.integers(0, 4),
    st.sampled_from([0.5, 1.0, 1.5, 2.0]),
    st.sampled_from([0.1, -0.0, math.inf, -math.inf, math.nan, Decimal("0.1"), Decimal("1.50"), 2**53 + 1, 2**60]),
)
ugly = st.sampled_from([None, "x", True, 10**40, b"x", [1], Decimal("NaN")])

scores = st.sampled_from(
    [
        "x",
        "x",
        "y / x",
        "2 * x - y",
        "0.1 * x + 2D * y",
        "x + y + 3",
        "1 - x",
        "euclidean(array(x, y), array(1, 2))",
        "euclidean(array(x, y), array(3, 0))",
        "euclidean(array(x, y), array(0.5, 1.5D), array(4, 0.1))",
        "distance(x, y, 1, 2)",
        "distance(x, y, 0.5, -3)",
        "abs(x - y)",
        "greatest(abs(x - 1), 2 * abs(y - 2))",
        "greatest(abs(x - 1.5D), abs(y - 2) * 0.5D)",
        "abs(x - 1) + 2 * abs(y - 2)",
        "abs(x - 0.1) + abs(y - 1.5D)",
        "abs(x - 3)",
        "cosine(array(x, y), array(1, 2))",
        "cosine(array(x, y), array(-1, 0.5))",
        "cosine(array(x, y), array(0, 0))",
    ]
)
conditions = st.sampled_from(["TRUE", "TRUE", "c = 'a'", "x > 1", "y IS NULL OR x <> 2"])
ranked_subscriptions = st.builds(
    lambda score, k, window, where, order: Ranked(score, k, window, where, order=order),
    scores,
    st.sampled_from([1, 1, 2, 3, 7]),
    windows,
    conditions,
    st.sampled_from(["ASC", "DESC"]),
)


@st.composite
def events(draw):
    event = {"c": draw(st.sampled_from("ab"))}
    for name in "xy":
        event[name] = draw(ugly) if draw(st.integers(0, 11)) == 0 else draw(numbers)
        if draw(st.integers(0, 15)) == 0:
            del event[name]
    return event


@st.composite
def timed_keys(draw, most=40):
    """Keys with times: some equal, some none, bursts at one instant; sorted and reversed ones too."""
    keys = draw(st.lists(st.one_of(st.integers(0, 6).map(float), st.just(math.nan), st.floats(0, 6)), max_size=most))
    order = draw(st.sampled_from(["as they are", "worse and worse", "better and better"]))
    if order != "as they are":
        keys = sorted((key for key in keys if key == key), reverse=order == "better and better")
    now, times = 0.0, []
    for _ in keys:
        now += draw(st.sampled_from(STEPS))
        times.append(now)
    return keys, times


# -- The definition, from the formulas


def definition(keys, times, k, window, until=math.inf):
    """Return {place: when it is first among the best k} of a stream, by looking at every moment there is.

    A moment is an arrival, or a departure from a time window. At an arrival, everything is in the window that has not left before;
    at a departure, everything that leaves later.
    """
    if isinstance(window, CountWindow):
        moments = [
            (times[last], [place for place in range(last + 1) if place > last - window.events])
            for last in range(len(keys))
        ]
    else:
        leaves = [time + window.seconds for time in times]
        arrivals = [
            (times[last], 0, last, [place for place in range(last + 1) if leaves[place] >= times[last]])
            for last in range(len(keys))
        ]
        departures = [
            (at, 1, 0, [place for place in range(len(keys)) if times[place] <= at < leaves[place]])
            for at in sorted(set(leaves))
            if at <= until
        ]
        moments = [(at, inside) for at, _, _, inside in sorted(arrivals + departures)]
    entered = {}
    for at, inside in moments:
        scored = [place for place in inside if keys[place] == keys[place]]
        for place in scored:
            better = [other for other in scored if (keys[other], -other) < (keys[place], -place)]
            if len(better) < k and place not in entered:
                entered[place] = at
    return entered
