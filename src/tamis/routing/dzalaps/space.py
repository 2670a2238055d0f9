"""Where in space are an event and a subscription? The map from attributes to points of the torus.

A system is about some numeric attributes, each within bounds. An event lies where they say; a subscription that ranks
or filters by the distance to a point lies at that point, and reaches as far as its radius, or its threshold of the
moment. What is not about a distance, or about other attributes, has no place here.

Source: Pripužić 2010, section 6.4 (docs/bibliography.md).
Departs: a filter may ask for more than the distance; only where it is near enough counts for its place. Distances may
have weights.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tamis.language.expressions import And, Compare, Expression, Literal
from tamis.language.parser import parse_term
from tamis.language.values import is_number
from tamis.relations.families import recognised
from tamis.routing.dzalaps.cells import CellGrid
from tamis.routing.dzalaps.merger import Reach
from tamis.routing.errors import ZoneError
from tamis.topk.ranked import Ranked
from tamis.topk.scores import reader

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tamis.language.meaning import Event
    from tamis.routing.dzalaps.cells import Cell
    from tamis.routing.dzalaps.zones import Point


class Space:
    """Attributes with their bounds, and the grid over them.

    >>> import tamis
    >>> space = Space(("x", "y"), resolution=4)
    >>> space.cell({"x": 0.3, "y": 0.6}), space.reach(tamis.parse("euclidean(array(x, y), array(0.5, 0.5)) < 0.1"))
    ((1, 2), Reach(point=(0.5, 0.5), radii=(0.1, 0.1)))
    """

    def __init__(self, attributes: Sequence[str], resolution: int, low: float = 0.0, high: float = 1.0) -> None:
        """Take the attributes, or one that is a vector as `NAME:LENGTH`, and the bounds of all of them."""
        if not math.isfinite(low) or not math.isfinite(high) or not low < high:
            raise ZoneError(f"bounds of space {low!r:.40} and {high!r:.40}", "two numbers, the lower one first")
        self._low, self._side = low, high - low
        name, _, length = attributes[0].partition(":")
        if length and len(attributes) == 1:
            self._inputs: tuple[Expression, ...] = (parse_term(name),)
            dimensions = int(length)
        else:
            self._inputs = tuple(map(parse_term, attributes))
            dimensions = len(self._inputs)
        self.grid = CellGrid(dimensions, resolution)

    @cached_property
    def _readers(self) -> list[Any]:
        return [reader(term) for term in self._inputs]

    @property
    def dimensions(self) -> int:
        """How many axes it has."""
        return self.grid.dimensions

    @property
    def described(self) -> str:
        """What events are about, in words."""
        return ", ".join(map(str, self._inputs))

    def _unit(self, value: Any) -> float:
        return (float(value) - self._low) / self._side

    def point(self, event: Event) -> Point | None:
        """Return where an event lies, None if one of its coordinates is missing or NaN."""
        values: list[Any] = [read(event) for read in self._readers]
        if len(values) == 1 and isinstance(values[0], list | tuple):
            values = list(values[0])
        if len(values) != self.dimensions or not all(map(is_number, values)):
            return None
        point = tuple(map(self._unit, values))
        return None if any(map(math.isnan, point)) else point

    def cell(self, event: Event) -> Cell | None:
        """Return the cell of an event."""
        point = self.point(event)
        return None if point is None else self.grid.cell(tuple(min(max(x, 0.0), 1.0) for x in point))

    def reach(self, wanted: Expression | Ranked, threshold: float = math.inf) -> Reach | None:
        """Return where a subscription lies and how far it reaches, a ranked one by its threshold; None: nowhere."""
        if isinstance(wanted, Ranked):
            return self._ball(wanted.score, threshold) if wanted.is_ascending else None
        match wanted:
            case And(operands):
                balls = [ball for each in operands if (ball := self.reach(each)) is not None]
                return min(balls, key=lambda ball: ball.radii) if balls else None
            case Compare("<" | "<=", score, Literal(radius)) | Compare(">" | ">=", Literal(radius), score):
                return self._ball(score, float(str(radius))) if is_number(radius) else None
        return None

    def _ball(self, score: Expression, radius: float) -> Reach | None:
        family, numbers = recognised(score)
        if family.kind != "euclidean" or family.inputs != self._inputs or family.width != self.dimensions:
            return None
        doubles = tuple(map(float, numbers))
        centre, weights = doubles[: self.dimensions], doubles[self.dimensions :]
        if not all(map(math.isfinite, centre)) or not all(weight >= 0 for weight in weights):
            return None
        radii = (radius / math.sqrt(weight) if weight else math.inf for weight in weights)
        return Reach(tuple(map(self._unit, centre)), tuple(each / self._side for each in radii))
