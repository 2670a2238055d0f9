"""No event is lost end to end, wherever and however filters and advertisements are pruned."""

from __future__ import annotations

import pytest

from tamis.simulation import Scenario, simulate

WAYS = {
    "before filters are sent": {"prunes": True},
    "where filters are kept, now and then": {"prunes_tables": True},
    "where filters are kept, as they come": {"prunes_as_they_come": True},
    "before and after": {"prunes": True, "prunes_tables": True, "prunes_as_they_come": True},
    "advertisements before they are sent": {"advertisements": "covering", "prunes_advertisements": True},
    "advertisements where they are kept, as they come": {"advertisements": "simple", "heeds_less": True},
    "advertisements where they are kept, in bulk": {"advertisements": "simple", "prunes_heeded": True},
    "everything everywhere": {
        "advertisements": "merging",
        "prunes": True,
        "prunes_tables": True,
        "prunes_as_they_come": True,
        "prunes_advertisements": True,
        "heeds_less": True,
        "prunes_heeded": True,
    },
}


@pytest.mark.parametrize("way", WAYS)
def test_nothing_is_lost_by_pruning(way):
    for seed in range(9):
        run = simulate(Scenario.of_seed(seed, is_crowded=False, **WAYS[way]))
        assert run.problems == [], f"replay with {run.scenario}"
