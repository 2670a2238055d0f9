"""Which predicates were true, while a matcher matched? Sampled predicate counters.

An event's code on an axis decides all predicates over that axis at once, however many are registered. So nothing is
counted by predicate: of some events, one of every so many, it is counted which codes they had, one number for
each axis. `selectivity.Counters` takes these tallies, and knows of every registered predicate how often it was true, of
its complement, and of what lies between.

Which events are looked at is drawn, always in the same way: of events that come in turns, each gets its turn.

Source: Bittner 2008, section 6.4.2: the selectivity table is filled by predicate matching (docs/bibliography.md).
Departs: codes are counted instead of predicates, and of a sample.
"""

from __future__ import annotations

import threading
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tamis.language.expressions import CONNECTIVES, Literal
from tamis.matching.axes import TRUTH
from tamis.matching.encoder import Encoder
from tamis.matching.errors import WatchError
from tamis.matching.kernels import tally_codes
from tamis.matching.leaves import Leaves
from tamis.selectivity.counters import Tallied

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from tamis.language.expressions import Expression
    from tamis.language.schema import Schema
    from tamis.matching.axes import Axis
    from tamis.matching.columns import Events

_MOST_OF_A_BATCH = 256
"""So many events of a batch are looked at, at most: more would tell little more of it."""

Encoded = tuple["Sequence[Axis]", npt.NDArray[Any]]
"""Axes, and the codes of events on them: a row for each axis."""


class _Tally:
    """How often each code of some axes came."""

    __slots__ = ("axes", "counts", "starts")

    def __init__(self, axes: Sequence[Axis]) -> None:
        self.axes = axes
        self.starts = np.concatenate([[0], np.cumsum([axis.code_count for axis in axes])]).astype(np.int64)
        self.counts = np.zeros(int(self.starts[-1]), np.int64)

    def tallied(self) -> Iterator[Tallied]:
        for number, axis in enumerate(self.axes):
            counts = self.counts[self.starts[number] : self.starts[number + 1]]
            yield Tallied(axis.key.term, None if axis.key.kind == TRUTH else axis.operands, counts)


class Watch:
    """Looks at one of `every` so many events, and counts their codes."""

    def __init__(self, every: int) -> None:
        if not isinstance(every, int) or every < 1:
            raise WatchError(every)
        self._every = every
        self._chance = Random(every)
        self._left = self._gap()
        self.lock = threading.Lock()
        self._event_count = 0
        self._tallies: dict[int, _Tally] = {}

    @property
    def event_count(self) -> int:
        """How many events were looked at since somebody took the counts."""
        return self._event_count

    def _gap(self) -> int:
        return self._chance.randint(1, 2 * self._every - 1)

    def take_turn(self) -> bool:
        """Count an event that is matched; return whether it is its turn to be looked at."""
        self._left -= 1  # threads may lose a step here, which nobody minds
        if self._left > 0:
            return False
        self._left = self._gap()
        return True

    def due_rows(self, event_count: int) -> npt.NDArray[np.int64]:
        """Return which events of a batch are looked at if they count as having come one by one."""
        return np.array([row for row in range(event_count) if self.take_turn()], np.int64)

    def rows(self, event_count: int) -> npt.NDArray[np.int64]:
        """Return which events of a batch to look at."""
        count = min(
            _MOST_OF_A_BATCH, event_count // self._every + (self._chance.random() < event_count / self._every % 1)
        )
        return np.array(sorted(self._chance.sample(range(event_count), count)), np.int64)

    def look(self, event_count: int, encoded: Iterable[Encoded]) -> None:
        """Count the codes of some events."""
        with self.lock:
            self._event_count += event_count
            for axes, codes in encoded:
                tally = self._tallies.get(id(axes))
                if tally is None:
                    tally = self._tallies[id(axes)] = _Tally(axes)
                if len(axes):
                    tally_codes(codes, tally.starts, tally.counts)

    def take(self) -> tuple[int, list[Tallied]]:
        """Return how many events were looked at, and what was counted; begin anew."""
        with self.lock:
            event_count, self._event_count = self._event_count, 0
            tallies, self._tallies = self._tallies, {}
        return event_count, [each for tally in tallies.values() for each in tally.tallied()]


class PlainAxes:
    """The axes of some subscriptions, for algorithms that have none of their own.

    >>> from tamis.language.parser import parse
    >>> ((axes, codes),) = PlainAxes([parse("price < 20 AND NOT price > 10 OR sold")], None).of_event({"price": 15})
    >>> [axis.operands for axis in axes], codes.ravel().tolist()
    ([[True], [10, 20]], [0, 3])
    """

    def __init__(self, expressions: Iterable[Expression], schema: Schema | None) -> None:
        self._schema = schema
        leaves = Leaves()
        known: set[int] = set()
        kept = list(expressions)
        stack = list(kept)
        while stack:
            node = stack.pop()
            if id(node) in known:
                continue
            known.add(id(node))
            if isinstance(node, CONNECTIVES):
                stack.extend(node.children)
            elif not isinstance(node, Literal):
                leaves.leaf(node)
        self._axes = leaves.finished().axes
        self._encoder = Encoder(self._axes, schema)

    @property
    def axes(self) -> Sequence[Axis]:
        """The axes."""
        return self._axes

    def of_event(self, event: Mapping[str, Any]) -> list[Encoded]:
        """Return the axes, and the codes of one event."""
        return [(self._axes, as_column(self._encoder.codes(event)))]

    def of_events(self, events: Events) -> list[Encoded]:
        """Return the axes, and the codes of some events."""
        codes = np.empty((len(self._axes), events.count), np.uint32)
        for number, axis in enumerate(self._axes):
            codes[number] = axis.codes(events, self._schema)
        return [(self._axes, codes)]


def as_column(codes: Any) -> npt.NDArray[np.uint32]:
    """Return the codes of one event as a row for each axis."""
    return np.asarray(codes, np.uint32).reshape(-1, 1)
