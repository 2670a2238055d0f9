"""How is a result drawn?

As SVG inside the page: lines with their names at their ends where there are few, in a legend where there are many. One
algorithm has one colour in all plots, and dashed lines are what a formula says. Lines that lie on each other are drawn
as stripes, the first the broadest, so that none hides another.
"""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from tamis_lab.experiments.base import Bars, Judgement, Picture, Plot
from tamis_lab.experiments.verdicts import ABOUT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from tamis_lab.experiments.base import Claim, Curve

COLOURS = {
    "boolean": "#0072b2",
    "boolean, children ordered": "#56b4e9",
    "boolean, lists shuffled": "#003f66",
    "counting": "#d55e00",
    "counting, lists shuffled": "#8a3c00",
    "cluster": "#cc79a7",
    "gryphon": "#9467bd",
    "atree": "#009e73",
    "atree-zero": "#66c2a5",
    "atree-general": "#a6a6a6",
    "naive": "#444444",
    "block": "#e69f00",
}
_OTHERS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#9467bd", "#e69f00", "#56b4e9", "#444444")
PART_COLOURS = ("#e69f00", "#56b4e9", "#0072b2", "#cccccc", "#009e73", "#cc79a7")
_STYLE: Any = {
    "font.size": 9,
    "font.family": "sans-serif",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "tamis",
}
_POINTS = {
    Judgement.AGREES: ("o", "#00704f"),
    Judgement.DIRECTION: ("s", "#b08000"),
    Judgement.SAME: ("_", "#6b5b00"),
    Judgement.DIFFERS: ("D", "#d55e00"),
    Judgement.TURNED: ("x", "#b3261e"),
    Judgement.PREMISE: ("+", "#7a3b8f"),
}
"""How published figures with each verdict are drawn, by shape as well as by colour."""
_FAR = 3
"""A point is labelled if it lies so many times as far from the line as the band is broad."""
_FEW_DECADES = 4
_TICKS_APART = 0.09
"""Numbers on an axis are at least so far apart, as a share of its length."""
_LEAST_LABELLED = 0.06
_MOST_INSIDE = 4
"""So many names find room among the lines; more stand below them."""
_APART = 0.01
"""Lines that are nowhere farther apart, as a share of the height of the plot, are one to the eye."""
_THIN, _STRIPE, _MARKER = 1.5, 2.2, 3.5
"""The breadth of a line, of each stripe beside it, and of a marker."""


def drawn(plot: Plot | Bars | Picture) -> str:
    """Return a plot as SVG, to stand inside an HTML page; a picture as it is."""
    if isinstance(plot, Picture):
        return plot.markup
    with mpl.rc_context(_STYLE):
        if isinstance(plot, Bars):
            figure = Figure(figsize=(6.4, 0.8 + 0.32 * len(plot.shares)), layout="constrained")
            _bars(figure.add_subplot(), plot)
        else:
            figure = Figure(figsize=(4.9, 3.5), layout="constrained")
            _lines(figure, plot)
        return _svg(figure)


def _svg(figure: Figure) -> str:
    """Return a figure as an element of a page."""
    file = io.StringIO()
    figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    return re.sub(r"^.*?(?=<svg)", "", file.getvalue(), flags=re.DOTALL).strip()


def coinciding(plot: Plot) -> list[tuple[str, ...]]:
    """Return the names of lines that lie on each other, group by group.

    >>> from tamis_lab.experiments.base import Curve
    >>> lines = Curve("a", (0, 1), (5.0, 5.0)), Curve("b", (0, 1), (0.0, 9.0)), Curve("c", (0.0, 0.5), (5.0, 5.0))
    >>> coinciding(Plot("t", "x", "y", lines))
    [('a', 'c')]
    """
    groups = [tuple(line.label for line in group if line.label) for group in _together(plot)]
    return [names for names in groups if len(names) > 1]


def _together(plot: Plot) -> list[list[Curve]]:
    """Return the lines of a plot, those together that lie on each other."""
    values = [value for line in plot.lines for value in line.y]
    height = (np.log(max(values)) - np.log(min(values))) if plot.is_log_y else max(values, default=0.0)
    groups: list[list[Curve]] = []
    for line in plot.lines:
        for group in groups:
            if _gap(group[0], line, is_log=plot.is_log_y) <= _APART * height:
                group.append(line)
                break
        else:
            groups.append([line])
    return groups


def _gap(one: Curve, two: Curve, *, is_log: bool) -> float:
    """Return how far two lines are apart where both are drawn, at most; infinitely far if that is nowhere."""
    least, most = max(min(one.x), min(two.x)), min(max(one.x), max(two.x))
    if least >= most:
        return float("inf")
    places = sorted({x for x in (*one.x, *two.x) if least <= x <= most})
    heights = [np.interp(places, *_ascending(line)) for line in (one, two)]
    first, second = map(np.log, heights) if is_log else heights
    return float(np.abs(first - second).max())


def _ascending(line: Curve) -> tuple[list[float], list[float]]:
    pairs = sorted(zip(line.x, line.y, strict=True))
    return [x for x, _ in pairs], [y for _, y in pairs]


def _lines(figure: Figure, plot: Plot) -> None:
    axes = figure.add_subplot()
    stripes = {id(line): len(group) - place for group in _together(plot) for place, line in enumerate(group, 1)}
    taken = {COLOURS.get(line.kin or line.label) for line in plot.lines}
    others = [each for each in _OTHERS if each not in taken] or _OTHERS
    colour = others[0]
    number = 0
    for line in plot.lines:
        known = COLOURS.get(line.kin or line.label)
        if known is not None:
            colour = known
        elif line.label:  # a nameless line has the colour of the one before it
            colour = others[number % len(others)]
            number += 1
        style: Any = (0, (4, 2)) if line.is_dashed else "-"
        marker = "" if line.is_dashed or len(line.x) > 20 else "o"
        more = _STRIPE * stripes[id(line)]
        axes.plot(
            line.x, line.y, color=colour, linestyle=style, linewidth=_THIN + more, marker=marker,
            markersize=_MARKER + more, label=line.label or None, clip_on=False, zorder=2.5,
        )  # fmt: skip
        if line.low:
            below = [y - low for y, low in zip(line.y, line.low, strict=True)]
            above = [high - y for y, high in zip(line.y, line.high, strict=True)]
            axes.errorbar(
                line.x, line.y, [below, above], fmt="none", ecolor=colour, elinewidth=1, capsize=2.5, zorder=2.4
            )
    if plot.is_log_x:
        axes.set_xscale("log")
        axes.set_xticks(_legible(sorted({x for line in plot.lines for x in line.x})))
        axes.minorticks_off()
    if plot.is_log_y:
        axes.set_yscale("log")
    else:  # with room for a marker at the top
        axes.set_ylim(0, 1.06 * max((y for line in plot.lines for y in line.high or line.y), default=0) or 1)
    if plot.x_names:
        axes.set_xticks(range(1, len(plot.x_names) + 1), plot.x_names)
    else:
        axes.xaxis.set_major_formatter(lambda value, _: _short(value))
    axes.yaxis.set_major_formatter(lambda value, _: _short(value))
    axes.set(xlabel=plot.x_label, ylabel=plot.y_label)
    axes.set_title(plot.title, loc="left", weight="bold", fontsize=9.5)
    axes.grid(color="#ececec")
    axes.set_axisbelow(True)
    labelled = [line for line in plot.lines if line.label]
    look: Any = {"frameon": False, "fontsize": 7.5, "handlelength": 1.6, "columnspacing": 1.0}
    if len(labelled) > 1:  # one line is what the title says
        is_inside = len(labelled) <= _MOST_INSIDE  # for more, no corner is large enough
        legend = axes.legend(**look) if is_inside else figure.legend(ncols=2, loc="outside lower left", **look)
        for handle in legend.legend_handles:
            if isinstance(handle, Line2D):
                handle.set(linewidth=_THIN, markersize=_MARKER)


def _legible(places: Sequence[float]) -> list[float]:
    """Return those of some places on a logarithmic axis whose numbers do not run into each other.

    These are the first and the last, and between them what lies far enough from its neighbours.

    >>> _legible([1, 2, 3, 4, 100, 110, 120])
    [1, 2, 4, 120]
    """
    if len(places) < 3 or places[0] <= 0:
        return list(places)
    apart = _TICKS_APART * np.log(places[-1] / places[0])
    kept = [places[0]]
    for place in places[1:-1]:
        if min(np.log(place / kept[-1]), np.log(places[-1] / place)) >= apart:
            kept.append(place)
    return [*kept, places[-1]]


def _decades(least: float, most: float) -> list[float]:
    """Return round numbers between two: powers of ten, and 2 and 5 times them where these would be few.

    >>> [round(number, 6) for number in _decades(0.15, 3)], [round(number, 6) for number in _decades(0.5, 20_000)]
    ([0.2, 0.5, 1.0, 2.0], [1.0, 10.0, 100.0, 1000.0, 10000.0])
    """
    powers = range(int(np.floor(np.log10(least))), int(np.ceil(np.log10(most))) + 1)
    factors = (1, 2, 5) if len(powers) <= _FEW_DECADES else (1,)
    return [factor * 10.0**power for power in powers for factor in factors if least <= factor * 10.0**power <= most]


def scattered(claims: Sequence[Claim]) -> str:
    """Return published figures against ours as SVG, and an empty text if fewer than two have a figure.

    Both axes are logarithmic. On the line they are equal, and in the band within a factor of `ABOUT`. Error bars reach
    from the least to the greatest of several runs. What lies far off bears its key.
    """
    points = [(claim, *claim.figures) for claim in claims if claim.figures and min(claim.figures) > 0]
    if len(points) < 2:
        return ""
    values = [value for _, *figures in points for value in figures]
    least, most = min(values) / 1.5, max(values) * 1.5
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(6.4, 4.6), layout="constrained")
        axes = figure.add_subplot()
        ends = [least / ABOUT, most * ABOUT]  # beyond the corners, so that the band is not cut off before them
        axes.fill_between(ends, [end / ABOUT for end in ends], [end * ABOUT for end in ends], color="#f0f0f0")
        axes.plot([least, most], [least, most], color="#999999", linewidth=1)
        for verdict, (marker, colour) in _POINTS.items():
            chosen = [point for point in points if point[0].verdict is verdict]
            if not chosen:
                continue
            for claim, published, _ in chosen:
                lows = [low for low in claim.repeats if low > 0]
                if lows:
                    axes.plot([published, published], [lows[0], lows[-1]], color=colour, linewidth=1)
            across, up = [point[1] for point in chosen], [point[2] for point in chosen]
            label = f"{verdict} ({len(chosen)})"
            axes.scatter(across, up, s=26, marker=marker, color=colour, label=label, zorder=3, linewidths=0.8)
        for claim, published, ours in points:
            if abs(np.log(ours / published)) > _FAR * np.log(ABOUT):
                key = claim.key or claim.statement[:24]
                is_left = published > np.sqrt(least * most)
                axes.annotate(
                    key, (published, ours), xytext=(-5 if is_left else 5, 0), textcoords="offset points",
                    ha="right" if is_left else "left", va="center", fontsize=6.5, color="#444444",
                )  # fmt: skip
        axes.set(xscale="log", yscale="log", xlim=(least, most), ylim=(least, most), xlabel="published", ylabel="ours")
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_ticks(_decades(least, most))
            axis.set_major_formatter(lambda value, _: _short(value))
        axes.minorticks_off()
        axes.legend(frameon=False, fontsize=7.5)
        axes.set_title("Published figures and ours", loc="left", weight="bold", fontsize=9.5)
        return _svg(figure)


def _bars(axes: Axes, plot: Bars) -> None:
    names = list(plot.shares)
    places = list(range(len(names)))
    begins = [0.0] * len(names)
    for index, part in enumerate(plot.parts):
        widths = [plot.shares[name][index] for name in names]
        colour = PART_COLOURS[index % len(PART_COLOURS)]
        axes.barh(places, widths, left=begins, height=0.8, color=colour, label=part)
        for place, begin, width in zip(places, begins, widths, strict=True):
            if width >= _LEAST_LABELLED:
                ink = "white" if colour == "#0072b2" else "black"
                axes.text(begin + width / 2, place, f"{width:.0%}", ha="center", va="center", fontsize=7.5, color=ink)
        begins = [begin + width for begin, width in zip(begins, widths, strict=True)]
    for place, name in zip(places, names, strict=True):
        axes.text(1.01, place, plot.told.get(name, ""), va="center", fontsize=7.5, color="#444444")
    axes.set_yticks(places, names)
    axes.set(xlim=(0, 1), ylim=(len(names) - 0.4, -0.6))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    axes.spines["left"].set_visible(False)
    axes.tick_params(left=False)
    axes.set_title(f"{plot.title}\n", loc="left", weight="bold", fontsize=9.5)
    axes.legend(
        loc="lower left", bbox_to_anchor=(-0.01, 0.99), ncols=len(plot.parts), frameon=False, fontsize=7.5,
        handlelength=1.0,
    )  # fmt: skip


def _short(value: float) -> str:
    """Write a number as on an axis.

    >>> [_short(value) for value in (0, 0.25, 12, 1500, 20_000, 3_000_000)]
    ['0', '0.25', '12', '1.5k', '20k', '3M']
    """
    for unit, size in (("M", 1_000_000), ("k", 1_000)):
        if abs(value) >= size:
            return f"{value / size:.3g}{unit}"
    return f"{value:.3g}"
