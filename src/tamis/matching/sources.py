"""What did people register? The stored texts, compressed by the page.

A matcher keeps every condition as it was given, a text or an expression, to explain matches and to save itself. The
texts of a saved matcher stay in its file, and others are packed: a million of them need not become a million strings
for the few that somebody asks for.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from itertools import compress, islice, repeat
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tamis.errors import LimitError, TamisError
from tamis.language.limits import DEFAULT_LIMITS
from tamis.language.parser import parse
from tamis.matching.columns import Texts
from tamis.matching.errors import SavedMatcherError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tamis.language.expressions import Expression

# What a matcher took once, it takes again; a pattern needs no more memory than it did.
WIDE = replace(
    DEFAULT_LIMITS,
    **dict.fromkeys(("text_length", "depth", "nodes", "list_length", "pattern_length"), sys.maxsize),
)


_PAGE = 512
"""So many texts are packed together: more pack better, and less is unpacked to read one."""


class _Page:
    """Some conditions that came one after the other, texts packed by a compressor."""

    __slots__ = ("_expressions", "_living", "_packed", "_sizes")

    def __init__(self, conditions: list[str | Expression | None]) -> None:
        texts = [each if isinstance(each, str) else "" for each in conditions]
        joined = "".join(texts)
        if joined.isascii():  # which is quicker than to encode each
            data, sizes = joined.encode(), list(map(len, texts))
        else:
            encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
            data, sizes = b"".join(encoded), list(map(len, encoded))
        self._sizes = np.array(sizes, np.int32)
        self._packed = pa.compress(data, "zstd", asbytes=True)
        self._expressions = {
            index: condition
            for index, condition in enumerate(conditions)
            if condition is not None and not isinstance(condition, str)
        }
        self._living = np.array([condition is not None for condition in conditions], np.bool_)

    def __getitem__(self, index: int) -> str | Expression | None:
        if not self._living[index]:
            return None
        return self._expressions[index] if index in self._expressions else self._unpacked([index])[0]

    def __iter__(self) -> Iterator[str | Expression | None]:
        texts = self._unpacked(range(len(self._sizes)))
        for index, text in enumerate(texts):
            yield self._expressions.get(index, text) if self._living[index] else None

    def forget(self, index: int) -> bool:
        """Drop one of them; return whether any is left."""
        self._living[index] = False
        self._expressions.pop(index, None)
        return bool(self._living.any())

    def _unpacked(self, asked: Iterable[int]) -> list[str]:
        total = int(self._sizes.sum())
        data = pa.decompress(self._packed, total, "zstd", asbytes=True) if total else b""
        ends = np.cumsum(self._sizes, dtype=np.int64)
        return [
            data[ends[index] - self._sizes[index] : ends[index]].decode("utf-8", "surrogatepass") for index in asked
        ]

    @property
    def living(self) -> npt.NDArray[np.bool_]:
        return self._living

    def copy(self) -> _Page:
        """Return a page that is not changed where this one is."""
        copied = _Page.__new__(_Page)
        copied._sizes, copied._packed = self._sizes, self._packed
        copied._expressions, copied._living = self._expressions.copy(), self._living.copy()
        return copied

    def memory(self) -> int:
        return len(self._packed) + self._sizes.nbytes + self._living.nbytes + sys.getsizeof(self._expressions)


class Sources:
    """The conditions of subscriptions by their handles; None once a subscription is removed.

    >>> sources = Sources(Texts.of(["price < 20", "price < 30"]), np.array([True, False]))
    >>> sources.extend(["signed"])
    >>> [sources[handle] for handle in range(len(sources))]
    ['price < 20', None, 'signed']
    """

    __slots__ = ("_alive", "_given", "_pages", "_saved")

    def __init__(self, saved: Texts | None = None, alive: npt.NDArray[np.bool_] | None = None) -> None:
        self._saved = saved or Texts.of([])
        self._alive = np.ones(len(self._saved), np.bool_) if alive is None else alive.copy()
        self._pages: list[_Page | None] = []
        """Those of `_PAGE` conditions each that came first; None once all of them are removed."""
        self._given: list[str | Expression | None] = []
        """Those that came last, too few for a page."""

    def __len__(self) -> int:
        return len(self._saved) + _PAGE * len(self._pages) + len(self._given)

    def __getitem__(self, handle: int) -> str | Expression | None:
        index = handle - len(self._saved)
        if index < 0:
            return self._bytes(handle).decode() if self._alive[handle] else None
        if index >= _PAGE * len(self._pages):
            return self._given[index - _PAGE * len(self._pages)]
        page = self._pages[index // _PAGE]
        return None if page is None else page[index % _PAGE]

    def _bytes(self, handle: int) -> bytes:
        return self._saved.data[self._saved.offsets[handle] : self._saved.offsets[handle + 1]].tobytes()

    def extend(self, conditions: Iterable[str | Expression | None]) -> None:
        """Take the conditions of the next handles."""
        waiting = iter(conditions)
        while more := list(islice(waiting, _PAGE - len(self._given))):
            self._given += more
            if len(self._given) == _PAGE:
                self._pages.append(_Page(self._given) if any(each is not None for each in self._given) else None)
                self._given = []

    def forget(self, handle: int) -> None:
        """Drop the condition of a subscription that is removed."""
        index = handle - len(self._saved)
        if index < 0:
            self._alive[handle] = False
        elif index >= _PAGE * len(self._pages):
            self._given[index - _PAGE * len(self._pages)] = None
        else:
            page = self._pages[index // _PAGE]
            if page is not None and not page.forget(index % _PAGE):
                self._pages[index // _PAGE] = None

    def __iter__(self) -> Iterator[str | Expression | None]:
        for handle, alive in enumerate(self._alive.tolist()):
            yield self._bytes(handle).decode() if alive else None
        for page in self._pages:
            yield from page or repeat(None, _PAGE)
        yield from self._given

    def chosen(self, handles: npt.NDArray[np.int64]) -> Sources:
        """Return the conditions of some handles, which are in order, under the handles 0, 1, ...

        >>> sources = Sources(Texts.of(["price < 20", "price < 30", "signed"]), np.array([True, False, True]))
        >>> list(sources.chosen(np.array([1, 2])))
        [None, 'signed']
        """
        is_chosen = np.zeros(len(self), np.bool_)
        is_chosen[handles] = True
        fresh = Sources()
        fresh.extend(compress(self, is_chosen))
        return fresh

    def copy(self) -> Sources:
        """Return the present conditions, whatever is registered and removed later."""
        copied = Sources(self._saved, self._alive)
        copied._pages = [None if page is None else page.copy() for page in self._pages]
        copied._given = self._given.copy()
        return copied

    @property
    def alive(self) -> npt.NDArray[np.bool_]:
        """Which of them are registered still."""
        return np.concatenate(
            [
                self._alive,
                *(np.zeros(_PAGE, np.bool_) if page is None else page.living for page in self._pages),
                np.array([given is not None for given in self._given], np.bool_),
            ]
        )

    def texts(self) -> Texts:
        """Return all of them as texts; that of a removed subscription is empty."""
        texts = [_encoded(condition) for condition in self]
        offsets = np.zeros(len(texts) + 1, np.int64)
        np.cumsum([len(text) for text in texts], out=offsets[1:])
        return Texts(np.frombuffer(b"".join(texts), np.uint8), offsets)

    def memory(self) -> int:
        """Return how many bytes the texts take; expressions are not counted, who gave them has them too."""
        given = sum(sys.getsizeof(condition) for condition in self._given if isinstance(condition, str))
        pages = sum(page.memory() for page in self._pages if page is not None)
        return given + sys.getsizeof(self._given) + pages + self._saved.data.nbytes + self._saved.offsets.nbytes


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
    raise SavedMatcherError(f"this expression has no text form, so it cannot be saved: {text}")


def parsed(text: str) -> Expression:
    """Return the expression of a text that was one before."""
    try:
        return parse(text)
    except LimitError:  # an expression can be built larger than a text may be written
        return parse(text, limits=WIDE)
