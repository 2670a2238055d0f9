"""Ranked subscriptions at a broker's desk: what it tells, when, and to whom."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tamis
from tamis.routing import (
    Advertise,
    Broker,
    Deliver,
    Desk,
    DeskSettingError,
    Entry,
    Hello,
    MessageError,
    Passed,
    Publish,
    Reject,
    Send,
    Subscribe,
    Unsubscribe,
    Withdraw,
)
from tamis.topk import Ranked, TopK


def broker(*clients, **options):
    made = Broker("home", **options)
    for client in clients:
        made.attach(client)
    return made


def subscribe(made, client, now=0.0, **wanted):
    entries = tuple(Entry(key, tamis.parse(text) if not text.startswith("TOP") else Ranked.parse(text))
                    for key, text in wanted.items())  # fmt: skip
    return made.receive(Subscribe(entries), client, now)


def publish(made, client, key, event, now):
    return [
        (each.client, each.publication.key, each.subscriptions)
        for each in made.receive(Publish(key, event), client, now)
        if isinstance(each, Deliver)
    ]


def test_a_client_is_told_of_the_best_as_they_come_and_when_a_better_one_leaves():
    home = broker("ann", "shop")
    subscribe(home, "ann", best="TOP 1 BY price ASC OVER 10 SECONDS WHERE kind = 'flat'")
    assert publish(home, "shop", "e1", {"price": 300, "kind": "flat"}, 1.0) == [("ann", "e1", ("best",))]
    assert publish(home, "shop", "e2", {"price": 100, "kind": "house"}, 2.0) == []
    assert publish(home, "shop", "e3", {"price": 400, "kind": "flat"}, 3.0) == []
    assert home.next_due == 11.0 and home.advance(10.9) == []
    assert home.advance(11.0) == [Deliver("ann", Publish("e3", {"price": 400, "kind": "flat"}), ("best",))]
