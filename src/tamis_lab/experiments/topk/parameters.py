"""What do resolution, dimensions, events, subscriptions, and those that come and go do to the time with a grid?"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from tamis.language.expressions import Attribute, Call, Literal
from tamis.topk.index.grid import Grid
from tamis.topk.processor import TopK
from tamis.topk.ranked import Ranked
from tamis.topk.windows import CountWindow
from tamis_lab.experiments.base import Curve, Experiment, Plot, Result, Row, Scale, Tell
from tamis_lab.experiments.measuring import cpu_s, undisturbed
from tamis_lab.experiments.statements import Judge
from tamis_lab.experiments.topk.playing import VARIANTS
from tamis_lab.experiments.topk.sizes import DIMENSIONS, sizes_of
from tamis_lab.experiments.verdicts import power

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

judged = Judge("topk", "parameters")

K = 9
NAMES = ("PA", "RAPF", "SASF")
RESOLUTIONS = (2, 5, 10, 15)
DIMENSIONS_TAKEN = (2, 4, 6)
"""Our grid takes six at most; the thesis goes to ten."""
SHARES = (0.125, 0.25, 0.5, 1.0)
RATES = (0.0, 0.01, 0.05, 0.2)
"""Of subscriptions, for an event."""


class _Stream:
    """A processor with a grid, its subscriptions, and events in random order."""

    def __init__(self, name: str, queries: int, n: int, count: int, dimensions: int, seed: int) -> None:
        chance = np.random.default_rng(seed)
        names = [f"x{axis}" for axis in range(dimensions)]
        self._point = Call("array", tuple(Attribute((each,)) for each in names))
        self._n, self._chance = n, chance
        self.events = [dict(zip(names, row, strict=True)) for row in chance.random((count, dimensions)).tolist()]
        algorithm, filter_ = VARIANTS[name]
        if filter_ is None:
            self.processor = TopK(algorithm, guard=False, index="grid")
        else:
            self.processor = TopK(algorithm, filter=filter_, buffer=max(2, n // 20), index="grid")
        self._dimensions, self._oldest, self._next = dimensions, 0, 0
        for _ in range(queries):
            self.subscribe()

    def subscribe(self) -> None:
        """Let somebody ask for the nearest to a point by chance."""
        place = Call("array", tuple(map(Literal, self._chance.random(self._dimensions).tolist())))
        self.processor.add(self._next, Ranked(Call("euclidean", (self._point, place)), K, CountWindow(self._n)))
        self._next += 1

    def replace(self) -> None:
        """Let another one take the place of who was there longest."""
        self.processor.remove(self._oldest)
        self._oldest += 1
        self.subscribe()

    def play(self, begin: int, end: int, rate: float = 0.0, change: Callable[[], None] | None = None) -> float:
        """Return how long events take; something changes so often for an event."""

        def events() -> None:
            for at in range(begin, end):
                self.processor.process(self.events[at], float(at), at)
                if change is not None and int((at + 1) * rate) > int(at * rate):
                    change()

        return cpu_s(events)


@contextmanager
def _resolution(cells: int, dimensions: int) -> Iterator[None]:
    """Let grids have so many cells an axis."""
    before = Grid.most_cells
    Grid.most_cells = cells**dimensions
    try:
        yield
    finally:
        Grid.most_cells = before


def run(scale: Scale, seed: int, tell: Tell) -> Result:
    """Time events of three algorithms, one parameter after the other, the others as they are."""
    sizes = sizes_of(scale)
    n, queries = max(40, sizes.n // 8), sizes.queries
    count = 2 * n
    rows: list[Row] = []
    times: dict[str, dict[str, list[float]]] = {}

    def note(parameter: str, value: float, name: str, seconds: float) -> None:
        times.setdefault(parameter, {}).setdefault(name, []).append(seconds * 1e6)
        rows.append({"parameter": parameter, "value": value, "algorithm": name, "event_us": seconds * 1e6})

    def full(name: str, *, dimensions: int = DIMENSIONS, asking: int = queries) -> float:
        stream = _Stream(name, asking, n, count, dimensions, seed)
        stream.play(0, n)
        return stream.play(n, count) / (count - n)

    with undisturbed():
        for name in NAMES:
            for resolution in RESOLUTIONS:
                tell(f"{name}, {resolution} cells an axis")
                with _resolution(resolution, DIMENSIONS):
                    note("resolution", resolution, name, full(name))
            for dimensions in DIMENSIONS_TAKEN:
                tell(f"{name}, {dimensions} dimensions")
                with _resolution(2, dimensions):
                    note("dimensions", dimensions, name, full(name, dimensions=dimensions))
            stream, elapsed_s, begin = _Stream(name, queries, n, count, DIMENSIONS, seed), 0.0, 0
            for end in _parts(count):
                tell(f"{name}, {end:,} events")
                elapsed_s += stream.play(begin, end)
                note("events", end, name, elapsed_s)
                begin = end
            for asking in _parts(4 * queries):
                tell(f"{name}, {asking} subscriptions")
                note("subscriptions", asking, name, full(name, asking=asking))
            for parameter in ("activation", "replacement"):
                for rate in RATES:
                    tell(f"{name}, {parameter} {rate:g}")
                    stream = _Stream(name, queries, n, count, DIMENSIONS, seed)
                    stream.play(0, n)
                    change = stream.subscribe if parameter == "activation" else stream.replace
                    note(parameter, rate, name, stream.play(n, count, rate, change) / (count - n))
    events, asked = _parts(count), _parts(4 * queries)
    best = {name: RESOLUTIONS[int(np.argmin(times["resolution"][name]))] for name in NAMES}
    slowed = {name: each[-1] / each[0] for name, each in times["activation"].items()}
    claims = (
        judged("resolution", [each == 10 for each in best.values()], details=str(best)),
        *(judged("dimensions", power(DIMENSIONS_TAKEN, times["dimensions"][name]), name=name) for name in NAMES[:2]),
        judged("dimensions-linear", DIMENSIONS_TAKEN, times["dimensions"]["SASF"]),
        *(judged("events", power(events, times["events"][name]), name=name) for name in NAMES),
        *(judged("subscriptions", asked, times["subscriptions"][name], name=name) for name in NAMES),
        judged("activation", slowed),
        *(judged("replacement", _by_rate(times["replacement"][name]), name=name) for name in NAMES[1:]),
        judged("replacement-rises", times["replacement"]["PA"][-1] / times["replacement"]["PA"][0]),
    )
    axes: dict[str, tuple[str, Sequence[float]]] = {
        "resolution": ("cells an axis", RESOLUTIONS),
        "dimensions": ("dimensions", DIMENSIONS_TAKEN),
        "events": ("events, all of them timed", events),
        "subscriptions": ("subscriptions", asked),
        "activation": ("new subscriptions for an event", RATES),
        "replacement": ("replaced subscriptions for an event", RATES),
    }
    plots = tuple(
        Plot(
            f"Time over {parameter}", label, "microseconds" if parameter != "events" else "microseconds in all",
            tuple(
                Curve(name, tuple(map(float, values)), tuple(times[parameter][name]))
                for name in NAMES
            ),
        )
        for parameter, (label, values) in axes.items()
    )  # fmt: skip
    setup = (
        f"{queries} subscriptions, k = {K}, windows of {n:,}, uniform points in {DIMENSIONS} dimensions, a grid; where "
        "dimensions grow, of two cells an axis. Events are timed once windows are full, but where they are counted."
    )
    return Result(setup, claims, plots, tuple(rows))


def _parts(count: int) -> list[int]:
    return [max(1, round(share * count)) for share in SHARES]


def _by_rate(values: list[float]) -> dict[str, float]:
    return {f"{rate:g} for an event": value for rate, value in zip(RATES, values, strict=True)}


EXPERIMENT = Experiment(
    "parameters",
    "What do resolution, dimensions, events, subscriptions, and those that come and go do to the time with a grid?",
    "Pripužić 2010, section 3.8, figure 3.14",
    run,
)
