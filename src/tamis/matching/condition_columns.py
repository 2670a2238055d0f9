"""How does a column of texts stay a column? A sequence of texts that exist only while somebody looks at them.

A million conditions come as a column of Arrow's, and go as packed pages (`sources`). As Python's texts they would take
more memory than all that the matcher keeps of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, overload

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterator

_PAGE = 1 << 12


class ConditionColumn(Sequence[str]):
    """Texts of a column of Arrow's, all of which are there.

    >>> column = ConditionColumn(pa.chunked_array([["price < 20"], ["signed", "sold"]]))
    >>> column[1], column[1:], list(column), len(column)
    ('signed', ['signed', 'sold'], ['price < 20', 'signed', 'sold'], 3)
    """

    def __init__(self, column: pa.ChunkedArray) -> None:
        self._column = column

    @classmethod
    def of(cls, column: Any) -> ConditionColumn | None:
        """Return a column as a sequence of texts; None if it has anything else in it.

        >>> ConditionColumn.of(pa.array(["signed", None])) is None
        True
        """
        if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)) or column.null_count:
            return None
        try:
            column.validate(full=True)  # bytes that are no text are an error later, where nobody expects it
        except pa.ArrowInvalid:
            return None
        return cls(column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column]))

    def __len__(self) -> int:
        return len(self._column)

    @overload
    def __getitem__(self, place: int) -> str: ...

    @overload
    def __getitem__(self, place: slice) -> list[str]: ...

    def __getitem__(self, place: int | slice) -> str | list[str]:
        if isinstance(place, slice):
            first, last, step = place.indices(len(self))
            texts: list[str] = self._column.slice(first, max(0, last - first)).to_pylist()
            return texts if step == 1 else list(self)[place]
        text: str = self._column[place].as_py()
        return text

    def __iter__(self) -> Iterator[str]:
        for first in range(0, len(self), _PAGE):
            yield from self[first : first + _PAGE]


def types_of(values: Sequence[Any]) -> set[type]:
    """Return the types of values, without a look at those of a column of texts.

    >>> types_of(["signed", None]) == {str, type(None)}
    True
    """
    return {str} if isinstance(values, ConditionColumn) and len(values) else set(map(type, values))
