"""Who is registered, and who was when somebody began to look?

Subscriptions have *slots*, places in arrays, in the order of their handles. New ones are appended, so an array that was
handed out stays what it was as far as it reached. A removal writes down *when*: whoever looks at an earlier moment
still finds the subscription. Nothing is ever changed that somebody reads, and nothing is copied. Slots of the dead are
given out again when everything is laid out anew, which happens when a quarter of them are dead.

    slot       0    1    2    3
    handle     4    7    8    12        in order, so a handle's slot is found by bisection
    death      -    2    -    -         the second removal was that of handle 7; a snapshot of version 1 still has it
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tamis.matching.base import Handles

ALIVE = 2**32 - 1
"""The death of those who live."""
_LEFT_AS_THEY_ARE = 64
"""So many who are not laid out yet, or dead, are left as they are."""
_NEW = 64
"""Everything is laid out anew when more than one in so many is not laid out yet."""

Array = npt.NDArray[Any]


class Growing:
    """An array that grows at its end. What was handed out stays what it was.

    >>> numbers = Growing(np.int64)
    >>> before = numbers.extended([3, 1])
    >>> numbers.extended([4]).tolist(), before.tolist()
    ([3, 1, 4], [3, 1])
    """

    __slots__ = ("_array", "count")

    def __init__(self, dtype: Any, values: Any = ()) -> None:
        self._array: Array = np.array(values, dtype)
        self.count = len(self._array)

    @property
    def values(self) -> Array:
        return self._array[: self.count]

    def extended(self, values: Any) -> Array:
        """Append, and return all that is there now."""
        count = self.count + len(values)
        if count > len(self._array):
            grown = np.empty(max(16, count, len(self._array) * 3 // 2), self._array.dtype)
            grown[: self.count] = self._array[: self.count]
            self._array = grown
        self._array[self.count : count] = values
        self.count = count
        return self._array[:count]

    def widened(self, dtype: Any) -> None:
        """Go on with a wider type."""
        if self._array.dtype != dtype:
            self._array = self._array.astype(dtype)

    @property
    def nbytes(self) -> int:
        """The bytes of what is there, without the room to grow."""
        return self.count * self._array.itemsize


class Roll:
    """The subscriptions by slot: their handles, and their deaths."""

    def __init__(self) -> None:
        self._handles = Growing(np.int64)
        self._deaths = Growing(np.uint32)
        self.version = 0
        """How many were removed since everything was laid out."""

    def __len__(self) -> int:
        return self._handles.count

    @property
    def handles(self) -> Handles:
        return self._handles.values

    @property
    def deaths(self) -> npt.NDArray[np.uint32]:
        return self._deaths.values

    @property
    def living(self) -> int:
        """How many are registered."""
        return len(self) - self.version

    def enter(self, handles: Sequence[int]) -> int:
        """Register some; return the slot of the first, the others follow."""
        first = len(self)
        self._handles.extended(handles)
        self._deaths.extended(np.full(len(handles), ALIVE, np.uint32))
        return first

    def leave(self, handle: int) -> int:
        """Remove one; return the slot that it had."""
        slot = int(np.searchsorted(self.handles, handle))
        assert self.handles[slot] == handle, f"{handle} is not registered"
        assert self.deaths[slot] == ALIVE, f"{handle} was removed before"
        self.version += 1
        self.deaths[slot] = self.version
        return slot

    def compacted(self) -> npt.NDArray[np.int64]:
        """Leave the dead out; return the slots that the living had."""
        kept: npt.NDArray[np.int64] = np.flatnonzero(self.deaths == ALIVE)
        self._handles = Growing(np.int64, self.handles[kept])
        self._deaths = Growing(np.uint32, np.full(len(kept), ALIVE, np.uint32))
        self.version = 0
        return kept

    def memory(self) -> int:
        return self._handles.nbytes + self._deaths.nbytes


def is_due(known: int, count: int, roll: Roll) -> bool:
    """Is it time to lay everything out anew, where so many are laid out already of so many that there are?

    An event asks what is not laid out one by one, so that should be little; a quarter of the subscriptions may be dead.
    Either way the work is that of a constant number of steps for each who came or went.
    """
    return count - known > max(_LEFT_AS_THEY_ARE, known // _NEW) or roll.version > max(
        _LEFT_AS_THEY_ARE, roll.living // 3
    )


class Scratch(threading.local):
    """Arrays that a thread works in, kept between calls: fresh memory costs more than most events do."""

    def __init__(self) -> None:
        self._arrays: dict[str, Array] = {}

    def zeros(self, name: str, count: int, dtype: Any) -> Array:
        """Return an array that was all zeros, if everybody who used it left it so."""
        array = self._arrays.get(name)
        if array is None or len(array) < count or array.dtype != dtype:
            array = self._arrays[name] = np.zeros(count + count // 4 + 64, dtype)
        return array[:count]

    def empty(self, name: str, count: int, dtype: Any) -> Array:
        """Return an array with anything in it."""
        return self.zeros(name, count, dtype)
