"""What does a broker need of a log? Appending blocks, reading ranges: the protocol.

Events come in groups, and a group is written as one *block* with one checksum and one wait for the disk (a group
commit). A block's events have consecutive positions; between two blocks there may be a gap, so nobody computes a
number of events from a difference of positions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

FROM_CLIENT = 0
VOID = 128
"""A flag of a position that was given to no event. A log may write such blocks for itself; nobody reads them."""
PLAIN = 1
"""A flag of an event that came as a plain JSON object, not as a CloudEvent."""
REROUTED = 1
"""The same flag, of an event that came over a link: it is here already, and lies here for neighbours alone."""
LATE = 32
"""A flag of an event that came over a link once more, or after later events of its publisher.

A neighbour that goes on after a break looks again at events that are not acknowledged, with the filters of now: what it
had not sent before, because nobody wanted it then, comes behind events that are here already.
"""
UNWANTED = 64
"""A flag of an event that nobody in the network wanted, as far as the broker of its publisher knew."""
PASSED_ON = LATE | UNWANTED
"""The flags that neighbours are sent with an event."""

MARK_SHIFT, MARK_MOST = 1, 15
"""Where the number of the link stands in the flags of an event; the highest is for all links beyond."""


def is_rerouted(flags: int) -> bool:
    """Does an event lie in the log for neighbours alone? Others have it from elsewhere in the log.

    >>> is_rerouted(PLAIN), is_rerouted(REROUTED | 2 << MARK_SHIFT)
    (False, True)
    """
    return bool(flags & REROUTED and flags >> MARK_SHIFT & MARK_MOST)


def rerouted_part(flags: int) -> int:
    """Return the flag that a neighbour is sent with such an event; 0 for others."""
    return REROUTED if is_rerouted(flags) else 0


def end_of(last: int, block_positions: int) -> int:
    """Return up to where there are no more events, if the last one of a block is here.

    >>> end_of(7, 1), end_of(4097, 4096)
    (7, 8191)
    """
    return last + -(last + 1) % block_positions if last else 0


@dataclass(frozen=True, slots=True)
class Block:
    """Events that were taken together.

    Invariant: as many flags as events, at least one event, `first` at least 1.
    """

    first: int
    """The position of its first event; the others follow without a gap."""
    time_us: int
    """When it was taken, in microseconds since 1970; never before that of an earlier block."""
    events: tuple[bytes, ...]
    """Each a CloudEvent as JSON, in the form that the broker wrote."""
    flags: bytes
    """One byte an event: what there is to know of how it came."""

    @property
    def last(self) -> int:
        """The position of its last event."""
        return self.first + len(self.events) - 1

    @property
    def size_bytes(self) -> int:
        """How many bytes its events have."""
        return sum(map(len, self.events))


class Gap(NamedTuple):
    """Positions whose events are lost: they were damaged, and left out by a repair."""

    first: int
    last: int


class Extent(NamedTuple):
    """A part of the log that is dropped as a whole."""

    first: int
    last: int
    time_us: int
    """When its last block was taken."""
    size_bytes: int


@runtime_checkable
class EventLog(Protocol):
    """A durable sequence of events.

    One thread appends, any thread may read. `epoch` is the random name of this log. `is_shared` says whether others
    append to it too: then positions are given by the log, and not by who appends. Each block takes a multiple of
    `block_positions`, whether or not it has so many events.
    """

    epoch: str
    is_shared: bool
    block_positions: int

    @property
    def first(self) -> int:
        """The position of the oldest event that may still be there; 1 more than the last one if there is none."""
        ...

    @property
    def last(self) -> int:
        """The position of the newest event; 0 if there never was one."""
        ...

    @property
    def last_time_us(self) -> int:
        """When the newest block was taken; 0 if there is none."""
        ...

    def append(self, blocks: Sequence[Block]) -> tuple[Block, ...]:
        """Write blocks; return them, with the positions that they have, when they are on disk as `sync` promises.

        Raise `StorageFullError` if there is no room: then nothing was written. Any other failure is a `LogError`, and
        final.
        """
        ...

    def read(self, first: int, last: int) -> Iterator[Block]:
        """Yield the blocks that have an event from `first` to `last`, whole, in order. Raise `DamagedLogError`."""
        ...

    def gaps(self) -> tuple[Gap, ...]:
        """Return what a repair has left out."""
        ...

    def position_at(self, time_us: int) -> int:
        """Return the position of the first event taken at or after a time; 1 more than the last if none was."""
        ...

    def extents(self) -> tuple[Extent, ...]:
        """Return the parts that can be dropped, oldest first; the one that is written to is the last."""
        ...

    def drop(self, before: int) -> int:
        """Drop the extents all of whose events come before a position; return the new `first`."""
        ...

    def close(self) -> None:
        """Let go of files and connections; what was appended stays."""
        ...
