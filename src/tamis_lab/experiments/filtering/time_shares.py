"""Where does each algorithm's time go?

Nobody published that. It is here because a comparison of algorithms should be about them: values become codes and codes
become predicates in the same way for all, and what remains is the algorithm's own.
"""

from __future__ import annotations

from time import thread_time
from typing import TYPE_CHECKING

from tamis.workloads import Expressions, Workload
from tamis_lab.experiments.base import Bars, Experiment, Result, Row, Scale, Tell
from tamis_lab.experiments.books import books
from tamis_lab.experiments.filtering.subjects import A_TREES, BOOLEAN, CLUSTER, COUNTING, GRYPHON, field_of
from tamis_lab.experiments.profiling import PARTS, busiest, sampled, shares

if TYPE_CHECKING:
    from collections import Counter

    import pyarrow as pa

    from tamis_lab.experiments.measuring import Subject

NAMES = (COUNTING, CLUSTER, BOOLEAN, GRYPHON, *A_TREES, "block")
_LEAST_S, _MOST_ROUNDS = 0.05, 2_000


def run(scale: Scale, seed: int, tell: Tell) -> Result:
    """Watch everybody match auctions, and conjunctions."""
    workloads: dict[str, Workload] = {
        "auctions": books(),
        "conjunctions": Expressions(predicate_count=10, comparison="=", match_share=0.005),
    }
    rows: list[Row] = []
    plots = []
    for title, workload in workloads.items():
        field = field_of(*NAMES, schema=workload.schema)
        field.register(workload.subscriptions(scale.setting_count, seed)["condition"].to_pylist(), tell)
        events = workload.events(scale.most_events, seed + 1)
        times = field.event_s(events, scale, tell)
        parts: dict[str, tuple[float, ...]] = {}
        for name in NAMES:
            tell(f"watching {name}")
            size = max(1, min(events.num_rows, int(scale.measured_s / times[name])))
            samples = _watched(field[name], events.slice(0, size), max(_LEAST_S, scale.measured_s))
            parts[name] = shares(samples)
            row: Row = {"workload": title, "algorithm": name, "event ms": 1e3 * times[name]}
            row |= dict(zip(PARTS, parts[name], strict=True))
            rows.append(row | {"busiest": "; ".join(f"{function} {share:.0%}" for function, share in busiest(samples))})
        labels = {name: f"{1e3 * times[name]:.3g} ms" for name in NAMES}
        plots.append(
            Bars(f"Shares of an event's time, {title}, {scale.setting_count:,} subscriptions", PARTS, parts, labels)
        )
    setup = (
        "A thousand times a second, in which function is the thread that matches? Values become codes, codes become "
        "the predicates that hold, and these become subscriptions. The busiest functions are among the measurements."
    )
    return Result(setup, plots=tuple(plots), rows=tuple(rows))


def _watched(subject: Subject, batch: pa.Table, least_s: float) -> Counter[tuple[str, str]]:
    with sampled() as samples:
        start = thread_time()
        for _ in range(_MOST_ROUNDS):
            subject.pairs(batch)
            if thread_time() - start > least_s:
                break
    return samples


EXPERIMENT = Experiment("shares of time", "Where does each algorithm's time go?", "Ours", run)
