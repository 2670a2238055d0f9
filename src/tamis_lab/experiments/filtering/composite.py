"""What does the A-Tree's own sequence node find, and what does it keep, beside the product's automaton?

The node remembers one event: the latest for which its left operand was true. That finds the run that the automaton
finds as long as the latest left event is as good as any other, which it is unless a least time lies between the two
(AFTER). The automaton keeps as many events as may still be needed.
"""

from __future__ import annotations

import math
from random import Random
from time import process_time
from typing import Any

from tamis import parse
from tamis.standing import Standing
from tamis_lab.experiments.base import Curve, Experiment, Plot, Result, Row, Scale, Tell
from tamis_lab.experiments.statements import Judge
from tamis_lab.experiments.sweeping import swept
from tamis_lab.matching.atree import SequenceTree, Then

judged = Judge("filtering", "composite events")

_LEAST_S = (0.0, 1.0, 2.0, 4.0, 8.0)
_MOST_S = 30.0
_VALUES = 20
_EVENTS = 4
"""So many events for each that a scale plays at most."""


def run(scale: Scale, seed: int, tell: Tell) -> Result:
    """Let both find the runs of the same sequences, with more and more time that must lie in between."""
    rows = swept(_row, _LEAST_S, scale, seed, tell)
    without, *others = rows
    claims = (
        judged("within", [_are_alike(without)], details=_shares([without])),
        judged("at-least", [_are_alike(row) for row in others], details=_shares(others)),
    )
    lines = tuple(
        Curve(name, _LEAST_S, tuple(row[f"runs of the {name}"] for row in rows)) for name in ("node", "automaton")
    )
    setup = (
        f"{scale.memory_count:,} sequences of two of {_VALUES} kinds of events, two events a second, at most "
        f"{_MOST_S:g} s apart."
    )
    plot = Plot("Runs by the least time in between", "seconds", "runs", lines)
    return Result(setup, claims, (plot,), tuple(rows))


def _are_alike(row: Row) -> bool:
    return bool(row["runs of the node"] == row["runs of the automaton"] == row["runs of both"])


def _shares(rows: list[Row]) -> str:
    return ", ".join(f"{row['runs of the node']:,} of {row['runs of the automaton']:,}" for row in rows)


def _row(least: float, scale: Scale, seed: int, tell: Tell) -> Row:
    tell(f"at least {least:g} s in between")
    chance = Random(seed)
    tree, processor = SequenceTree(), Standing(retention=math.inf)
    for number in range(scale.memory_count):
        one, two = (f"kind = {chance.randrange(_VALUES)}" for _ in range(2))
        tree.add(number, Then(parse(one), parse(two), least, _MOST_S))
        after = f" AFTER {least:g} SECONDS" if least else ""
        processor.add(number, f"SEQUENCE {one} THEN {two}{after} WITHIN {_MOST_S:g} SECONDS")
    events = [({"kind": chance.randrange(_VALUES)}, number / 2) for number in range(_EVENTS * scale.most_events)]
    of_node: set[Any] = set()
    of_automaton: set[Any] = set()
    node_s = automaton_s = 0.0
    for number, (event, at) in enumerate(events):
        start = process_time()
        runs = tree.match(event, at, number)
        middle = process_time()
        notifications = processor.process(event, at, number)
        node_s, automaton_s = node_s + middle - start, automaton_s + process_time() - middle
        of_node |= set(runs)
        of_automaton |= {(each.subscription, each.events) for each in notifications}
    kept = processor.statistics()
    return {
        "least_s": least,
        "events": len(events),
        "runs of the node": len(of_node),
        "runs of the automaton": len(of_automaton),
        "runs of both": len(of_node & of_automaton),
        "events that nodes keep": tree.entry_count,
        "events that the automaton keeps": kept["open_events"],
        "nodes": tree.node_count,
        "us an event, node": 1e6 * node_s / len(events),
        "us an event, automaton": 1e6 * automaton_s / len(events),
    }


EXPERIMENT = Experiment(
    "composite events",
    "What does the A-Tree's sequence node find, beside an automaton that keeps more events?",
    "Jewel 2004, section 4.3",
    run,
)
