"""A function is one row: whoever adds the row has added the function, in every package.

The rows that are added here are of functions that take NULLs, which is what packages concluded wrongly from when they
had lists of their own: `first_known`, which gives a value, and `are_same`, which gives a truth. They are in the language
only while a test asks about them.
"""

from __future__ import annotations

import json
import pickle
from contextlib import contextmanager
from random import Random
from unittest.mock import patch

import jsonschema
import msgspec
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from tamis.errors import TypeMismatchError
from tamis.language.builder import attr, call
from tamis.language.builder import test as test_of
from tamis.language.expressions import Between, Compare, IsNull, Like, Literal, Test, postorder
from tamis.language.functions import FUNCTIONS, Function
from tamis.language.meaning import value
from tamis.language.rewrites import fold_constants, monotone
from tamis.language.values import compare
from tamis.matching import Matcher
from tamis.matching.algorithms import ALGORITHMS
from tamis.matching.columns import Events
from tamis.matching.columnwise import truth_codes
from tamis.matching.columnwise.evaluation import COLUMN_FORMS
from tamis.pruning import Goal, options, prune_many
from tamis.pruning.trees import pruning_form
from tamis.relations import covers, example, identical, merge, overlaps, satisfiable
from tamis.routing import STRATEGIES, Broker
from tamis.selectivity import Counters, Sample, Statistics, estimate
from tamis.service.messages import Attach, Principal, Publish, Subscribe, Subscribed
from tamis.service.permissions import Permissions
from tamis.service.settings import Role
from tamis.simulation import Network
from tamis.simulation.occurrences import EventDelivered
from tamis.standing import Standing
from tamis.standing.naive import NaiveStanding
from tamis.topk import CountWindow, Ranked, TopK
from tests.cli.conftest import tamis as tamis_cli
from tests.relations.test_every_function import calls, check_relations, parsed
from tests.service.drive import Drive, incoming, wanted
from tests.strategies import COMPARISONS, events, scalars

FIRST_KNOWN = Function(
    name="first_known",
    takes=("any", "any"),
    gives="any",
    meaning=lambda *arguments: next((each for each in arguments if each is not None), None),
    takes_nulls=True,
    summary="the first value that is not NULL",
    topic="Comparison",
    example="first_known(reserve, estimate) < 20",
    spark="first_known",
    variadic=True,
    alike=True,
    no_value="all its arguments are NULL",
)
ARE_SAME = Function(
    name="are_same",
    takes=("any", "any"),
    gives="boolean",
    meaning=lambda one, two: compare(one, two) == 0 or (one is None and two is None),
    takes_nulls=True,
    summary="are both equal, or both NULL?",
    topic="Novelties",
    example="are_same(reserve, estimate)",
    spark=None,
)
TEXTS = (
    "first_known(a, b) = 1",
    "first_known(a, b) = 1 AND a IS NULL",
    "first_known(a, b, 5) > 4",
    "are_same(a, b)",
    "NOT are_same(a, b) AND b = 1",
    "first_known(lower(t), 'x') LIKE 'x%'",
    "first_known(a, b) IS NULL",
    "first_known(a, b) + 1 BETWEEN 2 AND 3",
)
EVENTS = [
    {},
    {"a": 1},
    {"b": 1},
    {"a": 1, "b": 2},
    {"a": 2, "b": 1},
    {"a": 7, "b": 7.0},
    {"a": None, "b": 1, "t": "Xyz"},
    {"b": 9, "t": "abc"},
]


@contextmanager
def added():
    """Add the rows, and nothing else."""
    with patch.dict(FUNCTIONS, {"first_known": FIRST_KNOWN, "are_same": ARE_SAME}):
        yield


@pytest.fixture
def rows():
    with added():
        yield


def matches(text):
    return [number for number, event in enumerate(EVENTS) if tamis.holds(tamis.parse(text), event)]


def test_the_functions_are_unknown_without_their_rows():
    with pytest.raises(tamis.errors.UnknownFunctionError):
        tamis.parse("first_known(a, b) = 1")


@pytest.mark.usefixtures("rows")
class TestTheLanguage:
    def test_the_meaning_is_the_row_s(self):
        assert matches("first_known(a, b) = 1") == [1, 2, 3, 6]
        assert matches("first_known(a, b) = 1 AND a IS NULL") == [2, 6]
        assert matches("are_same(a, b)") == [0, 5]
        assert value(tamis.parse("first_known(a, b) = 1").left, {"b": 4}) == 4

    @pytest.mark.parametrize("text", TEXTS)
    def test_text_json_and_pickles_come_back(self, text):
        node = tamis.parse(text)
        assert tamis.parse(str(node)) == node
        assert tamis.from_json(node.to_json()) == node
        assert pickle.loads(pickle.dumps(node)) == node
        jsonschema.Draft202012Validator(tamis.json_schema()).validate(json.loads(node.to_json()))

    def test_the_json_schema_knows_which_gives_a_truth(self):
        schema = tamis.json_schema()
        assert "first_known" in schema["$defs"]["call"]["enum"]
        assert "are_same" in schema["$defs"]["test"]["enum"]

    def test_the_checker_follows_the_kind_of_its_arguments(self):
        with pytest.raises(TypeMismatchError, match="different kinds"):
            tamis.parse("first_known(1, 'a') = 1")
        with pytest.raises(TypeMismatchError, match="cannot be compared"):
            tamis.parse("first_known(a, 'a') = 1")
        with pytest.raises(TypeMismatchError):
            tamis.parse("first_known(a, b) < t", tamis.Schema({"a": "int", "b": "int", "t": "string"}))

    def test_the_builder_makes_what_the_parser_reads(self):
        assert (call("first_known", attr("a"), attr("b")) == 1) == tamis.parse("first_known(a, b) = 1")
        assert test_of("are_same", attr("a"), attr("b")) == tamis.parse("are_same(a, b)")
        with pytest.raises(TypeMismatchError, match="gives a value"):
            call("are_same", attr("a"), attr("b"))
        with pytest.raises(TypeMismatchError, match="gives a truth"):
            test_of("first_known", attr("a"), attr("b"))

    def test_constants_are_computed(self):
        assert str(fold_constants(tamis.parse("first_known(NULL, 5) = a"))) in ("5 = a", "a = 5")

    def test_an_explanation_says_why_there_is_no_value(self):
        assert "first_known(a, b) has no value: all its arguments are NULL" in str(
            tamis.explain(tamis.parse("first_known(a, b) = 1"), {})
        )

    def test_the_command_line_lists_it(self):
        listed = json.loads(tamis_cli("language", "--json").stdout)
        entries = {entry["form"]: entry for entries in listed.values() for entry in entries}
        assert entries["first_known"]["example"] == FIRST_KNOWN.example
        assert not entries["first_known"]["is_extension"]
        assert entries["are_same"]["is_extension"]
        assert [entry["form"] for entry in listed["Novelties"]] == ["are_same"]


@pytest.mark.usefixtures("rows")
class TestMatching:
    @pytest.mark.parametrize("algorithm", ALGORITHMS)
    def test_every_algorithm_matches_what_the_definition_matches(self, algorithm):
        matcher = Matcher(algorithm)
        matcher.add_many(dict(enumerate(TEXTS)))
        wanted = [[key for key, text in enumerate(TEXTS) if tamis.holds(tamis.parse(text), each)] for each in EVENTS]
        assert [matcher.match(event) for event in EVENTS] == wanted
        assert matcher.list_batch(EVENTS * 8).to_pylist() == wanted * 8
        table = pa.Table.from_pylist([{name: event.get(name) for name in "abt"} for event in EVENTS])
        assert matcher.list_batch(table).to_pylist() == wanted

    def test_over_columns_it_is_computed_row_by_row(self):
        assert "first_known" not in COLUMN_FORMS
        assert truth_codes(tamis.parse("first_known(a, b) = 1"), Events(EVENTS)).tolist() == [0, 2, 2, 2, 1, 1, 2, 1]


@pytest.mark.usefixtures("rows")
class TestRelations:
    def test_a_filter_may_be_true_although_an_argument_is_null(self):
        verdict = satisfiable("first_known(a, b) = 1 AND a IS NULL")
        assert verdict
        witness = example(["first_known(a, b) = 1 AND a IS NULL"])
        assert witness is None or tamis.holds(tamis.parse("first_known(a, b) = 1 AND a IS NULL"), witness)
        assert satisfiable("are_same(a, b) AND a IS NULL")

    def test_it_proves_nothing_about_its_arguments(self):
        assert not covers("a IS NOT NULL", "first_known(a, b) = 1")
        assert overlaps("a IS NULL", "first_known(a, b) = 1")
        assert overlaps("a IS NULL", "are_same(a, b)")
        assert not identical("first_known(a, b) = 1", "first_known(a, b) = 1 AND a IS NOT NULL")
        assert covers("first_known(a, b) > 0", "first_known(a, b) = 1")

    def test_a_merger_loses_no_event(self):
        merger = merge(["first_known(a, b) = 1 AND a IS NULL", "first_known(a, b) = 2"]).expression
        for event in EVENTS:
            either = any(
                tamis.holds(tamis.parse(text), event)
                for text in ("first_known(a, b) = 1 AND a IS NULL", "first_known(a, b) = 2")
            )
            assert tamis.holds(merger, event) or not either


@settings(max_examples=40)
@given(data=st.data())
def test_relations_prove_nothing_of_a_function_that_takes_nulls_that_an_event_refutes(data):
    with added():
        one, two = (
            parsed(
                data.draw(
                    st.one_of(
                        calls("are_same"),
                        st.builds(Compare, st.sampled_from(COMPARISONS), calls("first_known"), scalars.map(Literal)),
                    )
                )
            )
            for _ in range(2)
        )
        check_relations(one, two, data.draw(st.lists(events(), max_size=4)))


@pytest.mark.usefixtures("rows")
class TestEstimatesPruningAndRanking:
    def test_a_share_is_that_of_the_definition(self):
        for text in TEXTS:
            expected = sum(tamis.holds(tamis.parse(text), event) for event in EVENTS) / len(EVENTS)
            assert Sample(EVENTS).share(tamis.parse(text)) == pytest.approx(expected)

    def test_counters_and_samples_make_bounds_that_hold(self):
        counters = Counters()
        predicates = [
            node
            for text in TEXTS
            for node in postorder(tamis.parse(text))
            if isinstance(node, Compare | Between | Like | IsNull | Test)
        ]
        counters.observe(EVENTS, predicates)
        for text in TEXTS:
            expected = sum(tamis.holds(tamis.parse(text), event) for event in EVENTS) / len(EVENTS)
            for share in (Sample(EVENTS).share, counters.share):
                found = estimate(monotone(tamis.parse(text)), share)
                assert found.least - 1e-9 <= expected <= found.most + 1e-9, text

    def test_statistics_do_not_require_what_it_does_not(self):
        statistics = Statistics.of([{"a": 1}, {"a": 2}, {}, {}])
        assert statistics.share(tamis.parse("first_known(a, 1) = 1")) == pytest.approx(0.75)
        assert statistics.share(tamis.parse("NOT are_same(a, 1)")) == pytest.approx(0.75)

    @pytest.mark.parametrize("text", TEXTS)
    def test_a_pruned_filter_is_true_for_more(self, text):
        whole = tamis.parse(f"({text}) AND c = 1 AND (a = 1 OR b = 1)")
        for option in options(pruning_form(whole)):
            for event in [{**event, "c": 1} for event in EVENTS]:
                assert tamis.holds(option.tree, event) or not tamis.holds(whole, event)

    def test_many_are_pruned_together(self):
        wholes = [tamis.parse(f"({text}) AND c = 1") for text in TEXTS]
        for whole, pruned in zip(wholes, prune_many(wholes, Sample(EVENTS).share, Goal(count=4)), strict=True):
            for event in [{**event, "c": 1} for event in EVENTS]:
                assert tamis.holds(pruned, event) or not tamis.holds(whole, event)

    def test_a_score_has_its_value(self):
        scored = [{}, {"a": 1}, {"b": 3}, {"a": 2, "b": 9}, {"a": None, "b": 5}, {"b": 4}]
        for algorithm in ("naive", "strict", "block"):
            processor = TopK(algorithm)
            processor.add("best", Ranked("first_known(a, b)", 1, CountWindow(10), order="DESC"))
            told = [delivery.event for time, event in enumerate(scored) for delivery in processor.process(event, time)]
            assert told == [1, 2, 4], algorithm


@pytest.mark.usefixtures("rows")
class TestStandingNetworksAndTheService:
    def test_sequences_and_changes_see_what_the_definition_sees(self):
        texts = {
            "sequence": "SEQUENCE first_known(a, b) = 1 THEN are_same(a, b) WITHIN 1 HOUR",
            "change": "CHANGE TO first_known(a, b) IS NULL",
            "ranked": "TOP 1 BY first_known(a, b) OVER 3 EVENTS WHERE NOT are_same(a, 1)",
        }
        processor, definition = Standing(), NaiveStanding()
        processor.add_many(texts)
        for key in ("sequence", "change"):
            definition.add(key, texts[key])
        notified = [each for now, event in enumerate(EVENTS) for each in processor.process(event, float(now), id=now)]
        by_definition = [
            each for now, event in enumerate(EVENTS) for each in definition.process(event, float(now), id=now)
        ]
        assert [each for each in notified if each.subscription != "ranked"] == by_definition
        assert {each.subscription for each in notified} == set(texts)

    @pytest.mark.parametrize("strategy", sorted(STRATEGIES))
    def test_a_network_delivers_what_matches_under_every_strategy(self, strategy):
        seen = []
        network = Network(
            "abc", [("a", "b"), ("b", "c")], lambda name: Broker(name, strategy), Random(1), encodes=True,
            observers=[seen.append],
        )  # fmt: skip
        network.attach("publisher", "a")
        network.advertise("publisher", "all", tamis.parse("NOT are_same(a, 1) OR first_known(a, b) = 1"))
        network.run()
        for number, text in enumerate(TEXTS):
            network.attach(f"client {number}", "c")
            network.subscribe(f"client {number}", "it", tamis.parse(text))
        network.run()
        for number, event in enumerate(EVENTS):
            network.publish("publisher", number, event)
        network.run()
        got = {(each.client, each.publication.key) for each in seen if isinstance(each, EventDelivered)}
        expected = {(f"client {number}", key) for number, text in enumerate(TEXTS) for key in matches(text)}
        assert got == expected

    def test_a_served_broker_delivers_what_matches_of_what_a_role_may_see(self):
        drive = Drive(Permissions({"reader": Role(receive="first_known(a, b) = 1")}))
        reader = Principal("ann", ("reader",))
        answer = drive.hear(Subscribe(1, "ann", {"it": wanted("a IS NULL")}), 2, reader)
        assert isinstance(answer, Subscribed)
        drive.hear(Attach(1, "ann", credit=100), 2, reader)
        for number, event in enumerate(EVENTS):
            drive.hear(Publish(1, (incoming(number, **event),)), 9, Principal("root", ("admin",)))
        received = [int(msgspec.json.decode(each.body)["id"]) for each in drive.deliveries(2)]
        assert received == matches("first_known(a, b) = 1 AND a IS NULL")


def test_every_row_says_whether_it_has_a_form_for_columns():
    assert {name for name, row in FUNCTIONS.items() if row.over_columns} == set(COLUMN_FORMS)
