"""How do the A-Tree, counting and Gryphon compare on conjunctions of equalities?

The thesis' main comparison: insertions, events, memory and deletions over the number of subscriptions, for expressions
of several lengths. All competitors were written by its author, and so are ours.
"""

from __future__ import annotations

from tamis.workloads import Expressions
from tamis_lab.experiments import verdicts
from tamis_lab.experiments.base import Claim, Experiment, Line, Plot, Result, Row, Scale, Tell
from tamis_lab.experiments.filtering.subjects import A_TREES, COUNTING, GENERAL, GRYPHON, PATHS, ZERO, field_of

NAMES = (COUNTING, GRYPHON, *A_TREES)
_REMOVED = 2_000
_HASHED = "A hash table finds a node among a million as fast as among a thousand; the source merged lists of parents."
_LAZY = (
    "Here counting and Gryphon write registrations down and lay everything out when somebody next matches, while the "
    "A-Tree is changed in place, one subscription at a time."
)
_TOUCHED = (
    "An event of the A-Tree touches more nodes in proportion to the subscriptions, wherever in memory they are; "
    "counters of counting lie close together and are compared many at a time."
)
_QUEUES = "The queues are four bytes a node; the graph and the index of predicates are the same."
_MEASURED = {
    "insertions": ("insertions a second", True),
    "events": ("events a second", True),
    "bytes": ("bytes a subscription", False),
    "deletions": ("deletions a second", True),
}
"""What is measured, its unit, and whether it is drawn over a logarithmic axis."""


def run(scale: Scale, seed: int, tell: Tell) -> Result:
    """Measure everybody over the number of subscriptions, for each length."""
    rows = [row for length in scale.lengths for row in _sweep(length, scale, seed, tell)]
    length = scale.lengths[-1]
    mine = [row for row in rows if row["length"] == length]
    told = f"L = {length}, N = {mine[-1]['subscriptions']:,}"
    claims = (*_insertion_claims(mine, told), *_event_claims(mine[0], mine[-1], told), *_memory_claims(mine[-1], told))
    counts = tuple(row["subscriptions"] for row in mine)
    plots = tuple(
        Plot(
            f"{what.capitalize()}, expressions of {length} predicates",
            "subscriptions",
            label,
            tuple(Line(name, counts, tuple(row[f"{what} {name}"] for row in mine)) for name in NAMES),
            is_log_x=True,
            is_log_y=is_log,
        )
        for what, (label, is_log) in _MEASURED.items()
    )
    setup = (
        "AND of equalities over 20 attributes, 38 % of the nodes shared at least, 0.5 % of the subscriptions match an "
        "event. Parsing is not counted, the predicate phase is. Memory is all there is, with the index of predicates."
    )
    return Result(setup, claims, plots, tuple(rows))


def _sweep(length: int, scale: Scale, seed: int, tell: Tell) -> list[Row]:
    workload = Expressions(predicate_count=length, comparison="=", match_share=0.005, shared_nodes=0.38)
    texts = workload.subscriptions(scale.expression_counts[-1], seed)["condition"].to_pylist()
    events = workload.events(scale.most_events, seed + 1)
    warm = field_of(*NAMES, schema=workload.schema)  # what is compiled here is not counted there
    warm.register(texts[:100], tell)
    warm.removals_per_s(10, seed)
    field = field_of(*NAMES, schema=workload.schema)
    rows: list[Row] = []
    for begin, end in zip((0, *scale.expression_counts), scale.expression_counts, strict=False):
        field.register(texts[begin:end], tell)
        times = field.event_s(events, scale, tell)
        row: Row = {"length": length, "subscriptions": end}
        for name in NAMES:
            row[f"insertions {name}"] = field[name].insertions_per_s
            row[f"events {name}"] = 1 / times[name]
            row[f"bytes {name}"] = field[name].engine.memory() / end
        rates = field.removals_per_s(min(_REMOVED, end // 20), seed)
        rows.append(row | {f"deletions {name}": rate for name, rate in rates.items()})
    return rows


def _insertion_claims(mine: list[Row], told: str) -> tuple[Claim, ...]:
    last = mine[-1]
    return (
        verdicts.by_trend(
            "Insertions into the A-Tree become slower as it grows",
            "decreasing",
            [row["subscriptions"] for row in mine],
            [row[f"insertions {PATHS}"] for row in mine],
            is_rising=False,
            where="5.4.1, figures 5.1 to 5.3",
            of="a second,",
            remark=_HASHED,
        ),
        verdicts.by_equality(
            f"Insertion takes the same with all three filters (a second, {told})",
            "the same",
            {name: last[f"insertions {name}"] for name in A_TREES},
            where="5.4.1",
            within=1.3,
        ),
        verdicts.by_order(
            f"Gryphon inserts fastest, then counting, then the A-Tree (a second, {told})",
            [GRYPHON, COUNTING, PATHS],
            {name: last[f"insertions {name}"] for name in (GRYPHON, COUNTING, PATHS)},
            where="5.4.1",
            remark=_LAZY,
        ),
        verdicts.by_ratio(
            f"Deleting is faster than inserting (deletions for each insertion, {told})",
            10.0,
            last[f"deletions {PATHS}"] / last[f"insertions {PATHS}"],
            where="5.4.1 and 5.4.4: 20,000 against 1,000 to 5,000 a second",
            about=2.5,
        ),
        verdicts.by_equality(
            f"Deletion takes the same with all three filters (a second, {told})",
            "the same",
            {name: last[f"deletions {name}"] for name in A_TREES},
            where="5.4.4",
        ),
    )


def _event_claims(first: Row, last: Row, told: str) -> tuple[Claim, ...]:
    def slowed(name: str) -> float:
        return float(first[f"events {name}"] / last[f"events {name}"])

    few = f"events a second, N = {first['subscriptions']:,}"
    return (
        verdicts.by_order(
            f"Up to 400,000 subscriptions counting is the fastest, then Gryphon, then the A-Tree ({few})",
            [COUNTING, GRYPHON, PATHS],
            {name: first[f"events {name}"] for name in (COUNTING, GRYPHON, PATHS)},
            where="5.4.2, figures 5.4 to 5.6",
            remark="Gryphon's tree looks equalities up here instead of trying them one by one.",
        ),
        verdicts.by_order(
            f"True-value paths are the fastest filter, zero suppression next, the general one last (events, {told})",
            [PATHS, ZERO, GENERAL],
            {name: last[f"events {name}"] for name in A_TREES},
            where="5.4.2",
        ),
        verdicts.by_direction(
            "Growth slows the A-Tree less than counting (how many times it is slowed, for counting)",
            "less",
            slowed(PATHS) / slowed(COUNTING),
            is_more=False,
            at=told,
            where="5.4.2",
            remark=_TOUCHED,
        ),
        verdicts.by_direction(
            "Growth slows Gryphon less than counting (how many times it is slowed, for counting)",
            "less",
            slowed(GRYPHON) / slowed(COUNTING),
            is_more=False,
            at=told,
            where="5.4.2",
        ),
    )


def _memory_claims(last: Row, told: str) -> tuple[Claim, ...]:
    return (
        verdicts.by_order(
            f"The A-Tree takes the most memory, then Gryphon, then counting (bytes a subscription, {told})",
            [PATHS, GRYPHON, COUNTING],
            {name: last[f"bytes {name}"] for name in (PATHS, GRYPHON, COUNTING)},
            where="5.4.3, figures 5.7 to 5.9",
        ),
        verdicts.by_direction(
            "True-value paths take less memory than zero suppression, which has queues",
            "clearly less",
            last[f"bytes {PATHS}"] / last[f"bytes {ZERO}"],
            is_more=False,
            at=told,
            where="5.4.3",
            remark=_QUEUES,
        ),
        verdicts.by_equality(
            f"The general filter and zero suppression take the same memory (bytes a subscription, {told})",
            "the same",
            {name: last[f"bytes {name}"] for name in (ZERO, GENERAL)},
            where="5.4.3",
            within=1.02,
        ),
    )


EXPERIMENT = Experiment(
    "conjunctive load",
    "How do the A-Tree, counting and Gryphon compare on conjunctions of equalities?",
    "Jewel 2004, section 5.4",
    run,
)
