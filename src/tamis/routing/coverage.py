"""Which of a neighbour's filters covers this one, and which does it cover?

A few filters are compared pair by pair. Where links tell nearly the same filters, what was compared on one link is
known on the others (`Coverage`): for more than a few there is one pool for all links, and a link has its own keys for
some of them. Where each link has filters of its own (`OwnCoverage`), it has an index of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.relations.relations import covers_forms

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tamis.language.expressions import Expression
    from tamis.relations.covering_index import CoveringIndex
    from tamis.relations.forms import Context, Form
    from tamis.routing.comparisons import Comparisons

_FEW = 32


class Coverage:
    """Filters by key; those that cover one, and those that it covers.

    >>> import tamis
    >>> from tamis.routing.comparisons import Comparisons
    >>> coverage = Coverage(Comparisons())
    >>> coverage.add(7, tamis.parse("price < 20"))
    >>> coverage.covering(tamis.parse("price < 10")), coverage.covered_by(tamis.parse("price < 10"))
    (7, [])
    """

    def __init__(self, comparisons: Comparisons) -> None:
        self._comparisons = comparisons
        self._filters: dict[int, Expression] = {}
        self._keys: dict[int, int] = {}
        self._numbers: dict[int, int] = {}

    def add(self, key: int, expression: Expression) -> None:
        """Add a filter under a new key."""
        self._filters[key] = expression
        if self._keys:
            self._enter(key, expression)
        elif len(self._filters) > _FEW:
            for each, filter_ in self._filters.items():
                self._enter(each, filter_)

    def _enter(self, key: int, expression: Expression) -> None:
        number = self._comparisons.enter(expression)
        assert number not in self._keys
        self._keys[number], self._numbers[key] = key, number

    def remove(self, key: int) -> None:
        """Remove a filter."""
        del self._filters[key]
        if self._keys:
            number = self._numbers.pop(key)
            del self._keys[number]
            self._comparisons.leave(number)

    def covering(self, expression: Expression) -> int | None:
        """Return the key of a filter that covers another, the first of them; None if there is none."""
        is_covered = self._comparisons.is_covered
        keys: Iterable[int] = self._filters
        if self._keys:
            keys = sorted(map(self._keys.__getitem__, self._keys.keys() & self._comparisons.around(expression)))
        return next((key for key in keys if is_covered(expression, self._filters[key])), None)

    def covered_by(self, expression: Expression) -> list[int]:
        """Return the keys of the filters that another covers."""
        is_covered = self._comparisons.is_covered
        keys: Iterable[int] = self._filters
        if self._keys:
            keys = sorted(map(self._keys.__getitem__, self._keys.keys() & self._comparisons.inside(expression)))
        return [key for key in keys if is_covered(self._filters[key], expression)]


class OwnCoverage:
    """The same for filters that no other link tells."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._forms: dict[int, Form] = {}
        self._index: CoveringIndex | None = None

    def add(self, key: int, expression: Expression) -> None:
        """Add a filter under a new key."""
        self._forms[key] = self._context.form(expression)
        if self._index is not None:
            self._index.add(key, expression)
        elif len(self._forms) > _FEW:
            from tamis.relations.covering_index import CoveringIndex  # compiled, and many links need it never

            self._index = CoveringIndex(context=self._context)
            for each, form in self._forms.items():
                self._index.add(each, form.expression)

    def remove(self, key: int) -> None:
        """Remove a filter."""
        del self._forms[key]
        if self._index is not None:
            self._index.remove(key)

    def covering(self, expression: Expression) -> int | None:
        """Return the key of a filter that covers another; None if there is none."""
        if self._index is not None:
            return self._index.first_covering(expression)
        special = self._context.form(expression)
        return next((key for key, form in self._forms.items() if covers_forms(form, special).holds), None)

    def covered_by(self, expression: Expression) -> list[int]:
        """Return the keys of the filters that another covers."""
        if self._index is not None:
            return self._index.covered_by(expression)
        general = self._context.form(expression)
        return [key for key, form in self._forms.items() if covers_forms(general, form).holds]
