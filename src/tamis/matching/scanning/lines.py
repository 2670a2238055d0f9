"""Which lines of a document are events? JSON Lines: an event in each, but for those that are blank."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from tamis.errors import EventError
from tamis.matching.scanning.scanner import decoded

Ints = npt.NDArray[np.int64]


class EventLines:
    r"""Events in JSON, one in each line; those that are blank are passed over, and not counted.

    >>> lines = EventLines(b'{"a": 1}\n\n {"a": 2}\n')
    >>> len(lines), lines.line(1), lines.event(1)
    (2, b' {"a": 2}', {'a': 2})
    """

    def __init__(self, document: bytes | str) -> None:
        if isinstance(document, str):
            document = document.encode("utf-8", "surrogatepass")
        if not isinstance(document, bytes):
            raise EventError(f"events in JSON, one in each line, come as bytes or text, not {type(document).__name__}")
        self._document = document
        self.data: npt.NDArray[np.uint8] = np.frombuffer(document, np.uint8)
        breaks = np.flatnonzero(self.data == ord("\n"))
        starts = np.concatenate([[0], breaks + 1])
        ends = np.concatenate([breaks, [len(document)]])
        seen = np.concatenate([[0], np.cumsum(self.data > ord(" "))])
        is_event = seen[ends] > seen[starts]
        self.starts: Ints = starts[is_event]
        """Where each event begins,"""
        self.ends: Ints = ends[is_event]
        """and where its line ends."""
        self._numbers = np.flatnonzero(is_event)

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def is_utf8(self) -> bool:
        """Is it text, as JSON has to be?"""
        if self._document.isascii():
            return True
        try:
            self._document.decode()
        except UnicodeDecodeError:
            return False
        return True

    def line(self, number: int) -> bytes:
        """Return the line of an event."""
        return self._document[self.starts[number] : self.ends[number]]

    def event(self, number: int) -> dict[str, Any]:
        r"""Return an event, decoded; raise if its line is none.

        >>> EventLines(b'\n[1]').event(0)
        Traceback (most recent call last):
        tamis.errors.EventError: line 2: an event must be a mapping from names to values, not list
        """
        try:
            event = decoded(self.line(number))
            if not isinstance(event, Mapping):
                raise EventError(f"an event must be a mapping from names to values, not {type(event).__name__}")
        except EventError as error:
            raise EventError(f"line {self._numbers[number] + 1}: {error}") from error
        return dict(event)
