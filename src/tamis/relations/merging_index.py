"""With which of many filters does this one merge perfectly? An index of merge partners.

Filters that are conjunctions of the same conditions but for one set of values merge into one conjunction. Each filter
is filed once for each of its terms, under all its other conditions; a newcomer finds in its own files those that
differ from it in one term. That takes as long as the filter is large, however many others there are.

Source: Mühl et al. 2002, section 3.6 (docs/bibliography.md): what merges perfectly is equal in all attributes but one.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from tamis.relations.errors import DuplicateKeyError, UnknownKeyError
from tamis.relations.forms import Context, Form
from tamis.relations.parts import part_of

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from tamis.language.expressions import Expression
    from tamis.language.schema import Schema
    from tamis.relations.relations import Filter

_REMEMBERED = 1 << 14


class MergingIndex:
    """Filters by key, and which of them merge with another.

    >>> index = MergingIndex()
    >>> index.add(1, "x = 5 AND y IN (2, 3)")
    >>> index.add(2, "x = 6 AND y = 4")
    >>> index.candidates("x = 5 AND y = 4"), index.candidates("x = 5 AND z = 4")
    ([2, 1], [])
    """

    def __init__(self, schema: Schema | None = None, *, context: Context | None = None) -> None:
        self._context = context or Context(schema)
        self._expressions: dict[Hashable, Expression] = {}
        self._files: dict[Hashable, dict[Hashable, None]] = {}

    def __len__(self) -> int:
        return len(self._expressions)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._expressions

    def __iter__(self) -> Iterator[Any]:
        return iter(self._expressions)

    def expression(self, key: Hashable) -> Expression:
        """Return the filter under a key."""
        try:
            return self._expressions[key]
        except KeyError:
            raise UnknownKeyError(key) from None

    def add(self, key: Hashable, given: Filter) -> None:
        """Add a filter under a key of its own."""
        if key in self._expressions:
            raise DuplicateKeyError(key)
        form = self._context.form(given)
        for place in _places(form):
            self._files.setdefault(place, {})[key] = None
        self._expressions[key] = form.expression

    def remove(self, key: Hashable) -> None:
        """Remove the filter under a key."""
        for place in _places(self._context.form(self.expression(key))):
            del self._files[place][key]
            if not self._files[place]:
                del self._files[place]
        del self._expressions[key]

    def candidates(self, given: Filter) -> list[Any]:
        """Return the keys of the filters that differ from this one in one term or call, or in nothing."""
        places = _places(self._context.form(given))
        return list(dict.fromkeys(key for place in places for key in self._files.get(place, ())))


@lru_cache(_REMEMBERED)
def _places(form: Form) -> tuple[Hashable, ...]:
    """Return where a filter is filed. Forms are equal only to themselves, so this is quick to look up."""
    part = part_of(form, 0)
    return (*part.files(), *(place for _, place in part.test_files()))
