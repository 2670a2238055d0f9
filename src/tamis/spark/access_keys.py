"""Which value must an event have for a subscription to have a chance? Partition keys.

`category = 'Thriller' AND ...` can match events of one category only, whatever stands behind the AND. A *key* is an
attribute and the values of which an event must have one; a subscription may have several keys, and may have none. The
rules are safe, not clever: what they do not understand has no key, and is asked about every event.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, TypeAlias

from tamis.language.expressions import And, Attribute, Expression, Or, fold_shared
from tamis.language.ranges import simple as ranges
from tamis.language.ranges.simple import SimplePredicate, simple

if TYPE_CHECKING:
    from tamis.matching.columns import Path

Key: TypeAlias = "float | str"
Keys: TypeAlias = "dict[Path, frozenset[Key]]"

MOST_VALUES = 16
"""A key of more values would put a subscription into too many places."""


def keys_of(expression: Expression) -> Keys:
    """Return the keys of a condition.

    >>> import tamis
    >>> keys_of(tamis.parse("a = 1 AND (b = 'x' OR b IN ('y', 'z') AND c = 2) AND NOT d = 4"))
    {('a',): frozenset({1.0}), ('b',): frozenset({...})}
    """
    return fold_shared(expression, _keys)


def key_of(value: object) -> Key | None:
    """Return what a value is found by: texts by themselves, numbers as doubles, because equal ones are equal doubles.

    >>> key_of(1), key_of("1"), key_of(True)
    (1.0, '1', None)
    """
    if isinstance(value, str):
        return value
    if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        try:
            return float(value) + 0.0  # the two zeros are one
        except OverflowError:
            return None
    return None


def _keys(node: Expression, below: list[Keys]) -> Keys:
    match node:
        case And():
            fewest: Keys = {}
            for keys in below:
                for name, choices in keys.items():
                    if name not in fewest or len(choices) < len(fewest[name]):
                        fewest[name] = choices
            return fewest
        case Or():
            shared = set.intersection(*map(set, below)) if below else set()
            united: Keys = {name: frozenset().union(*(keys[name] for keys in below)) for name in sorted(shared)}
            return {name: choices for name, choices in united.items() if len(choices) <= MOST_VALUES}
    match simple(node):
        case SimplePredicate("=" | ranges.IN, Attribute(path), values, is_negated=False):
            return _one(path, [value for value in values if value is not None])
    return {}


def _one(path: Path, values: list[object]) -> Keys:
    keys = [key_of(value) for value in values]
    if len(keys) > MOST_VALUES or any(key is None for key in keys):
        return {}
    return {path: frozenset(key for key in keys if key is not None)}
