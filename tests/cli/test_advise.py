from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.conftest import tamis

if TYPE_CHECKING:
    from pathlib import Path

TITLES = [f"title = 'T{n}' AND (price < {n} OR bids > {n})" for n in range(60)]
RANGES = [
    f"price > {n} AND (bids > {n} OR seller > {n}) AND (a > {n} OR b > {n}) AND (c > 1 OR d > 1)" for n in range(60)
]


def rules(tmp_path: Path, texts: list[str]) -> str:
    path = tmp_path / "rules.txt"
    path.write_text("\n".join(["-- some rules", *texts]) + "\n")
    return str(path)


def test_subscriptions_with_rare_equalities_are_for_the_cluster_algorithm(tmp_path: Path):
    shown = tamis("advise", rules(tmp_path, TITLES)).stdout
    assert "60 subscriptions" in shown
    assert "100% of the conjunctions" in shown
    assert "guessed from the operands" in shown
    assert "cluster takes the fewest steps" in shown


def test_ranges_with_many_conjunctions_are_for_boolean_filtering(tmp_path: Path):
    document = json.loads(tamis("advise", rules(tmp_path, RANGES), "--json").stdout)
    assert (document["quickest"], document["leanest"]) == ("boolean", "boolean")
    assert document["characteristics"]["conjunctions"] == 8 > document["turning_points"]["counting"]
    assert document["with_equality"] == 0
    assert any("Only 0% of the conjunctions" in reason for reason in document["reasons"])


def test_events_tell_how_often_predicates_hold(tmp_path: Path):
    events = tmp_path / "events.parquet"
    pq.write_table(pa.table({"title": ["T1"] * 50, "price": [0] * 50, "bids": [0] * 50}), events)
    result = tamis("advise", rules(tmp_path, ["title = 'T1' AND price < 5"] * 300), "--events", str(events), "--json")
    document = json.loads(result.stdout)
    assert document["is_sampled"]
    assert document["steps"]["cluster"] > 300, "its title holds for all events"
    assert document["steps"]["counting"] > 600


def test_a_table_is_read_by_its_column_of_conditions(tmp_path: Path):
    table = tmp_path / "rules.parquet"
    pq.write_table(pa.table({"rule": TITLES}), table)
    assert "60 subscriptions" in tamis("advise", str(table), "--where", "rule").stdout


def test_what_is_left_out_is_counted(tmp_path: Path):
    wide = "at_least(12, " + ", ".join(f"a{n} = 1" for n in range(24)) + ")"
    shown = tamis("advise", rules(tmp_path, [*TITLES, "TOP 5 BY price OVER 1 HOUR", "1 = 1 OR TRUE", wide])).stdout
    assert "1 is no conditions" in shown or "1 are no conditions" in shown
    assert "too large" in shown
    assert "the same for every event" in shown


@pytest.mark.parametrize(
    ("texts", "wrong"),
    [(["price <"], "line 2"), ([], "has no condition"), (["TRUE"], "no subscription has a predicate")],
)
def test_what_is_wrong_is_said_with_its_place(tmp_path: Path, texts, wrong):
    result = tamis("advise", rules(tmp_path, texts))
    assert result.exit_code == 2
    assert wrong in result.stderr
