"""How is a tree written in as few bytes as possible?

    predicate    04  number (4 bytes, the lowest first)         5 bytes
    AND, OR      01 or 02  how many children  children ...      2 bytes and the children

In pre-order, without widths: to reach a child one walks over those before it. A subscription that is nothing but a
conjunction has the code 03 at its root; as a candidate it matches unseen, because all its predicates were hit. TRUE and
FALSE are one byte.

    class 1 of the auctions      01 03  04 p1  02 02  01 02 04 p3 04 p4  01 02 04 p5 04 p6  04 p2      38 bytes

Source: Bittner 2008, section 4.2.2 (docs/bibliography.md). The variant with widths in front of the children, which
  lets a walk skip a child at once, was measured there and rejected; `with_widths` is kept for that measurement.
Departs: the source does not say in which order the bytes of a number come, nor what the code of a pure conjunction
  is. Nodes of more than 255 children are split (see `shapes`).
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from tamis_lab.matching import kernels as evaluation
from tamis_lab.matching.boolean import kernels
from tamis_lab.matching.shapes import ALL, ALWAYS, ANY, LEAF, NEVER, fold_shape, least_hits

if TYPE_CHECKING:
    from collections.abc import Sequence

Bytes = npt.NDArray[np.uint8]

LEAF_BYTES, HEAD_BYTES, WIDTH_BYTES = 5, 2, 2
LARGEST_WITH_WIDTHS = 2**16 - 1

for _codes in (kernels, evaluation):  # kernels import nothing, so they repeat them
    assert (_codes.ALL, _codes.ANY, _codes.LEAF) == (ALL, ANY, LEAF)
    assert (bytes([_codes.ALWAYS]), bytes([_codes.NEVER]), _codes.PURE) == (ALWAYS, NEVER, 3)


class TreePlan(NamedTuple):
    """What the shape of a tree decides: how it is written, the fewest hits, and how deep it is."""

    coded: bytes
    least_hits: int
    leaf_count: int
    depth: int


@lru_cache(maxsize=4096)
def plan(shape: bytes) -> TreePlan:
    r"""Return what a shape decides.

    >>> plan(b"\x01\x02\x04\x04")
    TreePlan(coded=b'\x03\x02\x04\x04', least_hits=2, leaf_count=2, depth=1)
    """
    if shape in (ALWAYS, NEVER):
        return TreePlan(shape, least_hits(shape), 0, 0)
    depth = fold_shape(shape, lambda _: 0, lambda _, below: 1 + max(below))
    leaf_count = fold_shape(shape, lambda _: 1, lambda _, below: sum(below))
    is_pure = shape[0] == ALL and depth == 1
    return TreePlan(bytes([kernels.PURE]) + shape[1:] if is_pure else shape, least_hits(shape), leaf_count, depth)


def encode(shape: bytes, numbers: Sequence[int]) -> bytes:
    r"""Write a tree: its shape, and the numbers of its predicates in order.

    >>> encode(b"\x02\x02\x04\x01\x02\x04\x04", [7, 258, 3]).hex(" ")
    '02 02 04 07 00 00 00 01 02 04 02 01 00 00 04 03 00 00 00'
    """
    coded = plan(shape).coded
    written = np.empty(len(coded) + (LEAF_BYTES - 1) * len(numbers), np.uint8)
    kernels.encode_trees(np.frombuffer(coded, np.uint8), np.array(numbers, np.uint32), written)
    return written.tobytes()


def decode(tree: bytes) -> tuple[bytes, list[int]]:
    """Return the shape and the numbers of a tree."""
    shape, numbers = bytearray(), []
    at = 0
    while at < len(tree):
        if tree[at] == LEAF:
            shape.append(LEAF)
            numbers.append(struct.unpack_from("<I", tree, at + 1)[0])
            at += LEAF_BYTES
        elif tree[at : at + 1] in (ALWAYS, NEVER):
            shape.append(tree[at])
            at += 1
        else:
            shape += bytes([ALL if tree[at] == kernels.PURE else tree[at], tree[at + 1]])
            at += HEAD_BYTES
    return bytes(shape), numbers


def with_widths(tree: bytes) -> bytes:
    r"""Write the width of every child in front of it, in two bytes.

    >>> with_widths(encode(b"\x02\x02\x04\x04", [1, 2])).hex(" ")
    '02 02 05 00 04 01 00 00 00 05 00 04 02 00 00 00'
    """
    source = np.frombuffer(tree, np.uint8)
    written = np.empty(2 * len(tree) + 2, np.uint8)
    stack = np.empty((len(tree) + 1, 2), np.int64)
    return written[: kernels.write_widths(source, 0, written, 0, stack)].tobytes()
