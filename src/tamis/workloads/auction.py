"""How do you test a publish/subscribe system on people who buy books?

Events are the states of US fiction-book auctions, drawn from tables that were counted on a large auction site in
July 2005. Subscriptions come from bidders, advertisements from sellers, and both use AND and OR the way people
do: another price limit for a new copy than for a used one. It is the scenario of Bittner's thesis, with all its knobs.

Prices are doubles although they have two decimals. A whole number of cents divided by 100 is the double nearest to
the decimal, and so is the literal `12.34` beside a double: comparisons are as exact as with decimals, and kernels stay
with machine numbers. `ending_within` counts minutes.

Source: Bittner 2008, chapter 3, appendices A and B (docs/bibliography.md).
Departs: enumerated values are names, not numbers; titles and authors are compared by `=` unless `by_phrase`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from tamis.language import Schema
from tamis.workloads import auction_catalogue
from tamis.workloads.auction_classes import BookClass, Operand, advertisement_classes, subscription_classes
from tamis.workloads.auction_tables import tables
from tamis.workloads.base import Indexes, generator, named, subscription_table
from tamis.workloads.distributions import OPERAND_DISTRIBUTIONS, draw, weighted
from tamis.workloads.errors import require
from tamis.workloads.texts import joined, literals, scattered

if TYPE_CHECKING:
    from tamis.workloads.auction_catalogue import Catalogue

LONGEST_AUCTION_MINUTES = 10 * 24 * 60

_ATTRIBUTES = {
    "category": "string",
    "format": "string",
    "special_attribute": "string",
    "condition": "string",
    "buy_it_now": "bool",
    "price": "double",
    "ending_within": "int",
    "bids": "int",
    "title": "string",
    "author": "string",
}
_SCHEMA = Schema(_ATTRIBUTES, mandatory=_ATTRIBUTES)


@dataclass(frozen=True)
class Auction:
    """Auctions of books, bidders and sellers.

    >>> auction = Auction(operand_distribution="zipf")
    >>> auction.events(1, seed=1)["category"].to_pylist()
    ['Mystery, Thriller']
    >>> auction.subscriptions(1, seed=2)["condition"][0].as_py()
    "title = 'Title 0441' AND ((condition = 'New' AND price < 5.00) OR (price < 1.77 AND condition = 'Used')) AND ..."
    """

    auctions_per_book: float = 100
    """How many auctions a book has on average, B_prop; 0.001 to 100 in the source. 0.01 is 14 million books and takes
    seconds to make up."""
    books_per_author: float = 5
    """How many books an author has on average, A_prop."""
    further_category: float = 0.1
    """The probability that an author gets one more category, p_mult^A."""
    reused_title: float = 0.01
    """The probability that a book takes another book's title, p_mult^T."""
    operand_distribution: str = "uniform"
    """How the operands of variable predicates are spread over their ranges."""
    subscription_mix: tuple[float, ...] = (1, 1, 1)
    """The weights of S1 to S3. The source mixes them and does not say how; equal shares are assumed."""
    advertisement_mix: tuple[float, ...] = (1, 1, 1, 1, 1, 1, 1, 1)
    """The weights of A1 to A8."""
    by_phrase: bool = False
    """Ask for titles and authors with `contains` instead of `=`. The matches are the same, the work is not."""
    swap_signed_and_first_edition: bool = False
    """As printed, 15.5 percent of items are signed and 1.8 percent first editions; perhaps it was the other way."""
    catalogue_seed: int = 1
    """Decides the books. It is not part of a call's seed, so that all subscriptions know all events' titles."""

    def __post_init__(self) -> None:
        require(self.auctions_per_book > 0, "auctions_per_book", self.auctions_per_book, "more than 0")
        require(self.books_per_author > 0, "books_per_author", self.books_per_author, "more than 0")
        for share in ("further_category", "reused_title"):
            require(0 <= getattr(self, share) < 1, share, getattr(self, share), "a probability below 1")
        known = f"one of {', '.join(OPERAND_DISTRIBUTIONS)}"
        require(
            self.operand_distribution in OPERAND_DISTRIBUTIONS, "operand_distribution", self.operand_distribution, known
        )
        for mix, size in (("subscription_mix", 3), ("advertisement_mix", 8)):
            weights = getattr(self, mix)
            is_mix = len(weights) == size and min(weights) >= 0 and sum(weights) > 0
            require(is_mix, mix, weights, f"{size} weights, not all of them 0")

    @property
    def name(self) -> str:
        return "auction"

    @property
    def schema(self) -> Schema:
        """The event type `book`; every event carries all attributes."""
        return _SCHEMA

    @cached_property
    def catalogue(self) -> Catalogue:
        """The books that events are about and subscriptions ask for."""
        return auction_catalogue.build(
            tables().items,
            self.auctions_per_book,
            self.books_per_author,
            self.further_category,
            self.reused_title,
            generator(self.catalogue_seed, "auction catalogue"),
        )

    def events(self, count: int, seed: int) -> pa.Table:
        """Draw states of auctions, independently of one another."""
        chance = generator(seed, "auction events")
        known = tables()
        item_types = known.item_types[known.item_urn.draw(np.zeros(count, np.int64), chance)]
        categories = item_types[:, 0]
        books = self.catalogue.draw(categories, chance)
        return pa.table(
            {
                "category": named(categories, known.categories),
                "format": named(item_types[:, 1], known.formats),
                "special_attribute": named(item_types[:, 2], self._special_attributes()),
                "condition": named(item_types[:, 3], known.conditions),
                "buy_it_now": known.buy_it_now_urns.draw(categories, chance).astype(np.bool_),
                "price": known.price_cents.draw(categories, chance) / 100,
                "ending_within": chance.integers(1, LONGEST_AUCTION_MINUTES, count, endpoint=True),
                "bids": known.bids.draw(categories, chance),
                "title": self.catalogue.title_column(books),
                "author": self.catalogue.author_column(books),
            }
        )

    def subscriptions(self, count: int, seed: int) -> pa.Table:
        """Draw what bidders ask for; `class` is S1, S2 or S3."""
        chance = generator(seed, "auction subscriptions")
        conditions, classes = self._instances(
            subscription_classes(self.by_phrase), self.subscription_mix, count, chance
        )
        return subscription_table(conditions, **{"class": classes})

    def advertisements(self, count: int, seed: int) -> pa.Table:
        """Draw what sellers announce: `advertisement_id`, `condition`, and `class`, which is one of A1 to A8.

        >>> Auction(advertisement_mix=(0, 0, 0, 0, 0, 1, 0, 0)).advertisements(1, seed=1)["condition"][0].as_py()
        "(condition = 'Used' AND price > 4.20) OR (price > 9.45 AND condition = 'New')"
        """
        chance = generator(seed, "auction advertisements")
        conditions, classes = self._instances(advertisement_classes(), self.advertisement_mix, count, chance)
        identifiers = pa.array(np.arange(count, dtype=np.int64))
        return pa.table({"advertisement_id": identifiers, "condition": conditions, "class": classes})

    def _special_attributes(self) -> tuple[str, ...]:
        first_edition, signed, unspecified = tables().special_attributes
        if self.swap_signed_and_first_edition:
            first_edition, signed = signed, first_edition
        return first_edition, signed, unspecified

    def _instances(
        self, classes: tuple[BookClass, ...], mix: tuple[float, ...], count: int, chance: np.random.Generator
    ) -> tuple[pa.Array, pa.Array]:
        """Write instances of the classes, and say which class each one is of."""
        chosen = weighted(np.array(mix, dtype=np.float64), count, chance)
        groups = []
        for index, book_class in enumerate(classes):
            places = np.flatnonzero(chosen == index)
            written = {
                name: self._literals(book_class.operands[name], operands)
                for name, operands in self._operands(book_class, places.size, chance).items()
            }
            groups.append((places, book_class.conditions(written, places.size)))
        return scattered(groups), named(chosen, tuple(book_class.name for book_class in classes))

    def _operands(self, book_class: BookClass, count: int, chance: np.random.Generator) -> dict[str, Indexes]:
        """Draw the operands of all variable predicates, as indexes into their domains."""

        def drawn(name: str, how_many: int) -> Indexes:
            size = self._domain_size(book_class.operands[name])
            return draw(self.operand_distribution, size, how_many, chance)

        operands = {name: drawn(name, count) for name in book_class.operands}
        for low, high in book_class.is_below:
            gap = book_class.operands[high].least - book_class.operands[low].least
            # Drawing the pair again keeps both inside their ranges; swapping them would not.
            while (wrong := np.flatnonzero(operands[low] >= operands[high] + gap)).size:
                operands[low][wrong], operands[high][wrong] = drawn(low, wrong.size), drawn(high, wrong.size)
        return operands

    def _domain_size(self, operand: Operand) -> int:
        match operand.kind:
            case "title_id":
                return self.catalogue.title_count
            case "author_id":
                return self.catalogue.author_count
            case "category_id":
                return len(tables().categories)
            case _:
                return operand.greatest - operand.least + 1

    def _literals(self, operand: Operand, indexes: Indexes) -> pa.Array:
        match operand.kind:
            case "title_id":
                return joined("'", self.catalogue.title_names(indexes), "'")
            case "author_id":
                return joined("'", self.catalogue.author_names(indexes), "'")
            case "category_id":
                return literals(tables().categories).take(pa.array(indexes))
            case _:
                cents = range(operand.least, operand.greatest + 1)
                return pa.array([f"{price // 100}.{price % 100:02}" for price in cents]).take(pa.array(indexes))
