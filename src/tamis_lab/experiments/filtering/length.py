"""What do longer expressions cost?

With ranges and many matches every predicate more is one more that holds, so everybody becomes slower. With equalities
and few matches, the thesis finds, only Gryphon suffers, whose tree becomes deeper and wider. It has the first for
eight numbers of subscriptions, so ranges are measured over both, length and number.
"""

from __future__ import annotations

from tamis.workloads import Expressions
from tamis_lab.experiments.base import Curve, Experiment, Plot, Result, Row, Scale, Tell
from tamis_lab.experiments.filtering.subjects import COUNTING, GENERAL, GRYPHON, PATHS, field_of
from tamis_lab.experiments.statements import Judge
from tamis_lab.experiments.verdicts import NOISE

judged = Judge("filtering", "length")

_RANGES = (PATHS, GENERAL, COUNTING)
_EQUALITIES = (PATHS, GENERAL, COUNTING, GRYPHON)


def run(scale: Scale, seed: int, tell: Tell) -> Result:
    """Measure over the number of predicates, for ranges with many matches and equalities with few."""
    lengths = scale.lengths
    ranges = [row for length in lengths for row in _rows(">", 0.45, length, _RANGES, scale, seed, tell)]
    equalities = [_rows("=", 0.005, length, _EQUALITIES, scale, seed, tell)[-1] for length in lengths]
    slowed = {name: equalities[0][name] / equalities[-1][name] for name in _EQUALITIES}
    most = [row for row in ranges if row["subscriptions"] == scale.expression_counts[-1]]
    falling = (judged("rate-falls", lengths, [row[name] for row in most], name=name) for name in (GENERAL, PATHS))
    claims = (
        *falling,
        judged("falls-at-every-size", [_falls(ranges, name, count) for name, count in _curves(scale)]),
        judged("gryphon-suffers", slowed),
        judged("hardly-matters", {name: slowed[name] for name in (PATHS, COUNTING)} | {"not at all": 1.0}),
    )
    plots = (
        *(
            Plot(
                f"Ranges, 45 % match, {name}",
                "subscriptions",
                "events a second",
                tuple(
                    Curve(
                        f"L = {length}",
                        scale.expression_counts,
                        tuple(row[name] for row in ranges if row["length"] == length),
                    )
                    for length in lengths
                ),
                is_log_x=True,
                is_log_y=True,
            )
            for name in (GENERAL, PATHS)
        ),
        _plot("Ranges, 45 % match", lengths, most, _RANGES),
        _plot("Equalities, 0.5 % match", lengths, equalities, _EQUALITIES),
    )
    setup = (
        f"AND over 20 attributes; ranges with {scale.expression_counts[0]:,} to {scale.expression_counts[-1]:,} "
        f"subscriptions, equalities with {scale.setting_count:,}. Rows say which shares were reached."
    )
    return Result(setup, claims, plots, tuple(ranges + equalities))


def _curves(scale: Scale) -> list[tuple[str, int]]:
    return [(name, count) for name in (GENERAL, PATHS) for count in scale.expression_counts]


def _falls(rows: list[Row], name: str, count: int) -> bool:
    """Is the rate with the longest expressions below that with the shortest, by more than noise?"""
    rates = [row[name] for row in rows if row["subscriptions"] == count]
    return bool(rates[0] > NOISE * rates[-1])


def _rows(
    comparison: str, match_share: float, length: int, names: tuple[str, ...], scale: Scale, seed: int, tell: Tell
) -> list[Row]:
    counts = scale.expression_counts if comparison == ">" else (scale.setting_count,)
    workload = Expressions(predicate_count=length, comparison=comparison, match_share=match_share, shared_nodes=0.38)
    field = field_of(*names, schema=workload.schema)
    texts = workload.subscriptions(counts[-1], seed)["condition"].to_pylist()
    events = workload.events(scale.most_events, seed + 1)
    achieved = workload.achieved(min(2_000, counts[-1]), 50, seed)
    rows: list[Row] = []
    for begin, end in zip((0, *counts), counts, strict=False):
        field.register(texts[begin:end], tell)
        times = field.event_s(events, scale, tell)
        row: Row = {"comparison": comparison, "length": length, "subscriptions": end}
        row |= {"match share": achieved.match_share, "shared nodes": achieved.shared_nodes}
        rows.append(row | {name: 1 / taken for name, taken in times.items()})
    return rows


def _plot(title: str, lengths: tuple[int, ...], rows: list[Row], names: tuple[str, ...]) -> Plot:
    lines = tuple(Curve(name, lengths, tuple(row[name] for row in rows)) for name in names)
    return Plot(title, "predicates in an expression (L)", "events a second", lines, is_log_y=True)


EXPERIMENT = Experiment("length", "What do longer expressions cost?", "Jewel 2004, figures 5.23 to 5.25", run)
