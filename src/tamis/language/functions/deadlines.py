"""What if somebody's function never returns? A deadline for calls.

A function of the host runs in a thread of its own, beside the one that matches, which waits for it no longer than the
limit. A thread cannot be stopped from outside: it is left behind, and ends when the function does. There is one such
thread for every thread that calls functions, made when it is needed.
"""

from __future__ import annotations

import os
import threading
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


class Outcome(NamedTuple):
    """What a call gave: a value, or why there is none."""

    value: Any = None
    failure: str = ""


LATE = "it took longer than its limit"


class _Worker:
    """A thread that calls functions, one job after another."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self.is_left = False
        self.done = 0
        self._inbox: SimpleQueue[tuple[Callable[..., Any], list[tuple[Any, ...]]]] = SimpleQueue()
        self.outbox: SimpleQueue[list[Outcome]] = SimpleQueue()
        self.outcomes: list[Outcome] = []
        threading.Thread(target=self._run, name="tamis-function", daemon=True).start()

    def start(self, function: Callable[..., Any], rows: list[tuple[Any, ...]]) -> None:
        self.outcomes = []
        self._inbox.put((function, rows))

    def _run(self) -> None:
        while not self.is_left:
            function, rows = self._inbox.get()
            outcomes = self.outcomes
            for row in rows:
                try:
                    outcomes.append(Outcome(function(*row)))
                except Exception as error:
                    outcomes.append(Outcome(failure=f"{type(error).__name__}: {error}"[:200]))
                if self.is_left:
                    return
            self.outbox.put(outcomes)


_own = threading.local()


def called(function: Callable[..., Any], rows: Iterable[tuple[Any, ...]], limit_s: float) -> list[Outcome]:
    """Call a function with each of some rows of arguments; a call that takes longer than the limit ends the list.

    >>> [each.value for each in called(max, [(1, 2), (4, 3)], 1.0)]
    [2, 4]
    >>> called(lambda number: 1 // number, [(0,)], 1.0)[0].failure
    'ZeroDivisionError: integer division or modulo by zero'
    """
    asked = list(rows)
    worker: _Worker | None = getattr(_own, "worker", None)
    if worker is None or worker.is_left or worker.process != os.getpid():  # a thread does not live on in a child
        worker = _own.worker = _Worker()
    worker.start(function, asked)
    outcomes = worker.outcomes
    before = 0
    while True:
        try:
            return worker.outbox.get(timeout=limit_s)
        except Empty:
            so_far = len(outcomes)
            if so_far == before:  # the same call all the time
                worker.is_left = True
                return [*outcomes[:so_far], Outcome(failure=LATE)]
            before = so_far
