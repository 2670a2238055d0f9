"""What does an expression give for every event of a batch? Vectorised evaluation.

The same as the reference meaning, `tamis.language.meaning.value`, but node by node over whole columns instead of event
by event over the whole tree. What a node gives for a batch is remembered as long as the batch is there, because the
next expression may have the same node inside.

A function that has no form for columns, or a column that has values of several kinds, is handled row by row (`rows.py`)
with the function of the reference meaning, for that node only.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from tamis.language.choices import CHOICES
from tamis.language.expressions import (
    And,
    AtLeast,
    Attribute,
    Between,
    Call,
    Compare,
    Expression,
    In,
    IsA,
    IsNull,
    Like,
    Literal,
    Not,
    Or,
    RLike,
    Test,
    Xor,
    fold_shared,
)
from tamis.language.functions import FUNCTIONS, HostedName
from tamis.language.meaning import meaning
from tamis.matching.columnwise import arrays, choices, comparison, hosted, numbers, places, texts, truths, vectors
from tamis.matching.columnwise.rows import row_by_row
from tamis.matching.columnwise.series import MIXED, NULL, Series, from_arrow_arrays, from_column, from_values, literal

if TYPE_CHECKING:
    from collections.abc import Callable

    from tamis.language.schema import Schema
    from tamis.matching.columns import Column, Events

Step: TypeAlias = tuple[Expression, tuple[int, ...], tuple[int, ...], Series | None]
"""A node, the steps that gave the values of its children, those of them that nobody needs any more, and its own values
where it is a constant."""

_MOST_REMEMBERED = 256
"""How many columns of inner nodes are kept of a batch: 16 MB of a block of 8,192 events."""
_MOST_VALUES = 1 << 25
"""An expression of so many nodes that all their values are more than this is computed for some events at a time."""


class _Remembered:
    """What was computed of a batch.

    It does not refer to the batch, which refers to it: so both end with their last user, and not only when the garbage
    collector looks for cycles, by which time a busy program has made hundreds.
    """

    def __init__(self, schema: Schema | None) -> None:
        self.schema = schema
        self.attributes: dict[Attribute, Series] = {}
        self.inner: dict[Expression, Series] = {}
        self.whereabouts: dict[places.Position, places.Whereabouts] = {}


class BatchSeries:
    """What is known of a batch beside its columns: the series of its attributes, and of some inner nodes."""

    def __init__(self, events: Events, schema: Schema | None, remembered: _Remembered | None = None) -> None:
        remembered = remembered or _Remembered(schema)
        self._events = events
        self._schema = schema
        self._attributes = remembered.attributes
        self._known = remembered.inner
        self._whereabouts = remembered.whereabouts

    @classmethod
    def of(cls, events: Events, schema: Schema | None = None) -> BatchSeries:
        """Return what is known of some events."""
        remembered: _Remembered | None = events.derived
        if remembered is None or remembered.schema is not schema:
            remembered = events.derived = _Remembered(schema)
        return cls(events, schema, remembered)

    def attribute(self, node: Attribute) -> Series:
        """Return the values of an attribute."""
        series = self._attributes.get(node)
        if series is None:
            array = self._events.arrow(node.path)
            series = None if array is None else from_arrow_arrays(array)
            if series is None:
                series = from_column(self._events.column(node.path))
            self._attributes[node] = series
        return series

    def whereabouts(self, position: places.Position) -> places.Whereabouts:
        """Return where the events are, given the terms of their latitude and longitude."""
        calculated = self._whereabouts.get(position)
        if calculated is None:
            latitude, longitude = (choices.of_one_kind(self.evaluated(each)) for each in position)
            calculated = self._whereabouts[position] = places.Whereabouts.of(latitude, longitude, self._events.count)
        return calculated

    def evaluated(self, expression: Expression) -> Series:
        """Return the values of an expression, one for each event or one for all."""
        done: list[Series] = []
        steps = _steps(expression)
        last = len(steps) - 1
        with np.errstate(all="ignore"):  # what is invalid is masked
            for number, (node, below, spent, constant) in enumerate(steps):
                if constant is not None:
                    done.append(constant)
                elif type(node) is Attribute:
                    done.append(self.attribute(node))
                elif number == last:
                    done.append(applied(node, [done[step] for step in below], self._schema))
                else:
                    done.append(self._inner(node, [done[step] for step in below]))
                for step in spent:
                    done[step] = NULL
        return done[-1]

    def _inner(self, node: Expression, below: list[Series]) -> Series:
        series = self._known.get(node)
        if series is None:
            series = applied(node, below, self._schema)
            if len(self._known) >= _MOST_REMEMBERED:
                self._known.clear()
            self._known[node] = series
        return series


def term_column(term: Expression, events: Events, schema: Schema | None = None) -> Column:
    """Return the values of a term for all events.

    >>> import tamis
    >>> from tamis.matching.columns import Events
    >>> revenue = tamis.parse("price * bids > 0").left
    >>> term_column(revenue, Events([{"price": 2.5, "bids": 4}, {"price": 1.5, "bids": 2}])).values
    array([10.,  3.])
    """
    if not events.count:  # no rows: nothing to learn about anything, a length or a kind
        return NULL.column(0)
    return BatchSeries.of(events, schema).evaluated(term).column(events.count)


def truth_codes(predicate: Expression, events: Events, schema: Schema | None = None) -> npt.NDArray[np.uint32]:
    """Return the truth of a predicate for all events: 0 unknown, 1 false, 2 true.

    >>> import tamis
    >>> from tamis.matching.columns import Events
    >>> truth_codes(tamis.parse("low < high"), Events([{"low": 1, "high": 2}, {"low": 2, "high": 1}, {"low": 3}]))
    array([2, 1, 0], dtype=uint32)
    """
    if not events.count:
        return np.zeros(0, np.uint32)
    step_count = len(_steps(predicate))
    if step_count * events.count <= _MOST_VALUES:
        return truths.codes_of(BatchSeries.of(events, schema).evaluated(predicate), events.count)
    part = max(1, _MOST_VALUES // step_count)
    parts = [events.slice(start, part) for start in range(0, events.count, part)]
    return np.concatenate(
        [truths.codes_of(BatchSeries(each, schema).evaluated(predicate), each.count) for each in parts]
    )


@lru_cache(1 << 14)
def _steps(expression: Expression) -> tuple[Step, ...]:
    """Return the distinct nodes of an expression, children before parents."""
    nodes: list[tuple[Expression, list[int]]] = []
    last_users: dict[int, int] = {}

    def step(node: Expression, below: list[int]) -> int:
        nodes.append((node, below))
        last_users.update(dict.fromkeys(below, len(nodes) - 1))
        return len(nodes) - 1

    fold_shared(expression, step)
    return tuple(
        (
            node,
            tuple(below),
            tuple(child for child in set(below) if last_users[child] == number),
            literal(node.value) if isinstance(node, Literal) else None,
        )
        for number, (node, below) in enumerate(nodes)
    )


def applied(node: Expression, below: list[Series], schema: Schema | None) -> Series:
    """Return the values of a node, given those of its children."""
    if any(series.kind == MIXED for series in below) and not (isinstance(node, Call) and node.function in CHOICES):
        return choices.of_parts(lambda parts: applied(node, parts, schema), below)
    match node:
        case Call(name) | Test(name):
            if isinstance(name, HostedName):
                return hosted.applied(name.function, below)
            row = FUNCTIONS[name]
            series = COLUMN_FORMS[name](*below) if row.over_columns else None
            return from_values(row_by_row(row.meaning, below)) if series is None else series
        case Compare(operator):
            return comparison.compared(operator, *below)
        case Between():
            return comparison.between(*below)
        case In(_, members):
            return comparison.among(below[0], members)
        case IsNull():
            return truths.is_null(below[0])
        case Not():
            return truths.negation(below[0])
        case And():
            return truths.conjunction(below)
        case Or():
            return truths.disjunction(below)
        case Xor():
            return truths.parity(below)
        case AtLeast(count):
            return truths.at_least(count, below)
        case IsA(_, event_type):
            series = texts.is_a(below[0], event_type, schema)
        case Like(_, pattern, escape):
            series = texts.like(below[0], pattern, escape)
        case RLike(_, pattern):
            series = texts.rlike(below[0], pattern)
        case _:
            raise AssertionError(f"a node of an unknown class: {type(node).__name__}")
    if series is None:
        series = from_values(row_by_row(lambda *values: meaning(node, list(values), {}, schema), below))
    return series


COLUMN_FORMS: dict[str, Callable[..., Series | None]] = {
    "case": lambda *arguments: choices.case(arguments),
    "if": lambda *arguments: choices.case(arguments),
    "coalesce": lambda *arguments: choices.coalesce(arguments),
    "nullif": choices.nullif,
    "add": numbers.add,
    "subtract": numbers.subtract,
    "multiply": numbers.multiply,
    "divide": numbers.divide,
    "remainder": numbers.remainder,
    "negate": numbers.negate,
    "abs": numbers.absolute,
    "least": lambda *arguments: numbers.extreme(list(arguments), -1),
    "greatest": lambda *arguments: numbers.extreme(list(arguments), 1),
    "avg": lambda *arguments: numbers.mean(list(arguments)),
    "lower": lambda text: texts.of_text("lower", text),
    "upper": lambda text: texts.of_text("upper", text),
    "trim": lambda text: texts.of_text("trim", text),
    "length": lambda text: texts.of_text("length", text),
    "size": arrays.size,
    "array": lambda *elements: arrays.array(list(elements)),
    "distance": places.distance,
    "euclidean": vectors.euclidean,
    "cosine": vectors.cosine,
    "startswith": lambda text, part: texts.test("startswith", text, part),
    "endswith": lambda text, part: texts.test("endswith", text, part),
    "contains": lambda text, part: texts.test("contains", text, part),
    "in_cidr": lambda text, part: texts.test("in_cidr", text, part),
    "array_contains": arrays.array_contains,
    "arrays_overlap": arrays.arrays_overlap,
}
"""The forms for whole columns of the functions whose rows say that they have one (`over_columns`). Where such a form
gives None, because the columns are of no kind that it takes, the function is computed row by row as the others are."""
