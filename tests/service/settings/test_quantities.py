from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.service.settings import Duration, KeepLimits, Size, Sync
from tamis.service.settings.quantities import BYTES, SECONDS

seconds = st.one_of(st.sampled_from(list(SECONDS.values())), st.integers(0, 10**9).map(float), st.floats(0.001, 1e6))


@given(count=st.integers(0, 10**6), unit=st.sampled_from(sorted(SECONDS)), space=st.sampled_from(["", " ", "  "]))
def test_a_duration_is_its_number_times_its_unit(count, unit, space):
    assert Duration.read(f" {count}{space}{unit} ") == pytest.approx(count * SECONDS[unit])


@given(count=st.integers(0, 10**6), unit=st.sampled_from(sorted(BYTES)))
def test_a_size_is_its_number_times_its_unit(count, unit):
    assert Size.read(f"{count}{unit}") == count * BYTES[unit]


@given(st.integers(0, 10**9))
def test_what_is_written_reads_as_the_same(number):
    assert Duration.read(str(Duration(number))) == number
    assert Size.read(str(Size(number))) == number
    assert Sync.read(str(Sync(number))) == number
    for keep in (KeepLimits(), KeepLimits(float(number)), KeepLimits(None, number), KeepLimits(float(number), number)):
        assert KeepLimits.read(str(keep)) == keep


def test_syncing_is_always_never_or_a_duration():
    assert [Sync.read(text) for text in ("always", "never", "0.2s")] == [0.0, math.inf, 0.2]
    assert [str(Sync(value)) for value in (0.0, math.inf, 0.2)] == ["always", "never", "0.2s"]


UGLY = [
    "",
    "d",
    "7",
    "7 days",
    "-1s",
    "1e3s",
    "٣s",
    "nan",
    "inf",
    "1s1s",
    "7d20GB",
    None,
    True,
    [],
    {},
    -1,
    math.nan,
    math.inf,
    1e300,
    b"7d",
]


@pytest.mark.parametrize("written", UGLY, ids=repr)
@pytest.mark.parametrize("kind", [Duration, Size, Sync], ids=lambda kind: kind.__name__)
def test_what_is_no_quantity_is_refused_and_what_would_be_right_is_said(kind, written):
    with pytest.raises(ValueError, match=r"; expected .*such as"):
        kind.read(written)


@pytest.mark.parametrize("written", [*UGLY, "always", "7d, 7d", "7d, 8d, 9GB", ["7d", 5], "forever, 7d"], ids=repr)
def test_what_does_not_say_what_to_keep_is_refused(written):
    with pytest.raises(ValueError, match="; expected "):
        KeepLimits.read(written)
