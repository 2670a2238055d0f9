"""What does a broker gain by pruning what it keeps?

    pruned_brokers    memory and time of a broker that knows the filters of a neighbour, from no to all prunings
    one_neighbour     an event that matches very many entries of one neighbour, listed one by one and by the shortcut

Memory is that of Python's allocator and of arrays, all that came since the broker was made. `wrong` counts events that
a broker does not forward although somebody behind the neighbour wants them, and, at no prunings, those that it forwards
in vain; filters that do not come back as they were said; and clients that do not get exactly their events.
"""

from __future__ import annotations

import gc
import tracemalloc
from itertools import count
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Any

from benchmarks.cases import CASES, best_times, events_of
from tamis.language import holds, parse
from tamis.matching import Matcher
from tamis.pruning import Goal
from tamis.routing import Broker, Entry, Publish, Send, Subscribe

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tamis.language import Expression

_SOME, _MOST_S = 100, 20.0
"""So many events are matched at least, and for so long at most, until a broker has come to rest."""
_JUDGED = 100


def pruned_brokers(
    subscription_counts: Sequence[int] = (10_000,),
    measures: Sequence[str] = ("accuracy",),
    shares: Sequence[float] = (0.0, 0.25, 0.5, 0.75, 1.0),
    event_count: int = 1_000,
    passes: int = 3,
    seen_count: int = 2_000,
    seed: int = 1,
) -> Iterator[dict[str, Any]]:
    """How much memory and time does a broker take, the more it prunes?

    A broker sees `seen_count` events before it is told to prune. Below some 2,000 filters, what any broker takes hides
    what is saved.

    `prunings` is the share of all prunings that are carried out, `reduction` the share of all predicates that are gone
    then (M): published figures are over both. `clauses` are what the matcher has compiled. A broker that has not come
    to rest (`is_at_rest`) takes more of both. An event takes what a broker does with it beside matching, which pruning
    does not change; `match_us` is without that, and is what published times of filtering are compared with.
    """
    workload = CASES["auction"]()
    seen = events_of(workload.events(seen_count, seed + 1))
    events = events_of(workload.events(event_count, seed + 2))
    keys = count()
    _broker(workload.subscriptions(50, seed)["condition"].to_pylist(), seen[:50], 1.0, measures[0], keys)  # compiles
    for subscriptions in subscription_counts:
        texts = workload.subscriptions(subscriptions, seed)["condition"].to_pylist()
        for measure in measures:
            made = {share: _broker_and_memory(texts, seen, share, measure, keys) for share in shares}
            forwarded = {share: _forwarded(broker, _published(events, keys)) for share, (broker, _) in made.items()}
            best_s = dict.fromkeys(shares, float("inf"))
            matched_s = dict.fromkeys(shares, float("inf"))
            for share in list(shares) * passes:  # in turns, so that a busy moment hits all of them
                published = _published(events, keys)
                start = process_time()
                _forwarded(made[share][0], published)
                best_s[share] = min(best_s[share], process_time() - start)
                start = process_time()
                for event in events:
                    made[share][0].table.match(event)
                matched_s[share] = min(matched_s[share], process_time() - start)
            for share, (broker, memory) in made.items():
                yield {
                    "subscriptions": subscriptions,
                    "measure": measure,
                    "prunings": share,
                    "reduction": broker.table.reduction,
                    "clauses": broker.table.figures()["clauses"],
                    "memory_mb": memory / 1e6,
                    "event_us": best_s[share] / len(events) * 1e6,
                    "match_us": matched_s[share] / len(events) * 1e6,
                    "forwarded": sum(forwarded[share]) / len(events),
                    "memory_ratio": memory / made[shares[0]][1],
                    "time_ratio": best_s[share] / best_s[shares[0]],
                    "match_ratio": matched_s[share] / matched_s[shares[0]],
                    "is_at_rest": _is_at_rest(broker),
                    "wrong": _wrong(broker, texts, events, forwarded[share], share),
                }


def _published(events: list[Any], keys: Iterator[int]) -> list[Publish]:
    return [Publish(next(keys), event) for event in events]


def _broker(texts: list[str], seen: list[Any], share: float, measure: str, keys: Iterator[int]) -> Broker:
    """Return a broker with the filters of a neighbour, who has seen some events, and pruned then."""
    broker = Broker("here", "simple")
    broker.connect("north", 0.0)
    broker.receive(Subscribe([Entry(number, parse(text)) for number, text in enumerate(texts)]), "north", 0.0)
    broker.connect("south", 0.0)
    broker.disconnect("south", 0.0)  # what the link is told of filters is none of this
    broker.attach("client")
    broker.receive(Subscribe([Entry("mine", parse(texts[0]))]), "client", 0.0)
    for event in seen:
        broker.receive(Publish(next(keys), event), "client", 0.0)
    if share:
        broker.prune(Goal(share=share), measure=measure)
    _come_to_rest(broker, seen)
    return broker


def _come_to_rest(broker: Broker, seen: list[Any]) -> None:
    """Match until the matcher has put together what changed.

    Published events would be remembered, and a broker that prunes would have more of them to remember, because it takes
    longer to come to rest.
    """
    start = process_time()
    for number in count():
        broker.table.match(seen[number % len(seen)])
        if (_is_at_rest(broker) and number > _SOME) or process_time() - start > _MOST_S:
            return


def _is_at_rest(broker: Broker) -> bool:
    return len(broker.table.figures()["segments"]) <= 1


def _broker_and_memory(
    texts: list[str], seen: list[Any], share: float, measure: str, keys: Iterator[int]
) -> tuple[Broker, int]:
    gc.collect()
    tracemalloc.start()
    try:
        broker = _broker(texts, seen, share, measure, keys)
        gc.collect()
        size, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(broker.table) == len(texts) + 1
    return broker, size


def _forwarded(broker: Broker, published: list[Publish]) -> list[bool]:
    """Return which events go to the neighbour."""
    return [any(isinstance(each, Send) for each in broker.receive(event, "client", 0.0)) for event in published]


def _wrong(broker: Broker, texts: list[str], events: list[Any], forwarded: list[bool], share: float) -> int:
    matcher = Matcher()
    matcher.add_many(dict(enumerate(texts)))
    needed = [bool(matcher.match(event)) for event in events]
    lost = sum(is_needed and not is_sent for is_needed, is_sent in zip(needed, forwarded, strict=True))
    vain = sum(is_sent and not is_needed for is_needed, is_sent in zip(needed, forwarded, strict=True))
    kept = broker.table.of("north")
    changed = sum(
        kept[number] != parse(texts[number]) for number in range(0, len(texts), max(1, len(texts) // _JUDGED))
    )
    mine = parse(texts[0])
    missed = sum(("client" in broker.table.match(event)) != holds(mine, event) for event in events[:_JUDGED])
    return lost + changed + missed + (vain if not share else 0)


def one_neighbour(entry_counts: Sequence[int] = (20_000,), passes: int = 20, seed: int = 1) -> Iterator[dict[str, Any]]:
    """How long does an event take that nearly all entries of a neighbour match?"""
    for entries in entry_counts:
        filters: list[Expression] = [parse(f"price >= {-number} AND bids < {number + 9}") for number in range(entries)]
        listing = Matcher()
        listing.add_many(dict(enumerate(filters)))
        broker = Broker("here", "simple")
        broker.connect("north", 0.0)
        broker.receive(Subscribe([Entry(number, each) for number, each in enumerate(filters)]), "north", 0.0)
        broker.attach("shop")
        event = {"price": 1, "bids": 2}
        keys = count()

        def listed(matcher: Matcher = listing, event: Any = event) -> list[tuple[str, int]]:
            return [("north", number) for number in matcher.match(event)]

        def sent(broker: Broker = broker, event: Any = event, keys: Iterator[int] = keys) -> list[Any]:
            return broker.receive(Publish(next(keys), event), "shop", 0.0)

        for _ in range(40):  # what is left to merge is merged
            listed(), sent()
        start = perf_counter()
        while perf_counter() - start < 2.0 and len(listing.statistics()["segments"]) > 1:
            listed(), sent()
        best = best_times(passes, {"listed": listed, "sent": sent})
        yield {
            "entries": entries,
            "listed_us": best["listed"] * 1e6,
            "broker_us": best["sent"] * 1e6,
            "ratio": best["sent"] / best["listed"],
            "wrong": int(len(listed()) != entries) + int([output.peer for output in sent()] != ["north"]),
        }
