"""What does it save to take many events at once?

    receiving      a broker of many clients: `receive` one by one, `receive_many`, and `route_many`, by size of groups
    batch_sizes    a matcher: `match_batch` against so many calls of `match`, by size of the batch; and beside both the
                   two ways between which a batch chooses: all events singly, and all as blocks

Both are processor times, taken in turns in one run. `wrong` counts events whose deliveries are others than one by one,
and events that have another number of matches in a batch than alone.
"""

from __future__ import annotations

from itertools import count, pairwise
from time import process_time
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import numpy as np

from benchmarks.cases import CASES, built, events_of
from tamis.language import parse
from tamis.matching.block import algorithm
from tamis.routing import Broker, Deliver, Entry, Publish, Subscribe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tamis.routing import Routed

PUBLISHER = "publisher"


def receiving(
    subscription_counts: Sequence[int] = (10_000, 100_000),
    group_sizes: Sequence[int] = (1, 32, 128, 512),
    client_count: int = 1_000,
    event_count: int = 1_024,
    passes: int = 3,
    name: str = "auction",
    seed: int = 1,
) -> Iterator[dict[str, Any]]:
    """How long does a broker take for an event, received alone or in a group?"""
    workload = CASES[name]()
    keys = count()
    events = events_of(workload.events(event_count, seed + 2))
    for subscription_count in subscription_counts:
        texts = workload.subscriptions(subscription_count, seed)["condition"].to_pylist()
        broker = _broker(texts, client_count)
        # It has seen as many events as it takes to lay filters out by them, and has come to rest.
        broker.route_many([next(keys) for _ in events], events, PUBLISHER, 0.0)
        broker.table.settle()
        expected = _one_by_one(broker, events, keys)
        for size in group_sizes:
            groups = [events[start : start + size] for start in range(0, len(events), size)]
            wrong = _wrong(broker, groups, expected, keys)
            ways: dict[str, Callable[[list[tuple[list[int], list[Any]]]], object]] = {
                "receive": lambda given, broker=broker: [
                    broker.receive(each, PUBLISHER, 0.0) for _, group in given for each in group
                ],
                "receive_many": lambda given, broker=broker: [
                    broker.receive_many(group, PUBLISHER, 0.0) for _, group in given
                ],
                "route_many": lambda given, broker=broker: [
                    broker.route_many(names, group, PUBLISHER, 0.0) for names, group in given
                ],
            }
            best_s = dict.fromkeys(ways, float("inf"))
            for way in list(ways) * passes:  # in turns, so that a busy moment hits all of them
                given = [([next(keys) for _ in group], group) for group in groups]
                if way != "route_many":  # which needs no publications
                    given = [(names, list(map(Publish, names, group))) for names, group in given]
                start = process_time()
                ways[way](given)
                best_s[way] = min(best_s[way], process_time() - start)
            us = {way: seconds / len(events) * 1e6 for way, seconds in best_s.items()}
            yield {
                "subscriptions": subscription_count,
                "clients": client_count,
                "group": size,
                "deliveries": sum(map(len, expected)) / len(events),
                "receive_us": us["receive"],
                "receive_many_us": us["receive_many"],
                "route_many_us": us["route_many"],
                "many_to_one": us["receive_many"] / us["receive"],
                "routed_to_one": us["route_many"] / us["receive"],
                "wrong": wrong,
            }


def _broker(texts: Sequence[str], client_count: int) -> Broker:
    broker = Broker("middle")
    broker.attach(PUBLISHER)
    for number in range(client_count):
        broker.attach(f"client {number}")
        entries = [Entry(place, parse(text)) for place, text in enumerate(texts[number::client_count])]
        broker.receive(Subscribe(entries), f"client {number}", 0.0)
    return broker


def _one_by_one(broker: Broker, events: Sequence[Any], keys: Iterator[int]) -> list[dict[str, Any]]:
    """Return who gets each event, by which subscriptions."""
    found = []
    for event in events:
        outputs = broker.receive(Publish(next(keys), event), PUBLISHER, 0.0)
        found.append({each.client: each.subscriptions for each in outputs if isinstance(each, Deliver)})
    return found


def _wrong(broker: Broker, groups: Sequence[Sequence[Any]], expected: list[dict[str, Any]], keys: Iterator[int]) -> int:
    wrong = first = 0
    for group in groups:
        names = [next(keys) for _ in group]
        delivered: dict[int, dict[str, Any]] = {name: {} for name in names}
        for each in broker.receive_many(list(map(Publish, names, group)), PUBLISHER, 0.0):
            if isinstance(each, Deliver):
                delivered[each.publication.key][each.client] = each.subscriptions  # type: ignore[index]
        routed = _named(broker, broker.route_many([next(keys) for _ in group], group, PUBLISHER, 0.0), len(group))
        wanted = expected[first : first + len(group)]
        wrong += sum(one != two for one, two in zip(delivered.values(), wanted, strict=True))
        wrong += sum(one != two for one, two in zip(routed, wanted, strict=True))
        first += len(group)
    return wrong


def _named(broker: Broker, routed: Routed, event_count: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [{} for _ in range(event_count)]
    matches, table = routed.clients, broker.table
    for begin, end in pairwise(matches.starts().tolist()):
        client = table.client_name(int(matches.clients[begin]))
        found[matches.events[begin]][client] = tuple(map(table.key, matches.entries[begin:end].tolist()))
    return found


def batch_sizes(
    names: Sequence[str] = ("auction", "w1"),
    subscription_counts: Sequence[int] = (10_000, 100_000),
    sizes: Sequence[int] = (1, 2, 3, 4, 5, 6, 7, 8, 16, 32, 64, 128, 192, 256, 512, 1_024),
    event_count: int = 2_048,
    passes: int = 3,
    seed: int = 1,
) -> Iterator[dict[str, Any]]:
    """From how many events on is a batch faster than so many single matches, and is it ever slower?"""
    for name in names:
        for subscription_count in subscription_counts:
            case = built(name, subscription_count, event_count, seed, with_yardstick=False)
            matcher, events = case.matcher, events_of(case.events)
            expected = [len(matcher.match(event)) for event in events]
            for size in sizes:
                groups = [events[start : start + size] for start in range(0, len(events) - size + 1, size)]
                counted = sum(map(len, groups))
                tables = [matcher.match_batch(group) for group in groups]
                found = np.concatenate([np.bincount(table["event"], minlength=size) for table in tables])
                ways: dict[str, Callable[[], object]] = {
                    "single": lambda matcher=matcher, groups=groups: [
                        matcher.match(each) for g in groups for each in g
                    ],
                    "batch": lambda matcher=matcher, groups=groups: [matcher.match_batch(group) for group in groups],
                }
                best_us = dict.fromkeys(("single", "batch", "all_singly", "all_blocks"), float("inf"))
                for _ in range(passes):
                    for way in best_us:
                        if way in ways:
                            seconds = _timed(ways[way])
                        else:
                            with patch.object(algorithm, "are_few", lambda parts, events, way=way: way == "all_singly"):
                                seconds = _timed(ways["batch"])
                        best_us[way] = min(best_us[way], seconds / counted * 1e6)
                yield {
                    "workload": name,
                    "subscriptions": subscription_count,
                    "batch": size,
                    "matches_per_event": case.matches_per_event,
                    "single_us": best_us["single"],
                    "batch_us": best_us["batch"],
                    "batch_events_per_s": round(1e6 / best_us["batch"]),
                    "batch_to_single": best_us["batch"] / best_us["single"],
                    "all_singly_us": best_us["all_singly"],
                    "all_blocks_us": best_us["all_blocks"],
                    "wrong": int(np.count_nonzero(found != expected[:counted])),
                }


def _timed(work: Callable[[], object]) -> float:
    start = process_time()
    work()
    return process_time() - start
