from __future__ import annotations

import numpy as np
import pytest

from tamis.workloads import Auction
from tamis.workloads.auction_catalogue import _attachments, build


def test_the_defaults_give_about_1416_books_and_283_authors():
    catalogue = Auction().catalogue
    assert catalogue.titles.size == pytest.approx(1_416, abs=3)
    assert catalogue.author_count == 283
    assert np.diff(catalogue.starts)[9] == 1, "category 10 has one book"


@pytest.mark.parametrize(
    ("auctions_per_book", "book_count"), [(100, 1_416), (10, 14_160), (1, 141_602), (0.1, 1_416_020)]
)
def test_the_fewer_auctions_a_book_has_the_more_books_there_are(auctions_per_book, book_count):
    catalogue = Auction(auctions_per_book=auctions_per_book).catalogue
    assert catalogue.titles.size == pytest.approx(book_count, abs=12)
    assert catalogue.author_count == pytest.approx(book_count / 5, abs=3)
    assert catalogue.title_count == pytest.approx(0.99 * book_count, rel=0.01)


def test_every_category_has_a_book_and_every_book_an_author():
    catalogue = build(np.array([3, 0, 400]), 100, 1_000, 0.1, 0.5, np.random.default_rng(1))
    assert np.diff(catalogue.starts).tolist() == [1, 1, 4]
    assert catalogue.author_count == 1
    assert set(catalogue.authors.tolist()) == {0}


def test_a_book_reuses_a_title_as_often_as_asked_for():
    catalogue = build(np.array([100_000]), 1, 5, 0.1, 0.3, np.random.default_rng(1))
    assert catalogue.title_count / 100_000 == pytest.approx(0.7, abs=0.01)
    assert catalogue.titles.max() == catalogue.title_count - 1


def test_an_author_has_n_categories_or_more_with_probability_p_to_the_n_minus_1():
    categories, writers = _attachments(22, 100_000, 0.3, np.random.default_rng(1))
    counts = np.bincount(writers)
    for n in (1, 2, 3, 4):
        assert np.mean(counts >= n) == pytest.approx(0.3 ** (n - 1), abs=0.01)
    assert len({*zip(categories.tolist(), writers.tolist(), strict=True)}) == categories.size, "no category twice"
    assert np.bincount(categories).std() < 0.02 * np.bincount(categories).mean(), "all categories alike"


def test_authors_write_in_their_categories_only():
    items = np.full(22, 10_000)
    chance = np.random.default_rng(3)
    catalogue = build(items, 1, 200, 0.0, 0.0, chance)
    category_of_book = np.repeat(np.arange(22), 10_000)
    pairs = np.unique(np.column_stack([catalogue.authors, category_of_book]), axis=0)
    homes = np.bincount(pairs[:, 0])
    assert (homes <= 2).all(), "one category, or a second where nobody else wrote"
    assert np.mean(homes[homes > 0] == 1) > 0.95


def test_no_name_contains_another():
    catalogue = Auction().catalogue
    titles = catalogue.title_names(np.arange(catalogue.title_count)).to_pylist()
    assert len(set(titles)) == catalogue.title_count
    assert len({len(title) for title in titles}) == 1
