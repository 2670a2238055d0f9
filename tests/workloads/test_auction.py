"""Does generated traffic look like the tables, and do instances keep to their ranges?"""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tamis.workloads import Auction, ParameterError
from tamis.workloads.auction_classes import advertisement_classes, subscription_classes
from tamis.workloads.auction_tables import read_rows, tables
from tamis.workloads.distributions import OPERAND_DISTRIBUTIONS
from tests.workloads.columns import matches

EVENT_COUNT = 400_000


@pytest.fixture(scope="module")
def events() -> pa.Table:
    return Auction().events(EVENT_COUNT, seed=1)


def share(mask) -> float:
    return pc.mean(pc.cast(mask, pa.float64())).as_py()


def deviations(found: np.ndarray, shares: np.ndarray, count: int) -> float:
    """The largest distance of a frequency from its probability, in standard deviations."""
    return float(np.max(np.abs(found - count * shares) / np.sqrt(np.maximum(count * shares * (1 - shares), 1))))


# -- Events


@pytest.mark.parametrize(
    ("attribute", "shares"),
    [
        ("condition", {"New": 0.2048, "Used": 0.7952}),
        ("special_attribute", {"1st Edition": 0.0183, "Signed": 0.1547, "Unspecified": 0.8269}),
        ("format", {"Hardcover": 0.4249, "Softcover": 0.5451, "Mixed Lot": 0.0086, "Other": 0.0213}),
    ],
)
def test_the_marginals_are_those_of_the_tables(events, attribute, shares):
    for value, expected in shares.items():
        assert share(pc.equal(events[attribute], value)) == pytest.approx(expected, abs=0.003)


def test_prices_bids_and_times_have_their_marginals(events):
    assert share(events["buy_it_now"]) == pytest.approx(0.1521, abs=0.003)
    assert share(pc.equal(events["bids"], 0)) == pytest.approx(0.8629, abs=0.003)
    assert share(pc.equal(events["bids"], 1)) == pytest.approx(0.0933, abs=0.003)
    assert pc.mean(events["bids"]).as_py() == pytest.approx(0.279, abs=0.01)
    assert pc.mean(events["price"]).as_py() == pytest.approx(6.99, abs=0.25)
    for limit, expected in ((5, 0.736), (10, 0.898), (20, 0.957)):
        assert share(pc.less(events["price"], limit)) == pytest.approx(expected, abs=0.003)
    assert share(pc.less(events["ending_within"], 1_440)) == pytest.approx(0.1, abs=0.003)
    assert share(pc.less(events["ending_within"], 60)) == pytest.approx(1 / 240, abs=0.0005)


def test_values_keep_to_their_domains(events):
    ranges = {"price": (0.01, 1000.0), "bids": (0, 60), "ending_within": (1, 14_400)}
    for attribute, (least, greatest) in ranges.items():
        found = pc.min_max(events[attribute]).as_py()
        assert least <= found["min"] <= found["max"] <= greatest
    cents = np.round(events["price"].to_numpy() * 100)
    assert (events["price"].to_numpy() == cents / 100).all(), "the double nearest to a whole number of cents"
    assert events["price"][0].as_py() == float(f"{events['price'][0].as_py():.2f}")


def test_each_of_the_528_cells_comes_as_often_as_it_was_counted(events):
    names = ("category", "format", "special_attribute", "condition")
    counted = events.group_by(list(names)).aggregate([([], "count_all")]).to_pylist()
    found = Counter({tuple(row[name] for name in names): row["count_all"] for row in counted})
    rows = read_rows("item_types.csv")
    categories = tables().categories
    cells = [
        (categories[int(row["category_id"]) - 1], row["format"], row["special_attribute"], row["condition"])
        for row in rows
    ]
    shares = np.array([int(row["count"]) for row in rows]) / 154_574
    assert deviations(np.array([found[cell] for cell in cells]), shares, EVENT_COUNT) < 5
    assert sum(found.values()) == sum(found[cell] for cell in cells)
    assert not [cell for cell, counted in zip(cells, shares, strict=True) if counted == 0 and found[cell]]


@pytest.mark.parametrize(
    ("attribute", "name", "bound", "unit"),
    [("price", "price.csv", "price_max_cents", 100), ("bids", "bids.csv", "bids_max", 1)],
)
def test_intervals_given_the_category_come_as_often_as_they_were_counted(events, attribute, name, bound, unit):
    rows = read_rows(name)
    values = np.round(events[attribute].to_numpy() * unit)
    categories = events["category"].combine_chunks().indices.to_numpy()
    for index in range(len(tables().categories)):
        own = [row for row in rows if int(row["category_id"]) == index + 1]
        inside = values[categories == index]
        intervals = np.searchsorted([int(row[bound]) for row in own], inside)
        shares = np.array([int(row["count"]) / int(row["count_base"]) for row in own])
        assert deviations(np.bincount(intervals, minlength=len(own)), shares, inside.size) < 5


def test_prices_are_uniform_inside_an_interval(events):
    cents = np.round(events["price"].to_numpy() * 100).astype(int)
    lowest = cents[cents <= 100]
    assert deviations(np.bincount(lowest, minlength=101)[1:], np.full(100, 0.01), lowest.size) < 5


def test_a_book_has_one_category_and_titles_come_from_the_catalogue(events):
    catalogue = Auction().catalogue
    titles = set(pc.unique(events["title"]).to_pylist())
    assert titles <= set(catalogue.title_names(np.arange(catalogue.title_count)).to_pylist())
    assert len(titles) > 0.99 * catalogue.title_count
    pairs = events.group_by(["title", "author"]).aggregate([])
    assert pairs.num_rows <= catalogue.titles.size, "a title is another's only where it was reused"


def test_signed_and_first_edition_can_be_swapped():
    swapped = Auction(swap_signed_and_first_edition=True).events(50_000, seed=1)
    plain = Auction().events(50_000, seed=1)
    assert share(pc.equal(swapped["special_attribute"], "Signed")) == pytest.approx(0.0183, abs=0.003)
    assert pc.equal(swapped["special_attribute"], "Signed").equals(pc.equal(plain["special_attribute"], "1st Edition"))
    assert swapped.drop_columns(["special_attribute"]).equals(plain.drop_columns(["special_attribute"]))


# -- Subscriptions and advertisements


def operands(table: pa.Table, book_class) -> dict[str, list[str]]:
    """Read the operands back out of the texts of one class."""
    pattern = re.sub(r"\\\{(p\d+)\\\}", r"(?P<\1>'[^']*'|[0-9.]+)", re.escape(book_class.shape))
    texts = table.filter(pc.equal(table["class"], book_class.name))["condition"].to_pylist()
    found = [re.fullmatch(pattern, text) for text in texts]
    assert all(found)
    return {name: [each[name] for each in found] for name in book_class.operands}


@pytest.mark.parametrize("distribution", OPERAND_DISTRIBUTIONS)
def test_every_operand_lies_in_its_range(distribution):
    auction = Auction(operand_distribution=distribution)
    pairs = (
        (auction.subscriptions(3_000, 1), subscription_classes()),
        (auction.advertisements(4_000, 1), advertisement_classes()),
    )
    for table, classes in pairs:
        for book_class in classes:
            for name, found in operands(table, book_class).items():
                domain = book_class.operands[name]
                if domain.kind == "price_cents":
                    cents = [round(float(text) * 100) for text in found]
                    assert domain.least <= min(cents) <= max(cents) <= domain.greatest
                    assert all(re.fullmatch(r"\d+\.\d\d", text) for text in found)


@pytest.mark.parametrize(
    ("distribution", "least_share"),
    # The first of 22 categories: uniform 1/22; normal Phi(1/5.5) - Phi(0) folded; Zipf 1 / H(22).
    [("uniform", 0.0455), ("normal", 0.1443), ("zipf", 0.2709)],
)
def test_the_operand_distribution_reaches_the_texts(distribution, least_share):
    auction = Auction(operand_distribution=distribution, advertisement_mix=(1, 0, 0, 0, 0, 0, 0, 0))
    for name, favourite in ((distribution, "'Action, Adventure'"), (f"reversed_{distribution}", "'Other'")):
        if name in OPERAND_DISTRIBUTIONS:
            auction = Auction(operand_distribution=name, advertisement_mix=(1, 0, 0, 0, 0, 0, 0, 0))
            found = operands(auction.advertisements(20_000, 1), advertisement_classes()[0])["p1"]
            assert found.count(favourite) / 20_000 == pytest.approx(least_share, abs=0.012)


@pytest.mark.parametrize("distribution", OPERAND_DISTRIBUTIONS)
def test_used_books_are_cheaper_than_new_ones_where_the_source_wants_it(distribution):
    table = Auction(operand_distribution=distribution).advertisements(4_000, 1)
    for book_class in (advertisement_classes()[4], advertisement_classes()[7]):
        assert len(book_class.is_below) == 2
        found = operands(table, book_class)
        for low, high in book_class.is_below:
            assert all(float(less) < float(more) for less, more in zip(found[low], found[high], strict=True))


def test_the_classes_are_mixed_as_asked_for():
    subscriptions = Auction(subscription_mix=(0.5, 0.2, 0.3)).subscriptions(20_000, 1)["class"].to_pylist()
    assert [subscriptions.count(name) / 20_000 for name in ("S1", "S2", "S3")] == pytest.approx(
        [0.5, 0.2, 0.3], abs=0.015
    )
    assert set(Auction(subscription_mix=(0, 0, 1)).subscriptions(100, 1)["class"].to_pylist()) == {"S3"}
    advertisements = Auction().advertisements(16_000, 1)["class"].to_pylist()
    assert all(advertisements.count(f"A{number}") == pytest.approx(2_000, abs=220) for number in range(1, 9))


def test_advertisements_are_numbered_texts_that_parse_and_that_events_conform_to():
    auction = Auction()
    advertisements = auction.advertisements(400, seed=1)
    assert advertisements.column_names == ["advertisement_id", "condition", "class"]
    assert advertisements["advertisement_id"].to_pylist() == list(range(400))
    found = matches(advertisements["condition"], auction.events(1_000, seed=1), auction.schema)
    classes = np.array(advertisements["class"].to_pylist())
    broad, narrow = found[classes >= "A6"].mean(), found[classes < "A6"].mean()
    assert 0.01 < broad < 0.5
    assert 0 < narrow < 0.01


def test_phrases_match_what_equality_matches():
    plain, phrases = Auction(), Auction(by_phrase=True)
    one, other = plain.subscriptions(300, seed=2)["condition"], phrases.subscriptions(300, seed=2)["condition"]
    assert "contains(title, 'Title" in str(other.to_pylist())
    assert not one.equals(other)
    events = plain.events(3_000, seed=2)
    assert (matches(one, events, plain.schema) == matches(other, events, plain.schema)).all()


def test_subscriptions_are_as_selective_as_their_probabilities_say():
    auction = Auction()
    subscriptions, events = auction.subscriptions(1_500, seed=1), auction.events(4_000, seed=1)
    found = matches(subscriptions["condition"], events, auction.schema).mean(axis=1)
    classes = np.array(subscriptions["class"].to_pylist())
    # S1: a title (1/1416 on average over titles), the last day (0.1), cheap enough (about 0.6).
    # S2: the same with higher limits (about 0.9). S3: a category (1/22) or an author (1/283), and then
    # ending within the hour without bids or signed (0.0037) or fixed price and signed (0.024).
    assert found[classes == "S1"].mean() == pytest.approx(0.6 * 0.1 / 1_416, rel=0.5)
    assert found[classes == "S2"].mean() == pytest.approx(0.9 * 0.1 / 1_416, rel=0.5)
    assert found[classes == "S3"].mean() == pytest.approx((1 / 22 + 1 / 283) * 0.027, rel=0.3)


@pytest.mark.parametrize(
    "knobs",
    [
        {"auctions_per_book": 0},
        {"books_per_author": -1},
        {"further_category": 1},
        {"reused_title": -0.1},
        {"operand_distribution": "pareto"},
        {"subscription_mix": (1, 1)},
        {"advertisement_mix": (0,) * 8},
    ],
)
def test_a_knob_that_cannot_stand_so_is_named(knobs):
    with pytest.raises(ParameterError, match=next(iter(knobs))):
        Auction(**knobs)
