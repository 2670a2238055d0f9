"""What did a neighbour say before it was started anew, and says again? Names of filters across its lives.

A broker that is started anew calls its filters by new numbers, from 0 on. Most of them are those of before. Until its
new Hello has come, all that it said before is in force; then each filter that comes again goes on under the name that
it has here, and nobody else hears of it. What is not said again is gone. How far away a filter is wanted is a hint, and
no reason to tell it again.

So a neighbour's numbers are not the names here, once it has been renewed. They are translated where a message comes in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tamis.language.expressions import Expression
    from tamis.routing.messages import Entry, Key

Content: TypeAlias = "tuple[Expression, float, int]"
"""A filter, its imperfection, and how far away it is wanted."""


class Names:
    """What a neighbour calls its filters, and what they are called here.

    >>> import tamis
    >>> from tamis.routing import Entry
    >>> cheap, dear = tamis.parse("price < 20"), tamis.parse("price > 90")
    >>> names = Names()
    >>> names.given(Entry(7, cheap)), names.renew({7: (cheap, 0.0, 0), 8: (dear, 0.0, 0)})
    (7, None)
    >>> names.recognised(Entry(0, cheap)), names.own(0), names.unsaid()
    (True, 7, [8])
    """

    def __init__(self) -> None:
        self._own: dict[Key, Key] | None = None
        """Names here by the neighbour's numbers; None while both are the same."""
        self._before: dict[tuple[Expression, float], list[Key]] = {}
        self._unsaid: dict[Key, None] = {}
        self._next = 0

    @property
    def is_renewing(self) -> bool:
        """May there be something that the neighbour said before, and has not said again?"""
        return bool(self._unsaid)

    def renew(self, known: Mapping[Key, Content], others: tuple[Key, ...] = ()) -> None:
        """The neighbour is started anew, and may say these again; and others that end in any case."""
        self._own = {}
        self._before = {}
        for key, (expression, imperfection, _) in known.items():
            self._before.setdefault((expression, imperfection), []).append(key)
        self._unsaid = dict.fromkeys((*known, *others))

    def recognised(self, entry: Entry) -> bool:
        """Is it what the neighbour said before? Then it goes on under its old name."""
        keys = self._before.get((entry.condition, entry.imperfection))
        if not keys:
            return False
        assert self._own is not None
        key = self._own[entry.key] = keys.pop()
        del self._unsaid[key]
        return True

    def given(self, entry: Entry) -> Key:
        """Return a name for a filter that is new."""
        assert isinstance(entry.key, int), "the message was checked"
        if self._own is None:
            self._next = max(self._next, entry.key + 1)
            return entry.key
        key = self._own[entry.key] = self._next
        self._next += 1
        return key

    def own(self, number: Key) -> Key | None:
        """Return what is called so by the neighbour; None if nothing is."""
        return number if self._own is None else self._own.get(number)

    def forget(self, number: Key) -> Key | None:
        """Return the same, which is about to be gone."""
        return number if self._own is None else self._own.pop(number, None)

    def numbers(self, keys: Mapping[Key, Expression]) -> dict[Key, Expression]:
        """Return filters by the neighbour's numbers, without those that it has not said again."""
        if self._own is None:
            return dict(keys)
        return {number: keys[key] for number, key in self._own.items() if key in keys}

    def unsaid(self) -> list[Key]:
        """Return what the neighbour did not say again, and forget it: its new Hello is complete."""
        keys = list(self._unsaid)
        self._unsaid, self._before = {}, {}
        return keys
