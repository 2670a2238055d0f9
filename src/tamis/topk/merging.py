"""How do several proxies travel as one?

A *merger* is a region around the regions of its members. As long as members move within it, nobody needs to know. When
one grows beyond it, the merger grows at once, and has to be told; when members have shrunk so far that the region
around them is much smaller, it may shrink, and is told too, for the sake of others' traffic.

Source: Pripužić 2010, section 4.3.2 (docs/bibliography.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tamis.relations.geometry import covers, merged
from tamis.relations.regions import Nowhere, Region

if TYPE_CHECKING:
    from collections.abc import Callable


class RegionMerger:
    """A region that covers all its members.

    >>> from tamis.relations.regions import SublevelSet
    >>> from tamis.language import parse
    >>> level = lambda key: SublevelSet(parse("price"), "ASC", key)
    >>> merger = RegionMerger()
    >>> merger.update("s1", level(10.0)), merger.update("s2", level(8.0)), merger.update("s2", level(12.0))
    (True, False, True)
    >>> merger.region.key
    12.0
    """

    def __init__(self, shrinks: Callable[[Region, Region], bool] | None = None) -> None:
        """Take a rule that says whether a region has become so much smaller than another that it is worth telling.

        Without one, a merger shrinks whenever it can.
        """
        self._members: dict[Any, Region] = {}
        self._shrinks = shrinks or (lambda small, large: not covers(small, large))
        self.region: Region = Nowhere()
        self.is_perfect = True
        """Does it surely have nothing that no member has?"""

    def __len__(self) -> int:
        return len(self._members)

    def __contains__(self, member: Any) -> bool:
        return member in self._members

    def update(self, member: Any, region: Region) -> bool:
        """Set the region of a member. Return whether the merger's region has changed: others have to be told."""
        self._members[member] = region
        return self._follow(is_expanding=not covers(self.region, region))

    def remove(self, member: Any) -> bool:
        """Remove a member. Return whether the merger's region has changed."""
        del self._members[member]
        return self._follow(is_expanding=False)

    def _follow(self, *, is_expanding: bool) -> bool:
        around, is_perfect = merged(list(self._members.values()))
        self.is_perfect = is_perfect and around == self.region
        if is_expanding or (around != self.region and self._shrinks(around, self.region)):
            self.region, self.is_perfect = around, is_perfect
            return True
        return False
