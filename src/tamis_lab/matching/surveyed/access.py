"""Which equalities together give access to a cluster?

`condition = 'Used'` holds for four events in five, and so does `format = 'hardcover'` for some; both together hold for
few. An *access predicate* here is one to three equalities; those about the same attributes have one *schema*, and an
event looks up, for each schema, what it has there. More schemas find fewer conjunctions that do not match, and each
costs every event a look-up: so schemas are added as long as the best one saves more checks than it costs.

    schema {title}              title = 'Emma'                          ─▶ clusters
    schema {condition, format}  condition = 'Used', format = 'hardcover' ─▶ clusters

Which schemas are worth it follows the events. As more of them come, it is found out what the present clusters cost by
what holds now; when that is half as much again as it was when they were made, conjunctions are *clustered anew*.

Source: Fabret et al. 2001, as described in Bittner 2008, section 2.3.2, and Jewel 2004, section 2.1
  (docs/bibliography.md).
Departs: the source moves clusters one by one between schemas; here all of them are laid out anew. Schemas are chosen
  greedily by a sample of the conjunctions, of three attributes at most. Shares of equalities are multiplied, as if they
  were independent. What came since the last layout is asked directly (see `conjunctive`).
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from tamis_lab.matching import kernels as shared_kernels
from tamis_lab.matching.cluster import equalities
from tamis_lab.matching.conjunctive import Conjunctive, Pages
from tamis_lab.matching.surveyed import kernels
from tamis_lab.matching.surveyed.fixed_order import equal_room

if TYPE_CHECKING:
    from tamis.language.schema import Schema
    from tamis.matching.columns import Events
    from tamis.matching.leaves import Ints
    from tamis_lab.matching.kernels import LastPages, Outlet
    from tamis_lab.matching.predicates import Fulfilled, PredicateView, Shares
    from tamis_lab.matching.roll import Scratch

_SAMPLE = 2048
_SAMPLED_FROM = 256
"""The first batch of so many events is taken as a sample."""
_LOOKED_AT = 16_384
"""After so many more events it is found out whether the clusters still suit them."""
_OUTGROWN = 1.5
"""They do not if they cost so many times as much as when they were made."""
MOST_AXES = 3
_CHOSEN_BY = 10_000
"""Schemas are chosen by so many conjunctions at most."""
_PAIRED = 10
"""The attributes that most conjunctions compare by equality, which schemas of several are made of."""
_MOST_SCHEMAS = 24
LOOK_UP = 4.0
"""What a look-up costs for each attribute, in checks of a conjunction."""

Floats = npt.NDArray[np.float64]


class ClusterSeveral(Conjunctive):
    """Conjunctions under one to three equalities that give access to them."""

    name: ClassVar[str] = "cluster-several"

    def __init__(self, schema: Schema | None = None) -> None:
        super().__init__(schema)
        self._sample: Events | None = None
        self._seen = 0
        self.clustered = 0
        """How often conjunctions were clustered anew because events had changed."""

    def _laid_out(self, pages: Pages, view: PredicateView) -> AccessIndex:
        axes, keys = view.axes()
        return AccessIndex(pages, axes, len(keys), equalities(view), self._shares(view))

    def _shares(self, view: PredicateView) -> Shares:
        return view.guessed_shares() if self._sample is None else view.shares(self._sample)

    def learn(self, events: Events) -> None:
        """Remember a sample of the events, and choose schemas and access predicates by it."""
        with self._lock:
            self._sample, self._seen = events.slice(0, _SAMPLE), 0
            self._lay_out()

    def observe(self, events: Events) -> None:
        with self._lock:
            if self._sample is None:
                if events.count >= _SAMPLED_FROM:
                    self.learn(events)
                return
            self._seen += events.count
            index = self._index
            if self._seen >= _LOOKED_AT and events.count >= _SAMPLED_FROM and isinstance(index, AccessIndex):
                self._seen = 0
                view = self._predicates.view()
                shares = view.shares(events.slice(0, _SAMPLE))
                if index.checks(shares) > _OUTGROWN * max(LOOK_UP, index.expected):
                    self.clustered += 1
                    self.learn(events)

    def statistics(self) -> dict[str, Any]:
        with self._lock:
            figures = super().statistics()
            index = self._index
            if isinstance(index, AccessIndex):
                figures |= {
                    "schemas": [len(schema[schema >= 0]) for schema in index.access.schemas],
                    "groups": len(index.access.keys),
                    "clusters": len(index.access.clusters) - 1,
                    "without_access": index.without_access,
                    "checks_expected": round(index.expected, 3),
                    "clustered_anew": self.clustered,
                }
            return figures


class AccessIndex:
    """Clusters by access predicates of several equalities."""

    def __init__(
        self, pages: Pages, axes: Ints, axis_count: int, is_equality: npt.NDArray[np.bool_], shares: Shares
    ) -> None:
        self.conjunction_count = count = len(pages.ends)
        lengths = np.diff(pages.ends, prepend=np.uint32(0)).astype(np.int64)
        owners = np.repeat(np.arange(count), lengths)
        numbers = pages.predicates.astype(np.int64)
        rarest = _rarest_equalities(numbers, owners, count, axes, axis_count, is_equality, shares)
        weights = np.append(shares.astype(np.float64), np.inf)[rarest]
        schemas = chosen_schemas(weights)
        groups_of, keys, used = _assigned(schemas, rarest, weights)
        self.without_access = int(np.count_nonzero(groups_of == len(keys)))
        self._keys_of = np.concatenate([keys, np.full((1, MOST_AXES), kernels.NONE, np.uint32)])[groups_of]
        is_access = (numbers[:, None] == self._keys_of[owners]).any(axis=1)
        # The access predicates first, and the others by how seldom they hold.
        ordered = pages.predicates[np.lexsort((shares[numbers], ~is_access, owners))]
        sizes = lengths - np.bincount(owners, is_access, minlength=count).astype(np.int64)
        order = np.lexsort((sizes, groups_of))
        by_group, by_size = groups_of[order], sizes[order]
        is_first = np.ones(count, np.bool_)
        is_first[1:] = (by_group[1:] != by_group[:-1]) | (by_size[1:] != by_size[:-1])
        firsts = np.flatnonzero(is_first)
        clusters = np.zeros((len(firsts) + 1, 3), np.int64)
        clusters[:-1, shared_kernels.LINE], clusters[-1, shared_kernels.LINE] = firsts, count
        clusters[:-1, shared_kernels.SIZE] = by_size[firsts]
        areas = np.diff(clusters[:, shared_kernels.LINE]) * clusters[:-1, shared_kernels.SIZE]
        clusters[1:, shared_kernels.COLUMNS] = np.cumsum(areas)
        line, columns = np.empty(count, np.uint32), np.empty(int(areas.sum()), np.uint32)
        shared_kernels.write_clusters(order, pages.owners, pages.ends, ordered, clusters, line, columns)
        table = np.full(1 << max(4, (2 * len(keys)).bit_length()), -1, np.int32)
        kernels.enter_keys(keys, table)
        self.access = kernels.AccessTable(
            schemas=used,
            keys=keys,
            table=table,
            starts=np.searchsorted(by_group[firsts], np.arange(len(keys) + 2)),
            clusters=clusters,
            line=line,
            columns=columns,
            equal_axes=np.where(is_equality, axes + 1, 0).astype(np.int32),
            is_shared=np.diff(pages.slot_ends, prepend=np.uint32(0)) > 1,
        )
        self.axis_count = axis_count
        self.expected = self.checks(shares)

    def checks(self, shares: Shares) -> float:
        """Return how many conjunctions an event checks, and what its look-ups cost, where predicates hold so often."""
        padded = np.append(np.asarray(shares, np.float64), 1.0)
        places = np.minimum(self._keys_of.astype(np.int64), len(padded) - 1)
        return float(padded[places].prod(axis=1).sum()) + LOOK_UP * np.count_nonzero(self.access.schemas >= 0)

    def match(self, part: Fulfilled, begin: int, pages: LastPages, scratch: Scratch, out: Outlet) -> tuple[int, int]:
        access = self.access
        room = equal_room(scratch, self.axis_count, access.equal_axes, access.is_shared, part, 1)
        at, written = kernels.match_access_of_columns(begin, (*part.lists, *access, *pages, *room, *out))
        return at, written

    def memory(self) -> int:
        return sum(array.nbytes for array in (*self.access, self._keys_of))


def _rarest_equalities(
    numbers: Ints,
    owners: Ints,
    count: int,
    axes: Ints,
    axis_count: int,
    is_equality: npt.NDArray[np.bool_],
    shares: Shares,
) -> Ints:
    """Return by conjunction and axis the equality there that holds least often, -1 for none."""
    rarest = np.full((count, max(1, axis_count)), -1, np.int64)
    mine = is_equality[numbers]
    equal, of = numbers[mine], owners[mine]
    order = np.argsort(-shares[equal], kind="stable")  # of several, the last to be written is the rarest
    rarest[of[order], axes[equal[order]]] = equal[order]
    return rarest


def chosen_schemas(weights: Floats) -> list[tuple[int, ...]]:
    """Choose the sets of axes that give access, greedily: what saves most, as long as it saves more than it costs.

    `weights` has by conjunction and axis how often the equality there holds, infinity where there is none.

    >>> both = [[0.5, 0.5]] * 100
    >>> chosen_schemas(np.array(both)), chosen_schemas(np.array(both[:10]))
    ([(0, 1)], [(0,)])
    """
    step = -(-len(weights) // _CHOSEN_BY) or 1
    sample = weights[::step]
    is_there = np.isfinite(sample)
    uses = is_there.sum(axis=0)
    single = [(int(axis),) for axis in np.flatnonzero(uses)]
    often = sorted(int(axis) for axis in np.argsort(-uses, kind="stable")[:_PAIRED] if uses[axis])
    candidates = {
        schema: sample[:, schema].prod(axis=1)
        for schema in [*single, *(each for size in range(2, MOST_AXES + 1) for each in combinations(often, size))]
    }
    present = np.ones(len(sample))  # without access, every event checks it
    schemas: list[tuple[int, ...]] = []
    while candidates and len(schemas) < _MOST_SCHEMAS:
        savings = {
            schema: np.maximum(present - each, 0).sum() * step - LOOK_UP * len(schema)
            for schema, each in candidates.items()
        }
        best = max(savings, key=lambda schema: savings[schema])
        if savings[best] <= 0:
            break
        schemas.append(best)
        present = np.minimum(present, candidates.pop(best))
    return schemas


def _assigned(
    schemas: list[tuple[int, ...]], rarest: Ints, weights: Floats
) -> tuple[Ints, npt.NDArray[np.uint32], npt.NDArray[np.int32]]:
    """Give every conjunction the best schema that it fits: return groups, their keys, and the schemas in use."""
    count = len(rarest)
    best, which = np.ones(count), np.full(count, -1)
    for number, schema in enumerate(schemas):
        each = weights[:, schema].prod(axis=1)
        is_better = each < best
        best[is_better], which[is_better] = each[is_better], number
    keys_of = np.full((count, MOST_AXES), kernels.NONE, np.uint32)
    for number, schema in enumerate(schemas):
        mine = which == number
        for place, axis in enumerate(schema):
            keys_of[mine, place] = rarest[mine, axis]
    has_access = which >= 0
    groups_of = np.zeros(count, np.int64)
    keys, groups = np.unique(keys_of[has_access], axis=0, return_inverse=True)
    groups_of[has_access], groups_of[~has_access] = groups.reshape(-1), len(keys)
    used = np.full((len(set(which[has_access].tolist())), MOST_AXES), -1, np.int32)
    for place, number in enumerate(sorted(set(which[has_access].tolist()))):
        used[place, : len(schemas[number])] = schemas[number]
    return groups_of, np.ascontiguousarray(keys, np.uint32).reshape(-1, MOST_AXES), used
