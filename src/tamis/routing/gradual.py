"""What does a neighbour know while it is still being worked out what it must know? A provisional summary.

At first it is told TRUE, so that events go its way at once. The summary of what it must know is filled meanwhile, in
steps, by whoever has the time, and nobody is told of it: what is covered in the end need not be said in between. Once
it is full, it is told in parts, and the last part takes TRUE back. So what the neighbour knows is never too narrow, and
in the end it is what it would have been in one piece.

TRUE is for the neighbour alone. It does not tell it on (`messages.PROVISIONAL`): the brokers behind it would take back
all that they know, which TRUE covers, only to be told all of it again a moment later.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from tamis.language.expressions import TRUE
from tamis.routing.base import NOTHING, Changes, Summary, WrappingSummary
from tamis.routing.messages import PROVISIONAL, Entry

if TYPE_CHECKING:
    from tamis.language.expressions import Expression
    from tamis.routing.messages import Key


class GradualSummary(WrappingSummary):
    """Another summary, in place of which the neighbour is told TRUE until it is full.

    >>> import tamis
    >>> from tamis.routing import Covering
    >>> gradual = GradualSummary(Covering().summary())
    >>> gradual.add(("ann", 1), tamis.parse("x = 1")), gradual.changes()
    (None, Changes(added=(), removed=()))
    >>> [str(entry.filter) for entry in gradual.entries]
    ['TRUE']
    >>> gradual.tell(100), gradual.changes()
    (None, Changes(added=(Entry(key=0, filter=..., imperfection=0.0, hops=0, priority=0),), removed=(-1,)))
    """

    def __init__(self, inner: Summary, everything: Expression = TRUE) -> None:
        """`everything` takes the place of TRUE: all that may come from the neighbour."""
        super().__init__(inner)
        self._everything = everything
        self.is_provisional = True
        """Does the neighbour know TRUE?"""
        self._waiting: dict[Key, Entry] = {}
        """What the neighbour does not know yet."""
        self._ready: dict[Key, Entry] = {}
        """What it is told next."""
        self._gone: list[Key] = []

    def __len__(self) -> int:
        return len(self.entries) if self.is_provisional else len(self._inner)

    @property
    def entries(self) -> tuple[Entry, ...]:
        if not self.is_provisional:
            return self._inner.entries
        self._take_over()
        return (
            Entry(PROVISIONAL, self._everything, 1.0),
            *(entry for entry in self._inner.entries if entry.key not in self._waiting),
        )

    def changes(self) -> Changes:
        if not self.is_provisional and not self._ready and not self._gone:
            return self._inner.changes()
        self._take_over()
        if not self.is_provisional:
            self._ready |= self._waiting
            self._waiting = {}
        if not self._ready and not self._gone:
            return NOTHING
        changes = Changes(tuple(self._ready.values()), tuple(self._gone))
        self._ready, self._gone = {}, []
        return changes

    def tell(self, most: int) -> None:
        """Let the neighbour be told so many filters more of those that it does not know; with the last, TRUE ends."""
        self._take_over()
        for key in list(islice(self._waiting, most)):
            self._ready[key] = self._waiting.pop(key)
        if self.is_provisional and not self._waiting:
            self.is_provisional = False
            self._gone.append(PROVISIONAL)

    def begin_again(self) -> None:
        """Let a neighbour that has forgotten everything know TRUE, and nothing else yet, unless it knew all before."""
        if self.is_provisional:
            self._take_over()
            self._waiting = {entry.key: entry for entry in self._inner.entries}
            self._ready, self._gone = {}, []

    def _take_over(self) -> None:
        """Note what has changed, and what of it the neighbour never heard of."""
        changes = self._inner.changes()
        for key in changes.removed:
            if self._waiting.pop(key, None) is None and self._ready.pop(key, None) is None:
                self._gone.append(key)
        for entry in changes.added:
            self._waiting[entry.key] = entry
