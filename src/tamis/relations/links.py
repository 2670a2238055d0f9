"""What do the axes and facts of a question have to do with one another? Theory lemmas between variables.

A formula sees each attribute as an axis of its own, and so each function of attributes and each predicate that is no
set. Links are formulas that every event obeys, whatever it is:

- a record's attribute has a value only if the record is a record;
- the schema may make an attribute mandatory for some event types;
- `length(title)` has a value only if `title` is a text, and so for all functions that want a kind;
- a predicate is not true and false at once;
- a text that fits one pattern fits, or does not fit, some others;
- so it is with functions that say so of themselves: an address in a network is in every larger one.

Leaving a link out never makes an answer wrong: it can only hide that something is impossible.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

from tamis.language.expressions import Attribute, Expression, Like, Literal, Test
from tamis.language.functions import function_of
from tamis.language.ranges.kinds import ABSENT, KINDS, PRESENT, RECORDS
from tamis.language.ranges.predicates import compared
from tamis.language.ranges.value_sets import Values, difference, intersection, union_of
from tamis.language.requirements import required_kinds
from tamis.relations.formulas import ALWAYS, Fact, Formula, any_of, within
from tamis.relations.patterns import exclude, implies

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from tamis.language.schema import Schema
    from tamis.relations.domains import TermAxis

_MOST_PATTERNS = 40


def links(
    axes: Collection[TermAxis],
    facts: Collection[Fact],
    paths: Collection[tuple[str, ...]],
    schema: Schema | None,
    axis_of: Callable[[Expression], TermAxis],
) -> list[Formula]:
    """Return what holds for every event, about these axes and facts, and the attributes that they mention."""
    formulas: list[Formula] = []
    for axis in axes:
        if not axis.is_plain:
            formulas += _if_known(within(axis, intersection(axis.values, ABSENT)), axis.term, axis_of)
    predicates = dict.fromkeys(fact.predicate for fact in facts)
    for predicate in predicates:
        for truth in (True, False):
            formulas += _if_known(Fact(predicate, truth, is_so=False), predicate, axis_of)
        formulas.append(any_of([Fact(predicate, True, is_so=False), Fact(predicate, False, is_so=False)]))
    formulas += _between_patterns([each for each in predicates if isinstance(each, Like)])
    formulas += _between_tests([each for each in predicates if isinstance(each, Test)])
    # The links so far may have brought in further attributes.
    has_types = schema is not None and bool(schema.mandatory_by_type)
    if has_types or any(len(path) > 1 for path in paths):
        plain = [axis_of(Attribute(path)) for path in sorted(paths)]
        formulas += _in_records(plain)
        if schema is not None and has_types:
            formulas += _by_event_type(plain, schema, axis_of)
    return [link for link in formulas if link is not ALWAYS]


def _if_known(unknown: Formula, node: Expression, axis_of: Callable[[Expression], TermAxis]) -> Iterator[Formula]:
    """Unless it is unknown, every attribute that a term or predicate cannot do without has a value that it takes."""
    for attribute, values in requirements(node).items():
        axis = axis_of(attribute)
        yield any_of([unknown, within(axis, intersection(values, axis.values))])


def requirements(node: Expression) -> dict[Attribute, Values]:
    """Return the values that attributes must have for a term to have a value, or a predicate to be true or false.

    >>> import tamis
    >>> [str(attribute) for attribute in requirements(tamis.parse("length(title) > low"))]
    ['low', 'title']
    """
    required: dict[Attribute, Values] = {}
    for attribute, kinds in required_kinds(node):
        values = union_of(*(KINDS[kind] for kind in kinds)) if kinds else PRESENT
        required[attribute] = intersection(required.get(attribute, PRESENT), values)
    return required


def _in_records(axes: list[TermAxis]) -> Iterator[Formula]:
    by_path = {axis.term.path: axis for axis in axes if isinstance(axis.term, Attribute)}
    for path, axis in by_path.items():
        for length in range(1, len(path)):
            record = by_path.get(path[:length])
            if record is not None:
                absent = within(axis, intersection(axis.values, ABSENT))
                yield any_of([absent, within(record, intersection(record.values, RECORDS))])


def _by_event_type(
    axes: list[TermAxis], schema: Schema, axis_of: Callable[[Expression], TermAxis]
) -> Iterator[Formula]:
    naming = axis_of(Attribute((schema.type_attribute,)))
    if naming not in axes:
        return  # nobody asks about the type, so it may be one that makes nothing mandatory
    for axis in axes:
        assert isinstance(axis.term, Attribute)
        path = axis.term.path
        if schema.is_mandatory(path):
            continue
        # A record is there if something in it is.
        inner = [tuple(each.split(".")) for names in schema.mandatory_by_type.values() for each in names]
        wanted = [path, *(each for each in inner if each[: len(path)] == path)]
        names = [name for name in schema.hierarchy if any(schema.is_mandatory(each, name) for each in wanted)]
        if names:
            of_them = union_of(*(compared("=", name, naming.line) for name in names))
            others = within(naming, difference(naming.values, of_them))
            yield any_of([others, within(axis, intersection(axis.values, PRESENT))])


def _between_tests(tests: list[Test]) -> Iterator[Formula]:
    """Pairs of calls of one function that differ in their literals: what the function's own hooks say of them."""
    if len(tests) > _MOST_PATTERNS:
        return
    for one, two in combinations(tests, 2):
        row = function_of(one.function)
        if one.function != two.function or (row.implies is None and row.excludes is None) or not are_alike(one, two):
            continue
        for special, general in ((one, two), (two, one)):
            if row.implies is not None and row.implies(literals_of(special), literals_of(general)):
                yield any_of([Fact(special, True, is_so=False), Fact(general, True)])
                if row.is_known_alike:
                    yield any_of([Fact(general, False, is_so=False), Fact(special, False)])
        if row.excludes is not None and row.excludes(literals_of(one), literals_of(two)):
            yield any_of([Fact(one, True, is_so=False), Fact(two, True, is_so=False)])
            if row.is_known_alike:
                yield any_of([Fact(one, True, is_so=False), Fact(two, False)])
                yield any_of([Fact(two, True, is_so=False), Fact(one, False)])


def are_alike(one: Test, two: Test) -> bool:
    """Do two calls of a function differ in their literals and in nothing else?"""
    return len(one.arguments) == len(two.arguments) and all(
        left == right or (isinstance(left, Literal) and isinstance(right, Literal))
        for left, right in zip(one.arguments, two.arguments, strict=True)
    )


def literals_of(test: Test) -> tuple[Any, ...]:
    """Return the values of those arguments of a call that are literals."""
    return tuple(argument.value for argument in test.arguments if isinstance(argument, Literal))


def united_tests(one: Test, two: Test) -> Test | None:
    """Return the call that is true just where one of two calls of its function is; None if the function knows none.

    >>> from tamis.language.parser import parse
    >>> print(united_tests(parse("in_cidr(ip, '10.0.0.0/9')"), parse("in_cidr(ip, '10.128.0.0/9')")))
    in_cidr(ip, '10.0.0.0/8')
    """
    unites = function_of(one.function).unites
    if unites is None or one.function != two.function or not are_alike(one, two):
        return None
    literals = unites(literals_of(one), literals_of(two))
    if literals is None:
        return None
    waiting = iter(literals)
    arguments = (Literal(next(waiting)) if isinstance(each, Literal) else each for each in one.arguments)
    return Test(one.function, tuple(arguments))


def _between_patterns(patterns: list[Like]) -> Iterator[Formula]:
    """Pairs of patterns about one term: the first implies the second, or both at once are impossible."""
    if len(patterns) > _MOST_PATTERNS:
        return
    for one, two in combinations(patterns, 2):
        if one.value != two.value:
            continue
        for general, special in ((one, two), (two, one)):
            if implies(special, general):
                yield any_of([Fact(special, True, is_so=False), Fact(general, True)])
        if exclude(one, two):
            yield any_of([Fact(one, True, is_so=False), Fact(two, True, is_so=False)])
