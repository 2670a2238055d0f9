"""Rankings with a threshold behind an index: whoever need not look, need not look."""

from __future__ import annotations

import numpy as np
import pytest

from tamis.topk import Ranked, TopK, interest
from tamis.topk.per_subscription import Query

SETTINGS = {
    "PA": ({"algorithm": "probabilistic", "guard": False}, 600),
    "PA with a guard": ({"algorithm": "probabilistic"}, 600),
    "SAPF": ({"algorithm": "strict", "filter": "probabilistic", "buffer": 100}, 600),
    "RAPF": ({"algorithm": "relaxed", "filter": "probabilistic", "buffer": 100}, 600),
    "SASF": ({"algorithm": "strict", "filter": "strict", "buffer": 100}, 600),
    "RARF": ({"algorithm": "relaxed", "filter": "relaxed", "buffer": 100}, 600),
}


def subscriptions(chance, windows):
    for place, (x, y) in enumerate(chance.random((40, 2)).tolist()):
        where = "c = 1" if place % 5 == 0 else "TRUE"
        yield Ranked(f"euclidean(array(x, y), array({x}D, {y}D))", 1 + place % 4, windows[place % len(windows)], where)
    for place in range(10):
        yield Ranked(f"{place + 1} * x - 3 * y", 2, windows[place % len(windows)])
    yield Ranked("x", 2, windows[0], order="DESC")


@pytest.mark.parametrize("index", ["grid", "tree"])
@pytest.mark.parametrize("name", sorted(SETTINGS))
def test_with_an_index_the_answers_are_those_without_and_most_need_not_look(name, index, monkeypatch):
    settings, count = SETTINGS[name]
    looked = [0]
    arrive = Query.arrive

    def counted(self, *arguments):
        looked[0] += 1
        return arrive(self, *arguments)

    monkeypatch.setattr(Query, "arrive", counted)
    windows = ["300 EVENTS", "250 SECONDS"]
    looks, answers = {}, {}
    for chosen in ("auto", index):
        chance = np.random.default_rng(1)
        processor = TopK(**settings, index=chosen)
        processor.add_many(list(enumerate(subscriptions(chance, windows))))
        looked[0], told = 0, []
        for at, (x, y, c) in enumerate(chance.random((count, 3)).tolist()):
            if at == 400:
                looked[0] = 0
                processor.remove(3)
                processor.add("late", Ranked("euclidean(array(x, y), array(0.5D, 0.5D))", 2, "100 EVENTS"))
            told += processor.process({"x": x, "y": y, "c": int(c > 0.5)}, float(at), at)
        told += processor.advance(2000.0)
        looks[chosen], answers[chosen] = looked[0], told
    if "guard" in name:  # which candidates are kept depends on when it looks, but hardly anything else
        assert len(set(answers[index]) ^ set(answers["auto"])) <= 0.002 * count * 51
    elif name == "PA":
        only_counted = [{each for each in told if each.subscription != "late"} for told in answers.values()]
        assert len(only_counted[0] ^ only_counted[1]) <= 0.001 * count * 51
    else:
        assert sorted(map(str, answers[index])) == sorted(map(str, answers["auto"]))
    # A guard samples nearly every event of windows as short as these.
    assert "guard" in name or looks[index] < 0.75 * looks["auto"]


def test_events_without_a_place_and_exact_sums_are_looked_at_by_whom_they_concern(monkeypatch):
    monkeypatch.setattr(interest, "_FIRST_INDEX", 2)
    values = [1, 2**60, None, "a", float("nan"), 3, 2**60 + 1, 0.5, -(2**70), 7]
    answers = []
    for index in ("auto", "grid"):
        processor = TopK("strict", filter="strict", buffer=2, index=index)
        for place in range(4):
            processor.add(place, Ranked(f"{place + 2} * x + y", 1, "4 EVENTS"))
        answers.append([processor.process({"x": x, "y": 1}, float(at), at) for at, x in enumerate(values * 3)])
    assert answers[0] == answers[1]
