"""How do a hundred thousand conditions become text without a hundred thousand loops?

A condition is a shape with gaps, `price < {limit} AND bids = 0`, and a gap's fillings are a column of texts.
Arrow joins columns of texts at the speed of memory, so subscriptions are written column by column too.
"""

from __future__ import annotations

from string import Formatter
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.language.literals import to_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import numpy.typing as npt

    from tamis.workloads.base import Indexes


def joined(*parts: str | pa.Array) -> pa.Array:
    """Write columns and constant texts one behind the other.

    >>> joined("price < ", pa.array(["5", "6"]), " AND bids = 0").to_pylist()
    ['price < 5 AND bids = 0', 'price < 6 AND bids = 0']
    """
    return pc.binary_join_element_wise(*parts, "")


def filled(shape: str, gaps: Mapping[str, pa.Array], count: int) -> pa.Array:
    """Fill a shape's gaps, `count` times.

    >>> filled("{a} AND NOT ({b} OR {a})", {"a": pa.array(["x", "y"]), "b": pa.array(["z", "z"])}, 2).to_pylist()
    ['x AND NOT (z OR x)', 'y AND NOT (z OR y)']
    """
    parts: list[str | pa.Array] = []
    for constant, gap, _, _ in Formatter().parse(shape):
        parts.append(constant)
        if gap is not None:
            parts.append(gaps[gap])
    if not any(isinstance(part, pa.Array) for part in parts):
        return pa.array([shape] * count, pa.string())
    return joined(*parts)


def scattered(groups: Iterable[tuple[Indexes, pa.Array]]) -> pa.Array:
    """Put each group's texts at the group's places; all places together are 0, 1, 2 and so on.

    >>> scattered([(np.array([1]), pa.array(["b"])), (np.array([0, 2]), pa.array(["a", "c"]))]).to_pylist()
    ['a', 'b', 'c']
    """
    places, texts = [np.empty(0, np.int64)], [pa.array([], pa.string())]
    for place, text in groups:
        places.append(place)
        texts.append(text)
    order = np.argsort(np.concatenate(places), kind="stable")
    return pa.concat_arrays(texts).take(pa.array(order))


def literals(values: Iterable[Any]) -> pa.Array:
    """Write values as the language's literals.

    >>> literals(["New", 5]).to_pylist()
    ["'New'", '5']
    """
    return pa.array([to_text(value) for value in values], pa.string())


def integers(values: npt.NDArray[np.integer]) -> pa.Array:
    """Write a column of integers as literals."""
    return pa.array(values).cast(pa.string())
