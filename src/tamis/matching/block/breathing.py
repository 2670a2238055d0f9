"""How does a thread in the background leave the others their time?

Python runs one thread at a time, and takes the turn from one that does not give it away after 5 ms only: a hundred
times as long as a match takes. So work in the background is *cooperative*: between its steps it asks whether it has
worked for a while, and if so it sleeps for a moment. In any other thread the question costs nothing and does nothing.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from time import perf_counter, sleep
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_TURN_S = 0.0002
"""How long to work,"""
_PAUSE_S = 0.0005
"""and how long to sleep then."""


class _Turn(threading.local):
    since: float | None = None
    """When the turn of this thread began; None in threads that need not give way."""


_turn = _Turn()


@contextmanager
def in_background() -> Iterator[None]:
    """Give way to other threads within."""
    _turn.since = perf_counter()
    try:
        yield
    finally:
        _turn.since = None


def breathe() -> None:
    """Let others have their turn, if this thread is in the background and has worked for a while."""
    since = _turn.since
    if since is not None and perf_counter() - since > _TURN_S:
        sleep(_PAUSE_S)
        _turn.since = perf_counter()
