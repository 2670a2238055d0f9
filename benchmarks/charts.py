"""What does a table of results look like? Charts of any benchmark's rows (small multiples), next to its table.

A column of texts names what was measured, a column of sizes lies on the axis below, and every other column of numbers
has a panel of its own. Where there are three sizes or more, each name is a line over them; else each row is a bar.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.figure import Figure

from benchmarks.plots import COLOURS, INK, ON_ANY_GROUND, Rows, short

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.axes import Axes

SIZES = ("subscriptions", "rules", "filters", "batch", "k", "n", "events")
"""Columns that say how large a row was, the first that a table has more than one value of."""
_ASIDE = {"wrong", "seed", "matches", "note", "repeats"}
_MOST_PANELS = 6
_MOST_BARS = 40
_FEWEST_SIZES = 3


def draw_rows(name: str, rows: Rows, folder: Path) -> Path | None:
    """Draw `NAME.svg`; nothing if no column can be drawn."""
    figure = chart(name, rows)
    if figure is None:
        return None
    path = folder / f"{name}.svg"
    with mpl.rc_context({"svg.hashsalt": "tamis"}):  # the same rows give the same file
        figure.savefig(path, transparent=True, metadata={"Date": None})
    return path


def chart(name: str, rows: Rows) -> Figure | None:
    """Return a panel for each measured column, the first six of them."""
    size = _size(rows)
    measures = _measures(rows, size)[:_MOST_PANELS]
    if not measures:
        return None
    sizes = sorted({row[size] for row in rows if size in row}) if size else []
    are_lines = len(sizes) >= _FEWEST_SIZES
    with mpl.rc_context({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False, **ON_ANY_GROUND}):
        columns = min(2, len(measures))
        lines = -(-len(measures) // columns)
        tall = 3.2 if are_lines else max(1.6, 0.6 + 0.24 * min(len(rows), _MOST_BARS))
        figure = Figure(figsize=(6.4 * columns, tall * lines + 0.4), layout="constrained")
        panels = figure.subplots(lines, columns, squeeze=False).flatten()
        for axes, measure in zip(panels, measures, strict=False):
            if are_lines and size is not None:
                _lines(axes, rows, size, measure)
            else:
                _bars(axes, rows, size, measure)
            axes.set_title(measure.replace("_", " "), loc="left", size=10)
        for axes in panels[len(measures) :]:
            axes.set_visible(False)
        if are_lines and any(map(_label, rows)):
            most = max(panels[: len(measures)], key=lambda axes: len(axes.lines))
            figure.legend(*most.get_legend_handles_labels(), loc="outside right center", frameon=False, fontsize=8)
        figure.suptitle(name, x=0.01, ha="left", weight="bold")
        return figure


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value == value


def _size(rows: Rows) -> str | None:
    for column in SIZES:
        values = {row[column] for row in rows if column in row}
        if len(values) > 1 and all(isinstance(value, int) for value in values):
            return column
    return None


def _measures(rows: Rows, size: str | None) -> list[str]:
    columns = dict.fromkeys(column for row in rows for column in row)
    return [
        column
        for column in columns
        if column not in _ASIDE
        and column != size
        and column not in SIZES
        and any(_is_number(row.get(column)) for row in rows)
        and len({row.get(column) for row in rows}) > 1
    ]


def _label(row: dict[str, Any], size: str | None = None) -> str:
    words = [value for column, value in row.items() if isinstance(value, str) and column not in _ASIDE]
    if size is not None and size in row:
        words.append(short(row[size]))
    return ", ".join(words)


def _scale(values: list[float]) -> str:
    """Powers of ten where the greatest is more than thirty times the least."""
    return "log" if values and min(values) > 0 and max(values) > 30 * min(values) else "linear"


def _lines(axes: Axes, rows: Rows, size: str, measure: str) -> None:
    mine = [row for row in rows if size in row and _is_number(row.get(measure))]
    for number, label in enumerate(dict.fromkeys(map(_label, mine))):
        points = sorted((row[size], row[measure]) for row in mine if _label(row) == label)
        style = "-" if number < len(COLOURS) else "--"
        colour = COLOURS[number % len(COLOURS)]
        axes.plot(*zip(*points, strict=True), marker="o", markersize=3, color=colour, linestyle=style, label=label)
    sizes = sorted({row[size] for row in mine})
    axes.set(xscale=_scale(sizes), yscale=_scale([row[measure] for row in mine]), xlabel=size)
    axes.set_xticks(sizes, [short(count) for count in sizes])
    axes.minorticks_off()
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.10g}")
    axes.grid(color=INK, alpha=0.25)


def _bars(axes: Axes, rows: Rows, size: str | None, measure: str) -> None:
    mine = [row for row in rows if _is_number(row.get(measure))][:_MOST_BARS]
    values = [row[measure] for row in mine]
    if _scale(values) == "linear":
        axes.barh(range(len(mine)), values, color=COLOURS[0], height=0.7)
    else:  # a bar's length means nothing where the axis has no zero
        axes.plot(values, range(len(mine)), "o", color=COLOURS[0])
        axes.grid(axis="y", color=INK, alpha=0.25)
    axes.set_yticks(range(len(mine)), [_label(row, size) or str(number + 1) for number, row in enumerate(mine)])
    axes.invert_yaxis()
    axes.set_xscale(_scale(values))
    axes.minorticks_off()
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.10g}")
    axes.tick_params(axis="y", length=0)
