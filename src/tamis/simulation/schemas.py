"""Which schemas do the networks of scenarios keep, and what would break them?

Each says something that relations between filters conclude from: that numbers are whole, that an attribute is always
there, that an event type has subtypes, and attributes of its own. All of them have a place for announcements.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from tamis.language.parser import parse
from tamis.language.schema import Schema

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from tamis.language.expressions import Expression

_ATTRIBUTES = {
    "x": "int",
    "y": "double",
    "z": "int",
    "s": "string",
    **dict.fromkeys(("type", "broker", "client", "key", "filter"), "string"),
}
_HIERARCHY = {"Quote": None, "Stock": "Quote", "Bond": "Quote", "News": None}

SCHEMAS: dict[str, Schema] = {
    "numbers": Schema(_ATTRIBUTES),
    "mandatory": Schema(_ATTRIBUTES, mandatory=["z"]),
    "hierarchy": Schema(_ATTRIBUTES, hierarchy=_HIERARCHY, mandatory_by_type={"Quote": ["x"], "News": ["s"]}),
}
"""By name."""


def fitting(event: dict[str, Any], name: str, chance: Random) -> dict[str, Any]:
    """Return an event made to fit a schema."""
    event = {key: float(each) if key == "y" else each for key, each in event.items()}
    if name == "mandatory":
        event.setdefault("z", chance.randrange(8))
    if name == "hierarchy":
        event["type"] = chance.choice(list(_HIERARCHY))
        event.setdefault(
            "s" if event["type"] == "News" else "x", "a" if event["type"] == "News" else chance.randrange(8)
        )
    return event


def broken(event: dict[str, Any], name: str, chance: Random) -> dict[str, Any]:
    """Return a fitting event made to break a schema, mostly: now and then it can still be read in the right types.

    >>> from random import Random
    >>> SCHEMAS["mandatory"].objection(broken({"x": 1, "z": 2}, "mandatory", Random(1))) is None
    False
    """
    ways: list[Callable[[], dict[str, Any]]] = [
        lambda: event | {"x": chance.randrange(8) + 0.5},
        lambda: event | {"x": True},
        lambda: event | {"y": chance.randrange(8)},  # a whole number, which is read as a double
        lambda: event | {"y": "many"},
        lambda: event | {"colour": "red"},
    ]
    if name == "mandatory":
        ways += 3 * [lambda: {key: each for key, each in event.items() if key != "z"}]
    if name == "hierarchy":
        ways += 3 * [lambda: {key: each for key, each in event.items() if key not in ("x", "s")}]
    return chance.choice(ways)()


@lru_cache(len(SCHEMAS))
def filters(name: str) -> tuple[Expression, ...]:
    """Return filters that are related by what a schema says."""
    texts = ["x > 4", "x >= 5", "x > 4 AND x < 6", "x = 5", "x < 2.5", "x <= 2", "y > 4", "y >= 5", "y = 3 OR y <> 3"]
    texts += ["x IS NOT NULL", "x < 3 OR x > 2", "y IS NOT NULL", "s >= ''", "s IS NOT NULL"]
    if name == "mandatory":
        texts += ["z IS NOT NULL", "z > 3 OR z <= 3", "z > 2 OR z < 5", "z >= 3", "z < 3", "z IS NULL OR x = 1", "TRUE"]
    if name == "hierarchy":
        texts += ["type IS A 'Quote'", "type IN ('Quote', 'Stock', 'Bond')", "type IS A 'Quote' AND x IS NOT NULL"]
        texts += ["type IS A 'Stock' AND x > 4", "type = 'Stock' AND x >= 5", "type IS A 'News' AND s IS NOT NULL"]
        texts += ["type = 'News'", "type IS A 'Bond' AND (x > 3 OR x < 4)", "type = 'Bond'", "NOT (type IS A 'Quote')"]
    return tuple(parse(text) for text in texts)
