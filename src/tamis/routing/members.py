"""Which filters may want something of this place? An index of a merger's members.

A filter is filed under a term of which it wants only a few values, once for each value; that finds most filters whose
place meets another. What wants no such thing is looked at each time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from tamis.language.ranges.value_sets import is_member, points

if TYPE_CHECKING:
    from tamis.language.ranges.lines import Cut
    from tamis.relations.domains import TermAxis
    from tamis.relations.forms import Box

_MOST_POINTS = 16

Item = TypeVar("Item")


class Members(Generic[Item]):
    """Things by the place where they lie: for some terms, values.

    >>> from tamis.relations.forms import context_of
    >>> forms = [context_of(None).form(text) for text in ("x = 1 AND y > 2", "x IN (2, 3)", "y < 9")]
    >>> members = Members()
    >>> for number, form in enumerate(forms):
    ...     members.add(number, form.hull)
    >>> members.meeting(context_of(None).form("x = 3").hull)
    [1, 2]
    """

    def __init__(self) -> None:
        self._files: dict[TermAxis, dict[Cut, dict[Item, None]]] = {}
        self._loose: dict[Item, None] = {}
        self._filed_by: dict[Item, TermAxis] = {}

    def add(self, item: Item, place: Box) -> None:
        """File a thing under the term that tells most of them apart."""
        best: tuple[int, TermAxis, list[Cut]] | None = None
        for axis, values in place.items():
            member_cuts = points(values, axis.line, _MOST_POINTS)
            if member_cuts is not None:
                count = len(self._files.get(axis, ()))
                if best is None or count > best[0]:
                    best = count, axis, member_cuts
        if best is None:
            self._loose[item] = None
            return
        _, axis, cuts = best
        self._filed_by[item] = axis
        for cut in cuts:
            self._files.setdefault(axis, {}).setdefault(cut, {})[item] = None

    def remove(self, item: Item, place: Box) -> None:
        """Take a thing out."""
        axis = self._filed_by.pop(item, None)
        if axis is None:
            del self._loose[item]
            return
        file = self._files.get(axis, {})  # what wants no value at all is filed under a term, and nowhere in its file
        for cut in points(place[axis], axis.line, _MOST_POINTS) or ():
            del file[cut][item]
            if not file[cut]:
                del file[cut]
        if not file:
            self._files.pop(axis, None)

    def meeting(self, place: Box) -> list[Item]:
        """Return the things that may lie partly in a place, and perhaps some others."""
        items: dict[Item, None] = {}
        for axis, file in self._files.items():
            values = place.get(axis, axis.values)
            cuts = points(values, axis.line, _MOST_POINTS)
            if cuts is None:
                cuts = [cut for cut in file if is_member(cut, values)]
            for cut in cuts:
                items.update(file.get(cut, {}))
        items.update(self._loose)
        return list(items)
