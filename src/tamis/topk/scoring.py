"""What are the keys of one event for all subscriptions of a family?

A *group* holds the numbers of its subscriptions in columns, so that one loop over an event's coordinates gives all
keys. The keys are those of the definition (`scores.key`), bit for bit: doubles are combined in the same order with the
same operations, and sums of exact numbers are added up as scaled integers as long as those are exact in a double. Where
they are not (integers beyond 2⁵³, decimals of many digits), the reference meaning is asked, subscription by
subscription.
"""

from __future__ import annotations

import math
from decimal import Context, Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from tamis.language.values import is_number
from tamis.relations.families import ONE, Family, Number
from tamis.topk import kernels
from tamis.topk.ageing import AGED, aged, published_at
from tamis.topk.kernels import Floats, ScoreTable
from tamis.topk.scores import as_score, key, reader

if TYPE_CHECKING:
    from tamis.language.meaning import Event
    from tamis.language.schema import Schema
    from tamis.topk.ranked import Ranked

_KINDS = {
    "shared": kernels.LINEAR,
    AGED: kernels.LINEAR,
    "linear": kernels.LINEAR,
    "euclidean": kernels.EUCLIDEAN,
    "geographic": kernels.GEOGRAPHIC,
    "box": kernels.BOX,
    "city": kernels.CITY,
    "cosine": kernels.COSINE,
}
_MOST_WHOLE_LITERAL, _MOST_WHOLE = 2**20, 2**31
"""Gaps between whole numbers so small, times weights so small, are exact in a double, and so are sums of them."""
_EXACT = 2.0**53
_MOST_DIGITS = 22
"""10**22 is the last power of ten that is a double."""
TWO = 2.0


class Group:
    """The subscriptions of one family, each in a slot of its own."""

    def __init__(self, family: Family, schema: Schema | None = None) -> None:
        self.family = family
        self.kind = _KINDS[family.kind]
        self.sign = float(family.sign)
        self.width = family.width
        width = self.width
        self.rows, self.coordinate_rows, self.mode_row = {
            kernels.LINEAR: (2 * width + 1, 2 * width + 2, 2 * width + 1),
            kernels.EUCLIDEAN: (2 * width, width, None),
            kernels.GEOGRAPHIC: (6, 6, None),
            kernels.BOX: (2 * width, width + 1, width),
            kernels.CITY: (2 * width, width + 1, width),
            kernels.COSINE: (2 * width + 1, 2 * width + 1, None),
        }[self.kind]
        self._are_doubles = self._are_small = True
        """Whether all numbers of a BOX or CITY are doubles, or else small whole numbers."""
        self._schema = schema
        self._readers = [None if term is ONE else reader(term, schema) for term in family.inputs]
        self.slots = 0
        """How many slots are or were in use; the arrays may be longer."""
        self.scores = ScoreTable(
            self.kind, self.sign, self.width, TWO, np.full((self.rows, 0), math.nan), np.full(0, math.nan)
        )
        """What the compiled loops know of them; another one once it has grown."""
        self._ranked: list[Ranked | None] = []
        self._free: list[int] = []
        self._largest = np.zeros(self.width)
        self._digits = 0
        self._scratch = np.full((self.coordinate_rows, 1), math.nan)

    def __len__(self) -> int:
        return self.slots - len(self._free)

    @property
    def numbers(self) -> Floats:
        """The numbers of its subscriptions, a column each."""
        return self.scores.numbers

    def add(self, ranked: Ranked, numbers: tuple[Number, ...]) -> int:
        """Give a subscription a slot."""
        if self._free:
            slot = self._free.pop()
        else:
            slot = self.slots
            self.slots += 1
            self._ranked.append(None)
            if slot >= self.numbers.shape[1]:
                self._grow(max(16, 2 * self.slots))
        self._ranked[slot] = ranked
        self.numbers[:, slot] = self._column(numbers)
        return slot

    def remove(self, slot: int) -> None:
        """Free a slot. Its numbers become NaN, so that nothing is near it."""
        self.numbers[:, slot] = math.nan
        self._ranked[slot] = None
        self._free.append(slot)

    def _grow(self, capacity: int) -> None:
        grown = np.full((self.rows, capacity), math.nan)
        grown[:, : self.numbers.shape[1]] = self.numbers
        self.scores = self.scores._replace(numbers=grown, given=np.full(capacity, math.nan))

    def _column(self, numbers: tuple[Number, ...]) -> list[float]:
        doubles = [float(number) for number in numbers]
        if self.kind == kernels.EUCLIDEAN:
            # What the language gives NULL for: a weight that is negative.
            return doubles if all(weight >= 0 for weight in doubles[self.width :]) else [math.nan] * self.rows
        if self.kind == kernels.GEOGRAPHIC:
            return _place(*doubles)
        if self.kind == kernels.COSINE:
            return _direction(doubles)
        if self.kind in (kernels.BOX, kernels.CITY):
            self._are_doubles &= all(isinstance(number, float) for number in numbers if number != 1)
            self._are_small &= all(
                isinstance(number, float) or (isinstance(number, int) and abs(number) <= _MOST_WHOLE_LITERAL)
                for number in numbers
            )
            return doubles
        digits = max((_digits(number) for number in numbers if not isinstance(number, float)), default=0)
        scaled = [math.nan if isinstance(number, float) else _scaled(number, digits) for number in numbers]
        self._digits = max(self._digits, digits)
        self._largest = np.fmax(self._largest, np.abs(scaled))
        return [*doubles, *scaled, 10.0 ** min(digits, _MOST_DIGITS)]

    # -- Events

    def read(self, event: Event, coordinates: Floats, place: int) -> bool:
        """Write an event's coordinates into a column. Return whether its keys were computed one by one (`given`)."""
        if self.kind == kernels.LINEAR:
            return self._read_linear(event, coordinates, place)
        values = [read(event) for read in self._readers if read is not None]
        if self.kind in (kernels.BOX, kernels.CITY):
            return self._read_gaps(event, values, coordinates, place)
        if self.kind in (kernels.EUCLIDEAN, kernels.COSINE):
            if len(values) == 1 and isinstance(values[0], list):
                values = values[0]
            is_vector = len(values) == self.width and all(map(is_number, values))
            if self.kind == kernels.COSINE:
                coordinates[:, place] = _direction([float(value) for value in values]) if is_vector else math.nan
                return False
            coordinates[:, place] = [float(value) for value in values] if is_vector else math.nan
        else:
            coordinates[:, place] = _place(*map(float, values)) if all(map(is_number, values)) else math.nan
        return False

    def _read_linear(self, event: Event, coordinates: Floats, place: int) -> bool:
        width = self.width
        if self.family.kind == "shared":
            (read,) = self._readers
            assert read is not None
            coordinates[:, place] = (as_score(read(event)), math.nan, 1.0, kernels.PLAIN)
            return False
        if self.family.kind == AGED:
            score, half_life, sign = (read(event) for read in self._readers if read is not None)
            value = aged(as_score(score), published_at(event), half_life, is_ascending=sign > 0)
            coordinates[:, place] = (value, math.nan, 1.0, kernels.PLAIN)
            return False
        values: list[Any] = [1 if read is None else read(event) for read in self._readers]
        if not all(map(is_number, values)):
            coordinates[:, place] = math.nan
            coordinates[2 * width + 1, place] = kernels.PLAIN
            return False
        coordinates[:width, place] = [float(value) for value in values]
        exact = [
            value
            for value, read in zip(values, self._readers, strict=True)
            if read is not None and not isinstance(value, float)
        ]
        coordinates[width : 2 * width, place] = math.nan
        coordinates[2 * width, place] = 1.0
        coordinates[2 * width + 1, place] = kernels.PLAIN
        if not exact:
            return False
        digits = max(map(_digits, exact))
        scaled = np.array([math.nan if isinstance(value, float) else _scaled(value, digits) for value in values])
        with np.errstate(invalid="ignore"):  # nothing times infinity: NaN, and so not exact
            largest_sum = float((np.abs(scaled) * self._largest)[~np.isnan(scaled)].sum())
        if digits + self._digits <= _MOST_DIGITS and largest_sum < _EXACT:
            coordinates[width : 2 * width, place] = scaled
            coordinates[2 * width, place] = 10.0**digits
            coordinates[2 * width + 1, place] = kernels.MIXED
            return False
        coordinates[2 * width + 1, place] = kernels.GIVEN
        self._give(event)
        return True

    def _read_gaps(self, event: Event, values: list[Any], coordinates: Floats, place: int) -> bool:
        coordinates[self.width, place] = kernels.PLAIN
        present = [value for value in values if value is not None]
        if not present or (self.kind == kernels.CITY and not all(map(is_number, values))):
            coordinates[: self.width, place] = math.nan  # a sum with NULL is NULL
            return False
        # The greatest leaves NULL out, and NaN is greater than all; what is exact is not computed in doubles.
        if len(present) == len(values) and all(map(self._is_plain_value, values)):
            coordinates[: self.width, place] = [float(value) for value in values]
            return False
        coordinates[: self.width, place] = math.nan
        coordinates[self.width, place] = kernels.GIVEN
        self._give(event)
        return True

    def _is_plain_value(self, value: Any) -> bool:
        if isinstance(value, float):
            return value == value
        if not is_number(value):
            return False
        if self._are_doubles:
            return True
        return self._are_small and isinstance(value, int) and abs(value) <= _MOST_WHOLE

    def _give(self, event: Event) -> None:
        """Compute the keys of an event one by one."""
        for slot in range(self.slots):
            ranked = self._ranked[slot]
            self.scores.given[slot] = math.nan if ranked is None else key(ranked, event, self._schema)

    def is_plain(self, coordinates: Floats, place: int) -> bool:
        """Are the keys of an event computed in doubles, as indexes take for granted?"""
        return self.mode_row is None or bool(coordinates[self.mode_row, place] == kernels.PLAIN)

    def keys(self, event: Event) -> Floats:
        """Return the keys of an event for all slots."""
        self.read(event, self._scratch, 0)
        written = np.empty(self.slots)
        kernels.keys_of_event(self.scores, self._scratch, 0, written)
        return written


def _digits(number: int | Decimal | float) -> int:
    """How many digits a number has behind the point."""
    return max(0, -int(number.as_tuple().exponent)) if isinstance(number, Decimal) else 0


def _scaled(number: int | Decimal | float, digits: int) -> float:
    """Return the number times a power of ten as a double, infinite where it might not be exact."""
    scaled = int(Decimal(number).scaleb(digits, _WIDE))
    return float(scaled) if abs(scaled) < _EXACT else math.inf


_WIDE = Context(prec=400)


def _direction(vector: list[float]) -> list[float]:
    """Return a vector, its length as the language computes it, and the unit vector of its direction."""
    squared = 0.0
    for each in vector:
        squared += each * each
    length = math.sqrt(squared) if squared >= 0 else math.nan
    if length == 0:
        return [math.nan] * (2 * len(vector) + 1)  # no direction: the language gives NULL
    is_direction = length < math.inf
    return [*vector, length, *(each / length if is_direction else math.nan for each in vector)]


def _place(latitude: float, longitude: float) -> list[float]:
    """Return a place on the earth: unit vector, latitude in radians, its cosine, longitude in degrees."""
    if not (abs(latitude) <= 90 and abs(longitude) <= 360):
        return [math.nan] * 6
    phi, rotation = math.radians(latitude), math.radians(longitude)
    level = math.cos(phi)
    return [level * math.cos(rotation), level * math.sin(rotation), math.sin(phi), phi, level, longitude]
