"""From how many conjunctions on does Boolean filtering take less memory?

The thesis derives turning points from formulas, and finds them in practice with artificial subscriptions. Ours are real
ones: some predicates that must hold, and alternatives of some predicates each. The number of alternatives is the number
of conjunctions, and all other characteristics follow from the shape. Whether the turning points are where the formulas
have them is judged by the memory that was allocated (`own_memory`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tamis.language import parse
from tamis_lab.experiments.base import Curve, Experiment, Plot, Result, Row, Scale, Tell
from tamis_lab.experiments.filtering.own_memory import ALLOCATED, own_memory
from tamis_lab.experiments.filtering.subjects import BOOLEAN, CLUSTER, COUNTING, field_of
from tamis_lab.experiments.statements import Judge
from tamis_lab.matching.formulas import (
    SubscriptionCharacteristics,
    boolean_bytes,
    characteristics,
    cluster_bytes,
    counting_bytes,
    turning_point,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

judged = Judge("filtering", "turning points")

FAMILIES = ((1, 3), (2, 2), (4, 2), (1, 8), (6, 4))
"""How many predicates must hold, and how many there are in each alternative."""
MOST_ALTERNATIVES = 6
_WIDEST = 50
_FORMULAS = {BOOLEAN: boolean_bytes, COUNTING: counting_bytes, CLUSTER: cluster_bytes}


def alternatives(fixed: int, each: int, count: int, predicates: Iterator[str]) -> str:
    """Write a subscription: `fixed` predicates, and one of `count` alternatives of `each` predicates.

    >>> alternatives(1, 2, 2, iter("pqrst"))
    'p AND (q AND r OR s AND t)'
    """
    must = [next(predicates) for _ in range(fixed)]
    ways = [" AND ".join(next(predicates) for _ in range(each)) for _ in range(count)]
    return " AND ".join([*must, f"({' OR '.join(ways)})" if count > 1 else ways[0]])


def run(scale: Scale, seed: int, tell: Tell) -> Result:
    """Measure families of subscriptions on both sides of their turning points."""
    rows = _rows(scale, seed, tell)
    off_the_point = [row for row in rows if abs(row["turning point"] - row["alternatives"]) > 0.01]
    farthest = max(abs(row[name] / row[f"{name} by formula"] - 1) for row in rows for name in _FORMULAS)
    claims = (
        judged(
            "boolean-beyond-turning-point",
            [is_boolean_smaller(row) is (row["alternatives"] > row["turning point"]) for row in off_the_point],
            remark=_beside_the_formulas(off_the_point),
        ),
        judged("formulas", 1 + farthest, at="where they are farthest apart"),
        judged("published-turning-point", turning_point(_shares(10, 0.8, 0.7))),
        judged("counting-below-cluster", [row[COUNTING] < row[CLUSTER] for row in rows]),
    )
    setup = (
        f"{scale.memory_count:,} subscriptions for each of {len(rows)} settings. Bytes are those of the structures "
        "that the formulas count, and those that were allocated; the index of predicates is left out."
    )
    return Result(setup, claims, (_theory(), _practice(rows)), tuple(rows))


def _rows(scale: Scale, seed: int, tell: Tell) -> list[Row]:
    chance = np.random.default_rng(seed)
    rows = []
    for fixed, each in FAMILIES:
        for count in range(1, MOST_ALTERNATIVES + 1):
            tell(f"{fixed} predicates and {count} alternatives of {each}")
            operands = chance.permutation(scale.memory_count * (fixed + count * each)).tolist()
            predicates = (f"a{operand % 40} = {operand}" for operand in operands)
            texts = [alternatives(fixed, each, count, predicates) for _ in range(scale.memory_count)]
            field = field_of(*_FORMULAS)
            field.register(texts, tell)
            expressions = [parse(text) for text in texts]
            measured = characteristics(expressions)
            row: Row = {"fixed": fixed, "in each": each, "alternatives": count}
            row["turning point"] = turning_point(measured)
            for name, formula in _FORMULAS.items():
                row[name] = field[name].payload() / len(texts)
                row[f"{name} by formula"] = formula(measured)
            for name, taken in own_memory(field, (BOOLEAN, COUNTING), expressions).items():
                row[name + ALLOCATED] = taken
            rows.append(row)
    return rows


def is_boolean_smaller(row: Row) -> bool:
    """Has Boolean filtering allocated less memory than counting?"""
    return bool(row[BOOLEAN + ALLOCATED] < row[COUNTING + ALLOCATED])


def _beside_the_formulas(rows: list[Row]) -> str:
    """Say where memory and formulas differ, and for whom."""
    early = sum(is_boolean_smaller(row) and row["alternatives"] < row["turning point"] for row in rows)
    late = sum(not is_boolean_smaller(row) and row["alternatives"] > row["turning point"] for row in rows)
    return (
        f"In {early} of {len(rows)} settings Boolean filtering takes less although by formula it should not, in {late} "
        "it does not although it should. Counting keeps for each conjunction where it ends and whose it is, which the "
        "formulas leave out."
    )


def _shares(predicates: float, operator_share: float, conjunction_share: float) -> SubscriptionCharacteristics:
    return SubscriptionCharacteristics(predicates, operator_share * predicates, 1, conjunction_share)


def _theory() -> Plot:
    sizes = tuple(range(2, _WIDEST + 1))
    lines = []
    for share in (0.3, 0.5, 0.7):
        for against in (COUNTING, CLUSTER):
            points = tuple(turning_point(_shares(size, 0.8, share), against=against) for size in sizes)
            label = f"a predicate in {share:.0%} of them" if against == COUNTING else ""
            lines.append(Curve(label, sizes, points, is_dashed=against == CLUSTER))
    return Plot(
        "Turning points by formula (dashed: cluster)",
        "predicates in a subscription",
        "conjunctions",
        tuple(lines),
    )


def _practice(rows: list[Row]) -> Plot:
    lines = []
    for fixed, each in FAMILIES:
        mine = [row for row in rows if (row["fixed"], row["in each"]) == (fixed, each)]
        counts = tuple(row["alternatives"] for row in mine)
        taken = tuple(row[BOOLEAN + ALLOCATED] / row[COUNTING + ALLOCATED] for row in mine)
        lines.append(Curve(f"{fixed} and alternatives of {each}", counts, taken))
        by_formula = tuple(row[f"{BOOLEAN} by formula"] / row[f"{COUNTING} by formula"] for row in mine)
        lines.append(Curve("", counts, by_formula, is_dashed=True))
    return Plot("Allocated, and by formula (dashed)", "alternatives", "bytes, Boolean / counting", tuple(lines))


EXPERIMENT = Experiment(
    "turning points",
    "From how many conjunctions on does Boolean filtering take less memory?",
    "Bittner 2008, sections 5.2 to 5.6",
    run,
)
