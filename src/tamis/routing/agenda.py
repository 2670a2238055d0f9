"""What is still to be worked out for a neighbour? A queue of filters that came and went.

What a neighbour must know of ten thousand filters takes seconds to work out, and meanwhile a broker has other things to
do. So they wait here, and are looked at one by one (`step`), as many as there is time for. What is to be done with one
is decided when its turn comes, from what is true then: who came and went in between costs nothing.

Whoever came is looked at before anybody is let go, also if somebody comes in between. So at any moment the neighbour
knows all that it knew, or whatever takes its place: what is late is late, and nothing has a gap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tamis.language.expressions import Expression
    from tamis.routing.base import Source
    from tamis.routing.messages import Key


class Agenda:
    """Sources to look at: those that may have come, and those that may have gone.

    `come` is asked to take a source, if its filter is there, and is not taken yet; `go` to let one go, with the filter
    that it was taken with.

    >>> agenda = Agenda(lambda source: print("come", source), lambda source, _: print("go", source))
    >>> agenda.remove(("ann", 1), None), agenda.add(("bob", 2)), len(agenda)
    (None, None, 2)
    >>> agenda.step(), agenda.step(), len(agenda)
    come ('bob', 2)
    go ('ann', 1)
    (None, None, 0)
    """

    def __init__(self, come: Callable[[Source], None], go: Callable[[Source, Expression], None]) -> None:
        self._come, self._go = come, go
        self._coming: dict[Source, None] = {}
        self._many: list[tuple[str, list[Key]]] = []
        """Whole tables of peers, of which copies are quick to make."""
        self._going: dict[Source, Expression] = {}

    def __len__(self) -> int:
        return len(self._coming) + sum(len(keys) for _, keys in self._many) + len(self._going)

    def __bool__(self) -> bool:
        return bool(self._coming or self._going or self._many)

    @property
    def is_anybody_coming(self) -> bool:
        """Is anybody still to be looked at who may have come?"""
        return bool(self._coming or self._many)

    def add(self, source: Source) -> None:
        """Look at a source that may have come."""
        self._coming[source] = None

    def add_many(self, sources: Iterable[tuple[str, list[Key]]]) -> None:
        """Look at sources, by peer."""
        self._many += [(peer, keys) for peer, keys in sources if keys]

    def remove(self, source: Source, expression: Expression) -> None:
        """Look at a source that was taken with a filter, and may have gone."""
        self._going.setdefault(source, expression)

    def leaving(self, source: Source) -> Expression | None:
        """Return the filter that a source was taken with, if it may have gone; and expect it no more."""
        return self._going.pop(source, None)

    def step(self) -> None:
        """Look at one source."""
        if self._coming:
            source = next(iter(self._coming))
            del self._coming[source]
            self._come(source)
        elif self._many:
            peer, keys = self._many[-1]
            key = keys.pop()
            if not keys:
                self._many.pop()
            self._come((peer, key))
        else:
            source = next(iter(self._going))
            self._go(source, self._going.pop(source))
