"""How long do the brokers of a network filter for an event?

Every broker has its clients' filters as they are, and everybody else's in the version that is kept; it filters the
events that get to it, and needs to know of a neighbour only whether any filter from there matches (the filtering
shortcut). What all brokers together spend on an event, in processor time, is the network's time. The published time is
that of five machines side by side, so ratios are to be compared.

Source: E, Bittner 2008, table 8.1 (docs/bibliography.md).
Departs: processor time instead of the clock, and without what messages cost on the way.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tamis.matching.columns import Events
from tamis.matching.destinations import Destinations
from tamis_lab.experiments.filtering.subjects import field_of
from tamis_lab.experiments.measuring import cpu_s, undisturbed
from tamis_lab.experiments.verdicts import rounded
from tamis_lab.matching.boolean.algorithm import Boolean

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa

    from tamis.language.expressions import Expression
    from tamis_lab.experiments.base import Scale
    from tamis_lab.experiments.measuring import Subject
    from tamis_lab.experiments.routing.overlays import LabOverlay
    from tamis_lab.experiments.routing.prunings import Pruning
    from tamis_lab.experiments.routing.traffic import Traffic

TURNS = 2
"""Batches are short, so they take as many times as many passes as elsewhere."""


def prepared(name: str, traffic: Traffic, filters: Sequence[Expression]) -> list[Any]:
    """Return filters as an algorithm takes them: the same for all brokers."""
    return list(field_of(name, schema=traffic.schema)[name].engine.prepare(filters))


def registered(name: str, traffic: Traffic, ready: Sequence[Any]) -> Subject:
    """Return an algorithm that knows some filters, which are prepared for it."""
    subject = field_of(name, schema=traffic.schema)[name]
    subject.engine.add(range(len(ready)), ready)
    subject.count = len(ready)
    return subject


def matching(subject: Subject, destinations: Sequence[int] = ()) -> Callable[[Events], object]:
    """Return what matches a batch: with the shortcut, if there are destinations and the algorithm knows of any."""
    engine = subject.engine
    if isinstance(engine, Boolean) and len(destinations):
        directed = Destinations()
        directed.extend(0, [each if each >= 0 else None for each in destinations])
        return partial(engine.snapshot().reach_events, destinations=directed)
    return engine.compiled_snapshot().match_events


def events_s(match: Callable[[Events], Any], events: pa.Table, passes: int) -> float:
    """Return the least time that a batch of events takes in some passes."""
    match(Events(events.slice(0, 2)))  # compiles
    return min(cpu_s(lambda: match(Events(events))) for _ in range(TURNS * passes))


def broker_s(
    name: str,
    traffic: Traffic,
    ready: Sequence[Any],
    rows: npt.NDArray[np.int64],
    scale: Scale,
    destinations: Sequence[int] = (),
) -> float:
    """Return the time of one broker that has some filters, for some of the events."""
    if not len(rows):
        return 0.0
    subject = registered(name, traffic, ready)
    return events_s(matching(subject, destinations), traffic.table.take(rows), scale.passes)


def network_s(
    name: str,
    pruning: Pruning,
    share: float,
    overlay: LabOverlay,
    scale: Scale,
    *,
    has_shortcut: bool = True,
    timed: int | None = None,
) -> float:
    """Return the time of all brokers for an event, after a share of all prunings.

    Of brokers with as many neighbours as each other, so many are `timed`, or all; an event costs the others as much.
    """
    traffic = pruning.traffic
    seen = overlay.seen(pruning.reached(overlay), pruning.steps(share))
    originals, versions = (prepared(name, traffic, filters) for filters in (traffic.filters, pruning.versions(share)))
    homes = traffic.homes(overlay.count)

    def taken_s(broker: int) -> float:
        both = zip(homes.tolist(), originals, versions, strict=True)
        ready = [mine if home == broker else other for home, mine, other in both]
        destinations = np.array(overlay.towards(broker))[homes].tolist() if has_shortcut else ()
        return broker_s(name, traffic, ready, seen[broker], scale, destinations)

    spent = 0.0
    with undisturbed():
        for alike in overlay.alike():
            chosen = alike if timed is None else alike[:: -(-len(alike) // timed)]
            event_count = sum(len(seen[broker]) for broker in chosen)
            if event_count:
                spent += sum(map(taken_s, chosen)) * sum(len(seen[broker]) for broker in alike) / event_count
    return spent / len(traffic.events)


def central_s(name: str, pruning: Pruning, share: float, scale: Scale) -> tuple[float, float]:
    """Return the time of one broker whose filters are all pruned, and the share of them that match an event."""
    traffic = pruning.traffic
    subject = registered(name, traffic, prepared(name, traffic, pruning.versions(share)))
    matched = len(subject.pairs(traffic.table)[0]) / len(traffic.events) / subject.count
    with undisturbed():
        return events_s(matching(subject), traffic.table, scale.passes) / len(traffic.events), matched


def spent_remark(broker_count: int, *ends: tuple[float, float]) -> str:
    """Say what a broker spends on an event, and how many filter it, given the time and the load before and after.

    >>> spent_remark(5, (0.125, 0.0625), (0.064, 0.15))
    'Without pruning 1.25 brokers filter an event and spend 0.10 ms each; then it is 1.60 brokers and 0.04 ms.'
    """
    (visits, each), (later, then) = [
        (1 + load * (broker_count - 1), ms / (1 + load * (broker_count - 1))) for ms, load in ends
    ]
    return (
        f"Without pruning {rounded(visits)} brokers filter an event and spend {rounded(each)} ms each; then it is "
        f"{rounded(later)} brokers and {rounded(then)} ms."
    )
