"""What is a workload?

Events and subscriptions that belong together: the same attributes, values that meet, and knobs that say how
often. Every workload is a frozen dataclass whose fields are its knobs, and everything it makes is a
function of them, a count and a seed. So a benchmark's input is three short lines, and a failing test's is one seed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable
from zlib import crc32

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tamis.workloads.errors import ParameterError

if TYPE_CHECKING:
    from tamis.language import Schema

Indexes: TypeAlias = npt.NDArray[np.int64]
Flags: TypeAlias = npt.NDArray[np.bool_]
Numbers: TypeAlias = npt.NDArray[np.float64]


@runtime_checkable
class Workload(Protocol):
    """Where test traffic comes from.

    >>> from tamis.workloads import WORKLOADS
    >>> workload = WORKLOADS["auction"](operand_distribution="zipf")
    >>> workload.events(3, seed=1).num_rows
    3
    >>> workload.subscriptions(2, seed=1).column_names
    ['subscription_id', 'condition', 'class']
    """

    @property
    def name(self) -> str:
        """How results and plots call it."""

    @property
    def schema(self) -> Schema:
        """The attributes of its events, for `tamis.parse(condition, schema)`."""

    def events(self, count: int, seed: int) -> pa.Table:
        """Make events, one row each and one column for each attribute; NULL is absent."""

    def subscriptions(self, count: int, seed: int) -> pa.Table:
        """Make subscriptions: `subscription_id` (int64), `condition` (a text), and what else is worth knowing."""


def generator(seed: int, purpose: str) -> np.random.Generator:
    """Return the source of chance for one purpose.

    Events and subscriptions of one seed must not be drawn from the same stream of numbers: they would be
    correlated. The purpose keeps the streams apart, and a checksum is the same on every machine and run.

    >>> generator(1, "events").integers(100) == generator(1, "subscriptions").integers(100)
    np.False_
    """
    if seed < 0:
        raise ParameterError("seed", seed, "an integer of at least 0")
    return np.random.default_rng([seed, crc32(purpose.encode())])


def subscription_table(conditions: pa.Array, **columns: pa.Array) -> pa.Table:
    """Number the conditions, and put what else is known of them beside."""
    identifiers = pa.array(np.arange(len(conditions), dtype=np.int64))
    return pa.table({"subscription_id": identifiers, "condition": conditions, **columns})


def named(indexes: npt.NDArray[np.integer], names: tuple[str, ...] | pa.Array) -> pa.DictionaryArray:
    """Return a column of names, each stored once.

    >>> named(np.array([1, 0, 1]), ("New", "Used")).to_pylist()
    ['Used', 'New', 'Used']
    """
    return pa.DictionaryArray.from_arrays(pa.array(indexes.astype(np.int32)), pa.array(names, pa.string()))
