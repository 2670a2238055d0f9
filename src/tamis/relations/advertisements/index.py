"""Which of many filters overlap this one, or does any? An overlap index.

As in matching, there are three steps. The predicates of all filters that are disjoint to a predicate of the query are
found term by term, in sorted lists of where their values begin and end. Counting says which filters have enough
predicates left to be true; and those that were hit at all are evaluated. The first filter found ends it if all that
is asked is whether there is one.

An exact index asks the relation about the candidates. Whether there is any is then a matter of order: a filter that
overlapped the last queries, and one of which no predicate is disjoint to this one, will mostly do, and what is seen of
a pair without searching is looked at for several candidates before the first search.

What was added lately waits in a list and is compared one by one, until it becomes a segment; segments of like size
become one, so that each filter is laid out a few times only; what was removed is marked.

Source: Bittner 2008, sections 7.2.4 and 7.2.5: the function problem and the decision problem (docs/bibliography.md).
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

from tamis.language.checking import check
from tamis.language.expressions import Expression, is_condition
from tamis.language.parser import parse
from tamis.relations import quick
from tamis.relations.advertisements.disjoint import overlaps_by_predicates
from tamis.relations.advertisements.proofs import Proofs
from tamis.relations.advertisements.segments import FilterSegment, laid_out_form
from tamis.relations.errors import DuplicateKeyError, NotAFilterError, UnknownKeyError
from tamis.relations.forms import Context, Form
from tamis.relations.relations import overlaps_forms

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator

    from tamis.language.schema import Schema
    from tamis.relations.relations import Filter

_MOST_WAITING = 16
"""So many filters may wait before they are laid out."""
_PORTION = 8
"""So many candidates are looked at before the first of them is compared by a search."""
_LARGE_PAIR, _LARGE_PAIRS_BUDGET = 2_000, 60_000
"""Pairs of so many nodes are large, and so many nodes of large pairs are compared for one query; further ones count as
overlapping. One long filter would else be compared with every other at its length."""


class OverlapIndex:
    """Filters by key, and which of them overlap a filter.

    >>> subscriptions = OverlapIndex()
    >>> subscriptions.add("cheap", "price < 20")
    >>> subscriptions.add("new or dear", "new OR price > 50")
    >>> subscriptions.overlapping("price BETWEEN 30 AND 40 AND NOT new"), subscriptions.overlaps_any("price > 50")
    ([], True)

    With `is_exact`, what single predicates cannot tell is decided by the relation; for filters of thousands of
    predicates as far as a budget for each query allows, beyond which they count as overlapping.
    """

    def __init__(self, schema: Schema | None = None, *, is_exact: bool = False, context: Context | None = None) -> None:
        self._schema = schema
        self._is_exact = is_exact
        self._context = context or Context(schema)
        self._filters: dict[Hashable, Expression] = {}
        self._waiting: dict[Hashable, None] = {}
        self._segments: list[FilterSegment] = []
        self._places: dict[Hashable, FilterSegment] = {}
        self._proofs = Proofs()
        self._large_count = 0
        """How many nodes of large pairs were compared for the present query."""
        self.candidate_count = 0
        """How many filters had enough predicates left so far, once for each alternative."""
        self.evaluated_count = 0
        """How many of these were hit at all, and their trees evaluated."""

    def __len__(self) -> int:
        return len(self._filters)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._filters

    def __iter__(self) -> Iterator[Any]:
        return iter(self._filters)

    def expression(self, key: Hashable) -> Expression:
        """Return the filter under a key."""
        if key not in self._filters:
            raise UnknownKeyError(key)
        return self._filters[key]

    def add(self, key: Hashable, given: Filter) -> None:
        """Add a filter under a key of its own."""
        if key in self._filters:
            raise DuplicateKeyError(key)
        self._filters[key] = self._checked(given)
        self._waiting[key] = None

    def _checked(self, given: Filter) -> Expression:
        if isinstance(given, str):
            return parse(given, self._schema)
        if not (isinstance(given, Expression) and is_condition(given)):
            raise NotAFilterError(given)
        if self._schema is not None:
            check(given, self._schema)
        return given

    def remove(self, key: Hashable) -> None:
        """Remove the filter under a key."""
        if key not in self._filters:
            raise UnknownKeyError(key)
        del self._filters[key]
        if key in self._waiting:
            del self._waiting[key]
        else:
            self._places.pop(key).remove(key)
        self._proofs.forget(key)

    def overlapping(self, given: Filter, only: Callable[[Any], bool] | None = None) -> list[Any]:
        """Return the keys of the filters that overlap another, in the order in which they were added.

        With `only`, just those keys for which it says so; about the others nothing needs to be proven.
        """
        query = self._begin_query(given)
        tree = laid_out_form(query)
        keys: list[Any] = []
        for segment in self._segments:
            keys += segment.overlapping(tree)
            self._count(segment)
        if self._is_exact:
            keys += self._waiting
        else:
            keys += [key for key in self._waiting if overlaps_by_predicates(query, self._filters[key], self._schema)]
        if only is not None:
            keys = [key for key in keys if only(key)]
        if self._is_exact:
            form = self._context.form(query)
            keys = [key for key in keys if self._decided(key, form)]
        return keys

    def overlaps_any(self, given: Filter) -> bool:
        """Does a filter overlap any of those that are here?"""
        return bool(self._one_of(given))

    def witness(self, given: Filter) -> Any | None:
        """Return the key of a filter that overlaps another, whichever is found first; None if there is none.

        >>> index = OverlapIndex(is_exact=True)
        >>> index.add("cheap", "price < 20")
        >>> index.witness("price > 10"), index.witness("price > 20")
        ('cheap', None)
        """
        return next(iter(self._one_of(given)), None)

    def _one_of(self, given: Filter) -> list[Any]:
        query = self._begin_query(given)
        if self._is_exact:
            return self._proven(query)
        for portion in self._portions(query, first=1):
            return portion
        return [key for key in self._waiting if overlaps_by_predicates(query, self._filters[key], self._schema)][:1]

    def _portions(self, query: Expression, first: int) -> Iterator[list[Any]]:
        """Yield the keys of those that overlap a query as far as predicates tell, some at a time."""
        tree = laid_out_form(query)
        for segment in self._segments:
            try:
                yield from segment.portions(tree, first)
            finally:  # whoever asks may have enough
                self._count(segment)

    # -- Proofs

    def _proven(self, query: Expression) -> list[Any]:
        """Return the key of a filter that overlaps a query by the relation, if there is one."""
        witness = self._proofs.witness(query)
        if witness:
            return witness
        form = self._context.form(query)
        if form.is_never:
            return []
        for portion in chain((self._proofs.lately, list(self._waiting)), self._portions(query, _PORTION)):
            if witness := self._first_of(portion, form):
                return witness
        return []

    def _first_of(self, keys: list[Any], form: Form) -> list[Any]:
        """Return the first of some filters that overlaps another: of those where it is seen, then by searching."""
        unseen = []
        for key in keys:
            seen = quick.overlaps(form, self._form(key))
            if seen is None:
                unseen.append(key)
            elif seen.holds:
                self._proofs.add(key, form.expression, overlaps=True)
                return [key]
        return next(([key] for key in unseen if self._decided(key, form)), [])

    def _decided(self, key: Hashable, form: Form) -> bool:
        """Decide whether a filter overlaps a query; spend the budget for large pairs, and remember what was proven."""
        query = form.expression
        known = self._proofs.known(key, query)
        if known is None:
            other = self._form(key)
            nodes = form.size + other.size
            if nodes > _LARGE_PAIR:
                if self._large_count > _LARGE_PAIRS_BUDGET:
                    return True  # the safe verdict, which is not kept: another query may have time for it
                self._large_count += nodes
            verdict = overlaps_forms(form, other)
            known = verdict.holds
            if known or verdict.by not in ("equality", "propositions"):  # which take no longer than to remember
                self._proofs.add(key, query, overlaps=known)
        return known

    def _form(self, key: Hashable) -> Form:
        return self._context.form(self._filters[key])

    def _count(self, segment: FilterSegment) -> None:
        self.candidate_count += segment.candidate_count
        self.evaluated_count += segment.evaluated_count

    def _begin_query(self, given: Filter) -> Expression:
        """Return what is asked; every query may compare large filters for as long as any other."""
        self._large_count = 0
        if len(self._waiting) > _MOST_WAITING:
            self._lay_out()
        return self._context.form(given).expression if self._is_exact else self._checked(given)

    def _lay_out(self) -> None:
        """Make a segment of those who wait, and of the latest segments as long as they are no larger together."""
        keys = list(self._waiting)
        while self._segments and len(self._segments[-1]) <= len(keys):
            keys = self._segments.pop().keys + keys
        segment = FilterSegment(keys, [self._filters[key] for key in keys], self._context)
        self._segments.append(segment)
        self._places.update(dict.fromkeys(keys, segment))
        self._waiting.clear()
