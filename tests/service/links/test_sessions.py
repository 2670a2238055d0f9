"""Two ends of a link against a perfect wire: whatever breaks, each message is heard once, in order, or all is new."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.routing import Settlement
from tamis.service.links.dialling import Waits
from tamis.service.links.frames import Join, LinkError
from tamis.service.links.sessions import LinkSession


class Listener:
    """What one end has understood: everything since the other began to tell it anew."""

    def __init__(self) -> None:
        self.messages: list[bytes] = []


@given(st.integers(0, 2**32))
def test_both_ends_know_the_same_after_any_breaks_and_restarts(seed):
    chance = Random(seed)
    said: dict[int, list[bytes]] = {0: [], 1: []}
    ends = [LinkSession("a1", 5), LinkSession("b1", 5)]
    heard: dict[int, list[bytes]] = {0: [], 1: []}
    wires: list[list[tuple[int, bytes]]] = [[], []]
    lives = [1, 1]
    is_connected = False
    for step in range(chance.randint(1, 60)):
        action = chance.choice(("say", "say", "carry", "carry", "ack", "cut", "restart")) if step else "cut"
        one = chance.randrange(2)
        if action == "say":
            message = f"{one} {step}".encode()
            said[one].append(message)
            ends[one].say(message)
            if is_connected and not ends[one].is_begun:
                action = "cut"
        if action == "restart":
            lives[one] += 1
            ends[one] = LinkSession(f"{'ab'[one]}{lives[one]}", 5)
            heard[one] = []
        if is_connected:
            wires[one] += ends[one].unsent()
        if action == "carry" and is_connected and wires[1 - one]:
            number, message = wires[1 - one].pop(0)
            if ends[one].take(number):
                heard[one] = [] if message.startswith(b"all") else heard[one]
                heard[one] += message.split(b"|")[1:] if message.startswith(b"all") else [message]
        if action == "ack" and is_connected:
            through = ends[1 - one].heard_control
            if through:
                ends[one].acknowledge(through)
        if action in ("cut", "restart") or not is_connected:
            wires = [[], []]
            is_connected = True
            joins = [end.join(()) for end in ends]
            agreed = [ends[index].meet(joins[1 - index]) for index in (0, 1)]
            assert agreed[0] == agreed[1]
            if not agreed[0]:
                for index in (0, 1):
                    ends[index].begin()
                    ends[index].say(b"|".join([b"all", *said[index]]))
    for index in (0, 1):
        wires[index] += ends[index].unsent()
        for number, message in wires[index]:
            if ends[1 - index].take(number):
                heard[1 - index] = [] if message.startswith(b"all") else heard[1 - index]
                heard[1 - index] += message.split(b"|")[1:] if message.startswith(b"all") else [message]
        assert heard[1 - index] == said[index]


def test_an_end_that_claims_what_was_never_said_is_refused():
    north, south = LinkSession("n"), LinkSession("s")
    assert not north.meet(south.join(()))
    assert not south.meet(north.join(()))
    north.begin()
    with pytest.raises(LinkError):
        north.acknowledge(4)
    with pytest.raises(LinkError):
        north.meet(Join(south.name, north.name, 9, 0, ()))


def test_a_message_out_of_order_is_refused():
    session = LinkSession("n")
    assert session.take(5)
    assert not session.take(5)
    assert session.take(6)
    with pytest.raises(LinkError, match="in order"):
        session.take(8)


def test_settled_waits_for_everybody_else_and_never_for_the_one_who_said_it():
    settling = Settlement()
    for neighbour, number in (("north", 3), ("south", 5), ("east", 0)):
        settling.told(neighbour, number)
    settling.heard("north", 10)
    settling.conclude()
    settling.told("south", 6)
    settling.heard("north", 11)
    assert settling.through("north") == 0  # what it causes is not yet told
    settling.conclude()
    assert settling.through("north") == 0
    settling.settled("south", 5)
    assert settling.through("north") == 10
    settling.forget("south")
    assert settling.through("north") == 11


def test_a_neighbour_of_the_same_name_that_counts_anew_is_not_waited_for_by_what_was_said_before():
    settling = Settlement()
    settling.told("south", 50)
    settling.heard("north", 1)
    settling.conclude()
    settling.forget("south")
    settling.told("south", 1)
    assert settling.through("north") == 1


def test_waits_grow_up_to_half_a_minute_and_chance_decides_about_half_of_each():
    for chance in (0.0, 0.999):
        waits = Waits(lambda chance=chance: chance)
        lengths = [waits.next_s() for _ in range(12)]
        assert lengths == sorted(lengths)
        assert 0.05 <= lengths[0] <= 0.1
        assert 15 <= lengths[-1] <= 30
        waits.reset()
        assert waits.next_s() == lengths[0]
