"""Are W1 to W4 what the other engines were measured on?"""

from __future__ import annotations

import re

import numpy as np
import pyarrow.compute as pc
import pytest

import tamis
from tamis.language.expressions import And, Or
from tamis.workloads import ParameterError, SharedTemplates, Synthetic
from tamis.workloads.synthetic import ATTRIBUTES, CODES, NUMBERS, WORDS
from tests.workloads.columns import matches


def kinds(text: str) -> list[str]:
    """Name the kind of each predicate: range, in, code or word."""
    found = re.findall(r"(number|code|word)_\d+ (BETWEEN|IN|=)", text)
    names = {("number", "BETWEEN"): "range", ("word", "IN"): "in", ("code", "="): "code", ("word", "="): "word"}
    return [names[each] for each in found]


def test_there_are_thirty_attributes():
    assert (len(NUMBERS), len(CODES), len(WORDS)) == (15, 5, 10)
    assert list(Synthetic().schema.attributes) == list(ATTRIBUTES)


def test_numbers_are_uniform_and_codes_and_words_follow_zipf():
    events = Synthetic().events(50_000, seed=1)
    weights = 1 / np.arange(1, 51)
    shares = weights / weights.sum()
    assert pc.min_max(events["number_3"]).as_py() == {"min": 0, "max": 9_999}
    assert pc.mean(events["number_3"]).as_py() == pytest.approx(4_999.5, rel=0.01)
    codes = np.bincount(events["code_2"].to_numpy(), minlength=50) / 50_000
    words = np.bincount([int(word[-2:]) for word in events["word_9"].to_pylist()], minlength=50) / 50_000
    assert codes == pytest.approx(shares, abs=0.01)
    assert words == pytest.approx(shares, abs=0.01)


def test_a_sparse_event_carries_20_of_30():
    events = Synthetic(attributes_per_event=20).events(3_000, seed=1)
    assert {sum(value is not None for value in event.values()) for event in events.to_pylist()} == {20}
    absent = [events[name].null_count / 3_000 for name in ATTRIBUTES]
    assert absent == pytest.approx([1 / 3] * 30, abs=0.05)


@pytest.mark.parametrize(
    ("mix", "shares"),
    [
        ("W1", {"range": 0.4, "equality": 0.4, "in": 0.2}),
        ("W2", {"range": 0.4, "equality": 0.4, "in": 0.2}),
        ("W3", {"range": 0.0, "equality": 0.6, "in": 0.4}),
        ("W4", {"range": 0.6, "equality": 0.4, "in": 0.0}),
    ],
)
def test_predicates_are_mixed_as_defined(mix, shares):
    found = [
        kind for text in Synthetic(mix).subscriptions(4_000, seed=1)["condition"].to_pylist() for kind in kinds(text)
    ]
    counted = {name: found.count(name) / len(found) for name in ("range", "in", "code", "word")}
    assert counted["range"] == pytest.approx(shares["range"], abs=0.02)
    assert counted["in"] == pytest.approx(shares["in"], abs=0.02)
    assert counted["code"] + counted["word"] == pytest.approx(shares["equality"], abs=0.02)
    assert (counted["word"] == 0) is (mix == "W4"), "intervals are over integers only"


@pytest.mark.parametrize("mix", ["W1", "W3", "W4"])
def test_a_conjunction_has_five_predicates_over_distinct_attributes(mix):
    for text in Synthetic(mix).subscriptions(300, seed=1)["condition"].to_pylist():
        expression = tamis.parse(text)
        assert isinstance(expression, And)
        assert len(expression.operands) == 5
        assert len({re.match(r"\w+", str(operand))[0] for operand in expression.operands}) == 5


def test_half_of_w2_has_its_or_inside_and_half_outside():
    expressions = [tamis.parse(text) for text in Synthetic("W2").subscriptions(2_000, seed=1)["condition"].to_pylist()]
    outside = [expression for expression in expressions if isinstance(expression, Or)]
    assert len(outside) == pytest.approx(1_000, abs=100)
    assert all([len(part.operands) for part in expression.operands] == [4, 4] for expression in outside)
    for expression in expressions:
        if isinstance(expression, And):
            assert [isinstance(part, Or) for part in expression.operands] == [False, False, True, False]


def test_ranges_cover_5_to_50_percent_and_lists_five_words():
    texts = " ".join(Synthetic("W1").subscriptions(4_000, seed=1)["condition"].to_pylist())
    ends = np.array(re.findall(r"BETWEEN (\d+) AND (\d+)", texts), dtype=int)
    widths = ends[:, 1] - ends[:, 0] + 1
    assert (widths.min(), widths.max()) == pytest.approx((500, 5_000), abs=15)
    assert widths.mean() == pytest.approx(2_750, rel=0.02)
    assert ends.min() >= 0
    assert ends.max() <= 9_999
    for listed in re.findall(r"IN \(([^)]*)\)", texts):
        assert len(set(listed.split(", "))) == 5


@pytest.mark.parametrize(("mix", "per_event"), [("W1", 3.9), ("W2", 34.2), ("W3", 1.6), ("W4", 3.0)])
def test_so_many_of_10_000_subscriptions_match_an_event(mix, per_event):
    workload = Synthetic(mix)
    found = matches(workload.subscriptions(1_500, seed=1)["condition"], workload.events(4_000, seed=1), workload.schema)
    assert found.mean() * 10_000 == pytest.approx(per_event, rel=0.25)


def test_templates_are_few_and_operands_many():
    subscriptions = SharedTemplates(template_count=4).subscriptions(2_000, seed=1)
    texts = subscriptions["condition"].to_pylist()
    attributes = {tuple(re.findall(r"(\w+_\d+) (?:=|IN|BETWEEN)", text)) for text in texts}
    assert len(attributes) == 4
    assert len(set(texts)) > 1_900
    assert set(subscriptions["template"].to_pylist()) == {0, 1, 2, 3}
    order = {"word": 0, "code": 0, "in": 1, "range": 2}
    assert all([order[kind] for kind in kinds(text)] == sorted(order[kind] for kind in kinds(text)) for text in texts)


def test_a_knob_that_cannot_stand_so_is_named():
    with pytest.raises(ParameterError, match="mix must be one of W1, W2, W3, W4, not 'W5'"):
        Synthetic("W5")
    with pytest.raises(ParameterError, match="attributes_per_event must be from 1 to 30, not 31"):
        Synthetic(attributes_per_event=31)
    with pytest.raises(ParameterError, match="template_count"):
        SharedTemplates(template_count=0)
