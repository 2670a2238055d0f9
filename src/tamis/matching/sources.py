"""What did people register?

A matcher keeps every condition as it was given, a text or an expression, to explain matches and to save itself. The
texts of a saved matcher stay in its file: a million of them need not become a million strings for the few that somebody
asks for.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tamis.errors import LimitError, TamisError
from tamis.language.limits import DEFAULT_LIMITS
from tamis.language.parser import parse
from tamis.matching.columns import Texts
from tamis.matching.errors import SavedMatcherError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tamis.language.expressions import Expression

# What a matcher took once, it takes again; a pattern needs no more memory than it did.
WIDE = replace(
    DEFAULT_LIMITS,
    **dict.fromkeys(("text_length", "depth", "nodes", "list_length", "pattern_length"), sys.maxsize),
)


class Sources:
    """The conditions of subscriptions by their handles; None once a subscription is removed.

    >>> sources = Sources(Texts.of(["price < 20", "price < 30"]), np.array([True, False]))
    >>> sources.extend(["signed"])
    >>> [sources[handle] for handle in range(len(sources))]
    ['price < 20', None, 'signed']
    """

    __slots__ = ("_alive", "_given", "_saved")

    def __init__(self, saved: Texts | None = None, alive: npt.NDArray[np.bool_] | None = None) -> None:
        self._saved = saved or Texts.of([])
        self._alive = np.ones(len(self._saved), np.bool_) if alive is None else alive.copy()
        self._given: list[str | Expression | None] = []

    def __len__(self) -> int:
        return len(self._saved) + len(self._given)

    def __getitem__(self, handle: int) -> str | Expression | None:
        if handle >= len(self._saved):
            return self._given[handle - len(self._saved)]
        return self._bytes(handle).decode() if self._alive[handle] else None

    def _bytes(self, handle: int) -> bytes:
        return self._saved.data[self._saved.offsets[handle] : self._saved.offsets[handle + 1]].tobytes()

    def extend(self, conditions: Iterable[str | Expression]) -> None:
        """Take the conditions of the next handles."""
        self._given += conditions

    def forget(self, handle: int) -> None:
        """Drop the condition of a subscription that is removed."""
        if handle >= len(self._saved):
            self._given[handle - len(self._saved)] = None
        else:
            self._alive[handle] = False

    def copy(self) -> Sources:
        """Return the present conditions, whatever is registered and removed later."""
        copied = Sources(self._saved, self._alive)
        copied._given = self._given.copy()
        return copied

    @property
    def alive(self) -> npt.NDArray[np.bool_]:
        """Which of them are registered still."""
        return np.concatenate([self._alive, np.array([given is not None for given in self._given], np.bool_)])

    def texts(self) -> Texts:
        """Return all of them as texts; that of a removed subscription is empty."""
        saved = [self._bytes(handle) if alive else b"" for handle, alive in enumerate(self._alive)]
        given = [_encoded(condition) for condition in self._given]
        offsets = np.zeros(len(self) + 1, np.int64)
        np.cumsum([len(text) for text in saved + given], out=offsets[1:])
        return Texts(np.frombuffer(b"".join(saved + given), np.uint8), offsets)

    def memory(self) -> int:
        """Return how many bytes the texts take; expressions are not counted, they share their parts."""
        given = sum(sys.getsizeof(condition) for condition in self._given if isinstance(condition, str))
        return given + sys.getsizeof(self._given) + self._saved.data.nbytes + self._saved.offsets.nbytes


def _encoded(condition: str | Expression | None) -> bytes:
    if condition is None:
        return b""
    return (condition if isinstance(condition, str) else written(condition)).encode()


def written(expression: Expression) -> str:
    """Return the text of an expression, having seen that the parser reads the same from it.

    What was built by hand can be anything, and a matcher that cannot be loaded should not be saved.
    """
    text = str(expression)
    try:
        if parsed(text) == expression:
            return text
    except TamisError:
        pass
    raise SavedMatcherError(f"no text says this expression, so it cannot be saved: {text}")


def parsed(text: str) -> Expression:
    """Return the expression of a text that was one before."""
    try:
        return parse(text)
    except LimitError:  # an expression can be built larger than a text may be written
        return parse(text, limits=WIDE)
