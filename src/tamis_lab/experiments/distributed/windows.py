"""How do k and the window decide whom events interest, and how often mergers move?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis_lab.experiments.base import Curve, Experiment, Plot, Result, Row
from tamis_lab.experiments.distributed.sizes import sizes_of
from tamis_lab.experiments.distributed.worlds import BOOLEAN, PA, RAPF, WHOLE, counted, radius_of
from tamis_lab.experiments.statements import Judge
from tamis_lab.experiments.verdicts import given

if TYPE_CHECKING:
    from tamis_lab.experiments.base import Scale, Tell
    from tamis_lab.experiments.distributed.sizes import DistributedSizes

judged = Judge("distributed", "windows")


def run(scale: Scale, seed: int, tell: Tell) -> Result:
    """Count both kinds of messages for some k, and for some windows."""
    return run_of(sizes_of(scale), seed, tell)


def run_of(sizes: DistributedSizes, seed: int, tell: Tell) -> Result:
    """Count at these sizes."""
    windows = (sizes.window // 2, sizes.window, 2 * sizes.window)
    rows: list[Row] = []
    by: dict[tuple[str, int, int], dict[str, float]] = {}
    """By kind, k and window: messages for an event."""
    for kind in (PA, RAPF):
        settings = [(k, sizes.window) for k in sizes.ks] + [(sizes.ks[1], window) for window in windows]
        for k, window in dict.fromkeys(settings):
            tell(f"{kind}, k = {k}, windows of {window:,}")
            counts = counted(kind, sizes, seed, k=k, window=window)
            row = {"algorithm": kind, "k": k, "window": window, **counts._asdict(), "total": counts.total}
            rows.append(row)
            by[kind, k, window] = {
                field: row[field] / counts.rendezvous for field in ("interested", "interest", "owner")
            }
    k, window = sizes.ks[1], sizes.window
    # The ideal radius: as many events are told as of a ranked subscription.
    volume = by[PA, k, window]["owner"] / sizes.subscriptions
    radius = radius_of(volume, seed)
    boolean = counted(BOOLEAN, sizes, seed, radius=radius)
    share = boolean.interested / boolean.rendezvous / by[PA, k, window]["interested"]
    rows.append({"algorithm": BOOLEAN, "k": None, "window": None, **boolean._asdict(), "total": boolean.total})
    most, least = max(sizes.ks), 1 / sizes.events
    moves = all(row["interest"] > 0 for (kind, _, _), row in by.items() if kind == RAPF)
    claims = (
        given(
            moves, judged("rapf-more", by[RAPF, most, window]["interested"] / by[PA, most, window]["interested"]), WHOLE
        ),
        judged("pa-falls", windows, [by[PA, k, each]["interested"] for each in windows]),
        given(
            moves, judged("rapf-constant", {f"{each:,}": by[RAPF, k, each]["interested"] for each in windows}), WHOLE
        ),
        judged("boolean-slightly-less", share),
        given(
            moves,
            judged("updates", max(least, by[RAPF, k, window]["interest"]) / max(least, by[PA, k, window]["interest"])),
            WHOLE,
        ),
        judged("boolean-none", [boolean.interest == 0]),
    )
    plots = tuple(
        Plot(
            title,
            label,
            "messages for an event",
            tuple(
                Curve(
                    kind,
                    tuple(map(float, xs)),
                    tuple(by[kind, *point(x)][field] for x in xs),
                )
                for kind in (PA, RAPF)
            ),
            is_log_x=True,
        )
        for field, what in (("interested", "Peers that an event interests"), ("interest", "Peers notified of a merger"))
        for title, label, xs, point in (
            (f"{what}, by k", "k", sizes.ks, lambda x: (x, window)),
            (f"{what}, by the window", "events in a window", windows, lambda x: (k, x)),
        )
    )
    setup = (
        f"{sizes.peers} peers, {sizes.subscriptions} subscriptions, {sizes.events:,} events after {sizes.warm_up:,}, a "
        f"grid of {sizes.resolution} cells an axis; mergers go round the border, the own peer counts.{sizes.shortened}"
    )
    return Result(setup, claims, plots, tuple(rows))


EXPERIMENT = Experiment(
    "windows",
    "How do k and the window decide whom events interest, and how often mergers move?",
    "Pripužić 2010, 6.5, figures 6.21, 6.22",
    run,
)
