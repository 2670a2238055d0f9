"""Does a function of the host keep what it says of itself? Its hooks, put to the test by samples.

A hook that says too much loses events: a filter counts as covered that is not. Relations believe hooks, as they believe
the function itself. So the author's tests ask `refute`, with samples of arguments as they come in events, and get what
contradicts them.
"""

from __future__ import annotations

import math
from functools import cache
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

from tamis.errors import FunctionError
from tamis.language.expressions import Compare, Literal
from tamis.language.functions import UserFunction
from tamis.language.meaning import truth
from tamis.language.values import kind_of, value_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

Arguments = tuple[Any, ...]


class Refutation(NamedTuple):
    """Something that a function says of itself, and arguments for which it is not so."""

    hook: str
    """implies, excludes, unites, confines, monotone or columns."""
    one: Arguments
    two: Arguments
    """The arguments of both calls; of `columns`, of the one call twice."""
    reason: str

    def __str__(self) -> str:
        return f"{self.hook} of {self.one} and {self.two}: {self.reason}"


def refute(
    function: UserFunction, samples: Iterable[Arguments], *, literals: Iterable[int] | None = None
) -> list[Refutation]:
    """Return what is wrong of what a function says of itself, as far as samples of its arguments show it.

    samples     tuples of arguments; what they have at each place is combined, so a few go a long way
    literals    the places of the arguments that are literals in subscriptions; all but the first if you do not say

    At most one refutation of each hook is returned, and none if the function kept its word.

    >>> import tamis
    >>> @tamis.function(
    ...     takes=("number", "number"), gives="boolean", version=1, implies=lambda one, two: one[0] >= two[0]
    ... )
    ... def divides(number, divisor):
    ...     return number % divisor == 0
    >>> for each in refute(divides, [(6, 3), (9, 2)]):
    ...     print(each)
    implies of (9, 3) and (9, 2): the first call is true, the second is not
    """
    if not isinstance(function, UserFunction):
        raise FunctionError(f"a function is made by tamis.function, not {type(function).__name__}")
    rows = [tuple(each) for each in samples]
    count = len(function.row.takes)
    for row in rows:
        if len(row) != count:
            raise FunctionError(f"{function.written} takes {count} arguments, and a sample has {len(row)}: {row!r:.80}")
    fixed = tuple(range(1, count)) if literals is None else tuple(sorted(set(literals)))
    if not all(0 <= place < count for place in fixed):
        raise FunctionError(f"{function.written} takes {count} arguments, from 0 on, and literals are {fixed}")
    checks = (
        _tests(function, rows, fixed),
        _confined(function, rows, fixed),
        _monotone(function, rows),
        _columns(function, rows),
    )
    first: dict[str, Refutation] = {}
    for refutations in checks:
        for each in refutations:
            first.setdefault(each.hook, each)
    return list(first.values())


def _tests(function: UserFunction, rows: list[Arguments], fixed: tuple[int, ...]) -> Iterator[Refutation]:
    """Compare calls that differ in their literals."""
    row = function.row
    if not (row.implies or row.excludes or row.unites):
        return
    is_true = _truth_of(function)
    written, rest, called_with = _split(function, rows, fixed)
    for left, right in product(written, written):
        implies = row.implies is not None and row.implies(left, right)
        excludes = row.excludes is not None and row.excludes(left, right)
        united = None if row.unites is None else row.unites(left, right)
        for own in rest:
            one, two = called_with(left, own), called_with(right, own)
            if implies and is_true(one) and not is_true(two):
                yield Refutation("implies", one, two, "the first call is true, the second is not")
            if excludes and is_true(one) and is_true(two):
                yield Refutation("excludes", one, two, "both calls are true")
            if united is not None:
                either, whole = is_true(one) or is_true(two), is_true(called_with(united, own))
                if either is not whole:
                    reason = f"{'one of them is' if either else 'neither is'} true, and with {united} it is {whole}"
                    yield Refutation("unites", one, two, reason)


def _confined(function: UserFunction, rows: list[Arguments], fixed: tuple[int, ...]) -> Iterator[Refutation]:
    """Compare the values of calls that differ in their literals with the bounds that one gives for the other."""
    confines = function.row.confines
    if confines is None:
        return
    written, rest, called_with = _split(function, rows, fixed)
    for left, right, own in product(written, written, rest):
        one, two = called_with(left, own), called_with(right, own)
        first, second = (function.probe(*map(value_of, arguments)) for arguments in (one, two))
        if not _is_number(first):
            continue
        bounds = confines(left, right, (float(first), float(first)))
        if bounds is not None and not (
            _is_number(second) and _is_at_most(bounds[0], second) and _is_at_most(second, bounds[1])
        ):
            reason = f"the first gives {first!r}, so the second should lie in {bounds}, and it gives {second!r}"
            yield Refutation("confines", one, two, reason)


def _split(
    function: UserFunction, rows: list[Arguments], fixed: tuple[int, ...]
) -> tuple[list[Arguments], list[Arguments], Callable[[Arguments, Arguments], Arguments]]:
    """Return the literals of the samples, their other arguments, and what puts both together again."""
    count = len(function.row.takes)
    free = [place for place in range(count) if place not in fixed]
    written = _distinct(tuple(each[place] for place in fixed) for each in rows)
    rest = _distinct(tuple(each[place] for place in free) for each in rows)

    def called_with(given: Arguments, own: Arguments) -> Arguments:
        values = {**dict(zip(fixed, given, strict=True)), **dict(zip(free, own, strict=True))}
        return tuple(values[place] for place in range(count))

    return written, rest, called_with


def _truth_of(function: UserFunction) -> Callable[[Arguments], bool]:
    known: dict[str, bool] = {}

    def is_true(arguments: Arguments) -> bool:
        key = repr(arguments)
        if key not in known:
            known[key] = function.probe(*map(value_of, arguments)) is True
        return known[key]

    return is_true


def _monotone(function: UserFunction, rows: list[Arguments]) -> Iterator[Refutation]:
    """Compare calls that differ in one argument that the result is said to follow."""
    value_at: Callable[[Arguments], Any] = cache(lambda arguments: function.probe(*map(value_of, arguments)))
    for place, direction in enumerate(function.row.monotone):
        if direction is None:
            continue
        numbers = _distinct((row[place],) for row in rows if _is_number(row[place]))
        for own, (low,), (high,) in product(rows, numbers, numbers):
            if not _is_at_most(low, high):
                continue
            one, two = ((*own[:place], each, *own[place + 1 :]) for each in (low, high))
            first, second = value_at(one), value_at(two)
            if first is None or second is None:
                continue
            if not (_is_at_most(first, second) if direction == "up" else _is_at_most(second, first)):
                yield Refutation("monotone", one, two, f"it gives {first!r}, then {second!r}, and says {direction!r}")


def _is_number(value: Any) -> bool:
    number = value_of(value)
    return kind_of(number) == "number" and not (isinstance(number, float) and math.isnan(number))


def _is_at_most(one: Any, two: Any) -> bool:
    """Compare numbers as the language does."""
    return truth(Compare("<=", Literal(value_of(one)), Literal(value_of(two))), {}) is True


def _columns(function: UserFunction, rows: list[Arguments]) -> Iterator[Refutation]:
    """Compare the form over columns with the function itself, where the samples are columns at all."""
    if function.columns is None or not rows:
        return
    import pyarrow as pa

    wanted = [function.probe(*map(value_of, row)) for row in rows]
    try:
        columns = [pa.array(list(values)) for values in zip(*rows, strict=True)]
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return  # values of several types, for which nobody asks the form over columns
    try:
        given = pa.array(function.columns(*columns)).to_pylist()
    except Exception as error:
        yield Refutation("columns", rows[0], rows[0], f"it raised {type(error).__name__}: {error}")
        return
    if len(given) != len(rows):
        yield Refutation("columns", rows[0], rows[0], f"it gave {len(given)} values for {len(rows)}")
        return
    for row, own, other in zip(rows, wanted, given, strict=True):
        if not function.row.takes_nulls and any(value_of(each) is None for each in row):
            continue  # NULL in, NULL out, whatever it gave
        if not _are_same(own, value_of(other)):
            yield Refutation("columns", row, row, f"the function gives {own!r}, and its form over columns {other!r}")


def _are_same(one: Any, two: Any) -> bool:
    if one is None or two is None:
        return one is two
    return kind_of(one) == kind_of(two) and truth(Compare("=", Literal(one), Literal(two)), {}) is True


def _distinct(tuples: Iterable[Arguments]) -> list[Arguments]:
    return list({repr(each): each for each in tuples}.values())
