"""What `tamis.holds` says, for a whole table of events at once.

Shares of matches need millions of pairs to be measured, and the definition takes its time. This twin of it
knows just the predicates that workloads write, and `test_every_workload` holds it against the definition.
"""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import tamis
from tamis.language.expressions import (
    And,
    Attribute,
    Between,
    Compare,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    Or,
    Test,
    Xor,
    fold,
)

_COMPARISONS = {
    "=": pc.equal,
    "<>": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
_EARTH_KM = 6371.0088


def matches(conditions: pa.ChunkedArray, events: pa.Table, schema: tamis.Schema) -> np.ndarray:
    """Return a row for each condition and a column for each event: True where they match."""
    columns = {name: _plain(events[name]) for name in events.column_names}
    rows = [
        fold(tamis.parse(text, schema), lambda node, below: _meaning(node, below, columns))
        for text in conditions.to_pylist()
    ]
    return np.array([pc.fill_null(row, False).to_numpy(zero_copy_only=False) for row in rows])


def _plain(column: pa.ChunkedArray) -> pa.Array:
    whole = column.combine_chunks()
    return whole.dictionary_decode() if pa.types.is_dictionary(whole.type) else whole


def _number(value):
    return float(value) if isinstance(value, Decimal) else value


def _meaning(node, below, columns):
    match node:
        case Literal(value):
            return _number(value)
        case Attribute((name,)):
            return columns[name]
        case Compare(operator):
            return _COMPARISONS[operator](*below)
        case Between():
            return pc.and_kleene(pc.greater_equal(below[0], below[1]), pc.less_equal(below[0], below[2]))
        case In(_, values):
            is_in = pc.is_in(below[0], pa.array(values))
            return pc.if_else(pc.is_null(below[0]), None, is_in)
        case IsNull():
            return pc.is_null(below[0])
        case Like(_, pattern):
            return pc.match_like(below[0], pattern)
        case Test("contains"):
            return pc.match_substring(below[0], below[1])
        case Not():
            return pc.invert(below[0])
        case And():
            return _joined(pc.and_kleene, below)
        case Or():
            return _joined(pc.or_kleene, below)
        case Xor():
            return _joined(pc.xor, below)
        case _:  # distance(latitude, longitude, latitude, longitude)
            return _distance_km(*below)


def _joined(function, operands):
    result = operands[0]
    for operand in operands[1:]:
        result = function(result, operand)
    return result


def _distance_km(*degrees):
    latitude, longitude, at_latitude, at_longitude = (np.radians(part) for part in degrees)
    half_chord = np.sin((latitude - at_latitude) / 2) ** 2
    half_chord += np.cos(latitude) * np.cos(at_latitude) * np.sin((longitude - at_longitude) / 2) ** 2
    return pa.array(2 * _EARTH_KM * np.arcsin(np.sqrt(half_chord)))
