"""The checks that came with the transcribed tables, and that the urns hold what the tables say."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

import numpy as np
import pytest

from tamis.workloads.auction_tables import read_document, read_rows, tables


def by_category(name: str) -> dict[str, list[dict[str, str]]]:
    groups = defaultdict(list)
    for row in read_rows(name):
        groups[row["category_id"]].append(row)
    return groups


def test_the_enumerations_have_their_sizes():
    known = tables()
    names = (known.categories, known.formats, known.special_attributes, known.conditions)
    assert [len(values) for values in names] == [22, 4, 3, 2]


def test_the_items_are_528_cells_of_whole_counts():
    rows = read_rows("item_types.csv")
    cells = {(row["category_id"], row["condition"], row["special_attribute"], row["format"]) for row in rows}
    base = sum(int(row["count"]) for row in rows)
    assert len(rows) == len(cells) == 528
    assert base == 154_574
    assert sum(float(row["probability"]) for row in rows) == pytest.approx(1, abs=1e-6)
    assert all(abs(int(row["count"]) / base - float(row["probability"])) < 1e-8 for row in rows)


def test_the_largest_cell_is_used_softcover_romance():
    top = max(read_rows("item_types.csv"), key=lambda row: int(row["count"]))
    assert (top["category_id"], top["condition"], top["format"]) == ("19", "Used", "Softcover")
    assert float(top["probability"]) == pytest.approx(0.11399, abs=5e-6)


def test_buy_it_now_fits_the_items_of_its_category():
    items = {
        category: sum(int(row["count"]) for row in rows) for category, rows in by_category("item_types.csv").items()
    }
    rows = read_rows("buy_it_now.csv")
    assert len(rows) == 22
    for row in rows:
        assert int(row["count_base"]) == items[row["category_id"]]
        assert int(row["count_yes"]) / int(row["count_base"]) == pytest.approx(float(row["probability_yes"]), abs=1e-6)


@pytest.mark.parametrize(
    ("name", "low", "high"), [("bids.csv", "bids_min", "bids_max"), ("price.csv", "price_min_cents", "price_max_cents")]
)
def test_intervals_are_contiguous_and_their_counts_give_the_printed_probabilities(name, low, high):
    groups = by_category(name)
    assert len(groups) == 22
    for rows in groups.values():
        assert sum(float(row["probability"]) for row in rows) == pytest.approx(1, abs=5e-6)
        assert all(int(one[high]) + 1 == int(next_one[low]) for one, next_one in pairwise(rows))
        assert sum(int(row["count"]) for row in rows) == int(rows[0]["count_base"])
        for row in rows:
            assert int(row["count"]) / int(row["count_base"]) == pytest.approx(float(row["probability"]), abs=6e-7)


def test_the_listed_items_and_their_bids_add_up():
    listed = {row["category_id"]: int(row["items"]) for row in read_rows("items_per_category.csv")}
    assert sum(listed.values()) == 141_602
    assert round(listed["19"] / 141_602, 3) == 0.192
    least_bids = {
        category: sum(float(row["probability"]) * int(row["bids_min"]) for row in rows)
        for category, rows in by_category("bids.csv").items()
    }
    assert sum(listed[category] * least_bids[category] for category in listed) == pytest.approx(38_339, rel=0.01)


def test_the_event_rates_add_up():
    rates = read_document("event_model.json")["event_rates"]
    assert 2 * rates["fiction_items_us"] + rates["fiction_bids_us"] == rates["messages_total"]


def test_an_urn_holds_what_its_table_says():
    urns = tables().price_cents.urns
    for category, rows in by_category("price.csv").items():
        start, size = urns.starts[int(category) - 1], urns.sizes[int(category) - 1]
        shares = np.bincount(urns.balls[start : start + size], minlength=16) / size
        assert shares == pytest.approx([float(row["probability"]) for row in rows], abs=6e-7)
