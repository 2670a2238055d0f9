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
from tamis.ragged import places_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tamis.matching.axes import Axis

Shares = npt.NDArray[np.float32]

_OUTSIDE, _MEMBER, _LISTED, _UNLISTED = 1, 2, 3, 4  # as in the kernels of the block matcher


class Leaves(Protocol):
    """What is needed to know of leaves, of those of a draft or of `LeafArrays`: what each asks, and of which axis."""

    @property
    def axes(self) -> list[Axis]: ...
    @property
    def leaf_axes(self) -> npt.NDArray[np.uint32]: ...
    @property
    def leaf_operations(self) -> npt.NDArray[np.uint8]: ...
    @property
    def leaf_a(self) -> npt.NDArray[np.int32]: ...
    @property
    def leaf_b(self) -> npt.NDArray[np.int32]: ...
    @property
    def set_starts(self) -> npt.NDArray[np.int32]: ...
    @property
    def set_operands(self) -> npt.NDArray[np.int32]: ...


def default_shares(leaves: Leaves) -> Shares:
    """Estimate from the operands alone."""
    sizes = np.array([len(axis.operands) for axis in leaves.axes] or [1], np.float64)[leaves.leaf_axes] + 1
    a, b = leaves.leaf_a.astype(np.float64), leaves.leaf_b.astype(np.float64)
    operations = leaves.leaf_operations
    shares = np.ones(len(a))
    point = np.minimum(0.5, 1.0 / sizes)
    within = np.clip((b - a + 0.5) / sizes, point, 1.0)
    counts = np.diff(leaves.set_starts)
    is_set = (operations == op.AMONG) | (operations == op.NOT_AMONG)
    members = np.zeros(len(a))
    members[is_set] = counts[leaves.leaf_a[is_set]]
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
        asked = operations == operation
        shares[asked] = estimate[asked]
    clipped: Shares = np.clip(shares, 1e-6, 1.0).astype(np.float32)
    return clipped


def observed_shares(
    leaves: Leaves,
    kinds: npt.NDArray[np.uint8],
    firsts: npt.NDArray[np.uint32],
    spans: npt.NDArray[np.uint32],
    sample_codes: Sequence[npt.NDArray[np.integer]],
) -> Shares:
    """Count in a sample: the codes of its events on every axis."""
    sums = [np.concatenate([[0], np.cumsum(np.bincount(codes, minlength=axis.code_count))])
            for axis, codes in zip(leaves.axes, sample_codes, strict=True)]  # fmt: skip
    offsets = np.concatenate([[0], np.cumsum([len(each) for each in sums])]).astype(np.int64)
    flat = np.concatenate([*sums, np.zeros(1, np.int64)])
    base = offsets[leaves.leaf_axes]
    tops = np.array([len(each) - 1 for each in sums] or [0], np.int64)[leaves.leaf_axes]
    low = np.minimum(firsts.astype(np.int64), tops)
    high = np.minimum(firsts.astype(np.int64) + spans + 1, tops)
    passed = flat[base + high] - flat[base + low]
    total = len(sample_codes[0]) if sample_codes else 1
    known = flat[base + tops] - flat[base + 1]  # the events that have a value at all
    in_sets = np.flatnonzero(kinds >= _MEMBER)
    sizes = np.diff(leaves.set_starts)
    numbers = leaves.leaf_a[in_sets]
    members = places_of(leaves.set_starts[numbers], sizes[numbers])
    at = np.repeat(base[in_sets], sizes[numbers]) + 2 * leaves.set_operands[members].astype(np.int64) + 2
    owners = np.repeat(np.arange(len(in_sets)), sizes[numbers])
    passed[in_sets] = np.bincount(owners, flat[at + 1] - flat[at], minlength=len(in_sets))
    is_negative = (
        (kinds == _OUTSIDE) | (kinds == _UNLISTED) | ((kinds == _MEMBER) & (leaves.leaf_operations == op.NOT_AMONG))
    )
    passed[is_negative] = known[is_negative] - passed[is_negative]
    # Half an event for what the sample did not show: rare is better than never seen.
    rare = default_shares(leaves) * 0.5
    shares: Shares = np.clip((passed + np.minimum(rare, 0.5)) / total, 1e-7, 1.0).astype(np.float32)
    return shares
