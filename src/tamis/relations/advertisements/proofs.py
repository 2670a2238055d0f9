"""What is known already of the filters that were compared? A cache of witnesses.

Whether any filter overlaps a query is asked again and again, of the same queries, and mostly the same few filters
answer: general ones. So the filter that overlapped a query is remembered as its witness, those that lately were
witnesses are tried first for the next query, and a pair that took a search to tell apart is not searched again. What
is remembered of a filter goes with the filter, and all is forgotten when it is too much.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Hashable

    from tamis.language.expressions import Expression

MOST_PROOFS = 1 << 16
_MOST_LATELY = 4


class Proofs:
    """Which filters, by key, overlap which queries, as far as that was proven.

    >>> from tamis import parse
    >>> proofs = Proofs()
    >>> proofs.add("cheap", parse("price = 3"), overlaps=True)
    >>> proofs.witness(parse("price = 3")), proofs.known("dear", parse("price = 3"))
    (['cheap'], None)
    """

    def __init__(self) -> None:
        self._by_key: dict[Hashable, dict[Expression, bool]] = {}
        self._witnesses: dict[Expression, Any] = {}
        self._lately: dict[Any, None] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def lately(self) -> list[Any]:
        """The keys of the last few witnesses, the latest first."""
        return list(reversed(self._lately))

    def known(self, key: Hashable, query: Expression) -> bool | None:
        """Does the filter overlap the query? None if that is not known."""
        return self._by_key.get(key, {}).get(query)

    def witness(self, query: Expression) -> list[Any]:
        """Return the key of a filter that overlaps the query, if one is known."""
        return [self._witnesses[query]] if query in self._witnesses else []

    def add(self, key: Hashable, query: Expression, *, overlaps: bool) -> None:
        """Remember what was proven of a pair."""
        if self._count >= MOST_PROOFS:
            self._by_key.clear()
            self._witnesses.clear()
            self._count = 0
        about = self._by_key.setdefault(key, {})
        self._count += query not in about
        about[query] = overlaps
        if overlaps:
            self._witnesses[query] = key
            self._lately.pop(key, None)
            self._lately[key] = None
            if len(self._lately) > _MOST_LATELY:
                del self._lately[next(iter(self._lately))]

    def forget(self, key: Hashable) -> None:
        """Forget all about a filter."""
        about = self._by_key.pop(key, {})
        self._count -= len(about)
        self._lately.pop(key, None)
        for query in about:
            if query in self._witnesses and self._witnesses[query] == key:
                del self._witnesses[query]
