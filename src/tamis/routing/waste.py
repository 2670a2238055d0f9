"""How much of what a merger matches does nobody want, at most?

A merger's *imperfection* is kept as a bound. Two mergers that become one match in vain what each of them did, and what
lies beyond both; one that is cut may keep all that it matched in vain; what a filter leaves behind is added. Each of
these is a share of another, which has to be measured: with the strategy's `share`, or by a guess from the filters.
With a share that is right, the bound is right.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.relations.imperfection import share_within

if TYPE_CHECKING:
    from collections.abc import Callable

    from tamis.language.expressions import Expression
    from tamis.relations.forms import Context
    from tamis.relations.parts import Conjunct


class Waste:
    """Shares of filters in others.

    >>> from tamis.relations.forms import context_of
    >>> from tamis.relations.parts import part_of
    >>> inner, outer = (part_of(context_of(None).form(text), 0) for text in ("x = 1", "x IN (1, 2, 3, 4)"))
    >>> Waste(context_of(None)).share(inner, outer)
    0.25
    """

    def __init__(self, context: Context, share: Callable[[Expression], float] | None = None) -> None:
        self._context = context
        self._share = share

    def share(self, inner: Conjunct, outer: Conjunct) -> float:
        """Return how much of what a filter matches another matches, which lies in it."""
        if self._share is None:
            return share_within(inner.box, outer.box)
        written, whole = inner.written(self._context), outer.written(self._context)
        if written is None or whole is None:
            return 1.0
        matched = self._share(whole)
        return min(1.0, self._share(written) / matched) if matched > 0 else 0.0
