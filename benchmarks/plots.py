"""Draw how matching grows, where its time goes, and what people would do otherwise: `python -m benchmarks.plots`.

`growth.png`: on the left the time for an event against the number of subscriptions, both by powers of ten: a line that
rises as steeply as the dashed one takes ten times as long for ten times as many. On the right what that time is spent
on.
`otherwise.svg`: events a second of one core with Tamis, with a loop in Python and with polars; the README shows it.
`algorithms.svg`: events a second of every matching algorithm. The docs have both, drawn from their own tables.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matplotlib.axes import Axes

Rows = list[dict[str, Any]]

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b08000", "#56b4e9", "#444444")
"""Okabe and Ito's, which most people can tell apart; the yellow is darker, to be read as text."""
_STAGES = {
    "encoding": ("encoding",),
    "partitioning": ("partitioning",),
    "narrow clauses": ("narrow",),
    "bitmaps": ("bitmaps",),
    "output": ("grouping", "table"),
    "rest": ("rest",),
}
_STAGE_COLOURS = ("#0072b2", "#56b4e9", "#009e73", "#d55e00", "#e6ab02", "#bbbbbb")
_SMALLEST_LABELLED = 0.08


def draw(folder: Path) -> Path | None:
    """Draw `growth.png` from the results in a folder; nothing if there are none."""
    sources = [folder / "growth.json", folder / "shares_of_time.json"]
    if not all(source.exists() for source in sources):
        return None
    growth_rows, share_rows = (json.loads(source.read_text())["rows"] for source in sources)
    path = folder / "growth.png"
    picture(growth_rows, share_rows).savefig(path, dpi=150)
    return path


def draw_otherwise(folder: Path) -> Path | None:
    """Draw `otherwise.svg` from the results in a folder; nothing if there are none."""
    source = folder / "otherwise.json"
    if not source.exists():
        return None
    return _saved(comparison, json.loads(source.read_text())["rows"], folder / "otherwise.svg")


def draw_page(page: str, folder: Path) -> list[Path]:
    """Draw `otherwise.svg` and `algorithms.svg` from the tables of docs/measurements.md, so that they say the same."""
    return [
        _saved(comparison, otherwise_rows(page), folder / "otherwise.svg"),
        _saved(algorithm_lines, algorithm_rows(page), folder / "algorithms.svg"),
    ]


def _saved(drawing: Callable[[Rows], Figure], rows: Rows, path: Path) -> Path:
    with mpl.rc_context({"svg.hashsalt": "tamis"}):  # the same rows give the same file
        drawing(rows).savefig(path, transparent=True, metadata={"Date": None, "Description": digest(rows)})
    return path


def digest(rows: Rows) -> str:
    """Return what tells apart charts of other rows."""
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()


def otherwise_rows(page: str) -> Rows:
    """Return the rows of the table under "What people would do otherwise".

    >>> heading = "## What people would do otherwise"
    >>> for row in otherwise_rows(f"{heading}{chr(10)}| 100 | 152,342 | 469,333 | 108,248 | 7,588,493 |"):
    ...     print(row["subscriptions"], row["loop_per_s"], row["batch_per_s"])
    100 152342.0 7588493.0
    """
    columns = ("loop_per_s", "polars_per_s", "single_per_s", "batch_per_s")
    rows: Rows = []
    for line in page.partition("## What people would do otherwise")[2].partition("\n## ")[0].splitlines():
        cells = [cell.strip().replace(",", "") for cell in line.strip("|").split("|")]
        if len(cells) > len(columns) and cells[0].isdigit():
            rows.append({"subscriptions": int(cells[0]), **dict(zip(columns, map(float, cells[1:]), strict=False))})
    return rows


def algorithm_rows(page: str) -> Rows:
    """Return the rows of that table: algorithm, subscriptions, events a second by the batch, µs of a single event.

    >>> table = ["### Book auctions", "| 1,000 | `block` | 3,559,625 | 37 |", "| | `naive` | 13 | 126,823 |"]
    >>> for row in algorithm_rows(chr(10).join(table)):
    ...     print(row)
    {'algorithm': 'block', 'subscriptions': 1000, 'batch_per_s': 3559625.0, 'single_us': 37.0}
    {'algorithm': 'naive', 'subscriptions': 1000, 'batch_per_s': 13.0, 'single_us': 126823.0}
    """
    rows: Rows = []
    count = 0
    for line in page.partition("### Book auctions")[2].partition("\n### ")[0].splitlines():
        cells = [cell.strip().replace(",", "") for cell in line.strip("|").split("|")]
        if len(cells) > 3 and cells[1].startswith("`"):
            count = int(cells[0] or count)
            rows.append(
                {
                    "algorithm": cells[1].strip("`"),
                    "subscriptions": count,
                    "batch_per_s": float(cells[2]),
                    "single_us": float(cells[3]),
                }
            )
    return rows


def algorithm_lines(rows: Rows) -> Figure:
    """Return events a second by the batch and the time of a single event, a line for each algorithm."""
    with mpl.rc_context({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False, **ON_ANY_GROUND}):
        figure = Figure(figsize=(10, 4.2), layout="constrained")
        left, right = figure.subplots(1, 2)
        counts = sorted({row["subscriptions"] for row in rows})
        for axes, measure, title in (
            (left, "batch_per_s", "events a second, by the batch"),
            (right, "single_us", "µs, a single event"),
        ):
            ends = []
            for number, name in enumerate(dict.fromkeys(row["algorithm"] for row in rows)):
                points = [(row["subscriptions"], row[measure]) for row in rows if row["algorithm"] == name]
                colour = COLOURS[number % len(COLOURS)]
                width, style = (2.5 if name == "block" else 1.3), ("-" if number < len(COLOURS) else "--")
                axes.plot(
                    *zip(*points, strict=True), marker="o", markersize=3, color=colour, linewidth=width, linestyle=style
                )
                if points[-1][0] == counts[-1]:
                    ends.append((points[-1][1], name, colour))
                else:
                    axes.annotate(name, points[-1], (6, 0), textcoords="offset points", color=colour, va="center")
            ends.sort()
            values = [row[measure] for row in rows]
            places = _apart([end[0] for end in ends], min(values), max(values))
            for (_, name, colour), place in zip(ends, places, strict=True):
                axes.annotate(name, (counts[-1], place), (8, 0), textcoords="offset points", color=colour, va="center")
            axes.set(xscale="log", yscale="log", xlabel="subscriptions")
            axes.set_title(title, loc="left", size=10)
            axes.set_xticks(counts, [short(count) for count in counts])
            axes.minorticks_off()
            axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.10g}")
            axes.set_xlim(counts[0] * 0.8, counts[-1] * 14)
            axes.grid(color=INK, alpha=0.25)
        return figure


_WAYS = {
    "batch_per_s": ("Tamis, by the batch", COLOURS[0]),
    "single_per_s": ("Tamis, one by one", COLOURS[5]),
    "polars_per_s": ("polars, rule by rule", COLOURS[1]),
    "loop_per_s": ("a loop in Python", COLOURS[3]),
}
INK = "#7d8590"
"""A grey that can be read on white and on black: the chart has no background of its own."""
ON_ANY_GROUND = dict.fromkeys(("text.color", "axes.labelcolor", "xtick.color", "ytick.color", "axes.edgecolor"), INK)


def comparison(rows: Rows) -> Figure:
    """Return events a second against the number of rules, a line for each way to do it."""
    with mpl.rc_context({"font.size": 11, "axes.spines.top": False, "axes.spines.right": False, **ON_ANY_GROUND}):
        figure = Figure(figsize=(8.5, 4.2), layout="constrained")
        axes = figure.subplots()
        counts = [row["subscriptions"] for row in rows]
        places = sorted(_WAYS, key=lambda way: rows[-1][way])
        ends = [rows[-1][way] for way in places]
        for way, place in zip(places, _apart(ends, min(ends), max(ends)), strict=True):
            name, colour = _WAYS[way]
            axes.plot(counts, [row[way] for row in rows], marker="o", markersize=4, color=colour, linewidth=2)
            label = f"{name}: {rows[-1][way]:,.3g}" if rows[-1][way] < 1_000 else f"{name}: {rows[-1][way]:,.0f}"
            axes.annotate(label, (counts[-1], place), (10, 0), textcoords="offset points", color=colour, va="center")
        axes.set(xscale="log", yscale="log", xlabel="rules", ylabel="events a second, one core")
        axes.set_xticks(counts, [f"{count:,}" for count in counts])
        axes.minorticks_off()
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.10g}")
        axes.set_xlim(counts[0] * 0.8, counts[-1] * (counts[-1] / counts[0]) ** 0.62)
        axes.grid(color=INK, alpha=0.25)
        axes.spines["bottom"].set_bounds(counts[0], counts[-1])
        return figure


def picture(growth_rows: Rows, share_rows: Rows) -> Figure:
    """Return both panels as one figure."""
    with mpl.rc_context({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False}):
        height = max(5.0, 1.4 + 0.27 * len(share_rows))
        figure = Figure(figsize=(13, height), layout="constrained")
        left, right = figure.subplots(1, 2, width_ratios=(1, 1.15))
        _lines(left, growth_rows)
        _bars(right, share_rows)
        return figure


def _lines(axes: Axes, rows: Rows) -> None:
    names = list(dict.fromkeys(row["workload"] for row in rows))
    ends = []
    for name, colour in zip(names, COLOURS * len(names), strict=False):
        mine = [row for row in rows if row["workload"] == name]
        counts, times = [row["subscriptions"] for row in mine], [row["event_us"] for row in mine]
        axes.plot(counts, times, marker="o", markersize=4, color=colour)
        ends.append((times[-1], counts[-1], name, colour))
    axes.set(xscale="log", yscale="log", xlabel="subscriptions", ylabel="µs per event, in batches, one thread")
    axes.set_title("Time to match an event", loc="left", weight="bold")
    axes.grid(color="#e5e5e5")
    axes.set_axisbelow(True)
    counts = sorted({row["subscriptions"] for row in rows})
    axes.set_xticks(counts, [short(count) for count in counts])
    axes.minorticks_off()
    axes.set_xlim(counts[0] * 0.7, counts[-1] * (counts[-1] / counts[0]) ** 0.45)
    least, greatest = min(row["event_us"] for row in rows), max(row["event_us"] for row in rows)
    axes.set_ylim(least / 2, greatest * 2)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.10g}")
    ends.sort()
    for (_, count, name, colour), place in zip(ends, _apart([end[0] for end in ends], least, greatest), strict=True):
        axes.annotate(name, (count, place), (8, 0), textcoords="offset points", color=colour, va="center")
    first = min(row["event_us"] for row in rows if row["subscriptions"] == counts[0])
    last = min(counts[-1], counts[0] * greatest / first * 2)
    slope = [first * 0.75, first * 0.75 * last / counts[0]]
    axes.plot([counts[0], last], slope, color="#999999", linewidth=1, linestyle=(0, (4, 4)), zorder=1)
    axes.annotate("10 × for 10 ×", (last, slope[1]), (0, -4), textcoords="offset points", color="#777777", va="top")


def _apart(places: Sequence[float], least: float, greatest: float) -> list[float]:
    """Push labels apart that would overlap, upwards, on a logarithmic scale."""
    gap = (4 * greatest / least) ** 0.045
    moved: list[float] = []
    for place in places:
        moved.append(max(place, moved[-1] * gap) if moved else place)
    return moved


def _bars(axes: Axes, rows: Rows) -> None:
    places: list[float] = []
    place = 0.0
    for number, row in enumerate(rows):
        if number and row["workload"] != rows[number - 1]["workload"]:
            place += 0.6
        places.append(place)
        place += 1
    begins = [0.0] * len(rows)
    for (stage, parts), colour in zip(_STAGES.items(), _STAGE_COLOURS, strict=True):
        shares = [sum(row[part] for part in parts) for row in rows]
        axes.barh(places, shares, left=begins, height=0.85, color=colour, label=stage)
        for at, begin, share in zip(places, begins, shares, strict=True):
            if share >= _SMALLEST_LABELLED:
                ink = "black" if colour in ("#56b4e9", "#e6ab02", "#bbbbbb") else "white"
                axes.text(begin + share / 2, at, f"{share:.0%}", color=ink, ha="center", va="center", size=8)
        begins = [begin + share for begin, share in zip(begins, shares, strict=True)]
    axes.set_yticks(places, [f"{row['workload']}  {short(row['subscriptions'])}" for row in rows])
    for at, row in zip(places, rows, strict=True):
        axes.text(1.01, at, f"{row['event_us']:,.3g} µs", va="center", size=9, color="#444444")
    axes.set(xlim=(0, 1.0), ylim=(places[-1] + 0.6, -0.6))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    axes.set_xlabel("share of the time")
    axes.tick_params(left=False)
    axes.spines["left"].set_visible(False)
    axes.set_title("Where it goes\n", loc="left", weight="bold")
    axes.legend(
        loc="lower left", bbox_to_anchor=(-0.01, 0.995), ncols=len(_STAGES), frameon=False, fontsize=9,
        handlelength=1, columnspacing=1.2, handletextpad=0.4, borderaxespad=0,
    )  # fmt: skip


def short(count: int) -> str:
    """Return a count as on an axis.

    >>> [short(count) for count in (500, 10_000, 1_000_000)]
    ['500', '10k', '1M']
    """
    for unit, size in (("M", 1_000_000), ("k", 1_000)):
        if count >= size:
            return f"{count / size:g}{unit}"
    return str(count)


if __name__ == "__main__":
    results = Path("artifacts/benchmarks")
    print(draw(results) or "run growth and shares_of_time first")
    print(draw_otherwise(results) or "run otherwise first")
    print(*draw_page(Path("docs/measurements.md").read_text("utf-8"), Path("docs/images")))
