"""How far is it to everybody, at once? Great-circle distances, batched.

`distance(lat, lon, 45.8, 15.97) < 10` is asked by many, each from another place, and each place is an axis of its own.
The axes that ask about the same attributes are encoded together: one loop over all places for an event, or a batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tamis.matching.closures import compiled
from tamis.matching.columnwise import BatchSeries
from tamis.matching.columnwise.places import Centre, Centres, centre_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tamis.language.schema import Schema
    from tamis.matching.axes import Axis
    from tamis.matching.closures import Closure
    from tamis.matching.columns import Events
    from tamis.matching.columnwise.places import Position


class Distances:
    """The axes that are distances of the same attributes from constant places."""

    def __init__(
        self, position: Position, rows: Sequence[int], axes: Sequence[Axis], centres: Sequence[Centre]
    ) -> None:
        self.rows = np.array(rows, np.int64)
        """Which of all axes they are."""
        self._position = position
        self._axes = axes
        self._centres = Centres(centres)
        self._closures: tuple[Schema | None, Closure, Closure] | None = None

    @classmethod
    def among(cls, axes: Sequence[Axis]) -> list[Distances]:
        """Find the distances among some axes.

        >>> from tamis.language.parser import parse
        >>> from tamis.matching.leaves import Leaves
        >>> leaves = Leaves()
        >>> texts = "price < 5", "distance(lat, lon, 45, 16) < 9", "distance(lat, lon, 0, 0) < 9"
        >>> _ = [leaves.leaf(parse(text)) for text in texts]
        >>> [found.rows.tolist() for found in Distances.among(leaves.finished().axes)]
        [[1, 2]]
        """
        by_position: dict[Position, list[tuple[int, Axis, Centre]]] = {}
        for row, axis in enumerate(axes):
            about = centre_of(axis.key.term) if axis.is_of_numbers else None
            if about is not None:
                position, place = about
                limits = [float(operand) + 0.0 for operand in axis.operands]
                by_position.setdefault(position, []).append((row, axis, Centre(*place, limits)))
        return [cls(position, *zip(*each, strict=True)) for position, each in by_position.items()]

    def write_codes(self, events: Events, schema: Schema | None, codes: npt.NDArray[Any]) -> None:
        """Write the codes of all events into the rows of these axes."""
        whereabouts = BatchSeries.of(events, schema).whereabouts(self._position)
        self._centres.write_codes(whereabouts, self.rows, codes, self._code)

    def event_codes(self, event: Mapping[str, Any], schema: Schema | None) -> npt.NDArray[np.uint32]:
        """Return the codes of one event, in the order of the rows."""
        closures = self._closures
        if closures is None or closures[0] is not schema:
            latitude, longitude = (compiled(term, schema) for term in self._position)
            closures = self._closures = schema, latitude, longitude
        return self._centres.event_codes(closures[1](event), closures[2](event), self._code)

    def _code(self, centre: int, distance: float) -> int:
        return self._axes[centre].code(distance)
