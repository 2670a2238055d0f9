"""Which class of subscriptions gains most from Boolean filtering?

Class 1 has two conjunctions for each subscription, class 2 has four, class 3 six. Class 2 is the hard one: its
predicates are hit so easily that nearly every subscription becomes a candidate. Class 3 asks for signed books, of which
there are few or many, depending on which of two statements of the source is believed (`books`): it is measured both
ways, and judged where they are few.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tamis_lab.experiments.base import Claim, Curve, Experiment, Plot, Result, Row, Scale, Tell
from tamis_lab.experiments.books import books
from tamis_lab.experiments.filtering.auction_memory import MIXES
from tamis_lab.experiments.filtering.knees import judged_ratio
from tamis_lab.experiments.filtering.subjects import BOOLEAN, COUNTING, field_of
from tamis_lab.experiments.statements import Judge
from tamis_lab.experiments.sweeping import swept

judged = Judge("filtering", "auction classes")

CLASSES = ("class 1", "class 2", "class 3")
CAPTIONED = "class 3, signed books as captioned"
"""Class 3 with 15.5 % of the books signed, which is compared with nothing."""
CONVERSION = {"class 1": 2, "class 2": 4, "class 3": 6}
TURNING_COUNT = 80_000
"""Where counting is said to lose its lead in class 2."""
_COUNTED = 16


def run(scale: Scale, seed: int, tell: Tell) -> Result:
    """Measure both, class by class, over the number of subscriptions."""
    rows = [row for some in swept(_sweep, (*CLASSES, CAPTIONED), scale, seed, tell) for row in some]
    plots = []
    for name in (*CLASSES, CAPTIONED):
        mine = [row for row in rows if row["class"] == name]
        counts = tuple(row["subscriptions"] for row in mine)
        lines = tuple(Curve(each, counts, tuple(row[each] for row in mine)) for each in (BOOLEAN, COUNTING))
        plots.append(Plot(f"Time to match an event, {name}", "subscriptions", "ms", lines))
    setup = (
        "Book auctions, one class at a time; milliseconds of processor time an event, the predicate phase included. "
        "1.8 % of the books are signed, as the text of the source suggests; class 3 also with 15.5 %, as captioned."
    )
    return Result(setup, tuple(_claims(rows)), tuple(plots), tuple(rows))


def _claims(rows: list[Row]) -> list[Claim]:
    lasts = {row["class"]: row for row in rows}
    captioned = lasts.pop(CAPTIONED)
    beside = f" ({captioned[BOOLEAN] / captioned[COUNTING]:.2f} with signed books as captioned)"
    claims = [
        judged(
            "time",
            row[BOOLEAN] / row[COUNTING],
            name=name,
            at=f"at {row['subscriptions']:,}{beside if name == 'class 3' else ''}",
        )
        for name, row in lasts.items()
    ]
    return [
        *claims,
        judged("gains", {name: row[COUNTING] / row[BOOLEAN] for name, row in lasts.items()}),
        judged("candidates", {name: row["candidates"] for name, row in lasts.items()}),
        judged("conjunctions", {name: lasts[name]["conjunctions"] / each for name, each in CONVERSION.items()}),
        _crossing([row for row in rows if row["class"] == "class 2"]),
        *(_knees([row for row in rows if row["class"] == name], name) for name in CLASSES),
    ]


def _knees(mine: list[Row], name: str) -> Claim:
    counts = [row["subscriptions"] for row in mine]
    return judged_ratio(judged, counts, [row[COUNTING] for row in mine], [row[BOOLEAN] for row in mine], name)


def _sweep(name: str, scale: Scale, seed: int, tell: Tell) -> list[Row]:
    mix = MIXES["class 3" if name == CAPTIONED else name]
    workload = books(is_as_captioned=name == CAPTIONED, subscription_mix=mix)
    field = field_of(BOOLEAN, COUNTING, schema=workload.schema)
    texts = workload.subscriptions(scale.auction_counts[-1], seed)["condition"].to_pylist()
    events = workload.events(scale.most_events, seed + 1)
    rows: list[Row] = []
    for begin, end in zip((0, *scale.auction_counts), scale.auction_counts, strict=False):
        field.register(texts[begin:end], tell)
        times = field.event_s(events, scale, tell)
        snapshot: Any = field[BOOLEAN].engine.compiled_snapshot()
        before = snapshot.counts()["candidates"]
        few = events.slice(0, _COUNTED)
        field[BOOLEAN].pairs(few)
        row: Row = {"class": name, "subscriptions": end, **{each: 1e3 * taken for each, taken in times.items()}}
        row["candidates"] = (snapshot.counts()["candidates"] - before) / few.num_rows / end
        row["conjunctions"] = field[COUNTING].engine.statistics()["conjunctions"] / end
        rows.append(row)
    return rows


def _crossing(rows: list[Row]) -> Claim:
    """Say where counting loses its lead in class 2, if it has one and loses it."""
    is_ahead = [row[COUNTING] < row[BOOLEAN] for row in rows]
    if not any(is_ahead):
        lead = "Boolean filtering leads from the first"
    elif all(is_ahead):
        lead = f"counting leads up to {rows[-1]['subscriptions']:,}"
    else:
        lead = f"Boolean filtering leads at {rows[is_ahead.index(False)]['subscriptions']:,}"
    should_be = [row["subscriptions"] < TURNING_COUNT for row in rows]
    claim = judged("crossing", [ahead is should for ahead, should in zip(is_ahead, should_be, strict=True)])
    return replace(claim, ours=f"{lead} (as published {claim.ours})")


EXPERIMENT = Experiment(
    "auction classes",
    "Which class of subscriptions gains most from Boolean filtering?",
    "Bittner 2008, section 5.7, figures 5.5 to 5.8",
    run,
)
