"""How does an expression become a formula? From syntax to formulas.

Each condition becomes two formulas: where it is true, and where it is false. A predicate about one term and constants
is a pair of sets of values; a comparison of two terms is a set of orders (less, equal, greater); a condition inside a
predicate, as in `sold = (bids < 3)`, is tried with each of its truth values. What remains (regular expressions,
arrays, functions of truth values) becomes facts, about which nothing is known but that a predicate is not true and
false at once, and what `links` says.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any, TypeAlias

from tamis.language.expressions import (
    COMPLEMENTS,
    CONNECTIVES,
    MIRRORED,
    TRUE,
    UNKNOWN,
    And,
    AtLeast,
    Attribute,
    Between,
    Call,
    Compare,
    Condition,
    Expression,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    Or,
    Test,
    Xor,
    postorder,
)
from tamis.language.meaning import meaning, truth
from tamis.language.patterns import ANY_CHARACTER, ANY_TEXT
from tamis.language.ranges.kinds import ABSENT, TEXTS
from tamis.language.ranges.lines import BOOLEAN
from tamis.language.ranges.predicates import compared, pattern_subject, pieces_of, subject
from tamis.language.ranges.value_sets import Values, difference, intersection, union_of
from tamis.relations.domains import EQUAL, GREATER, LESS, TermAxis, values_on
from tamis.relations.formulas import ALWAYS, NEVER, Fact, Formula, all_of, any_of, at_least, opposite, within
from tamis.relations.lifting import Lifted, lifted

if TYPE_CHECKING:
    from collections.abc import Callable

    from tamis.language.schema import Schema

Job: TypeAlias = tuple[Expression, bool]
"""A condition, and whether it is to be true or false."""

_ORDERS: dict[str, Values] = {
    "<": (LESS, EQUAL),
    "=": (EQUAL, GREATER),
    ">": (GREATER, (BOOLEAN + 1,)),
    "<=": (LESS, GREATER),
    ">=": (EQUAL, (BOOLEAN + 1,)),
    "<>": (LESS, EQUAL, GREATER, (BOOLEAN + 1,)),
}
_LEAVES = (Compare, Between, In, IsNull, Like, Attribute)
"""What is mostly a predicate without conditions inside."""
_MOST_REMEMBERED = 1 << 16
MOST_JUNCTIONS = 10_000
"""A filter that would have more junctions as a formula is a single fact, which nothing is known about."""


class Translator:
    """Makes formulas of expressions, over the axes of one schema."""

    def __init__(
        self,
        schema: Schema | None,
        axis: Callable[[Expression], TermAxis],
        order_axis: Callable[[Expression], TermAxis],
    ) -> None:
        self._schema = schema
        self._axis = axis
        self._order_axis = order_axis
        self._known: dict[Job, Formula] = {}

    def __call__(self, expression: Expression) -> Formula:
        """Return the formula that holds just where the expression is true."""
        done: dict[Job, Formula] = {}
        stack: list[tuple[Job, list[Job] | None]] = [((expression, True), None)]
        junctions = 0
        while stack:
            job, needed = stack.pop()
            if job in done:
                continue
            if needed is not None:
                junctions += 3 * len(needed) if isinstance(job[0], Xor) else 1
                if junctions > MOST_JUNCTIONS:
                    return _as_one(expression)
                done[job] = self._joined(*job, [done[each] for each in needed])
                continue
            needed = self._needed(*job)
            if needed is None:
                done[job] = self._remembered(job)
                continue
            stack.append((job, needed))
            for each in needed:
                if type(each[0]) in _LEAVES and each not in done and self._needed(*each) is None:
                    done[each] = self._remembered(each)
                else:
                    stack.append((each, None))
        return done[expression, True]

    def _needed(self, node: Expression, is_true: bool) -> list[Job] | None:
        """Return which conditions, true or false, a condition is made of; None for a predicate without any inside."""
        if isinstance(node, Attribute) or type(node) in (And, Or, Not):
            return _needed(node, is_true)
        cases = self._cases(node)
        if cases is None:
            return _needed(node, is_true)
        return [*((each, True) for each in cases.conditions), *((each, is_true) for each in cases.predicates)]

    def _cases(self, node: Expression) -> Lifted | None:
        if isinstance(node, CONNECTIVES) or all(isinstance(child, Attribute | Literal) for child in node.children):
            return None
        return lifted(node, self._schema)

    def _joined(self, node: Expression, is_true: bool, below: list[Formula]) -> Formula:
        cases = self._cases(node)
        if cases is not None:
            return _first_true(below[: len(cases.conditions)], below[len(cases.conditions) :])
        match node:
            case Not():
                return below[0]
            case And() | Or() | Between():
                return (any_of if isinstance(node, Or) is is_true else all_of)(below)
            case AtLeast(count):
                return at_least(count if is_true else len(below) - count + 1, below)
            case Xor():
                odd, even = _parity(list(zip(below[::2], below[1::2], strict=True)))
                return odd if is_true else even
            case _:
                return self._by_truth_values(node, is_true, below)

    def _by_truth_values(self, node: Expression, is_true: bool, below: list[Formula]) -> Formula:
        """Try a predicate with every truth value of the conditions in it."""
        pairs = iter(zip(below[::2], below[1::2], strict=True))
        choices: list[list[tuple[Any, Formula]]] = []
        for child in node.children:
            if isinstance(child, Condition):
                true, false = next(pairs)
                choices.append([(True, true), (False, false), (None, opposite(any_of([true, false])))])
            elif isinstance(child, Literal):
                choices.append([(child.value, ALWAYS)])
            else:
                choices.append(self._truth_values(child))
        return any_of(
            all_of(formula for _, formula in chosen)
            for chosen in product(*choices)
            if meaning(node, [value for value, _ in chosen], {}, self._schema) is is_true
        )

    def _truth_values(self, term: Expression) -> list[tuple[Any, Formula]]:
        """A term beside a condition counts as a Boolean; all that is none compares alike, as an array does."""
        axis = self._axis(term)
        booleans = [(value, compared("=", value, axis.line)) for value in (True, False)]
        named: list[tuple[Any, Values]] = [*booleans, (None, ABSENT)]
        rest = difference(axis.values, union_of(*(values for _, values in named)))
        return [(value, within(axis, intersection(values, axis.values))) for value, values in (*named, ([], rest))]

    # -- Predicates

    def _remembered(self, job: Job) -> Formula:
        formula = self._known.get(job)
        if formula is None:
            if len(self._known) >= _MOST_REMEMBERED:
                self._known.clear()
            formula = self._known[job] = self._predicate(*job)
        return formula

    def _predicate(self, node: Expression, is_true: bool) -> Formula:
        term = subject(node)
        if not isinstance(term, Attribute) and not any(isinstance(each, Attribute) for each in postorder(node)):
            return ALWAYS if truth(node, {}, self._schema) is is_true else NEVER
        if term is not None:
            axis = self._axis(term)
            return within(axis, values_on(axis, node, is_true, self._schema))
        match node:
            case Compare():
                return self._compared_terms(node, is_true)
            case Test("arrays_overlap", (array, Call("array", elements)) | (Call("array", elements), array)):
                if elements and all(isinstance(each, Literal) and each.value is not None for each in elements):
                    facts = [Fact(Test("array_contains", (array, each)), is_true) for each in elements]
                    return (any_of if is_true else all_of)(facts)
                if elements and is_true:  # a NULL among them can keep it from being false, not from being true
                    present = [each for each in elements if each != UNKNOWN]
                    return any_of(Fact(Test("array_contains", (array, each)), True) for each in present)
            case Test("arrays_overlap", (one, two)) if str(two) < str(one):
                return Fact(Test("arrays_overlap", (two, one)), is_true)
            case Test("array_contains", (Call("array", elements), term)) if not isinstance(term, Condition):
                members = [each.value for each in elements if isinstance(each, Literal)]
                if members and len(members) == len(elements):
                    return self._predicate(In(term, tuple(members)), is_true)
        term = pattern_subject(node)
        if term is None:
            return Fact(node, is_true)
        # A pattern with a text is true or false, never unknown.
        fact = Fact(_one_spelling(node, term), True, is_true)
        axis = self._axis(term)
        return fact if is_true else all_of([within(axis, intersection(TEXTS, axis.values)), fact])

    def _compared_terms(self, node: Compare, is_true: bool) -> Formula:
        operator, left, right = node.operator, node.left, node.right
        if str(right) < str(left):
            operator, left, right = MIRRORED[operator], right, left
        axis = self._order_axis(Compare("=", left, right))
        if operator != "<=>":
            return within(axis, _ORDERS[operator if is_true else COMPLEMENTS[operator]])
        both = [self._axis(term) for term in (left, right)]
        absent = [within(each, intersection(ABSENT, each.values)) for each in both]
        same = any_of([within(axis, _ORDERS["="]), all_of(absent)])
        return same if is_true else opposite(same)


def _as_one(expression: Expression) -> Formula:
    """Return a filter as a fact of its own: it is true, whatever that takes."""
    return Fact(And((expression, TRUE)), True)


def _first_true(conditions: list[Formula], predicates: list[Formula]) -> Formula:
    """Return where the predicate of the first true condition holds, or the last one if no condition is true."""
    ways: list[Formula] = []
    before: list[Formula] = []
    for condition, predicate in zip(conditions, predicates, strict=False):
        ways.append(all_of([*before, condition, predicate]))
        before.append(opposite(condition))
    return any_of([*ways, all_of([*before, predicates[-1]])])


def _needed(node: Expression, is_true: bool) -> list[Job] | None:
    """Return which conditions, true or false, a condition is made of; None for a predicate without any inside."""
    match node:
        case Not(operand):
            return [(operand, not is_true)]
        case And(operands) | Or(operands) | AtLeast(_, operands):
            return [(operand, is_true) for operand in operands]
        case Xor(operands):
            return [(operand, polarity) for operand in operands for polarity in (True, False)]
        case Between(value, low, high) if subject(node) is None or isinstance(value, Condition):
            return [(Compare(">=", value, low), is_true), (Compare("<=", value, high), is_true)]
        case Compare() | In() | IsNull():
            inner = [child for child in node.children if isinstance(child, Condition)]
            return [(child, polarity) for child in inner for polarity in (True, False)] or None
    return None


def _parity(pairs: list[tuple[Formula, Formula]]) -> tuple[Formula, Formula]:
    """Return (odd, even) for operands given as (true, false), joining neighbours until one pair is left."""
    while len(pairs) > 1:
        joined = [_sum_of(one, two) for one, two in zip(pairs[::2], pairs[1::2], strict=False)]
        pairs = joined + pairs[len(joined) * 2 :]
    return pairs[0]


def _sum_of(one: tuple[Formula, Formula], two: tuple[Formula, Formula]) -> tuple[Formula, Formula]:
    odd = any_of([all_of([one[0], two[1]]), all_of([one[1], two[0]])])
    return odd, any_of([all_of([one[0], two[0]]), all_of([one[1], two[1]])])


def _one_spelling(pattern: Expression, term: Expression) -> Expression:
    """Return a pattern as LIKE if it can be said so: `contains(a, 'x')` and `a LIKE '%x%'` are one fact."""
    pieces = pieces_of(pattern)
    if pieces is None:
        return pattern
    wild = {ANY_TEXT: "%", ANY_CHARACTER: "_"}
    return Like(term, "".join(wild.get(piece) or _escaped(piece) for piece in pieces))


def _escaped(text: str) -> str:
    return "".join(f"\\{each}" if each in "\\%_" else each for each in text)
