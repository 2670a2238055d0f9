"""What does a child process inherit that was forked while threads were at work? Fork handlers.

Memory, and nobody who works in it: a lock that another thread held stays locked for ever, a table that it was changing
stays half changed, a merge that it had begun never ends. So before a fork we wait until nobody is in the middle of a
change, by taking every lock ourselves, and give them back on both sides; then the child forgets the threads that it
does not have. (A child of `multiprocessing` with the method "spawn" shares nothing, and needs none of this.)

Locks are taken in one order, those of matchers before those of their algorithms, because that is how everybody else
takes them. The compiler's lock comes last: a merge in the background may be compiling.

A module that another thread was importing cannot be imported in the child either. numba asks numpy for `numpy.ma` at
its first call, outside of its lock, and numpy imports it only then; so it is imported here.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any, Protocol
from weakref import WeakSet

import numpy.ma  # noqa: F401 (see above)
from numba.core.compiler_lock import global_compiler_lock

if TYPE_CHECKING:
    from collections.abc import Sequence

MATCHERS, ENGINES = 0, 1
"""In which order locks are taken."""


class Forkable(Protocol):
    """Something with locks, and perhaps with threads."""

    @property
    def locks(self) -> Sequence[Any]: ...

    def after_fork(self) -> None: ...


_protected: tuple[WeakSet[Any], WeakSet[Any]] = (WeakSet(), WeakSet())
_guard = threading.Lock()
"""Of the sets above."""
_held: list[Any] = []


def protect(owner: Forkable, order: int) -> None:
    """Let something be whole in whatever process is forked from now on, as long as it lives."""
    with _guard:
        _protected[order].add(owner)


def _before() -> None:
    # The matchers are listed before the guard is kept: whoever makes one takes the guard while holding no lock of ours,
    # but a matcher that renumbers itself makes an algorithm, and takes the guard while holding its own.
    with _guard:
        owners = [owner for group in _protected for owner in group]
    for owner in owners:
        for lock in owner.locks:
            lock.acquire()
            _held.append(lock)
    _guard.acquire()
    global_compiler_lock.acquire()


def _after() -> None:
    global_compiler_lock.release()
    _guard.release()
    while _held:
        _held.pop().release()


def _in_child() -> None:
    owners = [owner for group in _protected for owner in group]
    for owner in owners:
        owner.after_fork()
    _after()


if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
    os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_in_child)
