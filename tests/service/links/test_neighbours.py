"""What neighbours promise each other, one promise at a time; `test_tree_world` has all of them at once."""

from __future__ import annotations

import pytest

from tamis.service.links.neighbours import MOST_WORK_UNITS, WORK_S
from tamis.service.links.requests import LinkChange, LinkForget, LinksDescribe, LinksDescribed
from tamis.service.links.terms import AdaptationTerms, LinkTerms, PruningTerms
from tamis.service.log.base import PLAIN
from tests.service.links.tree import Client, Subscribed, Tree, event

LINE = [("a", "b"), ("b", "c")]
PERFECT = ("simple", "identity", "covering", "merging")


def facts(tree: Tree, at: str, name: str):
    client = Client(tree, at)
    client.ask(LinksDescribe(7))
    return next(link for link in client.last(LinksDescribed).links if link.name == name)


@pytest.mark.parametrize("strategy", ["flooding", *PERFECT])
def test_an_event_reaches_who_wants_it_over_two_links_and_nobody_else(strategy):
    tree = Tree(LINE, strategy)
    ann = Client(tree, "a", "ann")
    ann.attach()
    ann.subscribe(cheap="price < 20")
    tree.rest()
    shop = Client(tree, "c")
    shop.publish(event("/shop", 1, price=12), event("/shop", 2, price=30), event("/shop", 3, price=3))
    tree.rest()
    assert ann.events == [("/shop", 1), ("/shop", 3)]
    crossed = 3 if strategy == "flooding" else 2
    assert (facts(tree, "c", "b").sent, facts(tree, "b", "a").sent) == (crossed, crossed)
    assert facts(tree, "a", "b").sent == facts(tree, "b", "c").sent == 0  # nothing goes back


def test_bodies_are_the_same_bytes_at_every_broker():
    tree = Tree(LINE, "flooding")
    tree.rest()
    published = event("/shop", 1, text="é\u2028", price=1e300)
    Client(tree, "a").publish(published)
    tree.rest()
    assert all(site.log.blocks[0].events == (published.body,) for site in tree.sites.values())


def test_flags_in_the_log_say_whether_an_event_came_from_a_client_or_over_a_link():
    tree = Tree(LINE, "flooding")
    tree.rest()
    Client(tree, "b").publish(event("/shop", 1))
    Client(tree, "a").publish(event("/shop", 2))
    tree.rest()
    flags = {name: b"".join(block.flags for block in site.log.blocks) for name, site in tree.sites.items()}
    assert sorted(flags["b"])[0] == 0
    assert sorted(flags["b"])[1] & ~PLAIN
    assert all(flag & ~PLAIN for flag in flags["c"])


def test_an_event_is_acknowledged_to_a_neighbour_when_it_is_on_disk_there_and_not_before():
    tree = Tree([("a", "b")], "flooding")
    tree.rest()
    Client(tree, "a").publish(event("/shop", 1))
    while not tree.sites["b"].log.writing:
        assert tree.step()
    for _ in range(200):  # everything but the disk of b
        tree.tidy()
        steps = [(site, *step) for site in tree.sites.values() for step in site.steps()]
        steps = [step for step in steps if (step[0].name, step[1]) != ("b", "log")]
        if not steps:
            break
        site, kind, end = steps[0]
        site.step(kind, end, tree.chance)
    neighbour = tree.neighbour("a", "b")
    assert neighbour.subscriber.deliveries.unacknowledged_count == 1
    tree.rest()
    assert neighbour.subscriber.deliveries.unacknowledged_count == 0


def test_a_connection_that_broke_goes_on_without_a_new_hello():
    tree = Tree([("a", "b")])
    ann = Client(tree, "a", "ann")
    ann.attach()
    ann.subscribe(cheap="price < 20")
    tree.rest()
    shop = Client(tree, "b")
    for number in range(6):
        tree.cut(tree.ends["a", "b"])
        shop.publish(event("/shop", number, price=number))
        ann.subscribe(**{f"more{number}": f"price = {100 + number}"})
        tree.tick(60)
        tree.rest()
    shop.publish(event("/shop", 6, price=105))
    tree.rest()
    assert ann.events == [("/shop", number) for number in range(7)]
    assert (facts(tree, "a", "b").begun, facts(tree, "a", "b").resumed) == (1, 6)


def test_after_a_restart_events_behind_the_floor_are_matched_with_what_the_neighbour_wants_now():
    tree = Tree(LINE)
    ann = Client(tree, "a", "ann")
    ann.attach()
    ann.subscribe(cheap="price < 20")
    tree.rest()
    tree.cut(tree.ends["a", "b"])
    Client(tree, "c").publish(event("/shop", 1, price=12))
    while tree.step():
        pass
    tree.sites["b"].crash(tree.chance)
    tree.rest()
    assert ann.events == [("/shop", 1)]
    assert facts(tree, "c", "b").begun == 2


def test_a_restart_in_the_middle_does_not_make_the_far_side_forget_what_is_wanted():
    tree = Tree(LINE)
    ann = Client(tree, "a", "ann")
    ann.attach()
    ann.subscribe(cheap="price < 20")
    tree.rest()
    tree.cut(tree.ends["a", "b"])
    tree.sites["b"].crash(tree.chance)
    tree.sites["b"].start()
    tree.call(("b", "c"))  # and not a with b: b does not know yet what a wants
    while tree.step():
        pass
    Client(tree, "c").publish(event("/shop", 1, price=12))
    while tree.step():
        pass
    tree.rest()
    assert ann.events == [("/shop", 1)]


def test_what_a_neighbour_wanted_is_taken_back_when_its_patience_is_over():
    tree = Tree(LINE, terms=LinkTerms(patience_s=100))
    ann = Client(tree, "a", "ann")
    ann.subscribe(cheap="price < 20")
    tree.rest()
    assert facts(tree, "c", "b").wants == 1
    tree.cut(tree.ends["a", "b"])
    for _ in range(101):
        tree.tick()
    while tree.step():
        pass
    assert facts(tree, "c", "b").wants == 0
    node = tree.sites["b"].node
    assert [neighbour.name for neighbour in node.neighbours] == ["c"]
    assert not tree.sites["b"].state.writing
    assert list(tree.sites["b"].state.rows.links) == ["c"]


def test_an_operator_ends_a_link_for_good():
    tree = Tree([("a", "b")])
    ann = Client(tree, "a", "ann")
    ann.subscribe(cheap="price < 20")
    tree.rest()
    Client(tree, "b").ask(LinkForget(1, "a"))
    while tree.step():
        pass
    node = tree.sites["b"].node
    assert len(node.neighbours) == 0
    assert not node._broker.neighbours
    assert not tree.is_connected(("a", "b"))


def test_control_messages_that_wait_for_too_long_are_given_up_for_a_new_session():
    tree = Tree([("a", "b")])
    ann = Client(tree, "a", "ann")
    tree.rest()
    tree.cut(tree.ends["a", "b"])
    for neighbour in tree.sites["a"].node.neighbours:
        neighbour.session._most_waiting = 20
    for number in range(30):
        ann.subscribe(**{f"k{number}": f"price = {number}"})
    assert tree.neighbour("a", "b").session.waiting_count == 0
    tree.rest()
    assert facts(tree, "b", "a").wants == 30
    assert facts(tree, "b", "a").begun == 2


def test_a_circle_is_refused_and_named():
    tree = Tree([("a", "b"), ("b", "c")])
    tree.rest()
    tree.call(("a", "c"))
    while tree.step():
        pass
    assert not tree.is_connected(("a", "c"))
    refusals = [facts(tree, "a", "c").refusal, facts(tree, "c", "a").refusal]
    assert any("would close a circle" in refusal and "is reached over b already" in refusal for refusal in refusals)
    assert tree.is_connected(("a", "b"))


def test_an_answer_says_settled_when_the_far_end_knows():
    tree = Tree(LINE)
    tree.rest()
    ann = Client(tree, "a", "ann")
    ann.subscribe(settle_s=5, cheap="price < 20")
    while not ann.last(Subscribed):
        assert tree.step()
    assert ann.last(Subscribed).is_settled
    assert facts(tree, "c", "b").wants == 1
    ann.subscribe(cheap="price < 10")
    while tree.step():
        pass
    assert not ann.last(Subscribed).is_settled  # it did not wait


def test_a_neighbour_that_is_away_delays_settling_and_one_that_is_gone_does_not_count():
    tree = Tree(LINE)
    tree.rest()
    tree.cut(tree.ends["b", "c"])
    ann = Client(tree, "a", "ann")
    ann.subscribe(settle_s=5, cheap="price < 20")
    while tree.step():
        pass
    assert ann.last(Subscribed) is None
    tree.tick(6)
    assert ann.last(Subscribed).is_settled is False
    Client(tree, "b").ask(LinkForget(1, "c"))
    ann.subscribe(settle_s=5, dear="price > 20")
    while tree.step():
        pass
    assert ann.last(Subscribed).is_settled


def test_what_may_not_leave_does_not_and_what_may_not_come_is_not_taken():
    tree = Tree(LINE, terms=LinkTerms(may_send="NOT secret OR secret IS NULL"))
    ann = Client(tree, "a", "ann")
    ann.attach()
    ann.subscribe(all="TRUE")
    tree.rest()
    shop = Client(tree, "c")
    shop.publish(event("/shop", 1, secret=True), event("/shop", 2, secret=False), event("/shop", 3))
    tree.rest()
    tree.cut(tree.ends["b", "c"])
    shop.publish(event("/shop", 4, secret=True), event("/shop", 5))
    tree.rest()
    assert ann.events == [("/shop", 2), ("/shop", 3), ("/shop", 5)]
    assert facts(tree, "c", "b").sent == 3

    tree = Tree([("a", "b")], terms=LinkTerms(may_receive="n < 10"))
    bob = Client(tree, "a", "bob")
    bob.attach()
    bob.subscribe(all="TRUE")
    tree.rest()
    Client(tree, "b").publish(event("/shop", 1), event("/shop", 11), event("/shop", 2))
    tree.rest()
    assert bob.events == [("/shop", 1), ("/shop", 2)]
    assert tree.neighbour("b", "a").subscriber.deliveries.unacknowledged_count == 0
    assert [len(block.events) for block in tree.sites["a"].log.blocks] == [2]


def change(tree: Tree, at: str, name: str, terms: LinkTerms) -> None:
    """Let an operator give a link other terms, as a reload does: from now on, also for new connections."""
    tree.sites[at].terms[name] = terms
    Client(tree, at).ask(LinkChange(1, name, terms))
    tree.rest()


def test_what_may_not_come_does_not_cross_the_link_because_nobody_asks_for_it():
    tree = Tree(LINE, terms=LinkTerms(may_receive="n < 10"))
    bob = Client(tree, "a", "bob")
    bob.attach()
    bob.subscribe(all="TRUE", odd="kind = 1")
    tree.rest()
    Client(tree, "c").publish(event("/shop", 1), event("/shop", 11, kind=1), event("/shop", 2))
    tree.rest()
    assert bob.events == [("/shop", 1), ("/shop", 2)]
    assert (facts(tree, "c", "b").sent, facts(tree, "b", "a").sent) == (2, 2)
    assert [len(block.events) for block in tree.sites["b"].log.blocks] == [2]


def test_a_filter_on_one_link_is_known_behind_the_next_one():
    tree = Tree(LINE)
    tree.sites["b"].terms["a"] = LinkTerms(may_send="n < 10")
    bob = Client(tree, "a", "bob")
    bob.attach()
    bob.subscribe(all="kind = 1")
    tree.rest()
    Client(tree, "c").publish(event("/shop", 1, kind=1), event("/shop", 11, kind=1))
    tree.rest()
    assert bob.events == [("/shop", 1)]
    assert facts(tree, "c", "b").sent == 1  # b asks c for nothing that a may not have


def test_other_terms_count_at_once_and_what_is_wanted_stays():
    tree = Tree(LINE)
    bob = Client(tree, "a", "bob")
    bob.attach()
    bob.subscribe(all="kind = 1")
    tree.rest()
    shop = Client(tree, "c")
    bounds = {"n < 10": [1], "TRUE": [3, 13], "n > 10": [15]}
    for number, terms in ((1, {"may_send": "n < 10"}), (3, {}), (5, {"may_send": "n > 10"})):
        change(tree, "b", "a", LinkTerms(**terms))
        shop.publish(event("/shop", number, kind=1), event("/shop", number + 10, kind=1))
        tree.rest()
        assert [n for _, n in bob.events][-len(bounds[terms.get("may_send", "TRUE")]) :] == bounds[
            terms.get("may_send", "TRUE")
        ]
    assert [n for _, n in bob.events] == [1, 3, 13, 15]
    change(tree, "a", "b", LinkTerms(may_receive="n = 7", strategy="simple"))
    shop.publish(event("/shop", 27, kind=1), event("/shop", 7, kind=1))
    tree.rest()
    assert [n for _, n in bob.events] == [1, 3, 13, 15]  # 7 may come and may not be sent
    assert facts(tree, "a", "b").begun == 5  # each time the two began anew


def test_other_terms_that_say_the_same_of_routing_do_not_end_the_connection():
    tree = Tree([("a", "b")])
    tree.rest()
    change(tree, "b", "a", LinkTerms(rate=5.0, patience_s=7.0))
    assert (facts(tree, "b", "a").begun, facts(tree, "b", "a").terms.rate) == (1, 5.0)


def test_each_link_has_its_own_strategy_and_pruning_learnt_from_what_passed():
    tree = Tree([("a", "hub"), ("b", "hub"), ("c", "hub")], "simple")
    tree.sites["hub"].terms["a"] = LinkTerms(strategy="covering")
    tree.sites["hub"].terms["b"] = LinkTerms(pruning=PruningTerms(count=1))
    ann = Client(tree, "hub", "ann")
    ann.attach()
    tree.rest()
    ann.subscribe(first="common < 90 AND rare = 1")
    shop = Client(tree, "hub")
    for number in range(120):
        shop.publish(event("/shop", number, common=number % 100, rare=number % 40))
    tree.rest()
    ann.subscribe(wide="common < 80 AND rare = 2", narrow="common < 70 AND rare = 2")
    tree.rest()
    assert [facts(tree, "hub", name).told for name in "abc"] == [2, 3, 3]
    broker = tree.sites["hub"].node._broker
    told = [str(entry.filter) for entry in broker.told(tree.neighbour("hub", "b").peer)]
    assert told[1:] == ["rare = 2", "rare = 2"]  # what is nearly always true goes first
    before = len(ann.events)
    for name in "abc":
        Client(tree, name).publish(event(f"/{name}", 1, common=99, rare=2), event(f"/{name}", 2, common=75, rare=2))
    tree.rest()
    assert [facts(tree, name, "hub").sent for name in "abc"] == [1, 2, 1]  # a pruned filter lets more pass
    assert sorted(ann.events[before:]) == [("/a", 2), ("/b", 2), ("/c", 2)]


def test_a_link_stops_filtering_where_nearly_everything_goes_there_and_begins_again_when_asked():
    tree = Tree([("a", "b")], "simple")
    tree.sites["b"].terms["a"] = tree.sites["a"].terms["b"] = LinkTerms(
        adaptation=AdaptationTerms(stop_above=0.5, ask_above=0.6, event_count=10, wait_s=1e6)
    )
    ann = Client(tree, "a", "ann")
    ann.attach()
    ann.subscribe(it="n < 100")
    tree.rest()
    shop = Client(tree, "b")
    shop.publish(*(event("/shop", number) for number in range(10)))
    tree.rest()
    broker, peer = tree.sites["b"].node._broker, tree.neighbour("b", "a").peer
    assert not broker.is_filtering(peer)
    shop.publish(*(event("/shop", number) for number in range(200, 210)))  # in vain, and a asks b to filter
    tree.rest()
    assert broker.is_filtering(peer)
    shop.publish(*(event("/shop", number) for number in range(300, 310)))
    tree.rest()
    assert facts(tree, "b", "a").sent == 20
    assert len(ann.events) == 10


def test_a_slice_of_work_is_as_long_as_nothing_else_may_wait():
    tree = Tree([("a", "b")])
    neighbours = tree.sites["a"].node.neighbours
    first = neighbours.work_units
    neighbours.pace(0.001)
    assert neighbours.work_units == first + 1
    for _ in range(10):
        neighbours.pace(0.02)
    assert neighbours.work_units == 1
    for _ in range(100):
        neighbours.pace(0.0)
    assert neighbours.work_units == MOST_WORK_UNITS
    neighbours.pace(WORK_S)
    assert neighbours.work_units == MOST_WORK_UNITS
