"""The benchmark of trees in graphs at toy size."""

from __future__ import annotations

from benchmarks.trees_of_graphs import trees_of_graphs


def test_both_kinds_of_trees_deliver_the_same_and_those_of_sources_are_not_longer():
    one, several = trees_of_graphs((6,), (0.2,), events_each=2)
    assert (one["trees"], several["trees"]) == ("one", "one for each source")
    assert one["wrong"] == several["wrong"] == 0
    assert several["hops"] <= one["hops"]
    assert several["entries"] > one["entries"]
