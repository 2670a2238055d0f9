"""Neighbours are asked for later steps of a sequence only while a run of it is open, if a node is told to."""

from __future__ import annotations

import pytest

from tamis.service.messages import Attach, Close, Forget
from tamis.service.node import Node
from tests.service.links.remembering_tree import RememberingWorld
from tests.service.links.tree import Client, Site, Tree, event

FIRST, WHOLE = {"kind = 1"}, {"kind = 1 OR kind = 2"}
PAIR = "SEQUENCE kind = 1 THEN kind = 2 WITHIN 6 SECONDS"


def while_open(*arguments, **more) -> Node:
    return Node(*arguments, **more, steps_while_open=True)


class ThriftySite(Site):
    """A site that asks for later steps only while a run is open."""

    node_type = staticmethod(while_open)


def made() -> tuple[Tree, Client, Client]:
    """Return two brokers, with a subscriber at home and a publisher away."""
    tree = Tree([("away", "home")], "simple", site_type=ThriftySite)
    tree.rest()
    ann, shop = Client(tree, "home", "ann"), Client(tree, "away")
    ann.subscribe(settle_s=60.0, pair=PAIR)
    ann.attach()
    tree.rest()
    return tree, ann, shop


def asked(tree: Tree) -> set[str]:
    """Return what home has told away."""
    neighbour = tree.neighbour("home", "away")
    return {str(entry.filter) for entry in tree.sites["home"].node._broker.told(neighbour.peer)}


def crossed(tree: Tree) -> int:
    return tree.neighbour("away", "home").counts["sent"]


def test_later_steps_are_asked_for_while_a_run_is_open_and_no_longer():
    tree, ann, shop = made()
    assert asked(tree) == FIRST
    shop.publish(event("/shop", 1, kind=2))  # which fulfils nothing yet
    tree.rest()
    assert crossed(tree) == 0
    shop.publish(event("/shop", 2, kind=1))
    tree.rest()
    assert asked(tree) == WHOLE
    shop.publish(event("/shop", 3, kind=2))
    tree.rest()
    assert crossed(tree) == 2
    assert [record for record in ann.events if record == ("/shop", 3)] == [("/shop", 3)]
    for _ in range(9):
        tree.tick()
        tree.rest()
    assert asked(tree) == FIRST


def test_a_run_that_begins_while_its_subscriber_is_away_is_noticed():
    tree, ann, shop = made()
    ann.ask(Close())
    shop.publish(event("/shop", 1, kind=1))
    tree.rest()
    assert asked(tree) == WHOLE


def test_a_node_that_was_started_anew_asks_for_all_steps_until_no_run_can_be_open():
    tree, _, _ = made()
    tree.sites["home"].crash(tree.chance)
    tree.rest()
    assert asked(tree) == WHOLE
    for _ in range(9):
        tree.tick()
        tree.rest()
    assert asked(tree) == FIRST


def test_what_is_asked_for_ends_with_the_subscription_and_changes_with_it():
    tree, ann, _ = made()
    ann.subscribe(pair="kind = 3")
    tree.rest()
    assert asked(tree) == {"kind = 3"}
    ann.subscribe(pair=PAIR)
    tree.rest()
    assert asked(tree) == FIRST
    ann.subscribe(pair="SEQUENCE kind = 2 THEN NOT kind = 3 WITHIN 3 SECONDS")  # what does not come must be seen
    tree.rest()
    assert asked(tree) == {"kind = 2 OR kind = 3"}
    ann.subscribe(pair=PAIR)
    ann.unsubscribe("pair")
    tree.rest()
    assert asked(tree) == set()
    ann.subscribe(pair=PAIR)
    ann.ask(Forget(ann.number(), "ann"))
    tree.rest()
    assert asked(tree) == set()
    ann.ask(Attach(ann.number(), "ann"))
    ann.subscribe(other=PAIR)
    tree.rest()
    assert asked(tree) == FIRST


@pytest.mark.parametrize("strategy", ["flooding", "simple", "identity", "covering", "merging"])
def test_what_is_told_stays_a_function_of_the_log_of_the_home_whatever_breaks(strategy):
    for seed in (3, 4):
        world = ThriftyWorld(seed, ThriftySite, strategy)
        world.run(150)


class ThriftyWorld(RememberingWorld):
    """What is lost within the time that asking takes is lost; what is told is told of what came."""

    def check(self) -> None:
        self.check_told()

    def check_at_rest(self) -> None:
        self.check_told()
        for reader in self.readers:
            assert all(wanted.is_settled for wanted in reader.wants.values()), "not settled at rest"
