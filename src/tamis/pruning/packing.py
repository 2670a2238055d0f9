"""How are filters kept that are hardly ever asked for? A compressed page store.

As text, packed by the page. What a filter was before it was pruned is needed to take the pruning back, and when it
leaves; as a tree it would take more memory than the pruning saved.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from tamis.matching.sources import parsed

if TYPE_CHECKING:
    from tamis.language.expressions import Expression

_PAGE = 256
"""So many texts are packed together: more pack better, and less is unpacked to read one."""


class Packed:
    """Filters by number.

    >>> import tamis
    >>> packed = Packed()
    >>> number = packed.add(tamis.parse("price < 20 AND sold"))
    >>> print(packed[number])
    price < 20 AND sold
    """

    __slots__ = ("_last", "_living", "_open", "_packed")

    def __init__(self) -> None:
        self._packed: list[tuple[bytes, int] | None] = []
        """Pages, and how many bytes each has unpacked; None once all of its texts are gone."""
        self._living: list[int] = []
        self._open: list[bytes] = []
        self._last: tuple[int, list[bytes]] = (-1, [])
        """The page that was read last: filters are read in their order, mostly."""

    def add(self, expression: Expression) -> int:
        """Keep a filter; return its number."""
        if len(self._open) == _PAGE:
            data = b"\0".join(text.replace(b"\1", b"\1\2").replace(b"\0", b"\1\1") for text in self._open)
            page = None if not self._living[-1] else (pa.compress(data, "zstd", asbytes=True), len(data))
            self._packed.append(page)
            self._open = []
        if not self._open:
            self._living.append(0)
        self._open.append(str(expression).encode("utf-8", "surrogatepass"))
        self._living[-1] += 1
        return _PAGE * len(self._packed) + len(self._open) - 1

    def __getitem__(self, number: int) -> Expression:
        page, place = divmod(number, _PAGE)
        if page == len(self._packed):
            text = self._open[place]
        else:
            if self._last[0] != page:
                packed = self._packed[page]
                assert packed is not None, "a filter that is gone is not asked for"
                data = pa.decompress(packed[0], packed[1], "zstd", asbytes=True)
                texts = [text.replace(b"\1\1", b"\0").replace(b"\1\2", b"\1") for text in data.split(b"\0")]
                self._last = page, texts
            text = self._last[1][place]
        return parsed(text.decode("utf-8", "surrogatepass"))

    def forget(self, number: int) -> None:
        """Drop a filter."""
        page, place = divmod(number, _PAGE)
        self._living[page] -= 1
        if page == len(self._packed):
            self._open[place] = b""
        elif not self._living[page]:
            self._packed[page] = None
            if self._last[0] == page:
                self._last = (-1, [])
