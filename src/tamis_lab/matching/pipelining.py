"""What if one thread finds predicates while another finds subscriptions?

Matching has two phases, and the second of some events may run beside the first of the next ones. In the source, events
follow one another through the levels of the tree, each queue being locked while an event uses it, and the second phase
may begin with the first predicate that holds. Here what is handed from phase to phase is a piece of a batch: every
piece has lists of its own, so nothing is locked. The other way to use two processors is to give each a block of events,
which needs no handing over; which is better is measured (`python -m benchmarks pipelining`).

    predicates       piece 1   piece 2   piece 3
    subscriptions              piece 1   piece 2   piece 3

Source: Jewel 2004, section 4.4 (docs/bibliography.md).
Departs: pieces of a batch instead of single events, and two stages instead of one for each level.
"""

from __future__ import annotations

from dataclasses import replace
from queue import Queue
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeVar

from tamis.ragged import Ragged
from tamis_lab.matching.snapshots import joined

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from tamis.matching.base import Pairs
    from tamis.matching.columns import Events
    from tamis_lab.matching.predicates import Fulfilled

Item = TypeVar("Item")
_WAITING = 2
"""So many pieces wait for the second phase at most."""
PIECE = 1024
"""So many events are a piece."""


def ahead(items: Iterable[Item]) -> Iterator[Item]:
    """Yield items that a thread of their own makes, some ahead of those that are asked for.

    >>> list(ahead(range(5)))
    [0, 1, 2, 3, 4]
    """
    made: Queue[tuple[bool, Any]] = Queue(_WAITING)
    is_left = False

    def make() -> None:
        try:
            for item in items:
                if is_left:
                    return
                made.put((True, item))
            made.put((False, None))
        except BaseException as error:  # whoever asks for the next one is told
            made.put((False, error))

    thread = Thread(target=make, daemon=True)
    thread.start()
    try:
        while True:
            is_item, item = made.get()
            if not is_item:
                if item is not None:
                    raise item
                return
            yield item
    finally:
        is_left = True
        while thread.is_alive():  # it may wait for room
            if not made.empty():
                made.get_nowait()
            thread.join(0.001)


def match_pipelined(snapshot: Any, events: Events) -> Pairs:
    """Match a batch with one thread for each phase; `snapshot` is one of a published algorithm."""
    match_part: Callable[[Fulfilled], Pairs] = snapshot.match_part
    pairs = [match_part(part) for part in ahead(_parts(snapshot, events))]
    return joined(pairs)


def _parts(snapshot: Any, events: Events) -> Iterator[Fulfilled]:
    """Yield what the events of a batch fulfil, in arrays that stay as they are."""
    for start in range(0, events.count, PIECE):
        for part in snapshot.view.fulfilled(events.slice(start, PIECE)):
            lists = Ragged(part.lists.starts.copy(), part.lists.values.copy())
            yield replace(part, first=start + part.first, lists=lists)
