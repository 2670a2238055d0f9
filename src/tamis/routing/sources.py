"""Who wants this filter, and how much of it in vain at most? Reference counts of filters.

One filter may come from several sides: from clients, who want all of it, and from neighbours, who may have merged or
pruned what they ask for. An event is in vain only if it is so for all of them, so the least imperfection counts. When
those leave who wanted more of it, the filter becomes more imperfect without becoming another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tamis.routing.base import Source


class FilterSources:
    """Those who want one filter.

    >>> sources = FilterSources()
    >>> sources.add("ann", 0.0), sources.add("north", 0.25), sources.add("south", 0.5), sources.imperfection
    (None, None, None, 0.0)
    >>> sources.remove("ann"), sources.imperfection, len(sources)
    (None, 0.25, 2)
    """

    __slots__ = ("_imperfect", "_perfect")

    def __init__(self) -> None:
        self._perfect: set[Source] = set()
        self._imperfect: dict[Source, float] = {}

    def __len__(self) -> int:
        return len(self._perfect) + len(self._imperfect)

    def add(self, source: Source, imperfection: float) -> None:
        """Take note of one more."""
        if imperfection:
            self._imperfect[source] = imperfection
        else:
            self._perfect.add(source)

    def remove(self, source: Source) -> None:
        """Forget one."""
        if self._imperfect.pop(source, None) is None:
            self._perfect.remove(source)

    @property
    def imperfection(self) -> float:
        """The share of what the filter matches that none of them may want, at most."""
        return 0.0 if self._perfect or not self._imperfect else min(self._imperfect.values())
