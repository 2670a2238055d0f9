"""What may be dropped: properties that together leave no choice."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from tamis.service.log.base import Extent
from tamis.service.log.retention import Retention

SECONDS = st.none() | st.sampled_from([0.0, 1.0, 3.0, 1e9, math.inf])


@st.composite
def extents(draw):
    first, time_us, parts = draw(st.integers(1, 50)), 0, []
    for _ in range(draw(st.integers(0, 6))):
        last = first + draw(st.integers(0, 5))
        time_us += draw(st.integers(0, 2)) * 1_000_000
        parts.append(Extent(first, last, time_us, draw(st.integers(0, 10))))
        first = last + 1 + draw(st.integers(0, 3))
    return parts


@given(
    parts=extents(),
    retention=st.builds(Retention, SECONDS, st.none() | st.integers(0, 40), SECONDS),
    now_s=st.integers(0, 15),
    needed=st.none() | st.integers(0, 90),
)
def test_what_is_dropped_has_a_reason_and_so_has_what_is_kept(parts, retention, now_s, needed):
    keep_s, keep_bytes, hold_s = retention
    before = retention.drop_before(parts, now_s * 1_000_000, needed)
    assert before in [part.first for part in parts[:1]] + [part.last + 1 for part in parts] + [0] * (not parts)
    dropped = [part for part in parts if part.last < before]
    kept = parts[len(dropped) :]

    def age_s(part):
        return now_s - part.time_us / 1e6

    def is_held(part):
        return needed is not None and part.last >= needed and (hold_s is None or age_s(part) <= hold_s)

    def is_superfluous(part):
        newer = parts[parts.index(part) :]
        is_too_much = keep_bytes is not None and sum(other.size_bytes for other in newer) > keep_bytes
        return (keep_s is not None and age_s(part) > keep_s) or (is_too_much and len(newer) > 1)

    assert all(is_superfluous(part) and not is_held(part) for part in dropped)
    assert not kept or is_held(kept[0]) or not is_superfluous(kept[0])


def test_without_limits_everything_is_kept():
    parts = [Extent(5, 9, 0, 10), Extent(10, 12, 1, 10)]
    assert Retention().drop_before(parts, now_us=1 << 60) == 5
    assert Retention().drop_before([], now_us=0) == 0
