"""What do longer expressions cost?

With ranges and many matches every predicate more is one more that holds, so everybody becomes slower. With equalities
and few matches, the thesis finds, only Gryphon suffers, whose tree becomes deeper and wider.
"""

from __future__ import annotations

from tamis.workloads import Expressions
from tamis_lab.experiments.base import Curve, Experiment, Plot, Result, Row, Scale, Tell
from tamis_lab.experiments.filtering.subjects import COUNTING, GENERAL, GRYPHON, PATHS, field_of
from tamis_lab.experiments.statements import Judge

judged = Judge("filtering", "length")

_RANGES = (PATHS, GENERAL, COUNTING)
_EQUALITIES = (PATHS, GENERAL, COUNTING, GRYPHON)


def run(scale: Scale, seed: int, tell: Tell) -> Result:
    """Measure over the number of predicates, for ranges with many matches and equalities with few."""
    lengths = scale.lengths
    ranges = [_row(">", 0.45, length, _RANGES, scale, seed, tell) for length in lengths]
    equalities = [_row("=", 0.005, length, _EQUALITIES, scale, seed, tell) for length in lengths]
    slowed = {name: equalities[0][name] / equalities[-1][name] for name in _EQUALITIES}
    falling = (judged("rate-falls", lengths, [row[name] for row in ranges], name=name) for name in (GENERAL, PATHS))
    claims = (
        *falling,
        judged("gryphon-suffers", slowed),
        judged("hardly-matters", {name: slowed[name] for name in (PATHS, COUNTING)} | {"not at all": 1.0}),
    )
    plots = (
        _plot("Ranges, 45 % match", lengths, ranges, _RANGES),
        _plot("Equalities, 0.5 % match", lengths, equalities, _EQUALITIES),
    )
    setup = f"AND over 20 attributes, {scale.setting_count:,} subscriptions."
    return Result(setup, claims, plots, tuple(ranges + equalities))


def _row(
    comparison: str, match_share: float, length: int, names: tuple[str, ...], scale: Scale, seed: int, tell: Tell
) -> Row:
    workload = Expressions(predicate_count=length, comparison=comparison, match_share=match_share, shared_nodes=0.38)
    field = field_of(*names, schema=workload.schema)
    field.register(workload.subscriptions(scale.setting_count, seed)["condition"].to_pylist(), tell)
    times = field.event_s(workload.events(scale.most_events, seed + 1), scale, tell)
    return {"comparison": comparison, "length": length} | {name: 1 / taken for name, taken in times.items()}


def _plot(title: str, lengths: tuple[int, ...], rows: list[Row], names: tuple[str, ...]) -> Plot:
    lines = tuple(Curve(name, lengths, tuple(row[name] for row in rows)) for name in names)
    return Plot(title, "predicates in an expression (L)", "events a second", lines, is_log_y=True)


EXPERIMENT = Experiment("length", "What do longer expressions cost?", "Jewel 2004, figures 5.23 to 5.25", run)
