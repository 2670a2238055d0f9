"""How many messages does D-ZaLaPS send in all?"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tamis_lab.experiments.base import Bars, Experiment, Result
from tamis_lab.experiments.distributed.counting import THESIS, Convention
from tamis_lab.experiments.distributed.sizes import RADIUS, SIZES, sizes_of
from tamis_lab.experiments.distributed.worlds import BOOLEAN, PA, RAPF, counted, radius_of
from tamis_lab.experiments.statements import Judge

if TYPE_CHECKING:
    from tamis_lab.experiments.base import Row, Scale, Tell
    from tamis_lab.experiments.distributed.counting import MessageCounts

judged = Judge("distributed", "totals")

KINDS = ("subscribe", "rendezvous", "interested", "interest", "owner")
CONVENTIONS = {
    "clip": Convention("clip"),
    "clip, own counted": Convention("clip", True),
    "wrap": Convention("wrap"),
    "wrap, own counted": THESIS,
}
"""What the thesis leaves open: do mergers go round the border, and does the own peer count?"""


def run(scale: Scale, seed: int, tell: Tell) -> Result:
    """Count, and put the Boolean system at its published size beside the published total."""
    sizes, published = sizes_of(scale), replace(SIZES["full"], boolean_events=sizes_of(scale).boolean_events)
    # Boolean subscriptions that match as many events as the best 9 of a window are, as published.
    radius = RADIUS if sizes.window == SIZES["full"].window else radius_of(9 / sizes.window, seed)
    per_event: dict[str, MessageCounts] = {}
    rows: list[Row] = []
    totals: dict[str, float] = {}
    for name, convention in CONVENTIONS.items():
        tell(f"Boolean, {name}")
        counts = counted(BOOLEAN, published, seed, convention=convention)
        totals[name] = _scaled(counts, 1_000_000)
        rows.append({"system": f"{BOOLEAN} at the published size, {name}", **counts._asdict(), "total": totals[name]})
    for kind in (BOOLEAN, PA, RAPF):
        tell(kind)
        per_event[kind] = counted(kind, sizes, seed, radius=radius)
        rows.append({"system": kind, **per_event[kind]._asdict(), "total": per_event[kind].total})
    ratio = _scaled(per_event[PA], 1.0) / _scaled(per_event[BOOLEAN], 1.0)
    flooding = sizes.peers - 1.0
    claims = (
        judged("boolean-total", totals["wrap, own counted"] / 1e6),
        judged("pa-and-boolean", ratio),
        judged("rapf-more", _scaled(per_event[RAPF], 1.0) / _scaled(per_event[PA], 1.0)),
        judged("fewer-than-flooding", flooding / _scaled(per_event[PA], 1.0)),
    )
    shares = {kind: tuple(getattr(counts, each) / counts.total for each in KINDS) for kind, counts in per_event.items()}
    bars = Bars(
        "Messages by kind",
        KINDS,
        shares,
        {kind: f"{_scaled(each, 1.0):.2f} an event" for kind, each in per_event.items()},
    )
    setup = (
        f"Boolean totals: {published.peers} peers, 12 cells an axis, 400 subscriptions of radius 0.09, counted over "
        f"{sizes.boolean_events:,} events and scaled to a million. The others: {sizes.peers} peers, "
        f"{sizes.subscriptions} subscriptions, k = 9, windows of {sizes.window:,}, {sizes.events:,} events; "
        f"Boolean ones of radius {radius:.3f}, which match as many.{sizes.shortened}"
    )
    return Result(setup, claims, (bars,), tuple(rows))


def _scaled(counts: MessageCounts, events: float) -> float:
    """Return the messages for so many events."""
    return (counts.total - counts.subscribe) / counts.rendezvous * events + (counts.subscribe if events > 1 else 0)


EXPERIMENT = Experiment(
    "totals", "How many messages does D-ZaLaPS send in all?", "Pripužić 2010, 6.5.1, figure 6.23", run
)
