"""What was found out about filters, and need not be found out again? A shared cache of relations between filters.

The links of a broker see nearly the same filters, and so do the brokers of a network that is simulated in one process.
`Comparisons` is what they share. Filters that match the same are one `KnownFilter`, as long as a link has to do with
one of them. Those that some neighbour knows form a pool with an index. A filter keeps what the index said of it: the
filters of the pool that may cover it, and those that it may cover. Whatever enters the pool is added to these lists, so
they stay right; what a comparison refutes is struck off, what it proves is marked. So a question that one link asked
costs the next one a look into a list.

It is a memory, nothing more: with it or without, every answer is the same. A strategy has one, and whoever gives one
strategy to several brokers shares it among them.
"""

from __future__ import annotations

from collections import OrderedDict
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias
from weakref import WeakValueDictionary

from tamis.language.ranges.lines import TEXT
from tamis.relations.covering_index import CoveringIndex
from tamis.relations.forms import context_of
from tamis.relations.merging import united
from tamis.relations.relations import covers_forms

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable

    from tamis.language.expressions import Expression
    from tamis.language.schema import Schema
    from tamis.relations.forms import Form

_COMPARED_PAIRWISE = 32
"""So many filters are compared pair by pair; for more there is an index."""
_PAIRS = 1 << 16
"""So many comparisons of pairs are remembered."""
_MERGERS = 1 << 13
"""So many mergers, and lengths of filters; these are large, and the next link asks soon."""
_CHARACTERS_OF_CUT = 6
_MOST_LISTED = 1 << 23
"""So many filters may stand in lists altogether; then the oldest lists are forgotten."""

Candidates: TypeAlias = dict[int, bool]
"""Numbers of filters that may stand in a relation to another, and whether it is proven that they do."""


class KnownFilter:
    """A filter that links have to do with. It is compared by identity: there is one for all that match the same."""

    __slots__ = ("__weakref__", "around", "as_of", "form", "inside", "number", "told_count")

    def __init__(self, number: int, form: Form) -> None:
        self.number = number
        self.form = form
        self.told_count = 0
        """On how many links it is told."""
        self.around: Candidates | None = None
        """Which filters of the pool may cover it."""
        self.inside: Candidates | None = None
        """Which filters of the pool it may cover."""
        self.as_of = -1
        """The lists of a filter that is not in the pool hold until the next one enters it."""


class Comparisons:
    """Filters that are told on some link, by number, and how they relate to others.

    >>> import tamis
    >>> comparisons = Comparisons()
    >>> cheap, cheaper = (comparisons.known(tamis.parse(text)) for text in ("price < 20", "price < 10"))
    >>> comparisons.enter(cheap)
    >>> cheap.number in comparisons.around(cheaper), comparisons.is_covered(cheaper, cheap)
    (True, True)
    """

    def __init__(self, schema: Schema | None = None) -> None:
        self.schema = schema
        self.context = context_of(schema)
        self.is_covered: Callable[[KnownFilter, KnownFilter], bool] = lru_cache(_PAIRS)(_is_covered)
        """Does the second filter match every event that the first matches, as far as that can be proven?"""
        self.united: Callable[[Form, Form], Expression | None] = lru_cache(_MERGERS)(united)
        """Which one filter matches just what two match?"""
        self.length: Callable[[Form], int] = lru_cache(_MERGERS)(_length)
        """About how many characters does it take to say a filter?"""
        self._by_expression: WeakValueDictionary[Expression, KnownFilter] = WeakValueDictionary()
        self._by_formula: WeakValueDictionary[Hashable, KnownFilter] = WeakValueDictionary()
        self._next = 0
        self._told: dict[int, KnownFilter] = {}
        self._index: CoveringIndex | None = None
        self._entered_count = 0
        self._with_lists: OrderedDict[KnownFilter, None] = OrderedDict()
        self._listed_count = 0

    def known(self, expression: Expression) -> KnownFilter:
        """Return what is known of a filter; it is remembered as long as somebody has it."""
        known_filter = self._by_expression.get(expression)
        if known_filter is None:
            form = self.context.form(expression)
            known_filter = self._by_formula.get(form.formula)
            if known_filter is None:
                known_filter = self._by_formula[form.formula] = KnownFilter(self._next, form)
                self._next += 1
            self._by_expression[expression] = known_filter
        return known_filter

    def are_identical(self, one: KnownFilter, two: KnownFilter) -> bool:
        """Do two filters match the same, as far as that can be proven?"""
        return one is two or (self.is_covered(one, two) and self.is_covered(two, one))

    def may_be_identical(self, one: KnownFilter, two: KnownFilter) -> bool:
        """May two filters match the same? Not if an attribute has other values in events that match the one."""
        first, second = one.form.projections, two.form.projections
        return first is None or second is None or first == second

    # -- The pool

    def enter(self, known: KnownFilter) -> None:
        """Take note that a filter is told on a link, or on one more."""
        if not known.told_count:
            for number, is_proven in self.around(known).items():
                if (other := self._told.get(number)) is not None:
                    self._list(other.inside, known.number, is_proven)
            for number, is_proven in self.inside(known).items():
                if (other := self._told.get(number)) is not None:
                    self._list(other.around, known.number, is_proven)
            self._list(known.around, known.number, is_proven=True)  # whoever asks for a filter that is told finds it
            self._list(known.inside, known.number, is_proven=True)
            self._told[known.number] = known
            self._entered_count += 1
            if self._index is not None:
                self._index.add(known.number, known.form.expression)
            elif len(self._told) > _COMPARED_PAIRWISE:
                self._index = CoveringIndex(self.schema, context=self.context)
                for each in self._told.values():
                    self._index.add(each.number, each.form.expression)
        known.told_count += 1

    def leave(self, known: KnownFilter) -> None:
        """Take note that a filter is no longer told on a link."""
        known.told_count -= 1
        if not known.told_count:
            del self._told[known.number]  # its number may stay in lists, where it finds nobody
            self._forget_lists(known)
            if self._index is not None:
                self._index.remove(known.number)

    # -- Lists

    def around(self, known: KnownFilter) -> Candidates:
        """Return the numbers of all filters that cover one, and perhaps of others; of some that are told no more, too.

        Whoever asks compares those that it has a use for (`is_around`): a link wants one of them, and there may be
        thousands.
        """
        self._forget_if_outdated(known)
        if known.around is None:
            known.around = self._new_list(
                known, self._told if self._index is None else self._index.candidates_around(known.form.expression)
            )
        return known.around

    def inside(self, known: KnownFilter) -> Candidates:
        """Return the numbers of all filters that one covers, and perhaps of others, likewise."""
        self._forget_if_outdated(known)
        if known.inside is None:
            known.inside = self._new_list(
                known, self._told if self._index is None else self._index.candidates_inside(known.form.expression)
            )
        return known.inside

    def is_around(self, number: int, known: KnownFilter) -> bool:
        """Does the filter of that number, which is around another by its list, cover it?"""
        return self._settle(self.around(known), number, known, self._told[number])

    def is_inside(self, number: int, known: KnownFilter) -> bool:
        """Does a filter cover that of the number, which is inside by its list?"""
        return self._settle(self.inside(known), number, self._told[number], known)

    def _settle(self, candidates: Candidates, number: int, special: KnownFilter, general: KnownFilter) -> bool:
        """Compare a candidate that nobody compared yet, and note what comes of it; return whether it is covered."""
        if candidates[number]:
            return True
        if _is_covered(special, general):
            candidates[number] = True
            return True
        del candidates[number]
        self._listed_count -= 1
        return False

    def _forget_if_outdated(self, known: KnownFilter) -> None:
        """Forget lists to which nobody adds, if there is something to add."""
        if not known.told_count and known.as_of != self._entered_count:
            self._forget_lists(known)
            known.as_of = self._entered_count

    def _new_list(self, known: KnownFilter, numbers: Iterable[int]) -> Candidates:
        verdicts = dict.fromkeys(numbers, False)
        self._with_lists[known] = None
        self._with_lists.move_to_end(known)
        self._listed_count += len(verdicts)
        while self._listed_count > _MOST_LISTED and len(self._with_lists) > 1:
            self._forget_lists(next(iter(self._with_lists)))
        return verdicts

    def _list(self, candidates: Candidates | None, number: int, is_proven: bool) -> None:
        if candidates is not None:
            self._listed_count += number not in candidates
            candidates[number] = is_proven

    def _forget_lists(self, known: KnownFilter) -> None:
        if self._with_lists.pop(known, self) is None:
            self._listed_count -= len(known.around or ()) + len(known.inside or ())
            known.around = known.inside = None


def _is_covered(special: KnownFilter, general: KnownFilter) -> bool:
    return special is general or covers_forms(general.form, special.form).holds


def _length(form: Form) -> int:
    """Count the characters of texts, and a few for everything else; to write it all down would take far longer."""
    if form.box is None:
        return len(str(form.expression))
    starts = [cut for values in form.box.values() for cut in values[::2]]
    return _CHARACTERS_OF_CUT * len(starts) + sum(len(cut[1]) for cut in starts if cut[0] == TEXT and len(cut) > 1)
