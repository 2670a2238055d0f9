"""Which notifications does a call return, and in which order? By time, and at one time by registration.

There may be very many, so they are kept as columns, and made into notifications at the end, all together.
"""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tamis.standing.notification import Notification

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import numpy.typing as npt

ChangesTold: TypeAlias = "bool | list[bool] | None"
_SORTED_BY_HAND = 64
"""So few are sorted sooner without arrays."""


class PendingNotifications:
    """The notifications that a call has produced so far, as columns.

    >>> pending = PendingNotifications({5: "a", 7: "b", 8: "c"}.__getitem__)
    >>> pending.one(2.0, 7, ("e2",), None)
    >>> pending.many(np.array([1.0, 2.0]), np.array([8, 5]), [("e1",), ("e2",)], True)
    >>> [(each.subscription, each.at) for each in pending.notifications()]
    [('c', 1.0), ('a', 2.0), ('b', 2.0)]
    """

    __slots__ = ("_changes", "_events", "_id_of", "_ids", "_numbers", "_times")

    def __init__(self, id_of: Callable[[int], Any]) -> None:
        """Begin with nothing; `id_of` returns the id of the subscription of a number."""
        self._id_of = id_of
        self._times: list[float] = []
        self._numbers: list[int] = []
        self._ids: list[Any] = []
        self._events: list[tuple[Any, ...]] = []
        self._changes: list[bool | None] = []

    def __len__(self) -> int:
        return len(self._times)

    def one(self, at: float, number: int, events: tuple[Any, ...], change: bool | None = None) -> None:
        """Add a notification of one subscription, by its number."""
        self._ids.append(self._id_of(number))
        self._times.append(at)
        self._numbers.append(number)
        self._events.append(events)
        self._changes.append(change)

    def many(
        self,
        times: npt.NDArray[np.float64],
        numbers: npt.NDArray[np.int64],
        events: Iterable[tuple[Any, ...]],
        change: ChangesTold,
    ) -> None:
        """Add what many are told, all of one kind, or each with a change of its own."""
        listed = numbers.tolist()
        self._ids += map(self._id_of, listed)  # now: who ends before the call does has an id now
        self._times += times.tolist()
        self._numbers += listed
        self._events += events
        self._changes += change if isinstance(change, list) else repeat(change, len(listed))

    def notifications(self) -> list[Notification]:
        """Return all of it, in order."""
        columns: tuple[Any, ...] = (self._ids, self._events, self._times, self._changes)
        count = len(self._times)
        if count > 1:
            if count <= _SORTED_BY_HAND:
                keys = list(zip(self._times, self._numbers, strict=True))
                order = sorted(range(count), key=keys.__getitem__)
            else:
                order = np.lexsort((np.array(self._numbers), np.array(self._times))).tolist()
            # By columns: rows to be sorted would be as many objects more.
            columns = tuple([map(column.__getitem__, order) for column in columns])
        # `Notification._make` of each, without a call of Python's.
        return list(map(tuple.__new__, repeat(Notification), zip(*columns, strict=True)))
