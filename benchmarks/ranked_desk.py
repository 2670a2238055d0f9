"""What does it cost that ranked subscriptions live at a broker, rather than in a processor by itself?

    ranked_desk    events per second of a broker with very many ranked subscriptions of its own clients, singly
                   (`receive`) and in groups (`receive_many`), beside `TopK` alone with the same ones

Both are processor times, taken in turns in one run. `share` is what the broker manages of what the processor does; at
least half is wanted. `wrong` counts deliveries that only one of both makes.
"""

from __future__ import annotations

from itertools import count
from random import Random
from time import process_time
from typing import TYPE_CHECKING, Any

from tamis.routing import Broker, Deliver, Entry, Publish, Subscribe
from tamis.topk import Ranked, TopK

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PUBLISHER = "publisher"


def ranked_desk(
    subscription_counts: Sequence[int] = (10_000, 100_000),
    group_sizes: Sequence[int] = (1, 64),
    client_count: int = 1_000,
    event_count: int = 1_024,
    passes: int = 3,
    seed: int = 1,
) -> Iterator[dict[str, Any]]:
    """How many events a second does a broker rank for its clients, and a processor by itself?"""
    for subscription_count in subscription_counts:
        chance = Random(seed)
        wanted = [_wanted(chance) for _ in range(subscription_count)]
        broker, processor, keys, now = _broker(wanted, client_count), TopK(), count(), 0.0
        for number, ranked in enumerate(wanted):
            processor.add((f"client {number % client_count}", number), ranked, client=f"client {number % client_count}")
        for size in group_sizes:
            best = {"broker": float("inf"), "processor": float("inf")}
            wrong = 0
            for _ in range(passes):
                events = [{"x": chance.random(), "y": chance.random()} for _ in range(event_count)]
                names = [next(keys) for _ in events]
                publications = list(map(Publish, names, events))
                told: set[tuple[Any, Any]] = set()
                expected: set[tuple[Any, Any]] = set()
                start = process_time()
                outputs = []
                for first in range(0, event_count, size):
                    group = publications[first : first + size]
                    at = now + first
                    outputs += (
                        broker.receive(group[0], PUBLISHER, at)
                        if size == 1
                        else broker.receive_many(group, PUBLISHER, at)
                    )
                best["broker"] = min(best["broker"], process_time() - start)
                start = process_time()
                deliveries = []
                for first in range(0, event_count, size):
                    at = now + first
                    deliveries += (
                        processor.process(events[first], at, names[first])
                        if size == 1
                        else processor.process_batch(events[first : first + size], at, names[first : first + size])
                    )
                best["processor"] = min(best["processor"], process_time() - start)
                now += event_count
                told |= {(each.client, each.publication.key) for each in outputs if isinstance(each, Deliver)}
                expected |= {(each.subscription[0], each.event) for each in deliveries}
                wrong += len(told ^ expected)
            yield {
                "subscriptions": subscription_count,
                "group": size,
                "broker_events_s": event_count / best["broker"],
                "processor_events_s": event_count / best["processor"],
                "share": best["processor"] / best["broker"],
                "deliveries": len(expected) / event_count,
                "wrong": wrong,
            }


def _wanted(chance: Random) -> Ranked:
    """The nearest few to a point, of a window of some hundred events."""
    point = f"array({chance.random()!r}D, {chance.random()!r}D)"
    return Ranked.parse(
        f"TOP {chance.randint(1, 5)} BY euclidean(array(x, y), {point}) ASC OVER {chance.choice((1000, 5000))} SECONDS"
    )


def _broker(wanted: Sequence[Ranked], client_count: int) -> Broker:
    broker = Broker("home")
    broker.attach(PUBLISHER)
    for number in range(client_count):
        broker.attach(f"client {number}")
        entries = tuple(Entry(place, wanted[place]) for place in range(number, len(wanted), client_count))
        broker.receive(Subscribe(entries), f"client {number}", 0.0)
    return broker
