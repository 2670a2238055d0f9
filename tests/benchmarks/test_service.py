"""The benchmark of the service at toy size: every row is there, and nothing is wrong."""

from __future__ import annotations

import pytest
from benchmarks.service import WINDOWS, service


@pytest.fixture(scope="module")
def rows():
    sizes = {"subscription_count": 200, "subscriber_count": 6, "connected_count": 3, "event_count": 64}
    return list(service(**sizes, steady_per_s=40, steady_s=0.5, logged_count=200, socket_count=8))


def test_every_question_has_its_rows(rows):
    named = [row["what"] for row in rows]
    assert [each for each in named if not each.startswith("S4 ")] == [
        "S1 frames of 16", "S2 single POSTs", "S5 sync=always", "S8 100 changes/s", "S5 sync=never",
        "S9 start until ready", "S7 one catches up", "S7 all catch up", "S10 idle WebSockets",
    ]  # fmt: skip
    for window in WINDOWS:
        assert f"S4 tamis, window {window}" in named
        assert f"S4 JetStream, window {window}" in named


def test_everything_comes_and_is_what_the_matcher_finds(rows):
    assert [row for row in rows if row["wrong"]] == []
    by_name = {row["what"]: row for row in rows}
    assert by_name["S1 frames of 16"]["deliveries"] > 0
    assert by_name["S7 all catch up"]["deliveries"] > 0
