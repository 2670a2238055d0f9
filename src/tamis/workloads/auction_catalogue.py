"""Which books are there to be auctioned?

The scenario's titles and authors are not counted but modelled: a category has so many unique books for its
items, a book has a title and an author, and now and then two books share a title or an author writes in two
categories. The fewer auctions a book gets, the larger the domains of title and author, and the rarer it is that
two subscriptions ask for the same thing.

Source: Bittner 2008, section 3.2.2, defaults from sections 5.7.1 and 8.1 (docs/bibliography.md).
Departs: the source leaves open how to round (to the nearest, at least one book and one author), what a category
without authors does (gets one of the others) and where a reused title comes from (any book of any category).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tamis.workloads.base import Indexes, named
from tamis.workloads.texts import integers, joined

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True)
class Catalogue:
    """The unique books, category by category, as identifiers of their titles and authors."""

    starts: Indexes
    """The books of category c are those from starts[c] to starts[c + 1]."""
    titles: npt.NDArray[np.int32]
    authors: npt.NDArray[np.int32]
    title_count: int
    author_count: int

    def draw(self, categories: Indexes, chance: np.random.Generator) -> Indexes:
        """Draw a book of each category, all of a category equally likely."""
        return chance.integers(self.starts[categories], self.starts[categories + 1])

    def title_names(self, identifiers: npt.NDArray[np.integer]) -> pa.Array:
        """Name titles. All names are equally long, so none contains another and `contains` means `=`."""
        return _names("Title ", identifiers, self.title_count)

    def author_names(self, identifiers: npt.NDArray[np.integer]) -> pa.Array:
        """Name authors, equally long as well."""
        return _names("Author ", identifiers, self.author_count)

    def title_column(self, books: Indexes) -> pa.DictionaryArray:
        """The titles of books, each name stored once."""
        return _column(self.titles[books], self.title_names)

    def author_column(self, books: Indexes) -> pa.DictionaryArray:
        """The authors of books, each name stored once."""
        return _column(self.authors[books], self.author_names)


def build(
    items: Indexes,
    auctions_per_book: float,
    books_per_author: float,
    further_category: float,
    reused_title: float,
    chance: np.random.Generator,
) -> Catalogue:
    """Make up the books of `items[c]` listed items in each category c.

    >>> catalogue = build(np.array([500, 300]), 100, 2, 0.1, 0.01, np.random.default_rng(1))
    >>> catalogue.starts, catalogue.author_count
    (array([0, 5, 8]), 4)
    """
    books = np.maximum(1, np.rint(items / auctions_per_book).astype(np.int64))
    book_count = int(books.sum())
    author_count = max(1, round(book_count / books_per_author))
    titles, title_count = _titles(book_count, reused_title, chance)
    return Catalogue(
        starts=np.concatenate([[0], np.cumsum(books)]),
        titles=titles,
        authors=_authors(books, author_count, further_category, chance),
        title_count=title_count,
        author_count=author_count,
    )


def _titles(book_count: int, reused_title: float, chance: np.random.Generator) -> tuple[npt.NDArray[np.int32], int]:
    is_fresh = chance.random(book_count) >= reused_title
    is_fresh[0] = True  # the first book has none to reuse
    title_count = int(is_fresh.sum())
    titles = np.empty(book_count, np.int32)
    titles[is_fresh] = np.arange(title_count)
    titles[~is_fresh] = chance.integers(0, title_count, book_count - title_count)
    return titles, title_count


def _authors(
    books: Indexes, author_count: int, further_category: float, chance: np.random.Generator
) -> npt.NDArray[np.int32]:
    """Give each book an author who writes in its category."""
    categories, writers = _attachments(len(books), author_count, further_category, chance)
    authors = []
    for category, book_count in enumerate(books.tolist()):  # one at a time: there may be a hundred million books
        own = writers[categories == category].astype(np.int32)
        authors.append(own[chance.integers(0, own.size, book_count)])
    return np.concatenate(authors)


def _attachments(
    category_count: int, author_count: int, further_category: float, chance: np.random.Generator
) -> tuple[Indexes, Indexes]:
    """Pair categories with authors: one category each, and a further one as long as the coin says so."""
    first = chance.integers(0, category_count, author_count)
    extra = np.minimum(chance.geometric(1 - further_category, author_count) - 1, category_count - 1)
    several = np.flatnonzero(extra)
    # The steps from the first category to the further ones, in random order and without a return to the first.
    steps = chance.permuted(np.tile(np.arange(1, category_count, dtype=np.int8), (several.size, 1)), axis=1)
    is_taken = np.arange(category_count - 1) < extra[several, np.newaxis]
    further = ((first[several, np.newaxis] + steps) % category_count)[is_taken]
    categories = np.concatenate([first, further])
    writers = np.concatenate([np.arange(author_count), np.repeat(several, extra[several])])
    deserted = np.setdiff1d(np.arange(category_count), categories)
    hired = chance.integers(0, author_count, deserted.size)
    return np.concatenate([categories, deserted]), np.concatenate([writers, hired])


def _names(kind: str, identifiers: npt.NDArray[np.integer], count: int) -> pa.Array:
    return joined(kind, pc.utf8_lpad(integers(identifiers), len(str(count - 1)), "0"))


def _column(identifiers: npt.NDArray[np.int32], names: Callable[[npt.NDArray[np.integer]], pa.Array]) -> pa.Array:
    distinct, indexes = np.unique(identifiers, return_inverse=True)
    return named(indexes, names(distinct))
