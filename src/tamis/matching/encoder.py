"""How does a single event become codes, with as little ceremony as Python allows? The encoder of single events.

Most axes are attributes compared with integers or texts. An integer is one look into the event and one into a table of
codes; a text was mostly seen before, and the axis remembers its code. Everything else goes the long way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tamis.language.expressions import Attribute
from tamis.language.values import value_of
from tamis.matching.axes import REMEMBERED_TYPES, TRUTH
from tamis.matching.distances import Distances

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tamis.language.schema import Schema
    from tamis.matching.axes import Axis, Codes


class Encoder:
    """Turns events into codes, one for each of some axes.

    >>> from tamis.language.parser import parse
    >>> from tamis.matching.leaves import Leaves
    >>> leaves = Leaves()
    >>> _ = [leaves.leaf(parse(text)) for text in ("price < 20", "price > 10", "format = 'audio'")]
    >>> Encoder(leaves.finished().axes, None).codes({"price": 15})
    [3, 0]
    """

    __slots__ = ("_distances", "_integers", "_others", "_plain", "_schema", "_zeros")

    def __init__(
        self, axes: Sequence[Axis], schema: Schema | None, distances: Sequence[Distances] | None = None
    ) -> None:
        self._schema = schema
        self._distances = Distances.among(axes) if distances is None else distances
        together = {row for each in self._distances for row in each.rows.tolist()}
        self._zeros = [0] * len(axes)
        self._plain: list[tuple[int, str, type | None, dict[Any, int], Axis]] = []
        self._integers: list[tuple[int, str, int, int, memoryview, Axis]] = []
        self._others: list[tuple[int, Axis]] = []
        for position, axis in enumerate(axes):
            term, kind = axis.key.term, axis.key.kind
            if isinstance(term, Attribute) and len(term.path) == 1 and kind != TRUTH:
                table = axis.table_of_integers()
                if table is not None:
                    self._integers.append((position, term.path[0], table[0], len(table[1]) - 1, table[1], axis))
                    continue
                self._plain.append((position, term.path[0], REMEMBERED_TYPES.get(kind), axis.remembered, axis))
            elif position not in together:
                self._others.append((position, axis))

    def codes(self, event: Mapping[str, Any]) -> list[int] | Codes:
        """Return the code of an event on every axis."""
        codes = self._zeros.copy()
        get = event.get
        for position, name, base, last, table, axis in self._integers:
            value = get(name)
            if type(value) is int:
                place = value - base
                codes[position] = table[place] if 0 <= place <= last else axis.code(value_of(value))
            elif value is not None:
                codes[position] = axis.code(value_of(value))
        for position, name, kind, remembered, axis in self._plain:
            value = get(name)
            if value is None:
                continue
            code = remembered.get(value) if type(value) is kind else None
            codes[position] = axis.code(value_of(value)) if code is None else code
        for position, axis in self._others:
            codes[position] = axis.event_code(event, self._schema)
        if not self._distances:
            return codes
        array = np.array(codes, np.uint32)
        for distances in self._distances:
            array[distances.rows] = distances.event_codes(event, self._schema)
        return array
