"""How do messages grow with the number of subscriptions, and of peers?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis_lab.experiments.base import Curve, Experiment, Plot, Result
from tamis_lab.experiments.distributed.sizes import RADIUS, sizes_of
from tamis_lab.experiments.distributed.worlds import BOOLEAN, PA, RAPF, WHOLE, counted
from tamis_lab.experiments.statements import Judge
from tamis_lab.experiments.verdicts import given, power

if TYPE_CHECKING:
    from tamis_lab.experiments.base import Row, Scale, Tell
    from tamis_lab.experiments.distributed.counting import MessageCounts

judged = Judge("distributed", "growth")

KINDS = (BOOLEAN, PA, RAPF)


def run(scale: Scale, seed: int, tell: Tell) -> Result:
    """Count with more and more of either."""
    sizes = sizes_of(scale)
    rows: list[Row] = []
    grown: dict[tuple[str, str], list[MessageCounts]] = {}
    for axis, numbers in (("subscriptions", sizes.growing), ("peers", sizes.crowds)):
        for kind in KINDS:
            for number in numbers:
                tell(f"{kind}, {number} {axis}")
                counts = counted(kind, sizes, seed, **{axis: number})  # type: ignore[arg-type]
                grown.setdefault((axis, kind), []).append(counts)
                rows.append({"system": kind, "axis": axis, "number": number, **counts._asdict(), "total": counts.total})
    ms, cs = sizes.growing, sizes.crowds
    totals = {place: [each.total / each.rendezvous for each in counts] for place, counts in grown.items()}
    updates = {place: [max(1, each.interest) / each.rendezvous for each in counts] for place, counts in grown.items()}
    claims = (
        *(judged("sub-linear", power(ms, totals["subscriptions", kind]), system=kind) for kind in KINDS),
        given(
            all(each.interest > 0 for each in grown["subscriptions", RAPF]),
            judged("updates-linear", ms, updates["subscriptions", RAPF]),
            WHOLE,
        ),
        *(judged("peers-sub-linear", power(cs, totals["peers", kind]), system=kind) for kind in KINDS),
        judged("updates-scale-worse", power(cs, updates["peers", PA]) - power(cs, totals["peers", PA]) + 1),
    )
    plots = tuple(
        Plot(
            f"All messages, by the number of {axis}",
            axis,
            "messages for an event",
            tuple(Curve(kind, tuple(map(float, numbers)), tuple(totals[axis, kind])) for kind in KINDS),
            is_log_x=True,
            is_log_y=True,
        )
        for axis, numbers in (("subscriptions", ms), ("peers", cs))
    )
    setup = (
        f"k = 9, windows of {sizes.window:,}, {sizes.events:,} events, Boolean subscriptions of radius {RADIUS}; "
        f"otherwise as for the totals.{sizes.shortened}"
    )
    return Result(setup, claims, plots, tuple(rows))


EXPERIMENT = Experiment(
    "growth",
    "How do messages grow with the number of subscriptions, and of peers?",
    "Pripužić 2010, 6.5, figures 6.24, 6.25",
    run,
)
