"""How far should one prune?

Memory shrinks with every pruning. The load of the network hardly grows at first, and then it explodes: when a few
filters to each neighbour match nearly everything. The *cut-off* lies before that, and where it lies depends on the
filters, the events and the measure; the literature leaves it to an administrator.

Here it is computed, from a sample of events. A filter that matches an event goes on matching it however far it is
pruned. So for each event and neighbour there is a first pruning after which the event is sent there, and all of them
together are the load as a function of the prunings. The best point of that curve is the one where memory is saved
most for the load that is added: a whole table for nothing would be best, and flooding the network for nothing worst.

    load                                      *
      │                                      *
      │                                    *
      │* * * * * * * * * * * * * * (*) *  *           the cut-off maximises   saved / most that can be saved
      └────────────────────────────────── saved                               - added / most that can be added

Source: the cut-off point is Bittner 2008, section 6.3.3, its automatic choice an open question there
  (docs/bibliography.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from tamis.language.expressions import And, AtLeast, Expression, Literal, Or
from tamis.language.rewrites.monotone import fold_monotone
from tamis.pruning.bulk import running_totals
from tamis.pruning.sequencing import Ordered, PruningSequences, sequences
from tamis.relations.forms import context_of
from tamis.relations.samples import EventSample

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

    from tamis.language.schema import Schema
    from tamis.pruning.measures import Measure
    from tamis.selectivity.estimates import Share

NEVER = np.iinfo(np.int64).max

Neighbour = TypeVar("Neighbour", bound="Hashable")


@dataclass(frozen=True, slots=True)
class Point:
    """What so many prunings do."""

    step_count: int
    reduction: float
    """The share of all predicates that are gone (M)."""
    load: float
    """The share of events and neighbours to which the event is sent (N)."""
    threshold: float
    """The measure of the last pruning: brokers with like filters may prune up to here."""


@dataclass(frozen=True, slots=True)
class CutOff:
    """How far to prune, and the curve that says so."""

    best: Point
    curve: tuple[Point, ...]


def choose_cut_off(
    filters: Sequence[str | Expression],
    neighbours: Sequence[Hashable],
    share: Share,
    events: Iterable[Mapping[str, Any]],
    measure: str | Measure = "accuracy",
    schema: Schema | None = None,
    *,
    weight: float = 1.0,
    point_count: int = 200,
    distances: Sequence[float] | None = None,
) -> CutOff:
    """Choose how far to prune filters that came from neighbours, one of these for each filter.

    A `weight` greater than 1 makes load dearer, one less than 1 memory. Prune by `best.step_count`, or by
    `best.threshold` where filters change.

    >>> from tamis.selectivity import Sample
    >>> events = [{"title": title, "price": price, "sold": True} for title in range(10) for price in range(10)]
    >>> filters = [f"title = {title} AND price < 3 AND sold" for title in range(10)]
    >>> found = choose_cut_off(filters, ["north"] * 10, Sample(events).share, events)
    >>> found.best.step_count, found.best.load, len(found.curve), found.curve[-1].load
    (10, 0.3, 21, 1.0)
    """
    ranked = sequences(filters, share, measure, distances=distances)
    curve = load_curve(ranked, neighbours, events, schema, point_count)
    return CutOff(knee(curve, weight), tuple(curve))


def knee(curve: Sequence[Point], weight: float = 1.0) -> Point:
    """Return the point of a curve at which the most is saved for what is added; of equals the last.

    >>> points = [Point(step, step / 4, load, 0.0) for step, load in enumerate([0.1, 0.1, 0.12, 0.13, 0.9])]
    >>> knee(points).step_count
    3
    """
    most_saved = curve[-1].reduction or 1.0
    most_added = (1.0 - curve[0].load) or 1.0

    def gain(point: Point) -> float:
        return point.reduction / most_saved - weight * (point.load - curve[0].load) / most_added

    return max(curve, key=lambda point: (round(gain(point), 12), point.step_count))


def load_curve(
    sequences: PruningSequences,
    neighbours: Sequence[Hashable],
    events: Iterable[Mapping[str, Any]],
    schema: Schema | None = None,
    point_count: int = 200,
) -> list[Point]:
    """Return load over memory, for prunings in the order of the queue."""
    ordered = sequences.ordered()
    firsts = first_sent(sequences, ordered, neighbours, events, schema)
    sent_after = np.sort(np.concatenate([*firsts.values(), np.zeros(0, np.int64)]))
    leaves, _ = running_totals(sequences, ordered)
    total = len(ordered.places)
    steps = np.unique(np.linspace(0, total, min(point_count, total + 1)).astype(np.int64))
    sent = np.searchsorted(sent_after, steps, side="right")
    return [
        Point(
            step,
            float(1 - leaves[step] / leaves[0]) if leaves[0] else 0.0,
            float(count / max(1, len(sent_after))),
            sequences.measure.value((float(ordered.firsts[step - 1]), 0.0, 0.0)) if step else 0.0,
        )
        for step, count in zip(steps.tolist(), sent.tolist(), strict=True)
    ]


def first_sent(
    sequences: PruningSequences,
    ordered: Ordered,
    neighbours: Sequence[Neighbour],
    events: Iterable[Mapping[str, Any]],
    schema: Schema | None = None,
) -> dict[Neighbour, npt.NDArray[np.int64]]:
    """Return, for each neighbour and event, after how many prunings the event is first sent there, `NEVER` if never.

    >>> found = sequences(["a = 1 AND b = 2"], lambda predicate: 0.5)
    >>> first_sent(found, found.ordered(), ["north"], [{"a": 1, "b": 2}, {"b": 2}])["north"].tolist()
    [0, 1]
    """
    assert len(neighbours) == len(sequences), "one neighbour for each filter"
    masks = _Masks(events, schema)
    ranks = np.zeros(len(sequences.table.rows), np.int64)
    ranks[ordered.places] = np.arange(1, len(ordered.places) + 1)
    firsts: dict[Neighbour, npt.NDArray[np.int64]] = {}
    for number, neighbour in enumerate(neighbours):
        first = firsts.setdefault(neighbour, np.full(masks.count, NEVER))
        _note(sequences, number, ranks, masks, first)
    return firsts


def _note(
    sequences: PruningSequences, number: int, ranks: npt.NDArray[np.int64], masks: _Masks, first: npt.NDArray[np.int64]
) -> None:
    """Take note of the first pruning after which each event matches a filter."""
    tree = sequences.layout.trees[number]
    if tree is None:  # too large to be pruned, and so to be looked at
        return
    matched = masks.of(tree)
    first[masks.numbers(matched)] = 0
    begin = int(sequences.table.starts[number])
    for step in range(int(sequences.table.step_counts[number])):
        more = masks.of(sequences.expression(number, step + 1))
        if more != matched:
            new = masks.numbers(more & ~matched)
            first[new] = np.minimum(first[new], ranks[begin + step])
            matched = more


class _Masks:
    """Which events of a sample match a tree, as the bits of a number."""

    def __init__(self, events: Iterable[Mapping[str, Any]], schema: Schema | None) -> None:
        self._sample = EventSample(events, schema)
        self._context = context_of(schema)
        self.count = len(self._sample)
        self._all = (1 << self.count) - 1
        self._known: dict[Expression, int] = {}

    def of(self, tree: Expression) -> int:
        return fold_monotone(tree, self._combined)

    def numbers(self, mask: int) -> npt.NDArray[np.int64]:
        """Return the numbers of the events in a mask."""
        packed = np.frombuffer(mask.to_bytes(self.count // 8 + 1, "little"), np.uint8)
        return np.flatnonzero(np.unpackbits(packed, bitorder="little")[: self.count])

    def _combined(self, node: Expression, below: list[int]) -> int:
        match node:
            case And():
                mask = self._all
                for each in below:
                    mask &= each
                return mask
            case Or():
                mask = 0
                for each in below:
                    mask |= each
                return mask
            case AtLeast(count):
                levels = [self._all] + [0] * count  # levels[k]: where at least k of those so far hold
                for each in below:
                    for level in range(count, 0, -1):
                        levels[level] |= levels[level - 1] & each
                return levels[count]
            case Literal(value):
                return self._all if value is True else 0
        known = self._known.get(node)
        if known is None:
            flags = self._sample.matched(self._context.form(node).formula)
            known = int.from_bytes(np.packbits(flags, bitorder="little").tobytes(), "little")
            self._known[node] = known
        return known
