"""What would people ask about a table they know?

They ask for busy airports, not for airport number 57; for delays beyond what is usual; for a storm near home. So
operands come from the table itself: limits are its percentiles, names its frequent values, places its rows. A
*question* writes many predicates about one attribute; subscriptions combine questions with AND, OR and NOT.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.workloads.distributions import weighted, weighted_sets
from tamis.workloads.texts import filled, integers, joined, literals, scattered

if TYPE_CHECKING:
    import numpy.typing as npt

    from tamis.workloads.base import Indexes

Write = Callable[[int, np.random.Generator], pa.Array]

_MOST_ENUMERATED = 150
"""A string attribute with no more values than this is an enumeration."""
_LISTED_COUNT = 3
_RADII_KM = np.array([100, 200, 500, 1000])

SHAPES: Mapping[str, float] = {
    "{0} AND {1}": 0.20,
    "{0} AND {1} AND {2}": 0.25,
    "{0} AND ({1} OR {2})": 0.20,
    "{0} AND {1} AND NOT {2}": 0.10,
    "{0} AND NOT ({1} OR {2})": 0.10,
    "({0} AND {1}) OR ({2} AND {3})": 0.15,
}
"""How people combine, and how often. The shares are an assumption: nobody has published theirs."""


@dataclass(frozen=True)
class Question:
    """A way to ask about an attribute, how often it is asked, and how it is written."""

    attribute: str
    weight: float
    write: Write


def conditions(questions: list[Question], count: int, chance: np.random.Generator) -> pa.Array:
    """Write subscriptions: questions about distinct attributes in the gaps of a shape.

    >>> table = pa.table({name: list(range(100)) for name in ("delay", "distance", "humid", "visib")})
    >>> asked = questions_about(table, dict.fromkeys(table.column_names, 1))
    >>> conditions(asked, 1, np.random.default_rng(2))[0].as_py()
    'visib < 18 AND delay > 75 AND distance > 90'
    """
    slots = _slots(questions, max(shape.count("{") for shape in SHAPES), count, chance)
    chosen = weighted(np.array(list(SHAPES.values())), count, chance)
    groups = []
    for index, shape in enumerate(SHAPES):
        places = np.flatnonzero(chosen == index)
        gaps = {str(slot): column.take(pa.array(places)) for slot, column in enumerate(slots)}
        groups.append((places, filled(shape, gaps, places.size)))
    return scattered(groups)


def _slots(questions: list[Question], slot_count: int, count: int, chance: np.random.Generator) -> list[pa.Array]:
    """Write a column of predicates for each slot, over attributes that differ within a row."""
    attributes = list(dict.fromkeys(question.attribute for question in questions))
    weights = np.array(
        [[question.weight * (question.attribute == name) for question in questions] for name in attributes]
    )
    rows = weighted_sets(weights.sum(axis=1), slot_count, count, chance)
    columns = []
    for slot in range(slot_count):
        asked = np.empty(count, np.int64)
        for attribute, of_attribute in enumerate(weights):
            places = np.flatnonzero(rows[:, slot] == attribute)
            asked[places] = weighted(of_attribute, places.size, chance)
        columns.append(scattered(_written(questions, asked, chance)))
    return columns


def _written(questions: list[Question], asked: Indexes, chance: np.random.Generator) -> list[tuple[Indexes, pa.Array]]:
    places = [np.flatnonzero(asked == index) for index in range(len(questions))]
    return [(where, question.write(where.size, chance)) for where, question in zip(places, questions, strict=True)]


def questions_about(table: pa.Table, weights: Mapping[str, float]) -> list[Question]:
    """Find questions about the columns named in `weights`; an attribute's weight is shared by its questions.

    >>> table = pa.table({"delay": list(range(100)), "gate": ["A", "B"] * 50})
    >>> [question.write(1, np.random.default_rng(1))[0].as_py() for question in questions_about(table, {"delay": 1})]
    ['delay > 86', 'delay < 13', 'delay BETWEEN 37 AND 60']
    """
    questions = []
    for name, weight in weights.items():
        column = table[name].combine_chunks()
        writes = _about_text(name, column) if pa.types.is_string(column.type) else _about_order(name, column)
        questions += [Question(name, weight / len(writes), write) for write in writes]
        if column.null_count:
            questions.append(Question(name, weight / 10, _is_null(name)))
    return questions


def near(latitude: str, longitude: str, table: pa.Table, weight: float) -> Question:
    """Ask for places around those in the table.

    >>> ports = pa.table({"lat": [45.1], "long": [13.6]})
    >>> near("lat", "long", ports, 1).write(1, np.random.default_rng(1)).to_pylist()
    ['distance(lat, long, 45.1, 13.6) < 200']
    """
    texts = [literals_of_numbers(table[name].to_numpy()) for name in (latitude, longitude)]

    def write(count: int, chance: np.random.Generator) -> pa.Array:
        rows = pa.array(chance.integers(0, table.num_rows, count))
        radii = integers(chance.choice(_RADII_KM, count))
        there = joined(texts[0].take(rows), ", ", texts[1].take(rows))
        return joined(f"distance({latitude}, {longitude}, ", there, ") < ", radii)

    return Question(latitude, weight, write)


def literals_of_numbers(values: npt.NDArray[np.float64]) -> pa.Array:
    """Write doubles the way people do: `45.1`, without the suffix of a double."""
    return pa.array([repr(value) for value in values.tolist()], pa.string())


def _about_order(name: str, column: pa.Array) -> list[Write]:
    """Ask for more than, less than, or between percentiles of a number or a time.

    A limit at the end of the range would be true for all or for none, and a range of one value is not a range.
    """
    order = np.sort(column.drop_null().to_numpy(zero_copy_only=False))
    ranks = order[np.arange(101) * (order.size - 1) // 100]
    texts = literals_of_numbers(ranks) if ranks.dtype.kind == "f" else literals(ranks.tolist())
    low, high = np.arange(1, 75)[:, np.newaxis], np.arange(5, 26)
    low, high = np.broadcast_arrays(low, low + high)
    is_range = ranks[low] < ranks[high]
    limits = (
        (f"{name} > ", [rank for rank in range(75, 100) if ranks[rank] < ranks[100]]),
        (f"{name} < ", [rank for rank in range(1, 26) if ranks[rank] > ranks[0]]),
    )
    writes = [_one_of(prefix, texts.take(pa.array(places))) for prefix, places in limits if places]
    if is_range.any():
        lows, highs = (texts.take(pa.array(ends[is_range])) for ends in (low, high))
        writes.append(_one_of(f"{name} BETWEEN ", joined(lows, " AND ", highs)))
    return writes


def _about_text(name: str, column: pa.Array) -> list[Write]:
    """Ask for one or some of the frequent values; where there are many values, for how they begin."""
    counted = pc.value_counts(column.drop_null()).sort("descending", by="counts")
    values, weights = counted.field("values"), counted.field("counts").to_numpy().astype(np.float64)
    texts = literals(values.to_pylist())
    if len(values) > _MOST_ENUMERATED:
        beginnings = pc.value_counts(pc.utf8_slice_codeunits(column.drop_null(), 0, 3))
        patterns = joined(f"{name} LIKE ", literals(f"{value}%" for value in beginnings.field("values").to_pylist()))
        return [_one_of(f"{name} = ", texts, weights), _one_of("", patterns, beginnings.field("counts").to_numpy())]

    # A list of all values would be true of every event.
    listed_count = min(_LISTED_COUNT, len(values) - 1)

    def write_list(count: int, chance: np.random.Generator) -> pa.Array:
        rows = weighted_sets(weights, listed_count, count, chance).T
        listed = [texts.take(pa.array(row)) for row in rows]
        return joined(f"{name} IN (", *[part for text in listed for part in (text, ", ")][:-1], ")")

    return [_one_of(f"{name} = ", texts, weights), *([write_list] if listed_count > 1 else [])]


def _is_null(name: str) -> Write:
    return _one_of(f"{name} ", pa.array(["IS NULL", "IS NOT NULL"]))


def _one_of(prefix: str, endings: pa.Array, weights: npt.NDArray[np.float64] | None = None) -> Write:
    """Write one of some endings behind a prefix."""
    shares = np.ones(len(endings)) if weights is None else weights
    return lambda count, chance: joined(prefix, endings.take(pa.array(weighted(shares, count, chance))))
