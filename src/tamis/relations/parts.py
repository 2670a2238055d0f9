"""What of a filter can be merged with another's?

A *part* is a conjunction on its way into a merger: a box of sets, one for each term, and the rest of its conditions,
which are taken as they are. It remembers which filters it stands for, and what was written where nothing was changed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tamis.language.expressions import TRUE, And, Expression, Literal, Test
from tamis.language.functions import function_of
from tamis.language.rewrites.junctions import conjunction
from tamis.relations.formulas import Conjunction, Formula, Within, all_of, within
from tamis.relations.wording import worded

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator

    from tamis.relations.domains import TermAxis
    from tamis.relations.forms import Box, Context, Form


MOST_FILED = 64
"""A conjunction of more terms merges with none: a file for each, under all the others, would take their square."""


@dataclass(slots=True, eq=False)
class Conjunct:
    """A conjunction that matches what its members match, and perhaps more."""

    box: Box
    rest: dict[Formula, Expression]
    """Conditions that are not sets, and how they are written."""
    members: tuple[int, ...]
    perfect: bool = True
    imperfection: float = 0.0
    expression: Expression | None = field(default=None)
    """What was written: the filter as it was given, or what `written` made of it."""

    def formula(self) -> Formula:
        """Return the conjunction as a formula."""
        return all_of([*(within(axis, values) for axis, values in self.box.items()), *self.rest])

    def files(self) -> Iterator[tuple[TermAxis, Hashable]]:
        """Return, for each term of the box, the term and everything else: parts that share this differ in the term."""
        if len(self.box) > MOST_FILED:
            return
        items, rest = frozenset(self.box.items()), frozenset(self.rest)
        for axis, values in self.box.items():
            yield axis, (items - {(axis, values)}, rest)

    def test_files(self) -> Iterator[tuple[Test, Hashable]]:
        """Return each call of a function that knows how two calls unite, and everything else but its literals."""
        items = frozenset(self.box.items())
        for formula, expression in self.rest.items():
            if isinstance(expression, Test) and function_of(expression.function).unites is not None:
                others = tuple(None if isinstance(each, Literal) else each for each in expression.arguments)
                yield expression, (expression.function, others, items, frozenset(self.rest) - {formula})

    def written(self, context: Context) -> Expression | None:
        """Return the part as an expression; None if one of its sets has no wording."""
        if self.expression is not None:
            return self.expression
        said = [worded(axis, values, context) for axis, values in self.box.items()]
        if any(each is None for each in said):
            return None
        self.expression = conjunction(
            [*(each for each in said if each is not None and each != TRUE), *self.rest.values()]
        )
        return self.expression


def part_of(form: Form, member: int) -> Conjunct:
    """Return a filter as a part.

    >>> from tamis.relations.forms import context_of
    >>> part = part_of(context_of(None).form("a = 1 AND (b = 2 OR c = 3) AND d > 4"), 0)
    >>> [str(axis.term) for axis in part.box], [str(expression) for expression in part.rest.values()]
    (['a', 'd'], ['b = 2 OR c = 3'])
    """
    formula = form.formula
    conditions = formula.children if isinstance(formula, Conjunction) else (formula,)
    box = {each.axis: each.values for each in conditions if isinstance(each, Within)}
    others = [each for each in conditions if not isinstance(each, Within)]
    written = {form.context.form(each).formula: each for each in _conjuncts(form.expression)} if others else {}
    if all(each in written for each in others):
        return Conjunct(box, {each: written[each] for each in others}, (member,), expression=form.expression)
    return Conjunct({}, {formula: form.expression}, (member,), expression=form.expression)


def _conjuncts(expression: Expression) -> Iterable[Expression]:
    stack = [expression]
    while stack:
        node = stack.pop()
        if isinstance(node, And):
            stack.extend(reversed(node.operands))
        else:
            yield node
