"""Links on real sockets, in one process: Unix sockets, TLS with names in certificates, tokens, refusals, reloads."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re

import msgspec
import pytest
import trustme

from tamis import parse
from tamis.service.errors import SettingsError
from tamis.service.links import frames
from tamis.service.links.frames import Kind
from tamis.service.links.server import terms_of
from tamis.service.links.talking import LinkIdentity, RefusedError, Talk
from tamis.service.links.terms import AdaptationTerms, LinkTerms, PruningTerms
from tamis.service.messages import Principal, Subscribe, Wanted
from tamis.service.serving import Service
from tamis.service.settings import read_settings
from tests.service.broker_processes import in_a_loop

ADMIN = Principal("root", (), True)


class Site:
    """A broker in this process, whose settings a test changes."""

    def __init__(self, folder, name, **overrides) -> None:
        self.overrides = {
            "name": name, "data": str(folder / name), "listeners.0.port": 0, **overrides,
        }  # fmt: skip
        self.service = Service(self.read(), self.read)

    def read(self):
        return read_settings(None, {}, {name: value for name, value in self.overrides.items() if value is not None})

    async def links(self):
        described = await self.service.links.describe()
        return {link["name"]: link for link in described["links"]}

    async def state(self, name):
        return (await self.links()).get(name, {"state": "none"})["state"]


@contextlib.asynccontextmanager
async def running(*sites):
    async with contextlib.AsyncExitStack() as stack:
        for site in sites:
            await site.service.start()
            stack.push_async_callback(site.service.stop)
        yield


async def live(one, two):
    """Wait until two sites are joined."""
    while (await one.state(two.overrides["name"]), await two.state(one.overrides["name"])) != ("live", "live"):
        await asyncio.sleep(0.02)


async def refused(site, name, reason):
    """Wait until a link is refused, and say why."""
    while reason not in (refusal := (await site.links()).get(name, {}).get("refusal", "")):
        assert (await site.state(name)) != "live", refusal
        await asyncio.sleep(0.02)


def certificates(folder, *names, other=False):
    """Make an authority and a certificate for each broker."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    for name in names:
        issued = authority.issue_cert(name, "localhost")
        issued.private_key_and_cert_chain_pem.write_to_path(str(folder / f"{name}.pem"))


def tls_listener(folder, name, port=0, **more):
    prefix = "link_listeners.0"
    pem = str(folder / f"{name}.pem")
    return {
        f"{prefix}.port": port, f"{prefix}.tls.certificate": pem, f"{prefix}.tls.key": pem,
        f"{prefix}.tls.client_ca": str(folder / "ca.pem"), f"{prefix}.tls.clients": "required", **more,
    }  # fmt: skip


def tls_caller(folder, name):
    pem = str(folder / f"{name}.pem")
    return {"link_tls.ca": str(folder / "ca.pem"), "link_tls.certificate": pem, "link_tls.key": pem}


def port_of(site):
    return int(site.service.links.addresses[0].rpartition(":")[2])


@in_a_loop
async def test_brokers_are_joined_over_a_unix_socket_that_is_theirs_alone(tmp_path):
    path = f"/tmp/w-link-{os.getpid()}.sock"
    north = Site(tmp_path, "north", **{"link_listeners.0.path": path})
    south = Site(tmp_path, "south", **{"links.north.url": f"unix://{path}"})
    async with running(north, south):
        assert os.stat(path).st_mode & 0o777 == 0o600
        await live(north, south)
    assert not os.path.exists(path)


@in_a_loop
async def test_certificates_are_shown_both_ways_with_the_names_of_the_brokers(tmp_path):
    certificates(tmp_path, "north", "south", "west")
    north = Site(tmp_path, "north", **tls_listener(tmp_path, "north"))
    async with running(north):
        url = f"tamis+tls://localhost:{port_of(north)}"
        south = Site(tmp_path, "south", **{"links.north.url": url}, **tls_caller(tmp_path, "south"))
        # East has west's certificate: it is of the network, and not whom it says.
        east = Site(tmp_path, "east", **{"links.north.url": url}, **tls_caller(tmp_path, "west"))
        nobody = Site(tmp_path, "nobody", **{"links.north.url": url, "link_tls.ca": str(tmp_path / "ca.pem")})
        async with running(south, east, nobody):
            await live(north, south)
            await refused(east, "north", "the certificate of the other end is not that of 'east'")
            await until_refused(nobody, "north")
            assert await north.state("east") == "none"
            assert await north.state("nobody") == "none"


async def until_refused(site, name):
    while not (await site.links()).get(name, {}).get("refusal"):
        await asyncio.sleep(0.02)
    assert await site.state(name) == "calling"


@in_a_loop
async def test_a_token_is_proved_and_whoever_has_another_is_refused(tmp_path):
    north = Site(tmp_path, "north", **{"link_listeners.0.port": 0, "link_secret": "sesame"})
    async with running(north):
        url = f"tamis://127.0.0.1:{port_of(north)}"
        south = Site(tmp_path, "south", **{"links.north.url": url, "link_secret": "sesame"})
        east = Site(tmp_path, "east", **{"links.north.url": url, "link_secret": "open"})
        west = Site(tmp_path, "west", **{"links.north.url": url})
        async with running(south, east, west):
            await live(north, south)
            await refused(east, "north", "has another link token")
            await refused(west, "north", "one end has a link token and the other has not")
            assert set(await north.links()) == {"south"}


@in_a_loop
async def test_another_network_name_or_schema_is_refused_and_the_attributes_are_named(tmp_path):
    north = Site(tmp_path, "north", **{"link_listeners.0.port": 0, "schema.price": "double", "schema.title": "string"})
    async with running(north):
        url = f"tamis://127.0.0.1:{port_of(north)}"
        same = {"schema.price": "double", "schema.title": "string"}
        alien = Site(tmp_path, "alien", **{"links.north.url": url, "network": "mars", **same})
        wrong = Site(tmp_path, "wrong", **{"links.south.url": url, **same})
        other = Site(tmp_path, "other", **{"links.north.url": url, "schema.price": "bigint", "schema.title": "string"})
        async with running(alien, wrong, other):
            await refused(alien, "north", "is of the network")
            await refused(wrong, "south", "the other end is 'north'")
            await refused(other, "north", "price is")


@in_a_loop
async def test_a_reload_begins_changes_and_ends_links_and_touches_no_other(tmp_path):
    hub = Site(tmp_path, "hub", **{"link_listeners.0.port": 0})
    async with running(hub):
        url = f"tamis://127.0.0.1:{port_of(hub)}"
        steady = Site(tmp_path, "steady", **{"links.hub.url": url})
        edge = Site(tmp_path, "edge")
        async with running(steady, edge):
            await live(hub, steady)
            before = (await steady.links())["hub"]
            edge.overrides["links.hub.url"] = url
            changed = await edge.service.reload()
            assert "links.hub.url" in changed.at_once
            assert not changed.at_start
            await live(hub, edge)
            edge.overrides["links.hub.may_send"] = "n < 10"
            await edge.service.reload()
            assert (await edge.links())["hub"]["terms"]["may_send"] == "n < 10"
            await live(hub, edge)  # once more, in a new session: everything is told anew
            edge.overrides["links.hub.url"] = edge.overrides["links.hub.may_send"] = None
            await edge.service.reload()
            assert await edge.links() == {}
            after = (await steady.links())["hub"]
            assert (after["begun"], after["resumed"]) == (before["begun"], before["resumed"])


@in_a_loop
async def test_an_order_of_an_admin_is_remembered_by_the_next_start(tmp_path):
    north = Site(tmp_path, "north", **{"link_listeners.0.port": 0})
    async with running(north):
        south = Site(tmp_path, "south")
        async with running(south):
            await south.service.links.put("north", f"tamis://127.0.0.1:{port_of(north)}", LinkTerms())
            await live(north, south)
        again = Site(tmp_path, "south")
        async with running(again):
            await live(north, again)
            await again.service.links.delete("north")
            assert await again.links() == {}


# -- Hostile ends


async def stranger(site, *data):
    """Say something to the port for neighbours; return what is answered until it is closed."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port_of(site))
    with contextlib.suppress(ConnectionError):
        for each in data:
            writer.write(each)
            await writer.drain()
        return await asyncio.wait_for(reader.read(-1), 60)
    return b""


def greeting(name="evil", **more):
    fields = {
        "version": frames.VERSION, "network": "tamis", "broker": name, "nonce": b"n" * 16, "asks_proof": False,
        "digest": "", **more,
    }  # fmt: skip
    return frames.told(Kind.GREETING, frames.Greeting(**fields))


@in_a_loop
async def test_strangers_who_speak_something_else_are_cut_off_and_nothing_stops(tmp_path):
    north = Site(tmp_path, "north", **{"link_listeners.0.port": 0, "link_secret": "sesame"})
    async with running(north):
        for data in (
            b"GET / HTTP/1.1\r\n\r\n",
            b"\xff" * 100,
            b"\0\0\0\1\x99",
            frames.frame(Kind.EVENTS, b"\0\0\0\1"),
            frames.frame(Kind.GREETING, b"\xc1"),
            frames.frame(Kind.GREETING, msgspec.msgpack.encode([1] * 50)),
            greeting(version=99),
            greeting(name="north", asks_proof=True),
            greeting(name="\n", asks_proof=True),
            greeting(asks_proof=True) + frames.frame(Kind.PROOF, b"x" * 32),
            greeting(asks_proof=True) + frames.frame(Kind.CONTROL, b"x" * 32),
        ):
            answered = frames.FrameReader().feed(await stranger(north, data))
            assert answered[-1].kind is Kind.CLOSE, data
        assert await north.links() == {}
        south = Site(
            tmp_path, "south",
            **{"links.north.url": f"tamis://127.0.0.1:{port_of(north)}", "link_secret": "sesame"},
        )  # fmt: skip
        async with running(south):
            await live(north, south)


def test_a_proof_is_worth_nothing_when_it_is_sent_back_or_used_again():
    def talk(name, nonce):
        return Talk(LinkIdentity("net", name, "sesame"), nonce, lambda name: LinkTerms(), lambda body, flags: None)

    north, south = talk("north", b"1" * 16), talk("south", b"2" * 16)
    of_north, of_south = north.take_written(), south.take_written()
    assert north.receive(of_south) == []
    assert south.receive(of_north) == []
    proof_of_north, proof_of_south = north.take_written(), south.take_written()
    mirror = talk("north", b"1" * 16)
    mirror.take_written()
    mirror.receive(of_south)
    with pytest.raises(RefusedError):
        mirror.receive(mirror.take_written())  # its own proof, sent back
    later = talk("north", b"3" * 16)
    later.receive(of_south)
    with pytest.raises(RefusedError):
        later.receive(proof_of_south)  # overheard earlier
    assert [request.neighbour for request in north.receive(proof_of_south)] == ["south"]
    assert [request.neighbour for request in south.receive(proof_of_north)] == ["north"]


@in_a_loop
async def test_the_port_of_links_is_closed_unless_somebody_opens_it(tmp_path):
    site = Site(tmp_path, "quiet")
    async with running(site):
        assert site.service.links.addresses == []


@in_a_loop
async def test_strategy_pruning_and_adaptation_of_a_link_are_settings_that_a_reload_changes(tmp_path):
    north = Site(tmp_path, "north", **{"link_listeners.0.port": 0, "links.south.strategy": "covering"})
    async with running(north):
        url = f"tamis://127.0.0.1:{port_of(north)}"
        south = Site(tmp_path, "south", **{"links.north.url": url})
        async with running(south):
            await live(north, south)
            texts = {"wide": "price < 20 AND region = 'EU'", "narrow": "price < 10 AND region = 'EU'"}
            wanted = {key: Wanted(text, parse(text)) for key, text in texts.items()}
            await north.service.core.ask(ADMIN, Subscribe(1, "ann", wanted, settle_s=60))

            async def told(count, *words):
                """Wait until south knows so many filters, of which all have some words."""
                while True:
                    broker = south.service.core._node._broker
                    filters = [str(each) for peer in broker.neighbours for each in broker.wanted_by(peer).values()]
                    if len(filters) == count and all(word in text for text in filters for word in words):
                        return filters
                    await asyncio.sleep(0.02)

            await told(1, "price < 20", "region")
            for change, expected in (
                ({"links.south.strategy": "simple"}, (2, "price", "region")),
                ({"links.south.may_receive": "secret IS NULL"}, (2, "secret IS NULL", "price", "region")),
                ({"links.south.may_receive": None, "links.south.pruning.count": 1}, (2,)),
                ({"links.south.pruning.count": None, "links.south.adaptation.events": 7}, (2, "price", "region")),
            ):
                north.overrides |= change
                await north.service.reload()
                filters = await told(*expected)
                if change.get("links.south.pruning.count"):
                    while any("AND" in text for text in filters):
                        filters = await told(*expected)
                        await asyncio.sleep(0.02)
            await live(north, south)
            assert (await north.links())["south"]["terms"]["adaptation"]["event_count"] == 7


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        ({"links.south.pruning.measure": "memory"}, "links.south.pruning says nothing of how far"),
        ({"links.south.adaptation.ask_above": 0.05}, "links.south.adaptation: 0.9 of all may match"),
        ({"links.south.strategy": "magic"}, "magic"),
        ({"links.south.pruning.count": -1}, "links.south.pruning.count"),
    ],
)
def test_terms_that_make_no_sense_are_refused_by_name(overrides, said):
    with pytest.raises(SettingsError, match=re.escape(said)):
        read_settings(None, {}, overrides)


@in_a_loop
async def test_links_with_a_shared_log_are_refused_by_name(tmp_path):
    settings = {"log.jetstream.url": "nats://127.0.0.1:1", "link_listeners.0.port": 0}
    with pytest.raises(
        SettingsError,
        match=r"a broker with log\.jetstream has no neighbours, because .*; a durable subscriber can carry",
    ):
        await Site(tmp_path, "north", **settings).service.start()


def test_every_term_of_a_link_is_read_from_settings():
    given = {
        "strategy": "merging", "may_send": "a = 1", "may_receive": "b = 2", "rate": 5.0, "patience": "2m",
        "pruning.count": 3, "pruning.share": 0.25, "pruning.threshold": 0.5, "pruning.reduction": 0.75,
        "pruning.memory_bytes": "2kB", "pruning.measure": "distance", "adaptation.stop_above": 0.8,
        "adaptation.ask_above": 0.4, "adaptation.events": 9, "adaptation.wait": "3s",
    }  # fmt: skip
    settings = read_settings(None, {}, {f"links.south.{name}": value for name, value in given.items()})
    pruning = PruningTerms(3, 0.25, 0.5, 0.75, 2_000, "distance")
    expected = LinkTerms("a = 1", "b = 2", 5.0, 120.0, "merging", pruning, AdaptationTerms(0.8, 0.4, 9, 3.0))
    assert terms_of(settings.links["south"]) == expected
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(expected), type=LinkTerms) == expected
    of_before = msgspec.msgpack.encode({"may_send": "a = 1", "may_receive": "TRUE", "rate": 0.0, "patience_s": 7.0})
    assert msgspec.msgpack.decode(of_before, type=LinkTerms) == LinkTerms("a = 1", patience_s=7.0)
