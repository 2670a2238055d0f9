"""Rates of the links of others: told with pings, forgotten if they are not renewed, and believed within bounds."""

from __future__ import annotations

import asyncio
from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.service.links.rates import KEPT_S, MOST_BROKERS, LinkRates
from tamis.service.links.server import LinkServer
from tamis.service.settings import LinkListener
from tests.service.http.brokers import eventually, running


def told_around(links: list[tuple[str, str]], chance: Random, rounds: int) -> dict[str, LinkRates]:
    """Let brokers with these links count and ping, in any order; a link carries as many events as its number says."""
    brokers = {name: LinkRates(name) for link in links for name in link}
    sent = dict.fromkeys(links, 0)
    now_s = 100.0
    for _ in range(rounds):
        now_s += 5.0
        for number, link in enumerate(links, 1):
            sent[link] += 5 * number
        for name, rates in brokers.items():
            ends = [
                (other, sent[link], link[0] == name)
                for link in links
                for other in link
                if name in link and other != name
            ]
            rates.count(
                [(other, count if is_sender else 0, 0 if is_sender else count) for other, count, is_sender in ends],
                now_s,
            )
        pings = [pair for one, other in links for pair in ((one, other), (other, one))]
        chance.shuffle(pings)
        for sender, receiver in pings:
            brokers[receiver].hear(sender, brokers[sender].said_to(receiver, now_s), now_s)
    return brokers


@pytest.mark.parametrize("is_cycle", [False, True])
@given(seed=st.integers(0, 999), size=st.integers(2, 7))
def test_every_broker_knows_of_every_link_of_the_others(is_cycle, seed, size):
    chance = Random(seed)
    links = [(f"b{chance.randrange(number)}", f"b{number}") for number in range(1, size)]
    if is_cycle and size > 2:
        links += [pair for pair in [("b0", f"b{size - 1}")] if pair not in links]
    brokers = told_around(links, chance, rounds=size + 2)
    for name, rates in brokers.items():
        known = {
            (report["broker"], link["name"]): (link["sent_per_s"], link["received_per_s"])
            for report in rates.elsewhere(100.0 + 5 * (size + 2))
            for link in report["links"]
        }
        expected = {}
        for number, (one, other) in enumerate(links, 1):
            expected |= {(one, other): (number, 0.0), (other, one): (0.0, number)}
        assert known == {pair: rate for pair, rate in expected.items() if pair[0] != name}


def test_what_is_not_told_again_is_forgotten_also_if_it_goes_round_in_a_circle():
    one, other = LinkRates("one"), LinkRates("other")
    gone = LinkRates("gone")
    for now_s in (1.0, 2.0):
        gone.count([("one", int(now_s), 0)], now_s)
    one.hear("gone", gone.said_to("one", 2.0), 2.0)
    for now_s in range(3, 90):
        other.hear("one", one.said_to("other", now_s), now_s)
        one.hear("third", other.said_to("third", now_s), now_s)  # which has it from there
    assert (one.elsewhere(89.0), other.elsewhere(89.0)) == ([], [])
    assert KEPT_S < 87


@pytest.mark.parametrize(
    "said",
    [
        b"", b"\xc1", b"\x93", msgspec.msgpack.encode([["", 1, 0, 1, []]]), msgspec.msgpack.encode([["a", -1, 0, 1, []]]),
        msgspec.msgpack.encode([["a", 1, 0, 0, []]]), msgspec.msgpack.encode([["a", 1, 0, 1, [["b", 1.5, 0]]]]),
        msgspec.msgpack.encode([["a" * 201, 1, 0, 1, []]]), b"\x91" * 100_000,
        msgspec.msgpack.encode([[f"a{number}", 1, 0, 1, []] for number in range(MOST_BROKERS + 1)]),
    ],
)  # fmt: skip
def test_what_is_no_report_is_skipped(said):
    rates = LinkRates("here")
    rates.hear("there", said, 1.0)
    assert rates.elsewhere(1.0) == []


@given(said=st.binary(max_size=200))
def test_no_bytes_do_harm(said):
    rates = LinkRates("here")
    rates.hear("there", said, 1.0)
    msgspec.json.encode(rates.elsewhere(1.0))


def test_no_more_brokers_are_remembered_than_a_page_can_show():
    rates = LinkRates("here")
    for number in range(2 * MOST_BROKERS):
        rates.hear("there", msgspec.msgpack.encode([[f"b{number}", 1, 0, 1, []], ["here", 1, 0, 1, []]]), 1.0)
    names = [report["broker"] for report in rates.elsewhere(1.0)]
    assert len(names) == MOST_BROKERS and "here" not in names


@eventually
async def test_a_broker_hears_of_a_link_that_is_not_its_own(tmp_path, monkeypatch):
    monkeypatch.setattr(LinkServer.__init__, "__kwdefaults__", {**LinkServer.__init__.__kwdefaults__, "ping_s": 0.05})
    listening = {"link_listeners": (LinkListener(port=0),), "link_secret": "a secret of twenty bytes"}
    async with (
        running(tmp_path / "a", name="a", **listening) as one,
        running(tmp_path / "b", name="b", neighbours=(one.service.links.addresses[0],), **listening) as middle,
        running(
            tmp_path / "c",
            name="c",
            neighbours=(middle.service.links.addresses[0],),
            link_secret="a secret of twenty bytes",
        ) as far,
    ):
        await far.ask("PUT", "/subscribers/ann/subscriptions/all?settle=5s", status=201, data="price < 20")
        while not await rate_between(one, {"b", "c"}):
            await middle.publish({"price": 1})
            await asyncio.sleep(0.02)


async def rate_between(broker, ends):
    """Return the events a second that a broker knows another link to carry; 0 if it does not know."""
    _, described = await broker.ask("GET", "/links", status=200)
    rates = {
        frozenset({report["broker"], link["name"]}): link["sent_per_s"] + link["received_per_s"]
        for report in described["elsewhere"]
        for link in report["links"]
    }
    return rates.get(frozenset(ends), 0)
