"""Which events belong together? Those of one group: they have equal values in the attributes behind PER.

Values are equal as in the language: 1, 1.0 and a decimal 1 are, and so are two NULLs, two NaNs, and a date and its
midnight; a Boolean never equals a number. Numbers of different types compare exactly.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeAlias

from tamis.language.meaning import attribute_value
from tamis.language.values import instant, value_of

if TYPE_CHECKING:
    from collections.abc import Hashable

    from tamis.matching.columns import Events

Paths: TypeAlias = tuple[tuple[str, ...], ...]
Group: TypeAlias = "tuple[Hashable, ...]"
_KEYS = frozenset({str, int, type(None)})
"""Types whose values are their own keys."""


def group_of(event: Mapping[str, Any], per: Paths) -> Group:
    """Return the group of an event: equal for events of one group, and different for those of two.

    >>> group_of({"user": "ann", "zone": 1}, (("user",), ("zone",), ("shop",)))
    ('ann', 1, None)
    """
    return tuple([_key(attribute_value(event, path)) for path in per])


def groups_of(events: Events, per: Paths) -> list[Group]:
    """Return the group of every event. Where all values are usual it is enough to look at their types at once.

    >>> from tamis.matching.columns import Events
    >>> groups_of(Events([{"user": "ann"}, {}]), (("user",),)), groups_of(Events([{}]), ())
    ([('ann',), (None,)], [()])
    """
    if not per:
        return [()] * events.count
    columns = [_keys(events.values(path)) for path in per]
    return list(zip(*columns, strict=True))


def _keys(values: list[Any]) -> list[Hashable]:
    return values if set(map(type, values)) <= _KEYS else list(map(_key, values))


def _key(value: Any) -> Hashable:
    kind = type(value)
    if kind is str or kind is int or value is None:
        key: Hashable = value
        return key
    if kind is float:
        return ("NaN",) if math.isnan(value) else value
    if kind is bool:
        return ("boolean", value)
    if isinstance(value, Decimal):
        # Python's hashes of equal numbers are equal, whatever their types; a float that equals the decimal does so too.
        return value
    if isinstance(value, dt.date):
        return ("time", instant(value))
    if isinstance(value, Mapping):
        return ("record", frozenset((str(name), _key(value_of(each))) for name, each in value.items()))
    return ("array", tuple(_key(each) for each in value))
