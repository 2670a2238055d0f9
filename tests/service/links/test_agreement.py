"""What two ends of a link of a graph say before and while it carries events."""

from __future__ import annotations

import pytest

from tamis.service.links.talking import LinkIdentity, RefusedError, Talk
from tamis.service.links.terms import LinkTerms
from tests.service.links.graph_world import Graph, GraphSite
from tests.service.links.tree import Client, event, read_event


def test_brokers_of_a_tree_and_of_a_graph_refuse_each_other():
    north, south = (
        Talk(LinkIdentity("net", name, is_graph=is_graph), b"1" * 16, lambda name: LinkTerms(), read_event)
        for name, is_graph in (("north", True), ("south", False))
    )
    with pytest.raises(RefusedError, match="a tree here and a graph there; expected the same topology"):
        south.receive(north.take_written())


def test_a_link_that_fails_is_replaced_and_what_waited_for_it_goes_the_new_way_once():
    graph = Graph([("b", "a"), ("c", "b"), ("c", "a")], site_type=GraphSite)
    graph.rest()
    idle = next(link for link in graph.links if tuple(sorted(link)) not in graph.tree_links())
    used = [link for link in graph.links if link != idle]
    here, there = used[0]
    reader, writer = Client(graph, there, "r"), Client(graph, here)
    reader.attach()
    reader.subscribe(it="TRUE")
    graph.rest()
    graph.cut(graph.ends[used[0]])
    writer.publish(event("/w", 1), event("/w", 2))
    graph.links = [link for link in graph.links if link != used[0]]
    for _ in range(5):
        while graph.step():
            pass
        graph.tick(1.0)
    assert reader.events == [("/w", 1), ("/w", 2)]
    assert not graph.neighbours(here)[there].is_routed
    assert tuple(sorted(idle)) in graph.tree_links()
