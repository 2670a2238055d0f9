"""What was for sale in July 2005? The counted tables behind the auction scenario.

The tables are probabilities that are whole counts over a base, so a draw needs no floating-point cumulative
sums: put one ball for each counted item into an urn and pick one. That is exact, and one look-up per event.

Source: Bittner 2008, appendix A (docs/bibliography.md); data/auction/README.md says how far to trust each number.
"""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from tamis.workloads.base import Indexes


@dataclass(frozen=True)
class Urns:
    """An urn of balls for each group; a ball bears the index of an outcome.

    >>> urns = Urns.of(np.array([[1, 3], [2, 0]]))
    >>> urns.balls
    array([0, 1, 1, 1, 0, 0], dtype=int16)
    >>> urns.draw(np.array([1, 1]), np.random.default_rng(1))
    array([0, 0], dtype=int16)
    """

    balls: npt.NDArray[np.int16]
    starts: Indexes
    sizes: Indexes

    @classmethod
    def of(cls, counts: Indexes) -> Urns:
        """Fill the urns: `counts[group, outcome]` balls."""
        sizes = counts.sum(axis=1)
        outcomes = np.broadcast_to(np.arange(counts.shape[1], dtype=np.int16), counts.shape)
        return cls(np.repeat(outcomes.ravel(), counts.ravel()), np.cumsum(sizes) - sizes, sizes)

    def draw(self, groups: Indexes, chance: np.random.Generator) -> npt.NDArray[np.int16]:
        """Draw a ball from the urn of each group, and put it back."""
        places: Indexes = self.starts[groups] + chance.integers(0, self.sizes[groups])
        return self.balls[places]


@dataclass(frozen=True)
class Intervals:
    """A number that is drawn in two steps: its interval by the category, then uniformly inside."""

    urns: Urns
    least: Indexes
    greatest: Indexes

    def draw(self, categories: Indexes, chance: np.random.Generator) -> Indexes:
        intervals = self.urns.draw(categories, chance)
        return chance.integers(self.least[intervals], self.greatest[intervals], endpoint=True)


@dataclass(frozen=True)
class AuctionTables:
    """Everything appendix A says. Enumerated values are indexes into their names."""

    categories: tuple[str, ...]
    formats: tuple[str, ...]
    special_attributes: tuple[str, ...]
    conditions: tuple[str, ...]
    item_types: Indexes
    """The 528 combinations: the indexes of category, format, special attribute and condition."""
    item_urn: Urns
    buy_it_now_urns: Urns
    bids: Intervals
    price_cents: Intervals
    items: Indexes
    """How many items each category listed; the size of the catalogue follows from it."""


def read_text(name: str) -> str:
    """Read a file of the scenario."""
    return (files("tamis.workloads") / "data" / "auction" / name).read_text(encoding="utf-8")


def read_rows(name: str) -> list[dict[str, str]]:
    """Read a table of the scenario."""
    return list(csv.DictReader(read_text(name).splitlines()))


def read_document(name: str) -> Any:
    """Read a JSON document of the scenario."""
    return json.loads(read_text(name))


@cache
def tables() -> AuctionTables:
    """Read appendix A, once.

    >>> tables().categories[18], tables().item_urn.sizes
    ('Romance', array([154574]))
    """
    categories, formats, special_attributes, conditions = (
        _names(attribute) for attribute in ("Category", "Format", "Special Attribute", "Condition")
    )
    items = read_rows("item_types.csv")
    item_types = [
        (
            int(row["category_id"]) - 1,
            formats.index(row["format"]),
            special_attributes.index(row["special_attribute"]),
            conditions.index(row["condition"]),
        )
        for row in items
    ]
    buy_it_now = read_rows("buy_it_now.csv")
    yes, base = _column(buy_it_now, "count_yes"), _column(buy_it_now, "count_base")
    return AuctionTables(
        categories,
        formats,
        special_attributes,
        conditions,
        item_types=np.array(item_types),
        item_urn=Urns.of(_column(items, "count")[np.newaxis, :]),
        buy_it_now_urns=Urns.of(np.column_stack([base - yes, yes])),
        bids=_intervals("bids.csv", "bids_min", "bids_max", len(categories)),
        price_cents=_intervals("price.csv", "price_min_cents", "price_max_cents", len(categories)),
        items=_column(read_rows("items_per_category.csv"), "items"),
    )


def _names(attribute: str) -> tuple[str, ...]:
    return tuple(value["name"] for value in read_document("enumerations.json")[attribute])


def _column(rows: list[dict[str, str]], name: str) -> Indexes:
    return np.array([int(row[name]) for row in rows], dtype=np.int64)


def _intervals(name: str, least: str, greatest: str, group_count: int) -> Intervals:
    rows = read_rows(name)
    counts = _column(rows, "count").reshape(group_count, -1)
    bounds = [_column(rows, bound).reshape(counts.shape) for bound in (least, greatest)]
    assert all((bound == bound[0]).all() for bound in bounds), "every category has the same intervals"
    return Intervals(Urns.of(counts), bounds[0][0], bounds[1][0])
