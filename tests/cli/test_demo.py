from __future__ import annotations

import json

import pytest
from rich.cells import cell_len

import tamis as library
from tamis.cli import auction
from tamis.cli import demo as command
from tamis.cli.demo import MORE, a_near_miss
from tests.cli.conftest import tamis


def demo(*arguments: str) -> dict:
    return json.loads(tamis("demo", "--json", *arguments).stdout)


def without_times(document: dict) -> dict:
    return {key: value for key, value in document.items() if key not in ("seconds", "events_per_second")}


def test_the_report_counts_what_the_definition_matches():
    document = demo("--events", "100", "--seed", "5")
    events = list(auction.events(100, seed=5))
    for subscription in document["subscriptions"]:
        tree = library.parse(subscription["text"])
        assert subscription["matches"] == sum(library.holds(tree, event) for event in events)
    assert document["matches"] == sum(subscription["matches"] for subscription in document["subscriptions"])


def test_the_demonstration_runs_the_flagship():
    document = demo("--events", "100")
    assert document["algorithm"] == library.Matcher().algorithm == "block"
    assert (document["judged_pairs"], document["wrong"]) == (1300, 0)


def test_a_wrong_match_would_be_noticed(monkeypatch):
    whole = command.matched
    monkeypatch.setattr(command, "matched", lambda *arguments: whole(*arguments) | {"bargains": [0, 1, 2, 3]})
    result = tamis("demo", "--events", "50")
    assert result.exit_code == 1
    assert "not as found" in " ".join(result.stdout.split())


def test_the_same_seed_gives_the_same_report():
    one, two, other = demo("--events", "50"), demo("--events", "50"), demo("--events", "50", "--seed", "2")
    assert without_times(one) == without_times(two)
    assert one["subscriptions"] != other["subscriptions"]


def test_every_subscription_matches_some_events_but_not_all():
    document = demo("--events", "500")
    assert all(0 < subscription["matches"] < 500 for subscription in document["subscriptions"])


def test_a_match_and_a_near_miss_are_explained():
    document = demo("--events", "500")
    assert document["match"]["explanation"]["truth"] == "true"
    *others, last = document["near_miss"]["explanation"]["parts"]
    assert {part["truth"] for part in others} == {"true"}
    assert last["truth"] == "false"


def test_where_nothing_is_near_there_is_no_near_miss():
    # event        a    b    a AND b
    #              ✓    ✓    a match
    #              ✗    ✗    too far
    trees = {"both": library.parse("a AND b")}
    assert a_near_miss(trees, [{"a": True, "b": True, "title": ""}, {"a": False, "b": False, "title": ""}]) is None


@pytest.mark.parametrize("width", [80, 120])
def test_the_report_fits_the_terminal_and_is_honest(width: int):
    result = tamis("demo", "--events", "100", env={"COLUMNS": str(width)})
    assert result.exit_code == 0
    assert max(map(cell_len, result.stdout.splitlines())) <= width
    assert "█" in result.stdout
    told = " ".join(result.stdout.split())
    assert "The definition of what matches, asked about 1,300 pairs one by one: all as found." in told
    assert MORE in told
    assert result.stderr == "", "without a terminal there is no progress bar"


def test_one_event_is_enough():
    assert tamis("demo", "--events", "1").exit_code == 0


def test_no_event_is_a_mistake():
    assert tamis("demo", "--events", "0").exit_code == 2
