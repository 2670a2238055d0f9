"""What do the axes and facts of a question have to do with one another? Theory lemmas between variables.

A formula sees each attribute as an axis of its own, and so each function of attributes and each predicate that is no
set. Links are formulas that every event obeys, whatever it is:

- a record's attribute has a value only if the record is a record;
- the schema may make an attribute mandatory for some event types;
- `length(title)` has a value only if `title` is a text, and so for all functions that want a kind;
- a predicate is not true and false at once;
- a text that fits one pattern, or starts in some way, fits, or does not fit, some others;
- so it is with functions that say so of themselves: an address in a network is in every larger one;
- what is near one place is not far from places nearby, and its coordinates are not far from the place's;
- a box of attributes bounds what is computed of them: distances and weighted sums;
- an array that has an element is not empty.

Leaving a link out never makes an answer wrong: it can only hide that something is impossible.
"""

from __future__ import annotations

from itertools import combinations, permutations
from math import inf
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from tamis.language.expressions import Attribute, Call, Expression, Like, Literal, Test
from tamis.language.functions import function_of
from tamis.language.ranges.kinds import ABSENT, KINDS, PRESENT, RECORDS
from tamis.language.ranges.lines import TEXT, prefix_cuts
from tamis.language.ranges.predicates import compared
from tamis.language.ranges.value_sets import Values, difference, intersection, is_subset, stretches, union_of
from tamis.language.values import compare, kind_of
from tamis.relations.confinement import confined, confined_in_box, interval_of, parallel_sum, values_between
from tamis.relations.enclosures import enclosure, requirements
from tamis.relations.formulas import ALWAYS, Fact, Formula, Within, any_of, at_least, opposite, within
from tamis.relations.patterns import exclude, implies

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from tamis.language.schema import Schema
    from tamis.relations.domains import TermAxis

_NUMBERS = KINDS["number"]
_MOST_PATTERNS = 40
_MOST_TERMS = 24
_MOST_BOUNDS = 8
"""So many terms are compared with one another, each by so many of its bounds."""


def links(
    axes: Collection[TermAxis],
    facts: Collection[Fact],
    paths: Collection[tuple[str, ...]],
    schema: Schema | None,
    axis_of: Callable[[Expression], TermAxis],
    sets: Mapping[TermAxis, Collection[Values]] = MappingProxyType({}),
    boxes: Sequence[Mapping[TermAxis, Values]] = (),
) -> list[Formula]:
    """Return what holds for every event, about these axes and facts, and the attributes that they mention.

    `sets` are those that a question asks about, and `boxes` those that its filters lie in.
    """
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
    formulas += _of_arrays([each for each in predicates if isinstance(each, Test)], axes)
    formulas += _of_prefixes([each for each in predicates if isinstance(each, Like)], sets, axis_of)
    terms = [axis for axis in axes if not axis.is_plain and not axis.is_order]
    if terms and len(terms) <= _MOST_TERMS:
        formulas += _of_enclosures(terms, sets, axis_of)
        formulas += _between_terms(terms, sets)
        formulas += _in_boxes(terms, sets, boxes, axis_of)
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


def tests_exclude(one: Expression, two: Expression) -> bool:
    """Are two calls never both true, as their function says?

    >>> from tamis.language.parser import parse
    >>> tests_exclude(parse("in_cidr(ip, '10.0.0.0/8')"), parse("in_cidr(ip, '11.0.0.0/8')"))
    True
    """
    if not (isinstance(one, Test) and isinstance(two, Test) and one.function == two.function):
        return False
    excludes = function_of(one.function).excludes
    return excludes is not None and are_alike(one, two) and excludes(literals_of(one), literals_of(two))


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


def _of_prefixes(
    patterns: list[Like],
    sets: Mapping[TermAxis, Collection[Values]],
    axis_of: Callable[[Expression], TermAxis],
) -> Iterator[Formula]:
    """A text that fits a pattern starts as it does; one that starts in some way fits, or does not fit, a pattern."""
    if len(patterns) > _MOST_PATTERNS:
        return
    for pattern in patterns:
        axis = axis_of(pattern.value)
        is_fitting = Fact(pattern, True)
        for term, values in enclosure(is_fitting, axis_of).items():
            yield any_of([opposite(is_fitting), within(term, intersection(values, term.values))])
        for prefix in dict.fromkeys(_prefixes(sets.get(axis, ()))):
            wild = "".join(f"\\{each}" if each in "\\%_" else each for each in prefix)
            others = within(axis, difference(axis.values, prefix_cuts(prefix)))
            if implies(Like(pattern.value, f"{wild}%"), pattern):
                yield any_of([others, is_fitting])
            elif exclude(Like(pattern.value, f"{wild}%"), pattern):
                yield any_of([others, opposite(is_fitting)])


def _prefixes(sets: Iterable[Values]) -> Iterator[str]:
    """Return how all texts of a stretch begin, where they begin alike."""
    for values in sets:
        for low, high in list(stretches(values))[:_MOST_BOUNDS]:
            if low[0] == TEXT and len(low) > 1:
                starts = (low[1][:length] for length in range(len(low[1]), 0, -1))
                yield from [start for start in starts if is_subset((low, high), prefix_cuts(start))][:1]


def _of_arrays(tests: list[Test], axes: Collection[TermAxis]) -> Iterator[Formula]:
    """An array has as many elements as it has different ones; and if it is known not to have one, it has no NULL."""
    contained: dict[Expression, list[Test]] = {}
    for test in tests[:_MOST_PATTERNS]:
        match test:
            case Test("array_contains", (array, Literal(element))) if element is not None:
                contained.setdefault(array, []).append(test)
    sizes = {axis.term: axis for axis in axes}
    for array, members in contained.items():
        axis = sizes.get(Call("size", (array,)))
        if axis is not None:
            different: list[Test] = []
            for member in members:
                if all(_differ(member, other) for other in different):
                    different.append(member)
            missing = [Fact(member, True, is_so=False) for member in different]
            for count in range(1, len(different) + 1):
                enough = within(axis, intersection(compared(">=", count, axis.line), axis.values))
                yield any_of([enough, at_least(len(different) - count + 1, missing)])
        for one, two in permutations(members, 2):
            if kind_of(literals_of(one)[0]) == kind_of(literals_of(two)[0]):
                yield any_of([Fact(one, False, is_so=False), Fact(two, True), Fact(two, False)])


def _differ(one: Test, two: Test) -> bool:
    """Does no element equal the elements of two calls? A double may equal two different integers."""
    (first,), (second,) = literals_of(one), literals_of(two)
    if kind_of(first) != kind_of(second):
        return True
    if kind_of(first) == "number":
        return float(first) != float(second)
    return compare(first, second) != 0


# -- Terms that are computed of the same attributes


def _of_enclosures(
    terms: Collection[TermAxis], sets: Mapping[TermAxis, Collection[Values]], axis_of: Callable[[Expression], TermAxis]
) -> Iterator[Formula]:
    """What is near a place has coordinates near the place's."""
    for axis in terms:
        for bound in _bounds(axis, sets):
            below = intersection(compared("<=", bound, axis.line), axis.values)
            if below:
                beyond = within(axis, difference(axis.values, below))
                for attribute, values in enclosure(Within(axis, below), axis_of).items():
                    yield any_of([beyond, within(attribute, intersection(values, attribute.values))])


def _between_terms(terms: Collection[TermAxis], sets: Mapping[TermAxis, Collection[Values]]) -> Iterator[Formula]:
    """What is near one place is neither far from places nearby, nor near to places far away."""
    for one, two in permutations(terms, 2):
        for interval in _rays(one, sets):
            confines = confined(one.term, two.term, interval)
            if confines is not None:
                elsewhere = within(one, difference(one.values, values_between([interval], one.line)))
                yield any_of([elsewhere, within(two, intersection(values_between([confines], two.line), two.values))])


def _in_boxes(
    terms: Collection[TermAxis],
    sets: Mapping[TermAxis, Collection[Values]],
    boxes: Sequence[Mapping[TermAxis, Values]],
    axis_of: Callable[[Expression], TermAxis],
) -> Iterator[Formula]:
    """Numbers between bounds have distances and weighted sums between bounds."""
    for box in boxes:
        intervals = {}
        for axis, values in box.items():
            interval = interval_of(values, axis.line) if axis.is_plain else None
            if interval is not None and -inf < interval[0] and interval[1] < inf:
                intervals[axis.term] = interval
        for axis in terms:
            inputs = [Attribute(path) for path in axis.paths]
            if not inputs or not all(each in intervals for each in inputs):
                continue
            outside = [within(each, difference(each.values, box[each])) for each in map(axis_of, inputs)]
            confines = confined_in_box(axis.term, intervals)
            if confines is not None:
                values = intersection(values_between([confines], axis.line), axis.values)
                yield any_of([*outside, within(axis, values)])
            for other in terms:
                for interval in _rays(other, sets) if other is not axis else ():
                    confines = parallel_sum(other.term, axis.term, interval, intervals)
                    if confines is not None:
                        elsewhere = within(other, difference(other.values, values_between([interval], other.line)))
                        values = intersection(values_between([confines], axis.line), axis.values)
                        yield any_of([*outside, elsewhere, within(axis, values)])


def _bounds(axis: TermAxis, sets: Mapping[TermAxis, Collection[Values]]) -> list[float]:
    """Return the upper bounds that a question sets a term."""
    intervals = (interval_of(intersection(each, _NUMBERS), axis.line) for each in sets.get(axis, ()))
    return list(dict.fromkeys(each[1] for each in intervals if each is not None and each[1] < inf))[:_MOST_BOUNDS]


def _rays(axis: TermAxis, sets: Mapping[TermAxis, Collection[Values]]) -> list[tuple[float, float]]:
    """Return the numbers up to each bound that a question sets a term, those from each on, and those between two."""
    rays: dict[tuple[float, float], None] = {}
    for values in sets.get(axis, ()):
        for low, high in list(stretches(intersection(values, _NUMBERS)))[:_MOST_BOUNDS]:
            interval = interval_of((low, high), axis.line)
            if interval is not None:
                rays.update(dict.fromkeys([(-inf, interval[1]), (interval[0], inf), interval]))
    return [(low, high) for low, high in rays if (low, high) != (-inf, inf)][: 3 * _MOST_BOUNDS]
