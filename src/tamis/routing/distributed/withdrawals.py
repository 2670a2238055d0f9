"""Which events were withdrawn, and since when?

Whoever published an event may take it back: from then on nobody is told of it, and it keeps its place in all windows.
Every node hears of it, because any may be home of somebody who would be told of the event later, when a better one
leaves. The home keeps it from its clients; where their subscriptions live, nothing changes.

Source: Pripužić 2010, section 2.3, definition 2.58 (docs/bibliography.md).
"""

from __future__ import annotations

from collections import OrderedDict
from math import inf
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tamis.routing.messages import Key


class Withdrawals:
    """The latest so many withdrawals.

    >>> withdrawals = Withdrawals(2)
    >>> withdrawals.add("e1", 5.0), withdrawals.add("e1", 9.0)
    (True, False)
    >>> withdrawals.is_over("e1", 4.0), withdrawals.is_over("e1", 5.0)
    (False, True)
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._since: OrderedDict[Key, float] = OrderedDict()

    def __contains__(self, key: Key) -> bool:
        return key in self._since

    def add(self, key: Key, at: float) -> bool:
        """Note that an event was withdrawn then; return whether that is new."""
        if key in self._since:
            return False
        self._since[key] = at
        if len(self._since) > self._most:
            self._since.popitem(last=False)
        return True

    def is_over(self, key: Key, moment: float) -> bool:
        """Was an event withdrawn by a moment?"""
        return self._since.get(key, inf) <= moment
