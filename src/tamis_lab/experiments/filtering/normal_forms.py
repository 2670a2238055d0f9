"""What does a normal form cost where there is much to choose from?

`(a OR b) AND (c OR d) AND ...` has a conjunction for every way through it. A language of conjunctions needs a
subscription for each; a graph of the expression has one more node for each factor.
"""

from __future__ import annotations

from tamis_lab.experiments.base import Curve, Experiment, Plot, Result, Row, Scale, Tell
from tamis_lab.experiments.filtering.subjects import BOOLEAN, COUNTING, PATHS, field_of
from tamis_lab.experiments.statements import Judge
from tamis_lab.experiments.sweeping import swept

judged = Judge("filtering", "normal forms")

FACTORS = (1, 2, 3, 4, 6, 8)
_NAMES = (COUNTING, BOOLEAN, PATHS)


def run(scale: Scale, seed: int, tell: Tell) -> Result:
    """Measure what subscriptions of more and more factors become."""
    rows = swept(_row, FACTORS, scale, seed, tell)
    three = rows[FACTORS.index(3)]
    claims = (
        judged("eight-conjunctions", three["conjunctions"]),
        judged(
            "doubles",
            [row["conjunctions"] == 2 ** row["factors"] and row["inner nodes"] <= row["factors"] + 1 for row in rows],
        ),
    )
    lines = tuple(Curve(name, FACTORS, tuple(row[f"bytes {name}"] for row in rows)) for name in _NAMES)
    plot = Plot("Memory by factors of two", "factors", "bytes a subscription", lines, is_log_y=True)
    return Result("Subscriptions of k factors with two alternatives each.", claims, (plot,), tuple(rows))


def _row(factors: int, scale: Scale, seed: int, tell: Tell) -> Row:
    count = max(4, scale.memory_count >> factors)
    texts = [
        " AND ".join(f"(a{2 * each} = {number} OR a{2 * each + 1} = {number})" for each in range(factors))
        for number in range(count)
    ]
    field = field_of(*_NAMES)
    field.register(texts, tell)
    return {
        "factors": factors,
        "conjunctions": field[COUNTING].engine.statistics()["conjunctions"] / count,
        "inner nodes": field[PATHS].engine.statistics()["inner_nodes"] / count,
        **{f"bytes {name}": field[name].payload() / count for name in _NAMES},
    }


EXPERIMENT = Experiment(
    "normal forms",
    "What does a normal form cost where there is much to choose from?",
    "Jewel 2004, section 1.3",
    run,
)
