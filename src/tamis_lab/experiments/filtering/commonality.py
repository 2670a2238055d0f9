"""Does it matter how many predicates subscriptions have in common?

By the formulas hardly: only the vector of fulfilled predicates shrinks, by a bit for each. In the thesis' practice
memory falls all the same, because each list of an association table has its own overhead; the turning point stays.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from tamis.language import parse
from tamis_lab.experiments import verdicts
from tamis_lab.experiments.base import Curve, Experiment, Plot, Result, Row, Scale, Tell
from tamis_lab.experiments.filtering.own_memory import own_memory
from tamis_lab.experiments.filtering.subjects import BOOLEAN, COUNTING, field_of
from tamis_lab.experiments.filtering.turning_points import alternatives
from tamis_lab.experiments.statements import Judge
from tamis_lab.experiments.sweeping import swept
from tamis_lab.matching.formulas import characteristics

judged = Judge("filtering", "commonality")

COMMONALITIES = (0.0, 0.25, 0.5, 0.75)
ALTERNATIVES = (2, 5)
_FIXED, _EACH = 2, 2
_NAMES = (BOOLEAN, COUNTING)


def run(scale: Scale, seed: int, tell: Tell) -> Result:
    """Measure memory where more and more predicates are in common."""
    rows = swept(_row, product(ALTERNATIVES, COMMONALITIES), scale, seed, tell)
    claims = []
    for name in _NAMES:
        falls = [_last(rows, name, count) / _first(rows, name, count) for count in ALTERNATIVES]
        claims.append(
            judged(
                "memory-falls",
                verdicts.geometric_mean(falls),
                name=name,
                at=f"with {COMMONALITIES[-1]:.0%} in common against none",
            )
        )
    many = [row for row in rows if row["alternatives"] == ALTERNATIVES[-1]]
    claims.append(
        judged("turning-point-stays", {f"{row['asked']:.0%} in common": row[BOOLEAN] / row[COUNTING] for row in many})
    )
    lines = []
    for name in _NAMES:
        for count in ALTERNATIVES:
            mine = [row for row in rows if row["alternatives"] == count]
            x, y = tuple(row["commonality"] for row in mine), tuple(row[name] for row in mine)
            lines.append(Curve(f"{name}, {count} alternatives", x, y, is_dashed=count == ALTERNATIVES[0], kin=name))
    setup = (
        f"{scale.memory_count:,} subscriptions of {_FIXED} predicates and alternatives of {_EACH}. Bytes of everything "
        "but the index of predicates."
    )
    plot = Plot("Memory by commonality", "share of predicates in common", "bytes a subscription", tuple(lines))
    return Result(setup, tuple(claims), (plot,), tuple(rows))


def _row(setting: tuple[int, float], scale: Scale, seed: int, tell: Tell) -> Row:
    count, commonality = setting
    tell(f"{commonality:.0%} of the predicates in common, {count} alternatives")
    texts = _texts(scale.memory_count, count, commonality, np.random.default_rng(seed))
    field = field_of(*_NAMES)
    field.register(texts, tell)
    expressions = [parse(text) for text in texts]
    row: Row = {"alternatives": count, "asked": commonality, "commonality": characteristics(expressions).commonality}
    row |= own_memory(field, _NAMES, expressions)
    for name in _NAMES:
        row[f"{name} by structure"] = field[name].payload() / len(texts)
    return row


def _texts(count: int, alternative_count: int, commonality: float, chance: np.random.Generator) -> list[str]:
    """Write subscriptions in which so many predicates are distinct as the commonality leaves."""
    total = count * (_FIXED + alternative_count * _EACH)
    distinct = max(1, round((1 - commonality) * total))
    numbers = np.concatenate([np.arange(distinct), chance.integers(0, distinct, total - distinct)])
    predicates = (f"a{number % 40} = {number}" for number in chance.permutation(numbers).tolist())
    return [alternatives(_FIXED, _EACH, alternative_count, predicates) for _ in range(count)]


def _first(rows: list[Row], name: str, count: int) -> float:
    return float(next(row[name] for row in rows if row["alternatives"] == count))


def _last(rows: list[Row], name: str, count: int) -> float:
    return _first(rows[::-1], name, count)


EXPERIMENT = Experiment(
    "commonality",
    "Does it matter how many predicates subscriptions have in common?",
    "Bittner 2008, section 5.6, figure 5.4",
    run,
)
