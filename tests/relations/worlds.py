"""Small worlds, in which every event can be asked: what the relations mean, by definition.

A world is a few attributes with a few values each. Literals come from a pool such that every stretch of values that
they can cut out has a value in the world; whatever two filters of the world have to do with each other is then seen on
its events. A predicate's truth is the reference meaning's, asked for once; connectives are combined for all events
at once, which is what makes hundreds of thousands of pairs possible.
"""

from __future__ import annotations

import datetime as dt
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

import tamis
from tamis.errors import EventError
from tamis.language.expressions import (
    And,
    AtLeast,
    Attribute,
    Between,
    Compare,
    Expression,
    In,
    IsA,
    IsNull,
    Like,
    Literal,
    Not,
    Or,
    Test,
    Xor,
    postorder,
)
from tamis.language.meaning import truth

if TYPE_CHECKING:
    from random import Random

OPERATORS = ("=", "<>", "<", "<=", ">", ">=", "<=>")


class World:
    """Attributes with all their values, the literals to ask about them with, and the schema that they obey."""

    def __init__(
        self,
        values: dict[str, list[Any]],
        literals: dict[str, list[Any]],
        schema: tamis.Schema | None = None,
        types: tuple[str, ...] = (),
    ) -> None:
        self.values = {tuple(name.split(".")): each for name, each in values.items()}
        self.literals = {tuple(name.split(".")): each for name, each in literals.items()}
        self.schema = schema
        self.types = types
        self.paths = list(self.values)
        self._known: dict[Expression, tuple[np.ndarray, np.ndarray]] = {}

    # -- Events

    @cached_property
    def shape(self) -> tuple[int, ...]:
        return tuple(len(self.values[path]) for path in self.paths)

    def event(self, chosen: dict[tuple[str, ...], Any]) -> dict[str, Any] | None:
        """Build an event; None if no event can have these values."""
        event: dict[str, Any] = {}
        for path in sorted(chosen, key=len):
            if chosen[path] is None:
                continue
            at: Any = event
            for name in path[:-1]:
                at = at.setdefault(name, {}) if isinstance(at, dict) else None
            if not isinstance(at, dict):
                return None
            at[path[-1]] = dict(chosen[path]) if isinstance(chosen[path], dict) else chosen[path]
        for path, value in chosen.items():  # an absent record has nothing in it
            if value is None and tamis.language.meaning.attribute_value(event, path) is not None:
                return None
        if self.schema is not None:
            try:
                if self.schema.conform(event) != event:
                    return None
            except EventError:
                return None
        return event

    @cached_property
    def events(self) -> list[dict[str, Any] | None]:
        return [
            self.event(dict(zip(self.paths, chosen, strict=True)))
            for chosen in product(*(self.values[path] for path in self.paths))
        ]

    @cached_property
    def is_event(self) -> np.ndarray:
        return np.array([event is not None for event in self.events]).reshape(self.shape)

    # -- The definition

    def matched(self, expression: Expression) -> np.ndarray:
        """Return, for each event, whether it matches."""
        return self._truths(expression)[0] & self.is_event

    def covers(self, general: Expression, special: Expression) -> bool:
        return not (self.matched(special) & ~self.matched(general)).any()

    def covers_by_set(self, filters: list[Expression], special: Expression) -> bool:
        together = np.logical_or.reduce([self.matched(each) for each in filters]) if filters else False
        return not (self.matched(special) & ~np.asarray(together)).any()

    def overlaps(self, one: Expression, two: Expression) -> bool:
        return bool((self.matched(one) & self.matched(two)).any())

    def identical(self, one: Expression, two: Expression) -> bool:
        return bool((self.matched(one) == self.matched(two)).all())

    def _truths(self, node: Expression) -> tuple[np.ndarray, np.ndarray]:
        """Return where a condition is true, and where it is false."""
        if not isinstance(node, And | Or | Xor | Not | AtLeast):
            return self._predicate(node)
        below = [self._truths(child) for child in node.children]
        true, false = (np.array([each[side] for each in below]) for side in (0, 1))
        match node:
            case And():
                return true.all(0), false.any(0)
            case Or():
                return true.any(0), false.all(0)
            case Not():
                return false[0], true[0]
            case Xor():
                is_known, is_odd = (true | false).all(0), true.sum(0) % 2 == 1
                return is_known & is_odd, is_known & ~is_odd
            case AtLeast(count):
                return true.sum(0) >= count, len(below) - false.sum(0) < count
        raise AssertionError(node)

    def _predicate(self, node: Expression) -> tuple[np.ndarray, np.ndarray]:
        if node not in self._known:
            paths = [path for path in self.paths if Attribute(path) in set(postorder(node))]
            true, false = np.zeros(self.shape, np.bool_), np.zeros(self.shape, np.bool_)
            for numbers in product(*(range(len(self.values[path])) for path in paths)):
                place = [slice(None)] * len(self.paths)
                for path, number in zip(paths, numbers, strict=True):
                    place[self.paths.index(path)] = number
                chosen = {path: self.values[path][number] for path, number in zip(paths, numbers, strict=True)}
                event: Any = {}
                for path in sorted(chosen, key=len):
                    at = event
                    for name in path[:-1]:
                        at = at.setdefault(name, {}) if isinstance(at.get(name, {}), dict) else {}
                    if not (isinstance(chosen[path], dict) and isinstance(at.get(path[-1]), dict)):
                        at[path[-1]] = chosen[path]
                answer = truth(node, event, self.schema)
                true[tuple(place)] = answer is True
                false[tuple(place)] = answer is False
            self._known[node] = (true, false)
        return self._known[node]

    # -- Filters

    def predicate(self, chance: Random) -> Expression:
        path = chance.choice(self.paths)
        attribute, literals = Attribute(path), self.literals[path]
        if self.types and path == ("type",) and chance.random() < 0.5:
            return IsA(attribute, chance.choice(self.types))
        match chance.randrange(12) if literals else 0:
            case 0:
                return IsNull(attribute)
            case 1:
                return In(attribute, tuple(chance.choice(literals) for _ in range(chance.randint(1, 3))))
            case 2:
                same = [each for each in literals if type(each) is type(literals[0])]
                return Between(attribute, Literal(chance.choice(same)), Literal(chance.choice(same)))
            case 3 if self.schema is None:
                return attribute
            case 4 if "b" in literals:
                return Like(attribute, chance.choice(["b%", "b", "%"]))
            case 5 if "b" in literals:
                return Test("startswith", (attribute, Literal("b")))
            case 6 if self.schema is None:
                inner = Compare(chance.choice(OPERATORS), attribute, Literal(chance.choice(literals)))
                other = Attribute(chance.choice(self.paths))
                return chance.choice(
                    [
                        IsNull(inner),
                        Compare("=", inner, other),
                        Compare("<=>", inner, Literal(True)),
                        In(inner, (True, None)),
                    ]
                )
            case 7:
                return Compare(chance.choice(OPERATORS), Literal(chance.choice(literals)), attribute)
            case _:
                return Compare(chance.choice(OPERATORS), attribute, Literal(chance.choice(literals)))

    def filter(self, chance: Random, size: int) -> Expression:
        """Return a filter of so many predicates."""
        if size <= 1:
            found = self.predicate(chance)
            return Not(found) if chance.random() < 0.15 else found
        sizes = [1] * chance.randint(2, min(4, size))
        for _ in range(size - len(sizes)):
            sizes[chance.randrange(len(sizes))] += 1
        operands = tuple(self.filter(chance, each) for each in sizes)
        match chance.randrange(20):
            case 0:
                return Xor(operands)
            case 1:
                return AtLeast(chance.randint(0, len(operands) + 1), operands)
            case 2:
                return Not(And(operands))
            case number if number < 12:
                return And(operands)
            case _:
                return Or(operands)

    def conjunction(self, chance: Random, size: int) -> Expression:
        """Return a conjunction of predicates, or a single one."""
        return And(tuple(self.predicate(chance) for _ in range(size))) if size > 1 else self.predicate(chance)


# Between, below and above the literals 0, 2 and 4 there is a number, and around the text 'b' a text on either side.
_NUMBERS = [-1, 0, 1, 2, 3, 4, 5]
_ANYTHING = [None, *_NUMBERS, "a", "b", "bb", "c", True, False, [], dt.date(2024, 2, 29), {}]
_ASKED = [0, 2, 4, "b", True, None]
_HIERARCHY = {"Quote": None, "StockQuote": "Quote", "News": None}

ANY_TYPES = World({"a": _ANYTHING, "b": _ANYTHING, "c": _ANYTHING}, {"a": _ASKED, "b": _ASKED, "c": _ASKED})
RECORDS = World(
    {name: [None, 1, 2, 3, True, False, "text", {}] for name in ("pos", "pos.x", "pos.x.y", "b")},
    {name: [2] for name in ("pos", "pos.x", "pos.x.y", "b")},
)
TYPED = World(
    {
        "number": _NUMBERS,  # mandatory
        "real": [None, -1.0, 0.0, 1.0, 2.0, 2.2, 2.5, 3.0, 4.0, 5.0],
        "flag": [None, True, False],
        "name": [None, "a", "b", "bb", "c"],
    },
    {"number": [0, 2, 2.5, 4], "real": [0, 2, 2.5, 4.0], "flag": [True, False], "name": ["b"]},
    tamis.Schema({"number": "int", "real": "double", "flag": "bool", "name": "string"}, mandatory=["number"]),
)
EVENT_TYPES = World(
    {
        "type": [None, "Quote", "StockQuote", "News", "other", ""],
        "price": [None, 1, 2, 3],
        "pos": [None, {}],
        "pos.x": [None, 1, 2, 3],
    },
    {"type": ["News", "Quote"], "price": [2], "pos": [], "pos.x": [2]},
    tamis.Schema(
        {"type": "string", "price": "int", "pos": {"x": "int"}},
        hierarchy=_HIERARCHY,
        mandatory_by_type={"Quote": ["price"], "StockQuote": ["pos.x"]},
    ),
    types=tuple(_HIERARCHY),
)
WORLDS = {"any types": ANY_TYPES, "records": RECORDS, "typed": TYPED, "event types": EVENT_TYPES}
