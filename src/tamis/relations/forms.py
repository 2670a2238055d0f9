"""What is computed once of a filter, to compare it with many? Cached summaries of a filter.

A *form* is a filter's formula and what the quick tests want to know of it: its box if it is a conjunction of sets (one
set of values for each term), and its hull (for each term, values outside of which the filter is never true). Forms
of one schema live in one context, share their axes, and are remembered, because brokers ask about the same
filters again and again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from tamis.language.checking import check
from tamis.language.expressions import Attribute, Expression, is_condition
from tamis.language.measures import size
from tamis.language.parser import parse
from tamis.language.ranges.lines import NULL, RECORD, Cut, cut_at, last_value
from tamis.language.ranges.value_sets import Values, intersection, is_member, stretches
from tamis.relations.clauses import Clauses, around, clauses
from tamis.relations.domains import TermAxis, axis_of, paths_of
from tamis.relations.enclosures import enclosure
from tamis.relations.errors import NotAFilterError
from tamis.relations.formulas import (
    ALWAYS,
    NEVER,
    Conjunction,
    Disjunction,
    Fact,
    Formula,
    Threshold,
    Within,
    fold,
    leaves,
    opposite,
)
from tamis.relations.translation import Translator

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tamis.language.schema import Schema

Box: TypeAlias = dict[TermAxis, Values]
Corner: TypeAlias = dict[TermAxis, Cut]
"""A place in a box: for some attributes, the cut before their value."""

Projection: TypeAlias = frozenset[tuple[TermAxis, Values]]
"""For each attribute that is not free, the values that it has in some events."""
Projections: TypeAlias = frozenset[tuple[TermAxis | None, Projection | None]]
"""The projection of all events that match (None), and of those in which one attribute has its least value."""
_MOST_BOXES = 3

_MOST_FORMS = 1 << 14
_MOST_CONTEXTS = 16


class Form:
    """A filter, prepared for comparison."""

    __slots__ = (
        "_clauses",
        "_corners",
        "_hull",
        "_opposite",
        "_paths",
        "_projections",
        "_size",
        "axes",
        "box",
        "context",
        "expression",
        "facts",
        "formula",
        "is_flat",
        "is_plain",
    )

    def __init__(self, expression: Expression, formula: Formula, context: Context) -> None:
        self.expression = expression
        self.formula = formula
        self.context = context
        self.box = _box(formula)
        """The set of each term, if the filter says no more than that; None otherwise."""
        if self.box is not None:
            self.axes: frozenset[TermAxis] = frozenset(self.box)
            self.facts: frozenset[Fact] = frozenset()
        else:
            predicates = list(leaves(formula))
            self.axes = frozenset(leaf.axis for leaf in predicates if isinstance(leaf, Within))
            self.facts = frozenset(leaf for leaf in predicates if isinstance(leaf, Fact))
        self.is_plain = not self.facts and all(axis.is_plain for axis in self.axes)
        """Is it about attributes alone, each by itself?"""
        self.is_flat = context.has_free_types and not any(axis.is_nested for axis in self.axes)
        """Is it seen at once that its attributes are independent, of each other and of others that lie in no record?"""
        self._hull: Box | None = None
        self._opposite: Formula | None = None
        self._clauses: Clauses | None = None
        self._corners: list[Corner] | None = None
        self._paths: frozenset[tuple[str, ...]] | None = None
        self._projections: Projections | None = None
        self._size: int | None = None

    @property
    def paths(self) -> frozenset[tuple[str, ...]]:
        """The attributes that its terms and facts mention.

        >>> sorted(context_of(None).form("a > 5 AND (b LIKE '%x%y' OR length(c) = 2)").paths)
        [('a',), ('b',), ('c',)]
        """
        if self._paths is None:
            predicates = {fact.predicate for fact in self.facts}
            self._paths = frozenset().union(
                *(axis.paths for axis in self.axes), *map(self.context.paths_of, predicates)
            )
        return self._paths

    @property
    def size(self) -> int:
        """How many nodes the filter's tree has: what it takes to evaluate it."""
        if self._size is None:
            self._size = size(self.expression)
        return self._size

    @property
    def is_never(self) -> bool:
        """Is it seen at once that nothing matches?"""
        return self.formula is NEVER

    @property
    def hull(self) -> Box:
        """For each attribute or term, values without which the filter is not true; terms that may be anything left out.

        >>> import tamis
        >>> form = context_of(None).form("a = 1 AND (b = 2 OR c = 3)")
        >>> [str(axis.term) for axis in form.hull]
        ['a']
        """
        if self._hull is None:
            self._hull = self.box if self.box is not None and self.is_plain else self.context.hull(self.formula)
        return self._hull

    @property
    def clauses(self) -> Clauses:
        """Boxes in which everything lies that the filter matches, and whether they are just that."""
        if self._clauses is None:
            is_box = self.box is not None and self.is_plain
            self._clauses = ([self.box or {}], True) if is_box else clauses(self.formula, self.context)
        return self._clauses

    @property
    def corners(self) -> list[Corner]:
        """Events that the filter matches, if its clauses are just what it matches; attributes not named are absent.

        An attribute that a schema does not let be absent has its least value instead.
        """
        if self._corners is None:
            boxes, is_exact = self.clauses
            if is_exact and self.is_independent:
                some = boxes if len(boxes) <= _MOST_BOXES else [boxes[0], boxes[len(boxes) // 2], boxes[-1]]
                corners = [*map(_least_corner, some), *map(_greatest_corner, some)]
                self._corners = [self.context.with_records(corner) for corner in corners]
            else:
                self._corners = []
        return self._corners

    @property
    def projections(self) -> Projections | None:
        """Which values attributes have in events that match, and in those where one of them is absent; None if unknown.

        These are not bounds: each value occurs in such an event. So filters that match the same have the same
        projections, however they are written, and those that have others need not be compared. They are known where
        clauses are exact and attributes independent: a clause is a box then, and no side of it is empty.

        >>> texts = "a = 1 AND b < 3 OR a = 2", "a IN (1, 2) AND (a = 2 OR b < 3)", "a = 1", "a = 1 OR b = 1"
        >>> one, two, *others = [context_of(None).form(text).projections for text in texts]
        >>> one == two, one in others, others[0] == others[1]
        (True, False, False)
        >>> context_of(None).form("length(s) = 1").projections is None
        True
        """
        if self._projections is None and self.is_plain and self.is_flat:
            boxes, is_exact = self.clauses
            if is_exact:
                self._projections = _projections(boxes)
        return self._projections

    @property
    def is_independent(self) -> bool:
        """Can each attribute have each of its values, whatever the others have?"""
        return are_independent(self.axes, self.context.schema)

    @property
    def opposite(self) -> Formula:
        """What holds where the filter does not match."""
        if self._opposite is None:
            self._opposite = opposite(self.formula)
        return self._opposite


def are_independent(axes: Iterable[TermAxis], schema: Schema | None) -> bool:
    """Can each of these attributes have each of its values, whatever the others have?"""
    if schema is not None and schema.mandatory_by_type:
        return False
    paths = {axis.term.path for axis in axes if isinstance(axis.term, Attribute)}
    nested = [path for path in paths if len(path) > 1]
    return not any(path[:length] in paths for path in nested for length in range(1, len(path)))


def _least_corner(box: Box) -> Corner:
    """Return the place in a box where every attribute has its least value; what may be absent is."""
    return {axis: values[0] for axis, values in box.items() if values[0] != (NULL,)}


def _greatest_corner(box: Box) -> Corner:
    """Return a place in a box where every attribute has its greatest value, or one of the greatest texts."""
    corner: Corner = {}
    for axis, values in box.items():
        if values[-1] != (NULL + 1,):
            *_, (low, high) = stretches(values[-2:])
            corner[axis] = cut_at(last_value(low, high, axis.line), axis.line)
    return corner


def _projections(boxes: list[Box]) -> Projections:
    """Return the projections of all that lies in some boxes.

    An attribute that does not matter must leave no trace, because another wording need not name it. If it has its least
    value (mostly, if it is absent), all the others have the same values as without that, and this is not noted.
    """
    if not boxes:
        return frozenset()
    whole = around(boxes)
    projections: set[tuple[TermAxis | None, Projection | None]] = {(None, frozenset(whole.items()))}
    for axis in set[TermAxis]().union(*boxes):
        least = axis.values[0]
        rest = [box for box in boxes if axis not in box or is_member(least, box[axis])]
        if not rest:
            projections.add((axis, None))
        elif len(rest) < len(boxes):
            others = around(rest)
            others.pop(axis, None)
            if others != {each: values for each, values in whole.items() if each is not axis}:
                projections.add((axis, frozenset(others.items())))
    return frozenset(projections)


def _box(formula: Formula) -> Box | None:
    if isinstance(formula, Within):
        return {formula.axis: formula.values}
    if formula is ALWAYS:
        return {}
    if not isinstance(formula, Conjunction):
        return None
    box: Box = {}
    for child in formula.children:
        if not isinstance(child, Within):
            return None
        box[child.axis] = child.values
    return box


class Context:
    """The axes of one schema, and the filters seen with it."""

    def __init__(self, schema: Schema | None) -> None:
        self.schema = schema
        self.has_free_types = schema is None or not schema.mandatory_by_type
        """Does the type of an event not say which attributes it has?"""
        self._axes: dict[Expression, TermAxis] = {}
        self._orders: dict[Expression, TermAxis] = {}
        self._translate = Translator(schema, self.axis, self._order_axis)
        self._forms: dict[str | Expression, Form] = {}
        self._older: dict[str | Expression, Form] = {}
        self._paths: dict[Expression, frozenset[tuple[str, ...]]] = {}

    def axis(self, term: Expression) -> TermAxis:
        """Return the axis of a term."""
        term_axis = self._axes.get(term)
        return term_axis if term_axis is not None else self._axes.setdefault(term, axis_of(term, self.schema))

    def _order_axis(self, pair: Expression) -> TermAxis:
        order_axis = self._orders.get(pair)
        return order_axis if order_axis is not None else self._orders.setdefault(pair, TermAxis.of_order(pair))

    def paths_of(self, predicate: Expression) -> frozenset[tuple[str, ...]]:
        """Return the attributes that a predicate mentions; a long one is not read again for every question."""
        paths = self._paths.get(predicate)
        if paths is None:
            if len(self._paths) >= _MOST_FORMS:
                self._paths.clear()
            paths = self._paths[predicate] = paths_of(predicate)
        return paths

    def form(self, given: str | Expression) -> Form:
        """Return the form of a filter, a text or an expression."""
        form = self._forms.get(given) if isinstance(given, str | Expression) else None
        if form is None:
            form = self._older.get(given) if isinstance(given, str | Expression) else None
            if form is None:
                form = self.new_form(given)
            if len(self._forms) >= _MOST_FORMS:  # what nobody asked for since the last time is forgotten
                self._forms, self._older = {}, self._forms
            self._forms[given] = form
        return form

    def new_form(self, given: str | Expression) -> Form:
        """Return the form of a filter that nobody needs to remember."""
        if isinstance(given, str):
            expression = parse(given, self.schema)
        elif isinstance(given, Expression) and is_condition(given):
            expression = given
            if self.schema is not None:
                check(expression, self.schema)
        else:
            raise NotAFilterError(given)
        return Form(expression, self._translate(expression), self)

    def with_records(self, corner: Corner) -> Corner:
        """Return a place together with the records that its attributes lie in."""
        whole = corner.copy()
        for axis in corner:
            assert isinstance(axis.term, Attribute)
            path = axis.term.path
            for length in range(1, len(path)):
                whole.setdefault(self.axis(Attribute(path[:length])), (RECORD,))
        return whole

    def hull(self, formula: Formula) -> Box:
        """Return values, for each axis, outside of which a formula does not hold."""
        return fold(formula, self._hull)

    def _hull(self, node: Formula, below: list[Box]) -> Box:
        match node:
            case Within():
                return {node.axis: node.values, **enclosure(node, self.axis)}
            case Fact():
                return enclosure(node, self.axis)
            case Conjunction():
                hull: Box = {}
                for each in below:
                    for axis, values in each.items():
                        hull[axis] = intersection(hull[axis], values) if axis in hull else values
                return hull
            case Disjunction() | Threshold():
                return around(below)
        return {}


_contexts: dict[int, Context] = {}


def context_of(schema: Schema | None) -> Context:
    """Return the context of a schema; the last few are remembered by identity, which is quicker than by content."""
    context = _contexts.get(id(schema))
    if context is None or context.schema is not schema:
        if len(_contexts) >= _MOST_CONTEXTS:
            _contexts.clear()
        context = _contexts[id(schema)] = Context(schema)
    return context
