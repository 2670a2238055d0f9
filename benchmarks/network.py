r"""What do brokers do that are joined into a network? Real processes on loopback, real links; NATS beside them.

    S6       one event to many connected subscribers: by the processor time of a delivery; NATS beside, in one run
    S11      a tree of brokers with few wishes (1 % of the events at each broker), by strategy: events and bytes on
             links beside flooding, delay over hops
    trees    the same with 1,000 subscriptions and more: also what it takes to tell all filters, memory, and the time
             until a subscription is settled
    hops     of such a tree only the delay over hops
    settled  of such a tree only the time until a subscription is settled
    link_up  one link comes up, over which many filters are told: how long, and how late is the broker's loop meanwhile?

Rows are chosen by name (`--rows S6 S11`), sizes of the trees by `--subscriptions`. A tree is

            n0
           /  \
          n1    n2        its links are made while all brokers run, so that what it takes to tell filters is seen apart
         / \   / \
        n3 n4 n5 n6

and in it `filters` is the row of what was told, `first events` of the first that it sees then, by which brokers lay out
what they were told (once in their lives), `events` of more that are published at all brokers in turn, `N hops` of the
way from n3 to n3, n1, n0 and n5 at a steady rate, and `settled` of subscriptions at n3 until the whole tree knows.

It runs unattended, and no tree takes long: what is not told within `--patience` seconds is not waited for. Then the
rows are called *unfinished*, `filters` says how much of it was told, at what price and pace, and `events` what the tree
does in the meantime, in which nothing may be missing, but more crosses links than has to; delay and settling are left
out. One command for each figure that is asked for, each with results of its own:

    python -m benchmarks network --rows S6 --file network-S6
    python -m benchmarks network --rows S11 --file network-S11
    python -m benchmarks network --rows trees --subscriptions 1000 --file network-1000
    python -m benchmarks network --rows trees --subscriptions 10000 --file network-10000
    python -m benchmarks network --rows trees --subscriptions 100000 --patience 600 --file network-100000
    python -m benchmarks network --rows hops --subscriptions 1000 --file network-hops
    python -m benchmarks network --rows settled --subscriptions 1000 --file network-settled
    python -m benchmarks network --rows link_up --file network-link

Each takes all strategies, one after the other; `--strategies flooding merging` takes some, so that no piece, with its
brokers' start, takes longer than four minutes on two cores. `of_flooding` needs flooding in the same run, as the first.
How long the longest step of a
broker takes that works out what a neighbour must know is measured without sockets (`routing_slices`).

Bytes, and how late the loop is, come from the brokers' `/metrics`, events and filters from `/links`. `cpu_us` is the
processor time of all brokers together: for an event, a delivery or a filter of the row. `of_flooding` compares bytes on
links. `wrong` counts deliveries that differ from what `tamis.Matcher` finds, events that crossed a link in vain or did
not although somebody behind it wants them, and subscriptions that were called settled and missed an event published at
the far end right after.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import ExitStack
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import aiohttp
import numpy as np

from benchmarks.broker_processes import (
    BrokerProcess,
    Filling,
    Socket,
    auction_events,
    auction_records,
    auction_texts,
    cloud_event,
    filled_with,
    free_port,
)
from benchmarks.logging_events import NatsServer
from tamis.matching import Matcher

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

OF_TREES = ("trees", "hops", "settled")
ROWS = ("S6", "S11", *OF_TREES, "link_up")
PERFECT = ("simple", "identity", "covering", "merging")
"""All that cross no link in vain."""
STRATEGIES = ("flooding", *PERFECT, "imperfect merging")
"""All of them, the one first that the others are compared with."""
HOPS = (0, 1, 2, 4)
_ROOM = "[limits]\nsubscriptions = 10000000\nsubscribers = 1000000\nconnections_each = 10000\n"  # one owner has all
_FRAME = 16
_FIRST_EACH = 512
"""So many events of each publisher come first: a broker lays out what it was told by the first that it sees."""
_SELECTIVE = 0.01
_SETTLE = "300s"
PATIENCE_S = 120.0
"""So long it is waited until all filters are told; at rest that is enough for 10,000 with every strategy."""


def network(
    rows: Sequence[str] = ROWS,
    subscription_counts: Sequence[int] = (1_000, 10_000),
    strategies: Sequence[str] = STRATEGIES,
    broker_count: int = 7,
    subscriber_count: int = 10,
    event_count: int = 7_000,
    steady_per_s: int = 100,
    steady_s: float = 10.0,
    settled_count: int = 100,
    fanned_count: int = 1_000,
    fanned_events: int = 100,
    told_count: int = 10_000,
    seed: int = 1,
    patience_s: float = PATIENCE_S,
    progress: Callable[[str], None] | None = None,
) -> Iterator[dict[str, Any]]:
    """What do brokers do that are joined into a network?"""
    if strangers := set(strategies) - set(STRATEGIES):
        raise ValueError(f"there are no strategies {', '.join(sorted(strangers))}; there are: {', '.join(STRATEGIES)}")
    unknown = set(rows) - set(ROWS)
    if unknown:
        raise ValueError(f"there are no rows {', '.join(sorted(unknown))}; there are: {', '.join(ROWS)}")
    say = progress or (lambda _: None)
    if "S6" in rows:
        yield from _fan_out(fanned_count, fanned_events, seed, say)
    load = _Load(broker_count, subscriber_count, event_count, steady_per_s, steady_s, settled_count, seed, patience_s)
    if "S11" in rows:
        yield from _by_strategy("S11", load.selective(), strategies, load, say)
    for what in OF_TREES:
        for count in subscription_counts if what in rows else ():
            yield from _by_strategy(what, load.dealt(count), strategies, load, say)
    if "link_up" in rows:
        for strategy in strategies:
            say(f"link_up, {strategy}")
            try:
                yield from _link_up(strategy, told_count, seed, patience_s)
            except RestlessTreeError as error:
                yield _row("link_up given up", strategy=strategy, subscriptions=told_count, note=str(error), wrong=1)


def _row(what: str, **more: Any) -> dict[str, Any]:
    columns = {
        "what": what, "strategy": "", "subscriptions": None, "events": None, "link_events": None, "link_kb": None,
        "of_flooding": None, "cpu_us": None, "mb": None, "p50_ms": None, "p99_ms": None, "deliveries": None, "note": "",
        "wrong": 0,
    }  # fmt: skip
    return {**columns, **more}


async def _until(is_so: Callable[[], bool], most_s: float = 120.0) -> None:
    begun = time.perf_counter()
    while not is_so() and time.perf_counter() - begun < most_s:
        await asyncio.sleep(0.01)


# -- The shape of a tree


def parent_of(number: int) -> int:
    """Return the broker that a broker calls; the first one calls nobody."""
    return (number - 1) // 2


def links_of(count: int) -> list[tuple[int, int]]:
    """Return all links of a tree, in both directions.

    >>> links_of(3)
    [(1, 0), (0, 1), (2, 0), (0, 2)]
    """
    return [link for number in range(1, count) for link in ((number, parent_of(number)), (parent_of(number), number))]


def behind(link: tuple[int, int], count: int) -> set[int]:
    """Return the brokers at the far end of a link, and all behind it.

    >>> behind((0, 1), 7), behind((1, 0), 7)
    ({1, 3, 4}, {0, 2, 5, 6})
    """
    below = {max(link)}
    for number in range(1, count):  # children have larger numbers than their parents
        if parent_of(number) in below:
            below.add(number)
    return below if link[1] == max(link) else set(range(count)) - below


def way(start: int, end: int) -> list[int]:
    """Return the brokers from one to another.

    >>> way(3, 5), way(3, 1), way(4, 4)
    ([3, 1, 0, 2, 5], [3, 1], [4])
    """
    up, down = [start], [end]
    while up[-1] != down[-1]:
        longer = up if up[-1] > down[-1] else down
        longer.append(parent_of(longer[-1]))
    return up + down[-2::-1]


def crossings(wanted: NDArray[np.bool_], publishers: NDArray[np.int64], *, is_flooded: bool) -> int:
    """Return how often events must cross a link: whenever somebody behind it wants one that comes from before it.

    wanted      bool[:, :]  which broker has subscriptions that want which event
    publishers  int64[:]    the broker at which each event is published
    """
    count = len(wanted)
    total = 0
    for link in links_of(count):
        far = sorted(behind(link, count))
        is_before = ~np.isin(publishers, far)
        total += int(np.sum(is_before if is_flooded else is_before & wanted[far].any(axis=0)))
    return total


# -- What a tree is measured with


class _Load:
    """Sizes of a measurement, and the events of all of them."""

    def __init__(
        self,
        broker_count: int,
        subscriber_count: int,
        event_count: int,
        steady_per_s: int,
        steady_s: float,
        settled_count: int,
        seed: int,
        patience_s: float,
    ) -> None:
        self.patience_s = patience_s
        self.broker_count, self.subscriber_count, self.seed = broker_count, subscriber_count, seed
        self.steady_per_s, self.steady_count = steady_per_s, max(1, int(steady_per_s * steady_s))
        self.settled_count = settled_count
        self.records = auction_records(event_count, seed + 7)
        self.first_records = auction_records(min(event_count, _FIRST_EACH * broker_count), seed + 8)

    def dealt(self, count: int) -> list[list[str]]:
        """Return so many subscriptions, dealt out to the brokers."""
        texts = auction_texts(count, self.seed)
        return [texts[number :: self.broker_count] for number in range(self.broker_count)]

    def selective(self) -> list[list[str]]:
        """Return subscriptions of each broker that together want about one event in a hundred."""
        dealt = self.dealt(400 * self.broker_count)
        chosen = []
        for texts in dealt:
            matcher = Matcher()
            matcher.add_many(enumerate(texts))
            pairs = matcher.match_batch(self.records)
            events: dict[int, set[int]] = {}
            for event, number in zip(pairs["event"].to_pylist(), pairs["subscription"].to_pylist(), strict=True):
                events.setdefault(number, set()).add(event)
            wanted: set[int] = set()
            some: list[str] = []
            for number, text in enumerate(texts):
                if len(wanted | events.get(number, set())) <= _SELECTIVE * len(self.records):
                    wanted |= events.get(number, set())
                    some.append(text)
            chosen.append(some)
        return chosen

    def settling(self) -> list[tuple[str, dict[str, Any]]]:
        """Return subscriptions, and for each an event that it wants."""
        texts = auction_texts(20 * self.settled_count, self.seed + 17)
        matcher = Matcher()
        matcher.add_many(enumerate(texts))
        pairs = matcher.match_batch(self.records)
        events = dict(zip(pairs["subscription"].to_pylist(), pairs["event"].to_pylist(), strict=True))
        some = [(text, self.records[events[number]]) for number, text in enumerate(texts) if number in events]
        return some[: self.settled_count]


class RestlessTreeError(RuntimeError):
    """A tree was not at rest within the time that it was given."""


class Tree:
    """Brokers in a tree, each a process of its own, filled beforehand and not linked yet."""

    def __init__(
        self,
        dealt: Sequence[list[str]],
        subscriber_count: int,
        strategy: str,
        stack: ExitStack,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self.patience_s = patience_s
        self.fillings: list[Filling] = []
        self.brokers: list[BrokerProcess] = []
        self._ports = [free_port() for _ in dealt]
        for number, texts in enumerate(dealt):
            folder = Path(stack.enter_context(TemporaryDirectory()))
            self.fillings.append(filled_with(folder, texts, subscriber_count, f"n{number}"))
            config = f'name = "n{number}"\nstrategy = "{strategy}"\n[[link_listeners]]\nport = {self._ports[number]}\n'
            broker = BrokerProcess(folder, config=config + _ROOM, is_waited_for=False)
            self.brokers.append(stack.enter_context(broker))
        for broker in self.brokers:
            broker.wait()

    def link(self) -> None:
        """Let every broker call its parent; return at once."""
        for number, broker in enumerate(self.brokers[1:], 1):
            parent = parent_of(number)
            broker.ask("PUT", f"/links/n{parent}", f'{{"url": "tamis://127.0.0.1:{self._ports[parent]}"}}')

    def links(self) -> list[dict[str, Any]]:
        """Return what brokers know of their links."""
        return [link for broker in self.brokers for link in broker.ask("GET", "/links")["links"]]

    def rest(self, say: Callable[[str], None], *, is_all_told: bool = True) -> list[dict[str, Any]]:
        """Wait until no link has events under way, and everything that was told is settled; return the links.

        `is_all_told` says that it is waited for that, too.
        """
        begun = time.perf_counter()
        resting, expected = 0, 2 * (len(self.brokers) - 1)
        while (took_s := time.perf_counter() - begun) < self.patience_s:
            links = self.links()
            resting = sum(
                link["state"] == "live"
                and not link["unacknowledged"]
                and (not is_all_told or (not link["waiting_control"] and link["settled"]))
                for link in links
            )
            if resting == len(links) == expected:
                return links
            say(f"{resting} of {expected} links at rest after {took_s:.0f} s")
            time.sleep(min(2.0, 0.1 + took_s / 20))
        raise RestlessTreeError(f"{resting} of {expected} links at rest after {took_s:.0f} s")

    def cpu_s(self) -> float:
        """Return the processor time of all brokers."""
        return sum(broker.cpu_s() for broker in self.brokers)

    def traffic(self) -> tuple[int, int]:
        """Return how many events and bytes went over all links so far.

        Events by what `/links` says, which is exact; in `/metrics` they are a second late.
        """
        bytes_out = sum(broker.figure("tamis_link_bytes_out_total") for broker in self.brokers)
        return sum(link.get("sent", 0) for link in self.links()), int(bytes_out)

    def wanted(self, records: list[dict[str, Any]]) -> tuple[NDArray[np.bool_], int]:
        """Return which broker has subscriptions that want which event, as a matcher says; and how many deliveries."""
        wanted, count = np.zeros((len(self.fillings), len(records)), np.bool_), 0
        for number, filling in enumerate(self.fillings):
            pairs = filling.pairs(records, filling.subscriber_count)
            wanted[number, [event for event, _ in pairs]] = True
            count += len(pairs)
        return wanted, count


# -- S11, trees


def _by_strategy(
    what: str, dealt: Sequence[list[str]], strategies: Sequence[str], load: _Load, say: Callable[[str], None]
) -> Iterator[dict[str, Any]]:
    """Measure the same tree with each strategy; compare with flooding, if that is among them and comes first."""
    flooding_kb: dict[str, float] = {}
    count = sum(map(len, dealt))
    for strategy in strategies:
        name = f"{what}, {count:,} subscriptions, {strategy}"
        say(f"{name}: brokers start")
        with ExitStack() as stack:
            tree = Tree(dealt, load.subscriber_count, strategy, stack, load.patience_s)
            try:
                for row in _of_tree(what, tree, strategy, load, lambda text, name=name: say(f"{name}: {text}")):
                    if " events" in row["what"]:
                        which = row["what"].removesuffix(", unfinished")
                        if strategy == "flooding":
                            flooding_kb[which] = row["link_kb"]
                        row["of_flooding"] = row["link_kb"] / flooding_kb[which] if which in flooding_kb else None
                    yield {**row, "strategy": strategy, "subscriptions": count}
            except RestlessTreeError as error:  # events are stuck; the others are measured nevertheless
                yield _row(f"{what} given up", strategy=strategy, subscriptions=count, note=str(error), wrong=1)


def _of_tree(what: str, tree: Tree, strategy: str, load: _Load, say: Callable[[str], None]) -> Iterator[dict[str, Any]]:
    say("filters are told")
    count = sum(len(filling.texts) for filling in tree.fillings)
    before, begun = tree.cpu_s(), time.perf_counter()
    tree.link()
    try:
        links, is_at_rest = tree.rest(say), True
    except RestlessTreeError:  # what it does meanwhile is measured nevertheless
        links, is_at_rest = tree.links(), False
    took_s, cpu = time.perf_counter() - begun, tree.cpu_s() - before
    arrived = sum(link["wants"] for link in links)
    told = sum(link["told"] for link in links)
    unfinished = "" if is_at_rest else ", unfinished"
    note = f"{arrived:,} told in {took_s:.1f} s, {cpu:.1f} s of processors"
    if not is_at_rest:
        most = count * (len(tree.brokers) - 1)
        note += (
            f"; cpu_us is of one that was told, of {most:,} at most: stopped after {tree.patience_s:.0f} s (--patience)"
        )
    yield _row(
        f"{what} filters{unfinished}", link_kb=tree.traffic()[1] / 1e3, mb=_megabytes(tree),
        cpu_us=cpu / max(1, count if is_at_rest else arrived) * 1e6, note=note,
        wrong=abs(arrived - told) if is_at_rest else 0,
    )  # fmt: skip
    if what in ("S11", "trees"):
        for which, records in (("first events", load.first_records), ("events", load.records)):
            say(which)
            yield asyncio.run(_events(f"{what} {which}{unfinished}", tree, strategy, records, is_at_rest=is_at_rest))
    if not is_at_rest:
        return
    if what != "settled":
        say("hops")
        yield from asyncio.run(_hops(what, tree, load))
    if what in ("trees", "settled") and load.settled_count:
        say("subscriptions are settled")
        yield asyncio.run(_settled("settled" if what == "settled" else f"{what} settled", tree, load))


def _megabytes(tree: Tree) -> float:
    return sum(broker.resident_bytes() for broker in tree.brokers) / 1e6


async def _events(
    what: str, tree: Tree, strategy: str, records: list[dict[str, Any]], *, is_at_rest: bool = True
) -> dict[str, Any]:
    """Publish at all brokers in turn, while all subscribers are connected.

    At rest events cross just the links that they have to; before, and with imperfect merging, no fewer.
    """
    events = [cloud_event(record, f"{what}{number}") for number, record in enumerate(records)]
    publishers = np.arange(len(records), dtype=np.int64) % len(tree.brokers)
    wanted, expected = tree.wanted(records)
    needed = crossings(wanted, publishers, is_flooded=strategy == "flooding")
    is_exact = is_at_rest and strategy != "imperfect merging"
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as http:
        consumers = await _Consumers.connected(http, tree)
        (events_before, bytes_before), cpu_before = tree.traffic(), tree.cpu_s()
        begun = time.perf_counter()
        await asyncio.gather(
            *(
                _published(http, broker.url, [events[at] for at in np.flatnonzero(publishers == number)])
                for number, broker in enumerate(tree.brokers)
            )
        )
        await _until(lambda: consumers.count >= expected)
        await asyncio.to_thread(tree.rest, lambda _: None, is_all_told=is_at_rest)
        took_s, cpu = time.perf_counter() - begun, tree.cpu_s() - cpu_before
        await asyncio.sleep(0.3)  # what is too much would come now
        delivered = consumers.count
        link_events, link_bytes = (after - before for after, before in zip(
            tree.traffic(), (events_before, bytes_before), strict=True
        ))  # fmt: skip
        await consumers.close()
    surplus, share = link_events - needed, wanted.mean() * 100
    return _row(
        what, events=len(events), link_events=link_events, link_kb=link_bytes / 1e3, cpu_us=cpu / len(events) * 1e6,
        mb=_megabytes(tree), deliveries=delivered,
        note=f"{link_events / len(events):.2f} links each, {share:.1f} % wanted at a broker, {took_s:.1f} s",
        wrong=abs(delivered - expected) + (abs(surplus) if is_exact else max(0, -surplus)),
    )  # fmt: skip


class _Consumers:
    """All subscribers of a tree, connected."""

    def __init__(self, sockets: list[Socket]) -> None:
        self._sockets = sockets
        self._tasks = [asyncio.create_task(each.consume()) for each in sockets]

    @classmethod
    async def connected(cls, http: aiohttp.ClientSession, tree: Tree) -> _Consumers:
        """Connect all of them."""
        return cls(
            [
                await Socket.opened(http, broker.url, **{"as": f"s{number}", "durable": True})
                for broker, filling in zip(tree.brokers, tree.fillings, strict=True)
                for number in range(filling.subscriber_count)
            ]
        )

    @property
    def count(self) -> int:
        """How many deliveries came."""
        return sum(each.count for each in self._sockets)

    async def close(self) -> None:
        """Disconnect."""
        for each in self._sockets:
            await each.close()
        await asyncio.gather(*self._tasks)


async def _published(http: aiohttp.ClientSession, url: str, events: Sequence[bytes], frame: int = _FRAME) -> None:
    publisher = await Socket.opened(http, url)
    await publisher.publish(events, frame, 64 * frame)
    await publisher.close()


async def _hops(what: str, tree: Tree, load: _Load) -> list[dict[str, Any]]:
    """Publish at a steady rate at a leaf; subscribers at some brokers on the way to the farthest want everything."""
    source = leaf_of(len(tree.brokers))
    ends = {len(way(source, end)) - 1: end for end in range(len(tree.brokers))}
    ends = {hops: end for hops, end in ends.items() if hops in HOPS} | {0: source}
    events = auction_events(load.steady_count, load.seed + 9, tag="hop", source="/hops")
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as http:
        consumers: dict[int, Socket] = {}
        arrived: dict[int, dict[str, float]] = {hops: {} for hops in ends}
        for hops, end in ends.items():
            path = f"/subscribers/hops/subscriptions/all?settle={_SETTLE}"
            put = tree.brokers[end].ask
            await asyncio.to_thread(put, "PUT", path, "source = '/hops'", "text/plain")
            consumers[hops] = await Socket.opened(http, tree.brokers[end].url, **{"as": "hops", "durable": True})
        tasks = [asyncio.create_task(consumers[hops].consume(arrived[hops])) for hops in ends]
        publisher = await Socket.opened(http, tree.brokers[source].url)
        sent: dict[str, float] = {}
        begun = time.perf_counter()
        for number, event in enumerate(events):
            await asyncio.sleep(max(0.0, begun + number / load.steady_per_s - time.perf_counter()))
            sent[f"hop{number}"] = time.perf_counter()
            await publisher.publish([event], 1, 1_000_000, is_waited_for=False)
        await publisher.answered()
        await _until(lambda: all(len(each) >= len(events) for each in arrived.values()))
        await publisher.close()
        for each in consumers.values():
            await each.close()
        await asyncio.gather(*tasks)
    for end in ends.values():
        await asyncio.to_thread(tree.brokers[end].ask, "DELETE", "/subscribers/hops")
    rows = []
    at_home = 0.0
    for hops in sorted(ends):
        waits_ms = [(arrived[hops].get(key, inf) - at) * 1e3 for key, at in sent.items()]
        p50, p99 = np.percentile(waits_ms, [50, 99], method="lower")
        at_home = at_home if hops else float(p50)
        rows.append(
            _row(
                f"{what} {hops} hops", events=len(events), p50_ms=float(p50), p99_ms=float(p99),
                deliveries=consumers[hops].count, wrong=abs(consumers[hops].count - len(events)),
                note=f"{(p50 - at_home) / hops:.2f} ms a hop" if hops else "",
            )
        )  # fmt: skip
    return rows


def leaf_of(count: int) -> int:
    """Return the first broker of a tree that nobody calls, from which the ways are longest.

    >>> leaf_of(7), leaf_of(3), leaf_of(1)
    (3, 1, 0)
    """
    return next(number for number in range(count) if number not in {parent_of(each) for each in range(1, count)})


async def _settled(what: str, tree: Tree, load: _Load) -> dict[str, Any]:
    """Subscribe at a leaf, one by one; as soon as one is settled, publish at the far end an event that it wants."""
    here, there = tree.brokers[leaf_of(len(tree.brokers))], tree.brokers[-1]
    wishes = load.settling()
    times_ms: list[float] = []
    unsettled = 0
    before, cpu_before = tree.traffic(), tree.cpu_s()
    async with aiohttp.ClientSession() as http:
        consumer: Socket | None = None
        task: asyncio.Task[None] | None = None
        publisher = await Socket.opened(http, there.url)
        for number, (text, record) in enumerate(wishes):
            begun = time.perf_counter()
            path = f"/subscribers/settling/subscriptions/k{number}?settle={_SETTLE}"
            answer = await asyncio.to_thread(here.ask, "PUT", path, text, "text/plain")
            times_ms.append((time.perf_counter() - begun) * 1e3)
            unsettled += not answer["settled"]
            if consumer is None:
                consumer = await Socket.opened(http, here.url, **{"as": "settling", "durable": True})
                task = asyncio.create_task(consumer.consume())
            await publisher.publish([cloud_event(record, f"settled{number}")], 1, 1)
        assert consumer is not None
        assert task is not None
        await _until(lambda: consumer.count >= len(wishes), 30.0)
        await asyncio.sleep(0.3)
        delivered = consumer.count
        await publisher.close()
        await consumer.close()
        await task
    cpu, after = tree.cpu_s() - cpu_before, tree.traffic()
    p50, p99 = np.percentile(times_ms, [50, 99])
    return _row(
        what, events=len(wishes), link_kb=(after[1] - before[1]) / 1e3, link_events=after[0] - before[0],
        cpu_us=cpu / max(1, len(wishes)) * 1e6, p50_ms=float(p50), p99_ms=float(p99), deliveries=delivered,
        note="a subscription and an event each", wrong=abs(delivered - len(wishes)) + unsettled,
    )  # fmt: skip


# -- A link comes up


def _link_up(strategy: str, count: int, seed: int, patience_s: float) -> Iterator[dict[str, Any]]:
    """Link a broker that has many subscriptions with one that has none; see how late its loop is until all is told."""
    records = auction_records(500, seed + 7)
    with ExitStack() as stack:
        tree = Tree([auction_texts(count, seed), []], 1, strategy, stack, patience_s)
        full = tree.brokers[0]
        before, cpu_before, begun = full.figures(), full.cpu_s(), time.perf_counter()
        tree.link()
        first_ms = asyncio.run(_first_event(tree))
        links = tree.rest(lambda _: None)
        took_s, cpu, after = time.perf_counter() - begun, full.cpu_s() - cpu_before, full.figures()
        p50, p99, samples = lags_ms(before, after)
        told = next(link["told"] for link in links if link["name"] == "n1")
        kilobytes = tree.traffic()[1] / 1e3
        (wanted, *_), _ = tree.wanted(records)
        crossed = asyncio.run(_crossed(tree, records))
        expected = len(records) if strategy == "flooding" else int(wanted.sum())
        wrong = max(0, expected - crossed) if strategy == "imperfect merging" else abs(crossed - expected)
    yield _row(
        "link_up", strategy=strategy, subscriptions=count, events=len(records), link_events=crossed, link_kb=kilobytes,
        cpu_us=cpu / max(1, count) * 1e6, p50_ms=p50, p99_ms=p99,
        note=f"{told:,} told in {took_s:.1f} s, {cpu:.1f} of a processor; the first event crossed after {first_ms:.0f} "
        f"ms; p50 and p99: how late the loop is, {samples} samples",
        wrong=wrong,
    )  # fmt: skip


async def _first_event(tree: Tree) -> float:
    """Return the milliseconds until an event that is published at the far end right away is here."""
    begun = time.perf_counter()
    async with aiohttp.ClientSession() as http:
        await _published(http, tree.brokers[1].url, auction_events(1, 99, tag="first", source="/first"))
        while not tree.traffic()[0]:
            if time.perf_counter() - begun > tree.patience_s:
                raise RestlessTreeError("no event crossed the link")
            await asyncio.sleep(0.02)
    return (time.perf_counter() - begun) * 1e3


async def _crossed(tree: Tree, records: list[dict[str, Any]]) -> int:
    """Publish at the far end; return how many events crossed the link."""
    before = tree.traffic()[0]
    async with aiohttp.ClientSession() as http:
        events = [cloud_event(record, f"crossed{number}") for number, record in enumerate(records)]
        await _published(http, tree.brokers[1].url, events)
    await asyncio.to_thread(tree.rest, lambda _: None)
    return tree.traffic()[0] - before


def lags_ms(before: Mapping[str, float], after: Mapping[str, float]) -> tuple[float, float, int]:
    """Return bounds that half, and 99 of 100 of the broker's lags between two readings do not exceed; and their count.

    >>> reading = {'tamis_loop_lag_seconds_bucket{le="0.001"}': 9, 'tamis_loop_lag_seconds_bucket{le="+Inf"}': 10}
    >>> lags_ms({}, reading)
    (1.0, inf, 10)
    """
    name = 'tamis_loop_lag_seconds_bucket{le="'
    bounds = {
        float(line.removeprefix(name).partition('"')[0]) * 1e3: count - before.get(line, 0.0)
        for line, count in after.items()
        if line.startswith(name)
    }
    total = max(bounds.values())
    p50, p99 = (min(bound for bound, count in bounds.items() if count >= share * total) for share in (0.5, 0.99))
    return p50, p99, int(total)


# -- S6: fan-out


def _fan_out(count: int, event_count: int, seed: int, say: Callable[[str], None]) -> Iterator[dict[str, Any]]:
    """Deliver every event to many connected subscribers, one event at a time, so that nothing is put together."""
    _allow_files(2 * count + 500)
    events = auction_events(event_count, seed, tag="S6-")
    with TemporaryDirectory() as folder:
        say(f"S6, NATS, {count} subscribers")
        server = NatsServer(Path(folder), "")
        try:
            nats_us, delivered, took_s = asyncio.run(_by_nats(server, events, count))
        finally:
            server.stop()
    note = f"{delivered / took_s:,.0f} deliveries/s with the clients' time"
    wrong = abs(delivered - count * event_count)
    yield _row("S6 NATS", events=event_count, cpu_us=nats_us, deliveries=delivered, note=note, wrong=wrong)
    for what, is_durable in (("S6 passing", False), ("S6 durable, acknowledged", True)):
        say(f"{what}, {count} subscribers")
        with ExitStack() as stack:
            folder = stack.enter_context(TemporaryDirectory())
            texts = ["source = '/benchmark'"] * count if is_durable else []
            filled_with(Path(folder), texts, count if is_durable else 0)
            broker = stack.enter_context(BrokerProcess(Path(folder), config=_ROOM))
            own_us, delivered, took_s = asyncio.run(_by_tamis(broker, events, count, is_durable=is_durable))
        times = f"{own_us / nats_us:.1f} x NATS, hoped 3; " if nats_us else ""  # which may be too quick for the clock
        note = f"{times}{delivered / took_s:,.0f} deliveries/s with the clients' time"
        wrong = abs(delivered - count * event_count)
        yield _row(what, events=event_count, cpu_us=own_us, deliveries=delivered, note=note, wrong=wrong)


def _allow_files(count: int) -> None:
    """Let this process, and those that it starts, have so many files and sockets open."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < count:
        most = count if hard == resource.RLIM_INFINITY else min(count, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


async def _by_tamis(
    broker: BrokerProcess, events: Sequence[bytes], count: int, *, is_durable: bool
) -> tuple[float, int, float]:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as http:
        sockets = []
        for number in range(count):
            hello = {"as": f"s{number}", "durable": True} if is_durable else {}
            socket = await Socket.opened(http, broker.url, **hello)
            if not is_durable:
                await socket.subscribe({"all": "source = '/benchmark'"})
            socket.acknowledges = is_durable
            sockets.append(socket)
        tasks = [asyncio.create_task(each.consume()) for each in sockets]
        publisher = await Socket.opened(http, broker.url)
        cpu_before, begun = broker.cpu_s(), time.perf_counter()
        for number, event in enumerate(events, 1):
            await publisher.publish([event], 1, 1)
            await _until(lambda number=number: sum(each.count for each in sockets) >= number * count, 30.0)
        took_s = time.perf_counter() - begun
        await asyncio.sleep(0.3)
        cpu = broker.cpu_s() - cpu_before
        delivered = sum(each.count for each in sockets)
        for each in (publisher, *sockets):
            await each.close()
        await asyncio.gather(*tasks)
    return cpu / max(1, delivered) * 1e6, delivered, took_s


class _NatsClient(asyncio.Protocol):
    """A subscriber of NATS that only counts."""

    def __init__(self) -> None:
        self.count = 0
        self.greeted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._rest = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.write(b'CONNECT {"verbose":false}\r\nSUB fan 1\r\nPING\r\n')

    def data_received(self, data: bytes) -> None:
        rest = self._rest + data
        while (end := rest.find(b"\r\n")) >= 0:
            head = rest[:end]
            after = end + 2
            if head.startswith(b"MSG "):
                after += int(head.rpartition(b" ")[2]) + 2
                if len(rest) < after:
                    break
                self.count += 1
            elif head == b"PONG" and not self.greeted.done():
                self.greeted.set_result(None)
            elif head == b"PING":
                self.transport.write(b"PONG\r\n")
            rest = rest[after:]
        self._rest = rest


async def _by_nats(server: NatsServer, events: Sequence[bytes], count: int) -> tuple[float, int, float]:
    loop = asyncio.get_running_loop()
    clients = []
    for _ in range(count):
        _, client = await loop.create_connection(_NatsClient, "127.0.0.1", server.port)
        await client.greeted
        clients.append(client)
    _, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(b'CONNECT {"verbose":false}\r\n')
    cpu_before, begun = server.cpu_s(), time.perf_counter()
    for number, event in enumerate(events, 1):
        writer.write(b"PUB fan %d\r\n%b\r\n" % (len(event), event))
        await writer.drain()
        await _until(lambda number=number: sum(client.count for client in clients) >= number * count, 30.0)
    took_s, cpu = time.perf_counter() - begun, server.cpu_s() - cpu_before
    delivered = sum(client.count for client in clients)
    writer.close()
    for client in clients:
        client.transport.close()
    return cpu / max(1, delivered) * 1e6, delivered, took_s
