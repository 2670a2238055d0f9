"""What does it cost to find the important subscriptions first?

The A-Tree passes truth upwards band by band: nodes of which a subscription of high priority needs the result come
first, so that its subscriber is notified no later than others. The source says when its order is not kept: if one
expression is part of another, of higher priority, it is true first. Ours tells each subscription in its own band, so
that the order holds there too; the load has such pairs.

It describes priorities and has not measured them: what it promises is compared, and rows say what they cost.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from tamis.matching import Matcher
from tamis.workloads import Expressions
from tamis_lab.experiments.base import Curve, Experiment, Plot, Result, Row, Scale, Tell
from tamis_lab.experiments.errors import DisagreementError
from tamis_lab.experiments.filtering.subjects import A_TREES
from tamis_lab.experiments.measuring import cpu_s, undisturbed
from tamis_lab.experiments.statements import Judge

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

judged = Judge("filtering", "priorities")

LENGTH, HIGHEST = 8, 64
PART_SHARE = 0.2
"""So many subscriptions are a part of another one, which has a higher priority."""
_EVENTS = 32


def run(scale: Scale, seed: int, tell: Tell) -> Result:
    """Match in the order of priorities, and without; look at the order and at the time until the first are found."""
    workload = Expressions(predicate_count=LENGTH, match_share=0.1, shared_nodes=0.4)
    texts, priorities, part_of = subscriptions(scale.setting_count, seed)
    events = workload.events(min(_EVENTS, scale.most_events), seed + 1).to_pylist()
    rows = [_row(name, texts, priorities, part_of, events, scale, tell) for name in A_TREES]
    claims = (
        judged("in-order", [row["events in order"] == row["events"] for row in rows]),
        judged("parts-in-order", [row["parts first"] == 0 < row["pairs with a part"] for row in rows]),
        *(judged("first-sooner", row["first, ms"] / row["in order, ms"], name=row["filter"]) for row in rows),
    )
    places = tuple(range(1, len(rows) + 1))
    lines = tuple(
        Curve(what, places, tuple(row[f"{what}, ms"] for row in rows)) for what in ("first", "in order", "any order")
    )
    plot = Plot("Time of an event", "", "ms", lines, x_names=tuple(A_TREES))
    setup = (
        f"{len(texts):,} conjunctions of ranges, {PART_SHARE:.0%} of them part of another one with a higher priority; "
        f"priorities from 1 to {HIGHEST}, {len(events)} events, one by one. First is the time until the first group of "
        "subscriptions is told."
    )
    return Result(setup, claims, (plot,), tuple(rows))


def subscriptions(count: int, seed: int) -> tuple[list[str], list[int], dict[int, int]]:
    """Return texts, priorities, and which subscription is a part of which other.

    >>> texts, priorities, part_of = subscriptions(10, seed=1)
    >>> [(texts[part] in texts[whole], priorities[part] < priorities[whole]) for part, whole in part_of.items()]
    [(True, True), (True, True)]
    """
    parts = int(PART_SHARE * count)
    wholes = Expressions(predicate_count=LENGTH, match_share=0.1, shared_nodes=0.4).subscriptions(count - parts, seed)
    texts = [str(text) for text in wholes["condition"].to_pylist()]
    chance = np.random.default_rng(seed)
    priorities = chance.integers(1, HIGHEST, count, endpoint=True).tolist()
    part_of = {}
    for number in range(parts):
        part, inner = count - parts + number, texts[number][1:-1]
        texts.append(inner[: inner.index(" AND ")].lstrip("("))  # its first predicate, which is a node of it
        priorities[number] = max(priorities[number], 2)
        priorities[part] = int(chance.integers(1, priorities[number]))
        part_of[part] = number
    return texts, priorities, part_of


def _row(
    name: str,
    texts: Sequence[str],
    priorities: Sequence[int],
    part_of: Mapping[int, int],
    events: Sequence[Mapping[str, Any]],
    scale: Scale,
    tell: Tell,
) -> Row:
    tell(f"{name}: {len(texts):,} subscriptions with priorities")
    ordered, plain = Matcher(name), Matcher(name)
    ordered.add_many(zip(range(len(texts)), texts, priorities, strict=True))
    plain.add_many(enumerate(texts))
    in_order = parts_first = pairs = 0
    for event in events:
        keys = [key for group in ordered.match_in_order(event) for key in group]
        if set(keys) != set(plain.match(event)):
            raise DisagreementError(f"{name} with priorities", f"{name} without", 0)
        in_order += all(priorities[one] >= priorities[other] for one, other in pairwise(keys))
        places = {key: place for place, key in enumerate(keys)}
        both = [(part, whole) for part, whole in part_of.items() if part in places and whole in places]
        pairs += len(both)
        parts_first += sum(places[part] < places[whole] for part, whole in both)

    def first(event: Mapping[str, Any]) -> None:
        next(iter(ordered.match_in_order(event)), None)

    def everything(event: Mapping[str, Any]) -> None:
        list(ordered.match_in_order(event))

    row: Row = {"filter": name, "subscriptions": len(texts), "events": len(events), "events in order": in_order}
    row |= {"pairs with a part": pairs, "parts first": parts_first}
    asked = {"first": first, "in order": everything, "any order": plain.match}
    taken = dict.fromkeys(asked, float("inf"))
    with undisturbed():
        for _ in range(scale.passes):
            for what, ask in asked.items():
                taken[what] = min(taken[what], cpu_s(lambda ask=ask: [ask(event) for event in events]))  # type: ignore[misc]
    return row | {f"{what}, ms": 1e3 * each / len(events) for what, each in taken.items()}


EXPERIMENT = Experiment(
    "priorities",
    "What does it cost to find the important subscriptions first?",
    "Jewel 2004, section 4.1",
    run,
)
