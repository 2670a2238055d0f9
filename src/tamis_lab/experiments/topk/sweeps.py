"""What do the recent buffer, the share of growth and the window's length do to the time for an event?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tamis.topk.algorithms import ranking_for
from tamis.topk.ranked import Ranked
from tamis.topk.settings import TopKSettings
from tamis.topk.windows import CountWindow
from tamis_lab.experiments.base import Curve, Experiment, Plot, Result, Row, Scale, Tell
from tamis_lab.experiments.measuring import undisturbed
from tamis_lab.experiments.statements import Judge
from tamis_lab.experiments.topk.playing import VARIANTS, Played, checked, exact, play
from tamis_lab.experiments.topk.sizes import TopkSizes, sizes_of

if TYPE_CHECKING:
    from tamis_lab.experiments.topk.points import Points

judged = Judge("topk", "sweeps")

K = 9
GAMMAS = (0.05, 0.1, 0.2, 0.4, 0.8)
BUFFER_SHARES = (1 / 80, 1 / 40, 1 / 20, 1 / 10, 1 / 4)
WINDOW_SHARES = (1 / 8, 1 / 4, 1 / 2, 1.0)


def run(scale: Scale, seed: int, tell: Tell) -> Result:
    """Time RAPF over the buffer, RA over its share of growth, and PA, SA, RA and RAPF over the window."""
    sizes = sizes_of(scale)
    keys = np.random.default_rng(seed + 1).random(sizes.count)
    rows: list[Row] = []

    def one(name: str, knob: str, value: float, n: int, buffer: int, gamma: float = 0.2) -> Row:
        tell(f"{name}, {knob} = {value:g}")
        best = _fastest(name, keys, n, buffer, gamma, scale.passes)
        row: Row = {
            "knob": knob,
            "value": value,
            "algorithm": name,
            "event_us": best.event_s * 1e6,
            "size": best.size,
        }
        rows.append(row)
        return row

    with undisturbed():
        buffers = sorted({max(2, round(share * sizes.n)) for share in BUFFER_SHARES})
        over_buffer = [one("RAPF", "buffer", buffer, sizes.n, buffer) for buffer in buffers]
        over_gamma = [one("RA", "gamma", gamma, sizes.n, sizes.buffer, gamma) for gamma in GAMMAS]
        windows = [max(20, round(share * sizes.n)) for share in WINDOW_SHARES]
        over_window = {
            name: [one(name, "window", n, n, _buffer(sizes, n)) for n in windows] for name in ("PA", "SA", "RA", "RAPF")
        }
    claims = (
        judged("buffer-faster", buffers, [row["event_us"] for row in over_buffer]),
        judged("gamma-faster", GAMMAS, [row["event_us"] for row in over_gamma]),
        judged("gamma-larger", GAMMAS, [row["size"] for row in over_gamma]),
        judged("window-faster", windows, [row["event_us"] for row in over_window["PA"]]),
        judged("window-slower", windows, [row["event_us"] for row in over_window["SA"]]),
    )
    plots = (
        Plot(
            "Time over the recent buffer", "events in the buffer", "microseconds",
            (Curve("RAPF", tuple(buffers), tuple(row["event_us"] for row in over_buffer)),), is_log_x=True,
        ),
        Plot(
            "Time over the share of growth", "gamma", "microseconds",
            (Curve("RA", GAMMAS, tuple(row["event_us"] for row in over_gamma)),), is_log_x=True,
        ),
        Plot(
            "Time over the window", "events in the window", "microseconds",
            tuple(
                Curve(name, tuple(windows), tuple(row["event_us"] for row in of_window))
                for name, of_window in over_window.items()
            ),
            is_log_x=True,
        ),
    )  # fmt: skip
    setup = f"{sizes.count:,} events in random order, k = {K}; one subscription, scores given."
    return Result(setup, claims, plots, tuple(rows))


def _buffer(sizes: TopkSizes, n: int) -> int:
    return min(sizes.buffer, (n + 1) // 2)


def _fastest(name: str, keys: Points, n: int, buffer: int, gamma: float, passes: int) -> Played:
    """Play a stream several times; return the fastest, if it is right."""
    algorithm, filter_ = VARIANTS[name]
    settings = TopKSettings(filter_, gamma=gamma, buffer=buffer, guard=False)
    ranked = Ranked("x", K, CountWindow(n))
    played = [play(ranking_for(algorithm, settings, ranked), keys, n) for _ in range(passes)]
    best = min(played, key=lambda each: each.event_s)
    return best if name == "PA" else checked(name, best, exact(keys, K, n))


EXPERIMENT = Experiment(
    "sweeps",
    "What do the recent buffer, the share of growth and the window's length do to the time for an event?",
    "Pripužić 2010, section 3.8, figure 3.14",
    run,
)
