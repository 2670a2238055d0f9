"""What is a filter to somebody who compares it with others? A formula: a shared graph over sets and facts.

A formula is a monotone tree over *facts* that hold for an event or do not: a term has a value of some set (`Within`),
or a predicate that is not a set is true, or is not (`Fact`). There is no third truth value: "the predicate is true" and
"the predicate is false" are two facts, and neither may hold. So a formula has a complement, "the event does not
match", which SQL's NOT does not say.

Formulas are made by `all_of`, `any_of` and `at_least`, which join the sets of one term as they go: AND intersects
them, OR unites them. Nothing recurses here, and a formula may be a graph whose tree is far larger than itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

from tamis.language.expressions import fold_shared
from tamis.language.ranges.value_sets import Values, difference, intersection_of, union_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tamis.language.expressions import Expression
    from tamis.relations.domains import TermAxis

T = TypeVar("T")

HEAVIEST = 1 << 30


class Formula:
    """A node. Equal formulas are equal however their operands are ordered."""

    __slots__ = ("_hash", "_inverse", "depth", "weight")
    _hash: int
    _inverse: Formula | None
    """Its opposite, once somebody asked for it."""
    depth: int
    """How many junctions stand above its deepest leaf."""
    weight: int
    """How many nodes its tree has, at most `HEAVIEST`: shared ones count as often as they occur."""

    @property
    def children(self) -> tuple[Formula, ...]:
        """The formulas that this one is made of."""
        return ()

    def _label(self) -> object:
        return None

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Formula):
            return NotImplemented
        if self._hash != other._hash:
            return False
        pairs: list[tuple[Formula, Formula]] = [(self, other)]
        seen: set[tuple[int, int]] = set()
        while pairs:
            one, two = pairs.pop()
            if one is two:
                continue
            if one._hash != two._hash or type(one) is not type(two) or one._label() != two._label():
                return False
            if len(one.children) != len(two.children):
                return False
            if one.children and (id(one), id(two)) not in seen:
                seen.add((id(one), id(two)))
                # Should two children ever have one hash, they may be paired wrongly: then equals count as different.
                pairs.extend(zip(sorted(one.children, key=hash), sorted(two.children, key=hash), strict=True))
        return True


class Constant(Formula):
    """Always, or never."""

    __slots__ = ("is_true",)

    def __init__(self, is_true: bool) -> None:
        self.is_true = is_true
        self._hash = hash(("constant", is_true))
        self.depth = 0
        self.weight = 1
        self._inverse = None

    def _label(self) -> bool:
        return self.is_true

    def __repr__(self) -> str:
        return "always" if self.is_true else "never"


ALWAYS: Final = Constant(True)
NEVER: Final = Constant(False)


class Within(Formula):
    """The axis has one of these values."""

    __slots__ = ("axis", "values")

    def __init__(self, axis: TermAxis, values: Values) -> None:
        self.axis = axis
        self.values = values
        self._hash = hash((axis, values))
        self.depth = 0
        self.weight = 1
        self._inverse = None

    def _label(self) -> tuple[TermAxis, Values]:
        return self.axis, self.values

    def __repr__(self) -> str:
        return f"({self.axis.term} in {self.values})"


class Fact(Formula):
    """A predicate is true (or false, as `truth` says), or it is not so."""

    __slots__ = ("is_so", "predicate", "truth")

    def __init__(self, predicate: Expression, truth: bool, is_so: bool = True) -> None:
        self.predicate = predicate
        self.truth = truth
        self.is_so = is_so
        self._hash = hash((predicate, truth, is_so))
        self.depth = 0
        self.weight = 1
        self._inverse = None

    def _label(self) -> tuple[Expression, bool, bool]:
        return self.predicate, self.truth, self.is_so

    def __repr__(self) -> str:
        return f"({self.predicate} is {'' if self.is_so else 'not '}{self.truth})"


class _FormulaJunction(Formula):
    __slots__ = ("_children",)

    def __init__(self, children: tuple[Formula, ...]) -> None:
        self._children = children
        self._hash = hash((type(self).__name__, frozenset(child._hash for child in children)))
        self.depth = 1 + max(child.depth for child in children)
        self.weight = min(HEAVIEST, 1 + sum(child.weight for child in children))
        self._inverse = None

    @property
    def children(self) -> tuple[Formula, ...]:
        return self._children

    def __repr__(self) -> str:
        return f"{type(self).__name__}{self._children!r}"


class Conjunction(_FormulaJunction):
    """All of them hold."""

    __slots__ = ()


class Disjunction(_FormulaJunction):
    """At least one of them holds."""

    __slots__ = ()


class Threshold(_FormulaJunction):
    """At least `count` of them hold, of which some may be equal."""

    __slots__ = ("count",)

    def __init__(self, count: int, children: tuple[Formula, ...]) -> None:
        super().__init__(children)
        self.count = count
        self._hash = hash(("at least", count, self._hash))

    def _label(self) -> int:
        return self.count


# -- Construction


def within(axis: TermAxis, values: Values) -> Formula:
    """The axis has one of these values, which are all among its own."""
    if not values:
        return NEVER
    return ALWAYS if values == axis.values else Within(axis, values)


def all_of(operands: Iterable[Formula]) -> Formula:
    """All of these hold; the sets of one axis are intersected."""
    return _joined(operands, Conjunction)


def any_of(operands: Iterable[Formula]) -> Formula:
    """At least one of these holds; the sets of one axis are united."""
    return _joined(operands, Disjunction)


def _joined(operands: Iterable[Formula], kind: type[Conjunction] | type[Disjunction]) -> Formula:
    neutral, absorbing = (ALWAYS, NEVER) if kind is Conjunction else (NEVER, ALWAYS)
    sets: dict[TermAxis, list[Within]] = {}
    places: dict[Formula | TermAxis, None] = {}  # an axis stands where the first set of it stood
    for operand in operands:
        for each in operand.children if type(operand) is kind else (operand,):
            if each is absorbing:
                return absorbing
            if isinstance(each, Within):
                sets.setdefault(each.axis, []).append(each)
                places[each.axis] = None
            elif each is not neutral:
                places[each] = None
    children: list[Formula] = []
    for place in places:
        if isinstance(place, Formula):
            if isinstance(place, Fact) and _clashes(place, places, kind):
                return absorbing
            children.append(place)
            continue
        joined = sets[place][0] if len(sets[place]) == 1 else _one_set(sets[place], kind)
        if joined is absorbing:
            return absorbing
        if joined is not neutral:
            children.append(joined)
    return kind(tuple(children)) if len(children) > 1 else children[0] if children else neutral


def _one_set(sets: list[Within], kind: type[Conjunction] | type[Disjunction]) -> Formula:
    join = intersection_of if kind is Conjunction else union_of
    return within(sets[0].axis, join(*(each.values for each in sets)))


def _clashes(fact: Fact, company: dict[Formula | TermAxis, None], kind: type[Conjunction] | type[Disjunction]) -> bool:
    """Do this fact and one beside it make a contradiction in an AND, or a tautology in an OR?"""
    if Fact(fact.predicate, fact.truth, not fact.is_so) in company:
        return True
    return kind is Conjunction and fact.is_so and Fact(fact.predicate, not fact.truth) in company


def at_least(count: int, operands: Iterable[Formula]) -> Formula:
    """At least so many of these hold."""
    children = [operand for operand in operands if operand is not NEVER]
    count -= sum(child is ALWAYS for child in children)
    children = [child for child in children if child is not ALWAYS]
    if count <= 0:
        return ALWAYS
    if count > len(children):
        return NEVER
    if count == len(children):
        return all_of(children)
    return any_of(children) if count == 1 else Threshold(count, tuple(children))


# -- Walks


def fold(root: Formula, combine: Callable[[Formula, list[T]], T]) -> T:
    """Compute a value bottom-up, once for each distinct node."""
    return fold_shared(root, combine) if root.children else combine(root, [])


def opposite(formula: Formula) -> Formula:
    """Return what holds just where the formula does not.

    >>> opposite(ALWAYS)
    never
    """
    # Each node knows its opposite, and that one knows the node: the opposite of an opposite is not a new graph, which
    # in conditions about conditions would double with every level.
    stack = [formula]
    while stack:
        node = stack[-1]
        missing = [child for child in node.children if child._inverse is None]
        if missing and node._inverse is None:
            stack.extend(missing)
            continue
        stack.pop()
        if node._inverse is None:
            node._inverse = made = _opposite(node, [_known_opposite(child) for child in node.children])
            if made._inverse is None and made.children:
                made._inverse = node
    return _known_opposite(formula)


def _known_opposite(formula: Formula) -> Formula:
    assert formula._inverse is not None
    return formula._inverse


def _opposite(node: Formula, below: list[Formula]) -> Formula:
    match node:
        case Constant():
            return NEVER if node.is_true else ALWAYS
        case Within():
            return within(node.axis, difference(node.axis.values, node.values))
        case Fact():
            return Fact(node.predicate, node.truth, not node.is_so)
        case Conjunction():
            return any_of(below)
        case Disjunction():
            return all_of(below)
        case Threshold():
            return at_least(len(below) - node.count + 1, below)
    raise AssertionError(f"a formula of an unknown class: {type(node).__name__}")


def leaves(formula: Formula) -> Iterable[Within | Fact]:
    """Yield the distinct leaves of a formula."""
    seen: set[int] = set()
    stack = [formula]
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, Within | Fact):
            yield node
        stack.extend(node.children)
