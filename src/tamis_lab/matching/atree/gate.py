"""How do many read what one may change?

Readers share the gate; a writer has it alone. A writer that waits keeps new readers out, so that a stream of matches
does not hold up a registration for ever. Nobody holds the gate for long: readers take it for some events at a time.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


class ReadersWriterLock:
    """Many readers or one writer.

    >>> gate = ReadersWriterLock()
    >>> with gate.reading(), gate.reading():
    ...     print("two readers")
    two readers
    """

    def __init__(self) -> None:
        self._changed = threading.Condition(threading.Lock())
        self._readers = 0
        self._waiting_writers = 0
        self._is_written = False

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Read beside other readers. One who reads already must not ask again where others write."""
        with self._changed:
            while self._is_written or self._waiting_writers:
                self._changed.wait()
            self._readers += 1
        try:
            yield
        finally:
            with self._changed:
                self._readers -= 1
                if not self._readers:
                    self._changed.notify_all()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Write alone."""
        with self._changed:
            self._waiting_writers += 1
            while self._is_written or self._readers:
                self._changed.wait()
            self._waiting_writers -= 1
            self._is_written = True
        try:
            yield
        finally:
            with self._changed:
                self._is_written = False
                self._changed.notify_all()
