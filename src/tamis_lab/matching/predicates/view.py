"""Which predicates does an event fulfil, or each event of a batch?

An event goes through all levels, and what it fulfils there is written down one behind the other. For a batch it is
first counted, so that the predicates of an event stand together, whichever level they came from; and as an event can
fulfil a million of them, they are handed on in pieces.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tamis.ragged import Ragged

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tamis.language.schema import Schema
    from tamis.matching.axes import AxisKey
    from tamis.matching.columns import Events
    from tamis.matching.leaves import Ints
    from tamis_lab.matching.predicates.levels import Level, Numbers

_BUFFER = 1 << 18
"""How many fulfilled predicates are written down before they are handed on."""
_SAMPLED = 2048

Shares = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Fulfilled:
    """The predicates that some consecutive events fulfil, each once, in no order.

    List i is that of event `first + i`. The arrays are only good until the next ones are asked for.
    """

    first: int
    lists: Ragged[np.uint32]
    number_count: int
    """All numbers are less."""

    @property
    def event_count(self) -> int:
        return len(self.lists.starts) - 1

    @property
    def word_count(self) -> int:
        """How many words of 32 bits have a bit for each predicate."""
        return (self.number_count + 31) // 32


class PredicateView:
    """An immutable index of predicates."""

    def __init__(self, levels: tuple[Level, ...], number_count: int, schema: Schema | None) -> None:
        self.levels = levels
        self.number_count = number_count
        """All numbers are less."""
        self._schema = schema
        self._encoders = [level.encoder(schema) for level in levels]
        self._predicate_count = sum(map(len, levels))

    def fulfilled_by_one(self, event: Mapping[str, Any]) -> Fulfilled:
        """Return the predicates that an event fulfils, as those of a batch of one."""
        numbers = self.fulfilled_by(event)
        return Fulfilled(0, Ragged(np.array([0, len(numbers)], np.int64), numbers), self.number_count)

    def fulfilled_by(self, event: Mapping[str, Any]) -> Numbers:
        """Return the numbers of the predicates that an event fulfils, in no order."""
        numbers = np.empty(self._predicate_count, np.uint32)
        cursors = np.zeros(1, np.int64)
        for level, encoder in zip(self.levels, self._encoders, strict=True):
            level.write(np.array([encoder.codes(event)], np.uint32), 0, cursors, numbers)
        return numbers[: cursors[0]]

    def fulfilled(self, events: Events, *, buffer: int = _BUFFER) -> Iterator[Fulfilled]:
        """Yield the predicates that the events of a batch fulfil, for some consecutive events at a time.

        An event can fulfil a million predicates, so those of a batch are not all kept at once: each piece has about
        `buffer` of them, or one event.
        """
        starts = np.zeros(events.count + 1, np.int64)
        codes = [level.codes(events, self._schema) for level in self.levels]
        for level, its_codes in zip(self.levels, codes, strict=True):
            level.count(its_codes, starts[1:])
        largest = int(starts.max())
        np.cumsum(starts, out=starts)
        numbers = np.empty(min(max(buffer, largest), int(starts[-1])), np.uint32)
        begin = 0
        while begin < events.count:
            end = int(np.searchsorted(starts, starts[begin] + len(numbers), "right")) - 1
            own = starts[begin : end + 1] - starts[begin]
            cursors = own[:-1].copy()
            for level, its_codes in zip(self.levels, codes, strict=True):
                level.write(its_codes, begin, cursors, numbers)
            yield Fulfilled(begin, Ragged(own, numbers[: own[-1]]), self.number_count)
            begin = end

    # -- What is known of the predicates

    def operations(self) -> npt.NDArray[np.uint8]:
        """Return what each predicate asks (see `matching.operations`), by number."""
        codes = np.zeros(self.number_count, np.uint8)
        for level in self.levels:
            codes[level.numbers] = level.leaves.leaves.operations
        return codes

    def axes(self) -> tuple[Ints, list[AxisKey]]:
        """Return the axis that each predicate asks about, by number, and the keys of these axes.

        The axes of all levels are taken together: an axis has one place, whichever level a predicate lies in.
        """
        places: dict[AxisKey, int] = {}
        axis_numbers = np.zeros(self.number_count, np.int64)
        for level in self.levels:
            here = np.array([places.setdefault(axis.key, len(places)) for axis in level.axes], np.int64)
            axis_numbers[level.numbers] = here[level.leaves.leaves.axes] if len(here) else 0
        return axis_numbers, list(places)

    def guessed_shares(self) -> Shares:
        """Return how often each predicate may be true, by number, judging by the operands alone."""
        shares = np.ones(self.number_count, np.float32)
        for level in self.levels:
            shares[level.numbers] = level.guessed_shares()
        return shares

    def shares(self, events: Events) -> Shares:
        """Return which share of some events fulfils each predicate, by number; rare where none does, but never 0."""
        sample = events.slice(0, _SAMPLED)
        counts = np.zeros(self.number_count, np.int64)
        for part in self.fulfilled(sample):
            counts += np.bincount(part.lists.values, minlength=self.number_count)
        # Half an event for what the sample did not show, or less where the operands say so.
        unseen = 0.5 * np.minimum(self.guessed_shares(), 1.0)
        shares: Shares = np.clip((counts + unseen) / max(1, sample.count), 1e-7, 1.0).astype(np.float32)
        return shares
