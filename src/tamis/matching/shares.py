"""Which share of the events passes a leaf? Selectivity by histograms of codes.

With a sample the answer is counted: each axis has a histogram of the sample's codes, and an interval of codes is a
difference of two running sums. Without one, operands are taken for values: who asks about an attribute asks about
values that occur, so the share of operands in an interval stands for the share of events.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from tamis.matching import operations as op

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tamis.matching.axes import Axis
    from tamis.matching.leaves import LeafColumns
    from tamis.ragged import Ragged

Shares = npt.NDArray[np.float32]

_OUTSIDE, _MEMBER, _LISTED, _UNLISTED = 1, 2, 3, 4  # as in the kernels of the block matcher


class LeafSource(Protocol):
    """What is needed to know of leaves, of those of a draft or of `LeafTables`: what each asks, and of which axis."""

    @property
    def axes(self) -> list[Axis]: ...
    @property
    def leaves(self) -> LeafColumns: ...
    @property
    def sets(self) -> Ragged[np.int32]: ...


def default_shares(asked: LeafSource) -> Shares:
    """Estimate from the operands alone."""
    leaves = asked.leaves
    sizes = np.array([len(axis.operands) for axis in asked.axes] or [1], np.float64)[leaves.axes] + 1
    a, b = leaves.a.astype(np.float64), leaves.b.astype(np.float64)
    shares = np.ones(len(a))
    point = np.minimum(0.5, 1.0 / sizes)
    within = np.clip((b - a + 0.5) / sizes, point, 1.0)
    is_set = leaves.is_set
    members = np.zeros(len(a))
    members[is_set] = asked.sets.counts[leaves.a[is_set]]
    for operation, estimate in (
        (op.EQUAL, point),
        (op.UNEQUAL, 1 - point),
        (op.BELOW, (a + 0.5) / sizes),
        (op.AT_MOST, (a + 1) / sizes),
        (op.ABOVE, 1 - (a + 1) / sizes),
        (op.AT_LEAST, 1 - (a + 0.5) / sizes),
        (op.WITHIN, within),
        (op.BEYOND, 1 - within),
        (op.FROM_TO, within),
        (op.AMONG, np.minimum(0.9, members / sizes)),
        (op.NOT_AMONG, np.maximum(0.1, 1 - members / sizes)),
    ):
        is_asked = leaves.operations == operation
        shares[is_asked] = estimate[is_asked]
    clipped: Shares = np.clip(shares, 1e-6, 1.0).astype(np.float32)
    return clipped


def observed_shares(
    asked: LeafSource,
    kinds: npt.NDArray[np.uint8],
    firsts: npt.NDArray[np.uint32],
    spans: npt.NDArray[np.uint32],
    sample_codes: Sequence[npt.NDArray[np.integer]],
) -> Shares:
    """Count in a sample: the codes of its events on every axis."""
    sums = [np.concatenate([[0], np.cumsum(np.bincount(codes, minlength=axis.code_count))])
            for axis, codes in zip(asked.axes, sample_codes, strict=True)]  # fmt: skip
    offsets = np.concatenate([[0], np.cumsum([len(each) for each in sums])]).astype(np.int64)
    flat = np.concatenate([*sums, np.zeros(1, np.int64)])
    leaves, sets = asked.leaves, asked.sets
    base = offsets[leaves.axes]
    tops = np.array([len(each) - 1 for each in sums] or [0], np.int64)[leaves.axes]
    low = np.minimum(firsts.astype(np.int64), tops)
    high = np.minimum(firsts.astype(np.int64) + spans + 1, tops)
    passed = flat[base + high] - flat[base + low]
    total = len(sample_codes[0]) if sample_codes else 1
    known = flat[base + tops] - flat[base + 1]  # the events that have a value at all
    in_sets = np.flatnonzero(kinds >= _MEMBER)
    members = sets.chosen(leaves.a[in_sets])
    at = np.repeat(base[in_sets], members.counts) + 2 * members.values.astype(np.int64) + 2
    owners = np.repeat(np.arange(len(in_sets)), members.counts)
    passed[in_sets] = np.bincount(owners, flat[at + 1] - flat[at], minlength=len(in_sets))
    is_negative = (
        (kinds == _OUTSIDE) | (kinds == _UNLISTED) | ((kinds == _MEMBER) & (leaves.operations == op.NOT_AMONG))
    )
    passed[is_negative] = known[is_negative] - passed[is_negative]
    # Half an event for what the sample did not show: rare is better than never seen.
    rare = default_shares(asked) * 0.5
    shares: Shares = np.clip((passed + np.minimum(rare, 0.5)) / total, 1e-7, 1.0).astype(np.float32)
    return shares
