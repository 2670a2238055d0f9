"""How fast are many subscriptions pruned, and how fast are advertisements and subscriptions compared?

    bulk_pruning        sequences of all subscriptions and one sort, beside a queue that takes step by step
    pruning_on_spark    the same sequences computed by workers, and sorted by Spark
    overlap             which of many subscriptions overlap an advertisement, and whether any does
    any_overlap         whether any advertisement overlaps a subscription, proven, beside proving all that do
    advertised          one Subscribe and one Unadvertise in a broker whose neighbour advertised much

`wrong` counts steps in which the sort and the queue differ, and pruned filters that do not cover their originals;
and overlaps that the exact relation finds and the index does not; and filters that a neighbour is told although
nothing there concerns them, or is not told although something does.
"""

from __future__ import annotations

import gc
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import numpy as np

import tamis
from benchmarks.cases import CASES, events_of, parsed
from tamis.pruning.bulk import Cut
from tamis.pruning.goals import Goal
from tamis.pruning.layout import laid_out
from tamis.pruning.pruner import Pruner
from tamis.pruning.sequencing import sequences
from tamis.relations import covers, overlaps
from tamis.relations.advertisements import OverlapIndex
from tamis.routing import Broker
from tamis.routing.messages import Entry, Hello, Subscribe, Unadvertise
from tamis.selectivity import Sample
from tamis.workloads import Auction

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tamis.language.expressions import Expression
    from tamis.pruning.sequencing import Ordered, PruningSequences

_SAMPLE_COUNT = 2_000
_COVERED = 200
_QUEUED = 100_000
"""So many subscriptions are pruned by the queue too; of more, the first so many."""


def bulk_pruning(
    names: Sequence[str] = ("auction", "expressions"),
    subscription_counts: Sequence[int] = (10_000, 100_000),
    measures: Sequence[str] = ("accuracy", "memory", "occurrence"),
    seed: int = 1,
) -> Iterator[dict[str, Any]]:
    """How long does it take to prune so many subscriptions, all the way?"""
    sequences(["a = 1 AND b = 2"], lambda _: 0.5).ordered()  # compiles
    for name in names:
        workload = CASES[name]()
        sample = Sample(events_of(workload.events(_SAMPLE_COUNT, seed + 1)))
        for count in sorted(subscription_counts):
            filters = parsed(workload.subscriptions(count, seed))
            gc.collect()
            gc.freeze()
            start = process_time()
            layout = laid_out(filters)
            laid_out_s = process_time() - start
            start = process_time()
            for predicate in layout.predicates:
                sample.share(predicate)
            shares_s = process_time() - start
            for measure in measures:
                start = process_time()
                found = sequences(layout, sample.share, measure)
                sequences_s = process_time() - start
                start = process_time()
                ordered = found.ordered()
                sorted_s = process_time() - start
                cut = Cut.of(found, ordered, Goal(share=1))
                queue_s, wrong = _queued(filters, sample, measure, seed)
                yield {
                    "workload": name,
                    "subscriptions": count,
                    "measure": measure,
                    "steps": found.step_count,
                    "lay_out_s": laid_out_s,
                    "shares_s": shares_s,
                    "sequences_s": sequences_s,
                    "sort_s": sorted_s,
                    "us_each": (laid_out_s + shares_s + sequences_s + sorted_s) / count * 1e6,
                    "queue_us_each": queue_s / min(count, _QUEUED) * 1e6,
                    "reduction": cut.reduction,
                    "wrong": wrong + _uncovered(found, ordered, filters),
                }
            gc.unfreeze()


def _queued(filters: Sequence[Expression], sample: Sample, measure: str, seed: int) -> tuple[float, int]:
    """Prune by the queue, half of the way; return its time, and how many filters differ from the sort's."""
    some = filters[:_QUEUED]
    start = process_time()
    pruner = Pruner(sample.share, measure)
    pruner.add_many(enumerate(some))
    pruner.prune(share=0.5)
    elapsed = process_time() - start
    found = sequences(some, sample.share, measure)
    cut = Cut.of(found, found.ordered(), Goal(share=0.5))
    taken = np.array([pruner.step_count(number) for number in range(len(some))])
    return elapsed, int((taken != cut.step_counts).sum())


def _uncovered(found: PruningSequences, ordered: Ordered, filters: Sequence[Expression]) -> int:
    """Count pruned filters that do not cover what they were, among some."""
    half = Cut.of(found, ordered, Goal(share=0.5))
    some = range(0, len(filters), max(1, len(filters) // _COVERED))
    return sum(
        not covers(found.expression(number, int(half.step_counts[number])), filters[number])
        for number in some
        if half.step_counts[number]
    )


def pruning_on_spark(
    name: str = "auction", subscription_counts: Sequence[int] = (10_000, 100_000), seed: int = 1
) -> Iterator[dict[str, Any]]:
    """How long does Spark take to order the prunings of so many subscriptions? By the clock, all cores together."""
    from tamis.spark import session
    from tamis.spark.pruning import pruning_order

    spark = session()
    workload = CASES[name]()
    sample = Sample(events_of(workload.events(_SAMPLE_COUNT, seed + 1)))
    for count in sorted(subscription_counts):
        table = workload.subscriptions(count, seed)
        frame = spark.createDataFrame(table.select(["subscription_id", "condition"]))
        frame = frame.repartition(2 * spark.sparkContext.defaultParallelism).cache()
        frame.count()
        pruning_order(frame.limit(10), sample.share).collect()  # starts the workers
        start = perf_counter()
        order = pruning_order(frame, sample.share).select("subscription_id", "step").toArrow()
        elapsed = perf_counter() - start
        found = sequences(table["condition"].to_pylist(), sample.share)
        ordered = found.ordered()
        yield {
            "workload": name,
            "subscriptions": count,
            "steps": order.num_rows,
            "cores": spark.sparkContext.defaultParallelism,
            "s": elapsed,
            "us_each": elapsed / count * 1e6,
            "wrong": int((order["subscription_id"].to_numpy() != ordered.filters).sum()),
        }
        frame.unpersist()


def overlap(
    subscription_counts: Sequence[int] = (1_000, 10_000, 100_000), asked_count: int = 100, seed: int = 1
) -> Iterator[dict[str, Any]]:
    """How long does it take to find the subscriptions that an advertisement overlaps, or the reverse; all, or any?"""
    workload = Auction()
    kinds = {"subscriptions": workload.subscriptions, "advertisements": workload.advertisements}
    for registered, asking in (("subscriptions", "advertisements"), ("advertisements", "subscriptions")):
        queries = parsed(kinds[asking](asked_count, seed + 1))
        for count in sorted(subscription_counts):
            filters = parsed(kinds[registered](count, seed))
            index = OverlapIndex(workload.schema)
            for number, each in enumerate(filters):
                index.add(number, each)
            start = process_time()
            index.overlapping(queries[0])  # lays them out
            build_s = process_time() - start
            gc.collect()
            gc.freeze()
            start = process_time()
            found = [index.overlapping(each) for each in queries]
            function_s = process_time() - start
            start = process_time()
            decided = [index.overlaps_any(each) for each in queries]
            decision_s = process_time() - start
            gc.unfreeze()
            yield {
                "registered": registered,
                "count": count,
                "build_us_each": build_s / count * 1e6,
                "function_ms": function_s / asked_count * 1e3,
                "decision_ms": decision_s / asked_count * 1e3,
                "overlapping": float(np.mean([len(each) for each in found]) / count),
                "wrong": _missed(filters, queries, found, workload)
                + sum(bool(each) is not is_any for each, is_any in zip(found, decided, strict=True)),
            }


def _missed(
    filters: Sequence[Expression], queries: Sequence[Expression], found: Sequence[Sequence[int]], workload: Auction
) -> int:
    """Count the overlaps that the exact relation finds among some, and the index did not."""
    return sum(
        number not in claimed and overlaps(query, filters[number], workload.schema).holds
        for query, keys in zip(queries[:10], found, strict=False)
        for claimed in [set(keys)]
        for number in range(min(40, len(filters)))
    )


class _AllProven(OverlapIndex):
    """An exact index that decides whether there is any overlap by proving all of them."""

    def witness(self, given: str | Expression) -> Any | None:
        return next(iter(self.overlapping(given)), None)


def any_overlap(
    advertisement_counts: Sequence[int] = (3_000, 100_000),
    asked_count: int = 100,
    proven_count: int = 3,
    seed: int = 1,
) -> Iterator[dict[str, Any]]:
    """How long does it take to prove that one of many advertisements overlaps a subscription, or that none does?

    Half of the subscriptions ask for what nobody advertises. All overlaps of the first few are proven too, each by an
    index that has proven nothing yet.
    """
    workload = Auction()
    wanted = parsed(workload.subscriptions(asked_count, seed + 1))
    unwanted = [tamis.parse(f"({each}) AND price < 0.5 AND bids < 0", workload.schema) for each in wanted]
    queries = [each for pair in zip(wanted, unwanted, strict=True) for each in pair][:asked_count]
    for count in sorted(advertisement_counts):
        filters = parsed(workload.advertisements(count, seed))
        index = OverlapIndex(workload.schema, is_exact=True)
        for number, each in enumerate(filters):
            index.add(number, each)
        index.overlaps_any("price < 0")  # lays them out
        gc.collect()
        gc.freeze()
        each_s, answers = [], []
        for query in queries:
            start = process_time()
            answers.append(index.overlaps_any(query))
            each_s.append(process_time() - start)
        start = process_time()
        again = [index.overlaps_any(query) for query in queries]
        again_s = process_time() - start
        start = process_time()
        found = [index.overlapping(query) for query in wanted[:proven_count]]
        all_s = process_time() - start
        gc.unfreeze()
        yield {
            "advertisements": count,
            "any_ms": float(np.mean(each_s)) * 1e3,
            "any_p95_ms": float(np.quantile(each_s, 0.95)) * 1e3,
            "again_ms": again_s / len(queries) * 1e3,
            "all_ms": all_s / proven_count * 1e3,
            "all_to_any": all_s / proven_count / float(np.mean(each_s)),
            "overlapping": float(np.mean(answers)),
            "wrong": sum(is_any is not bool(each) for is_any, each in zip(answers[::2], found, strict=False))
            + sum(answers[1::2])
            + sum(one is not two for one, two in zip(answers, again, strict=True)),
        }


def advertised(
    advertisement_count: int = 3_000,
    subscription_count: int = 100,
    change_count: int = 30,
    proven_count: int = 5,
    seed: int = 1,
) -> Iterator[dict[str, Any]]:
    """How long does a broker take for one Subscribe and for one Unadvertise, where a neighbour advertised much?

    Whoever proves all overlaps does so for a few subscriptions and changes only: each takes a second.
    """
    for name, index, most in (("all proven", _AllProven, proven_count), ("one proven", OverlapIndex, 1 << 62)):
        counts = min(most, subscription_count), min(most, change_count)
        with patch("tamis.routing.links.OverlapIndex", index):
            yield {"overlaps": name, **_broker_times(advertisement_count, *counts, seed)}


def _broker_times(advertisement_count: int, subscription_count: int, change_count: int, seed: int) -> dict[str, Any]:
    workload = Auction()
    offered = parsed(workload.advertisements(advertisement_count, seed))
    wanted = parsed(workload.subscriptions(subscription_count + 1, seed + 1))
    broker = Broker("middle", "simple", advertisements="simple", schema=workload.schema)
    broker.attach("client")
    broker.connect("north", 0.0)
    entries = tuple(Entry(key, each) for key, each in enumerate(offered))
    broker.receive(Hello((), entries, workload.schema.digest), "north", 0.0)
    broker.receive(Subscribe((Entry("first", wanted.pop()),)), "client", 0.0)  # lays the advertisements out
    start = process_time()
    for number, each in enumerate(wanted):
        broker.receive(Subscribe((Entry(number, each),)), "client", 0.0)
    subscribe_s = process_time() - start
    # Always the one that most subscriptions rely on, for each of which another has to be found.
    unadvertise_s, relying_count = 0.0, 0
    left = dict(enumerate(offered))
    for _ in range(change_count):
        relied_on = broker.relied_on("north")
        key = max(relied_on, key=relied_on.__getitem__)
        relying_count += relied_on[key]
        start = process_time()
        broker.receive(Unadvertise((key,)), "north", 0.0)
        unadvertise_s += process_time() - start
        del left[int(key)]
    told = {entry.filter for entry in broker.told("north")}
    return {
        "advertisements": advertisement_count,
        "subscriptions": subscription_count,
        "subscribe_ms": subscribe_s / subscription_count * 1e3,
        "unadvertise_ms": unadvertise_s / change_count * 1e3,
        "relying": relying_count / change_count,
        "told": len(told) / len({*wanted}),
        "wrong": sum((each in told) is not _is_offered(each, list(left.values()), workload) for each in wanted[:20]),
    }


def _is_offered(wanted: Expression, offered: Sequence[Expression], workload: Auction) -> bool:
    return any(overlaps(wanted, each, workload.schema) for each in offered)
