"""What does a routing strategy promise? The protocol of strategies.

A strategy answers one question, for each neighbour by itself: what must this neighbour know of the filters of everybody
else? A `Summary` holds the answer. Filters come in and go; `changes` says what to tell the neighbour of it.

What the summary tells covers every filter that came in, so no event is lost (*valid*). If it matches nothing else
either, the strategy is *perfect*: an event crosses the link only if somebody behind it wants it. A filter may come from
a neighbour who wants a share of it in vain, at most; its *imperfection* is told along with it, so that whoever makes
another filter of it knows what was added on the way here.

`told` is the definition, on a plain collection of filters and without a memory; a summary that is fed the same filters
in any order, with any others coming and going in between, tells the same, up to identity of filters. (With merging,
which mergers there are depends on the order; together they match the same.)

Source: Mühl et al. 2002, section 2.2: valid and perfect routing (docs/bibliography.md).
Departs: a summary is computed of the sources of a link, not of what was sent before. The published wording is ambiguous
when
  the same filter comes from several sides and leaves by one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple, TypeAlias

from tamis.routing.comparisons import Comparisons
from tamis.routing.messages import Entry, Key

if TYPE_CHECKING:
    from tamis.language.expressions import Expression
    from tamis.language.schema import Schema
    from tamis.selectivity.estimates import Share

Source: TypeAlias = Hashable
"""Who wants a filter: a peer, and what it calls it."""


@dataclass(frozen=True, slots=True)
class Changes:
    """What to tell a neighbour: new filters, and the keys of those that are no more."""

    added: tuple[Entry, ...] = ()
    removed: tuple[Key, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.removed)


NOTHING = Changes()


def _no_hops(expression: Expression) -> int:
    return 0


class Knowledge(NamedTuple):
    """What a broker knows of predicates: how often events make them true, and what they keep out as advertisements."""

    share: Share
    keeps_out: Share


class Summary(ABC):
    """What one neighbour must know of the filters of everybody else."""

    def __init__(self) -> None:
        self._entries: dict[int, Expression] = {}
        self._imperfections: dict[int, float] = {}
        self._added: dict[int, None] = {}
        self._removed: list[int] = []
        self._next_key = 0
        self.hops_of: Callable[[Expression], int] = _no_hops
        """How far away the nearest subscriber is who wants just this filter; 0 for what nobody said in these words."""

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All that the neighbour is to know."""
        return tuple(map(self._entry, self._entries))

    @abstractmethod
    def add(self, source: Source, expression: Expression, imperfection: float = 0.0) -> None:
        """Take note of a filter from a source that has none yet, which may want a share of it in vain."""

    @abstractmethod
    def remove(self, source: Source) -> None:
        """Forget the filter of a source."""

    @abstractmethod
    def __contains__(self, source: Source) -> bool:
        """Has the source a filter here?"""

    def close(self) -> None:  # noqa: B027 (most summaries share nothing)
        """Let go of what is shared with other links, because the neighbour is gone."""

    def changes(self) -> Changes:
        """Return what happened since this was asked last."""
        if not self._added and not self._removed:
            return NOTHING
        changes = Changes(tuple(map(self._entry, self._added)), tuple(self._removed))
        self._added, self._removed = {}, []
        return changes

    def _entry(self, key: int) -> Entry:
        expression = self._entries[key]
        return Entry(key, expression, self._imperfections.get(key, 0.0), self.hops_of(expression))

    def _put(self, expression: Expression, imperfection: float = 0.0) -> int:
        key = self._next_key
        self._next_key += 1
        self._entries[key] = expression
        if imperfection:
            self._imperfections[key] = imperfection
        self._added[key] = None
        return key

    def _drop(self, key: int) -> None:
        del self._entries[key]
        self._imperfections.pop(key, None)
        if key in self._added:  # the neighbour never heard of it
            del self._added[key]
        else:
            self._removed.append(key)


class WrappingSummary(Summary):
    """A summary that tells in its own way what another one holds: a decorator of `inner`, which has the sources."""

    def __init__(self, inner: Summary) -> None:
        self._inner = inner
        super().__init__()

    @property
    def hops_of(self) -> Callable[[Expression], int]:
        """How far away the nearest subscriber is, as the summary inside knows it."""
        return self._inner.hops_of

    @hops_of.setter
    def hops_of(self, given: Callable[[Expression], int]) -> None:
        self._inner.hops_of = given

    def __len__(self) -> int:
        return len(self._inner)

    def __contains__(self, source: Source) -> bool:
        return source in self._inner

    def add(self, source: Source, expression: Expression, imperfection: float = 0.0) -> None:
        self._inner.add(source, expression, imperfection)

    def remove(self, source: Source) -> None:
        self._inner.remove(source)

    def close(self) -> None:
        self._inner.close()


class Strategy(ABC):
    """A way to tell neighbours what one wants."""

    name: ClassVar[str]
    is_perfect: bool = True

    def __init__(self, schema: Schema | None = None) -> None:
        self.schema = schema
        self.comparisons = Comparisons(schema)
        """What was found out about filters, for all brokers that have this strategy."""

    @abstractmethod
    def summary(self) -> Summary:
        """Return a summary for one neighbour, with nothing in it."""

    def summary_for(self, neighbour: str, knowledge: Knowledge) -> Summary:
        """Return a summary for a neighbour, of a broker that knows how often predicates are true."""
        return self.summary()

    @abstractmethod
    def told(self, filters: Iterable[Expression]) -> list[Expression]:
        """Return what a neighbour must know of these filters: the definition."""
