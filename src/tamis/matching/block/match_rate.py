"""How many subscriptions does an event match, about?

The shortcut past destinations that are reached pays where many subscriptions of one destination match. Where an event
matches a few, all matches are sooner found than the shortcut has looked whom it may pass over. So before a batch a few
of its events are matched one by one; whoever lists all matches of a batch knows the rate exactly, and says so.

A rate that was once high falls slowly: to list far too much costs more than to take the shortcut in vain.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from tamis.matching.columns import Events

_LISTED_MATCHES = 24.0
"""Up to so many matches of an event are sooner listed than passed over."""
_ONE_OF = 512
_MOST_SAMPLED = 16
"""One of so many events of a batch is matched beforehand, and at most so many: a hundredth of the batch's time."""
_FADING = 0.75


class MatchRate:
    """The number of matches of an event, as far as it was seen.

    >>> rate = MatchRate()
    >>> rate.is_low
    False
    >>> rate.saw(event_count=100, match_count=150)
    >>> rate.is_low
    True
    """

    __slots__ = ("_rate",)

    def __init__(self) -> None:
        self._rate: float | None = None

    @property
    def is_low(self) -> bool:
        """Does an event match a few subscriptions only? False as long as nothing is known."""
        return self._rate is not None and self._rate <= _LISTED_MATCHES

    def saw(self, event_count: int, match_count: int) -> None:
        """Take note of the matches of some events."""
        seen = match_count / event_count
        self._rate = seen if self._rate is None else max(seen, _FADING * self._rate + (1 - _FADING) * seen)

    def sample(self, events: Events, match_count: Callable[[Mapping[str, Any]], int]) -> None:
        """Count the matches of some events of a batch, if it is so large that this does not matter."""
        count = min(_MOST_SAMPLED, events.count // _ONE_OF)
        if count:
            some = events.take(np.linspace(0, events.count - 1, count).astype(np.int64))
            self.saw(count, sum(map(match_count, some.mappings())))
