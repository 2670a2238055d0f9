"""Functions of the host: called by name, computed within limits, compared by what they say of themselves."""

from __future__ import annotations

import logging
import pickle
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark import cloudpickle

import tamis
from tamis.errors import ArityError, FunctionError, TypeMismatchError, UnknownFunctionError
from tamis.language.functions import FUNCTIONS
from tamis.language.meaning import truth, value
from tamis.matching import Matcher
from tamis.matching.algorithms import ALGORITHMS
from tamis.matching.columns import Events
from tamis.matching.columnwise import truth_codes
from tamis.matching.errors import SavedMatcherError
from tamis.relations import covers, merge, overlaps
from tests.strategies import events


@tamis.function(takes=("number", "string"), gives="number", version=1)
def score(price, category):
    """What a price is worth in a category."""
    return price * (2 if category == "Crime" else 1)


@tamis.function(takes=("any",), gives="string", version=3, null="called")
def kind_name(given):
    return "nothing" if given is None else type(given).__name__


@tamis.function(takes=("number",), gives="number", version=1)
def fragile(number):
    if number == 1:
        raise ValueError("not that one")
    return "a text" if number == 2 else None if number == 3 else number


@tamis.function(takes=("number",), gives="boolean", version=2)
def is_even(number):
    return number % 2 == 0


FUNCTIONS_OF_HOST = tamis.Functions([score, kind_name, fragile, is_even])
TEXTS = {
    "worth": "score(price, category) > 30",
    "kind": "kind_name(a) = 'NoneType' OR kind_name(a) IN ('nothing', 'str')",
    "fragile": "fragile(a) >= 0",
    "not fragile": "fragile(a) IS NULL AND price > 1",
    "even": "is_even(a) AND NOT is_even(b)",
    "inside": "CASE WHEN is_even(a) THEN score(a, 'Crime') ELSE 0 END + 1 > 4",
    "plain": "price < 20",
}
EVENTS = [
    {},
    {"price": 12, "category": "Crime", "a": 1},
    {"price": 20.5, "category": "Crime", "a": 2, "b": 3},
    {"price": 40, "category": None, "a": 3},
    {"price": 40, "category": "Poetry", "a": 4, "b": 2},
    {"price": "40", "category": "Crime", "a": "x", "b": 1},
]


def parse(text):
    return tamis.parse(text, functions=FUNCTIONS_OF_HOST)


def wanted(event):
    return [key for key, text in TEXTS.items() if tamis.holds(parse(text), event)]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_algorithm_matches_what_the_definition_matches(algorithm):
    matcher = Matcher(algorithm, functions=FUNCTIONS_OF_HOST)
    matcher.add_many(TEXTS)
    assert [matcher.match(event) for event in EVENTS] == list(map(wanted, EVENTS))
    assert matcher.list_batch(EVENTS * 3).to_pylist() == list(map(wanted, EVENTS)) * 3
    assert matcher.explain("worth", EVENTS[1]).truth is False


def test_the_meaning_is_that_of_the_function_with_nulls_kept_out():
    assert value(parse("score(price, category) > 1").left, EVENTS[1]) == 24
    assert truth(parse("score(price, category) > 1"), EVENTS[3]) is None, "NULL in, NULL out"
    assert truth(parse("score(price, category) > 1"), EVENTS[5]) is None, "a text is no number"
    assert tamis.holds(parse("kind_name(a) = 'nothing'"), {}), "it asked to be called with NULL"


def test_what_raises_or_gives_another_kind_is_null_counted_and_named_once(caplog):
    @tamis.function(takes=("number",), gives="number", version=1)
    def odd(number):
        return 1 / number if number < 5 else "many"

    functions = tamis.Functions([odd])
    matcher = Matcher(functions=functions)
    matcher.add_many({"odd": "odd(a) > 0", "other": "a >= 0"})
    with caplog.at_level(logging.WARNING, "tamis.functions"):
        assert [matcher.match({"a": number}) for number in (0, 2, 7, 0)] == [
            ["other"],
            ["odd", "other"],
            ["other"],
            ["other"],
        ]
    assert functions.failures == {"odd@1": {"raised": 2, "other kind": 1}}
    assert [record.getMessage() for record in caplog.records] == [
        "the function odd@1 gave no value, so its result is NULL: ZeroDivisionError: division by zero"
    ]


def test_what_hangs_past_its_limit_is_null_and_is_not_called_again_until_it_is_resumed():
    release = threading.Event()
    calls = []

    @tamis.function(takes=("number",), gives="number", version=1, limit_s=0.05)
    def slow(number):
        calls.append(number)
        if number == 13:
            release.wait(60)
        return number

    functions = tamis.Functions([slow])
    matcher = Matcher(functions=functions)
    matcher.add_many({"slow": "slow(a) > 0", "other": "a > 0"})
    assert matcher.match({"a": 1}) == ["slow", "other"]
    batch = [{"a": number} for number in (1, 13, 2)]
    assert matcher.list_batch(batch).to_pylist() == [["slow", "other"], ["other"], ["other"]]
    assert matcher.match({"a": 5}) == ["other"], "nobody waits for it twice"
    assert functions.failures == {"slow@1": {"late": 1, "given up": 2}}
    release.set()
    slow.resume()
    assert matcher.match({"a": 5}) == ["slow", "other"]
    assert 2 not in calls


@settings(max_examples=60)
@given(st.sampled_from(sorted(TEXTS)), st.lists(events(), max_size=6))
def test_columns_and_rows_agree_with_the_definition_on_ugly_events(name, batch):
    codes = {None: 0, False: 1, True: 2}
    predicate = parse(TEXTS[name])
    assert truth_codes(predicate, Events(batch)).tolist() == [codes[truth(predicate, event)] for event in batch]


@settings(max_examples=60)
@given(st.lists(events(), min_size=1, max_size=6))
def test_a_form_over_columns_gives_what_the_function_gives(batch):
    import pyarrow.compute as pc

    @tamis.function(
        takes=("number", "number"),
        gives="number",
        version=1,
        columns=lambda one, two: pc.subtract(pc.cast(one, "double"), pc.cast(two, "double")),
    )
    def minus(one, two):
        return float(one) - float(two)

    predicate = tamis.parse("minus(a, b) >= 0", functions=tamis.Functions([minus]))
    codes = {None: 0, False: 1, True: 2}
    assert truth_codes(predicate, Events(batch)).tolist() == [codes[truth(predicate, event)] for event in batch]


def test_a_form_over_columns_that_fails_leaves_the_rows_to_the_function():
    @tamis.function(takes=("number",), gives="number", version=1, columns=lambda column: column.no_such_method())
    def same(number):
        return number

    predicate = tamis.parse("same(a) > 1", functions=tamis.Functions([same]))
    assert truth_codes(predicate, Events([{"a": 1}, {"a": 2}, {}])).tolist() == [1, 2, 0]
    assert same.failures == {"columns": 1}


def test_two_registries_with_one_name_do_not_mix():
    def registry(factor):
        @tamis.function(takes=("number",), gives="number", version=1)
        def scaled(number):
            return number * factor

        return tamis.Functions([scaled])

    one, two = registry(1), registry(100)
    first, second = (tamis.parse("scaled(a) > 10", functions=each) for each in (one, two))
    assert first != second
    assert str(first) == str(second)
    assert [tamis.holds(each, {"a": 5}) for each in (first, second)] == [False, True]
    matcher = Matcher()
    matcher.add_many({1: first, 2: second})
    assert matcher.match({"a": 5}) == [2]
    assert matcher.list_batch([{"a": 5}, {"a": 50}]).to_pylist() == [[2], [1, 2]]
    assert not covers(first, second)


class TestFiles:
    def test_text_json_and_file_come_back_with_the_registry(self, tmp_path):
        for text in TEXTS.values():
            node = parse(text)
            assert parse(str(node)) == node
            assert tamis.from_json(node.to_json(), functions=FUNCTIONS_OF_HOST) == node
        matcher = Matcher(
            schema={"price": "double", "category": "string", "a": "int", "b": "int"}, functions=FUNCTIONS_OF_HOST
        )
        matcher.add_many(TEXTS)
        matcher.compile()
        matcher.save(tmp_path / "saved.tamis")
        for recompile in (False, True):
            loaded = Matcher.load(tmp_path / "saved.tamis", functions=FUNCTIONS_OF_HOST, recompile=recompile)
            assert loaded.list_batch(EVENTS[:5]).to_pylist() == list(map(wanted, EVENTS[:5]))
            assert loaded.text("worth") == TEXTS["worth"]
            loaded.add("more", "score(price, category) > 1")

    @pytest.mark.parametrize(
        ("functions", "message"),
        [
            (None, "the function fragile@1 is not registered"),
            (tamis.Functions([kind_name, fragile, is_even]), "the function score@1 is not registered"),
        ],
    )
    def test_a_missing_function_is_an_error_that_names_it(self, functions, message, tmp_path):
        matcher = Matcher(functions=FUNCTIONS_OF_HOST)
        matcher.add_many(TEXTS)
        matcher.save(tmp_path / "saved.tamis")
        with pytest.raises(SavedMatcherError, match=message):
            Matcher.load(tmp_path / "saved.tamis", functions=functions)

    def test_another_version_is_an_error_that_says_which(self, tmp_path):
        newer = tamis.function(takes=("number",), gives="boolean", version=9, name="is_even")(lambda number: True)
        matcher = Matcher(functions=tamis.Functions([is_even]))
        matcher.add("even", "is_even(a)")
        matcher.save(tmp_path / "saved.tamis")
        with pytest.raises(SavedMatcherError, match="is_even@2 is not registered, but is_even@9 is"):
            Matcher.load(tmp_path / "saved.tamis", functions=tamis.Functions([newer]))
        with pytest.raises(UnknownFunctionError, match="is_even@2 is not registered, but is_even@9 is"):
            tamis.from_json(parse("is_even(a)").to_json(), functions=tamis.Functions([newer]))

    def test_a_file_has_no_code(self, tmp_path):
        matcher = Matcher(functions=FUNCTIONS_OF_HOST)
        matcher.add_many(TEXTS)
        matcher.save(tmp_path / "saved.tamis")
        content = (tmp_path / "saved.tamis").read_bytes()
        assert b"score" in content
        assert b'Crime" else' not in content and b"cloudpickle" not in content

    def test_matchers_schemas_and_functions_are_pickled(self):
        matcher = Matcher(functions=FUNCTIONS_OF_HOST)
        matcher.add_many(TEXTS)
        assert pickle.loads(pickle.dumps(matcher)).match(EVENTS[2]) == wanted(EVENTS[2])
        schema = tamis.Schema({"a": "int"}, functions=FUNCTIONS_OF_HOST)
        assert pickle.loads(pickle.dumps(schema)) == schema
        local = tamis.function(takes=("number",), gives="number", version=1, name="local")(lambda number: number + 1)
        again = cloudpickle.loads(cloudpickle.dumps(tamis.Functions([local])))
        assert tamis.holds(tamis.parse("local(a) = 2", functions=again), {"a": 1})
        with FUNCTIONS_OF_HOST.in_use():
            assert pickle.loads(pickle.dumps(parse(TEXTS["inside"]))) == parse(TEXTS["inside"])
        with pytest.raises(UnknownFunctionError, match="score@1"):
            pickle.loads(pickle.dumps(parse(TEXTS["worth"])))


class TestTheLanguage:
    def test_a_text_calls_what_the_host_registered_and_nothing_else(self):
        for text in ("score(a, 'x') > 1", "__import__('os') = 1", "eval('1') = 1"):
            with pytest.raises(tamis.errors.LanguageError):
                tamis.parse(text)
        schema = tamis.Schema({"price": "double", "category": "string"}, functions=FUNCTIONS_OF_HOST)
        assert tamis.parse(TEXTS["worth"], schema) == parse(TEXTS["worth"])
        with pytest.raises(UnknownFunctionError, match="Did you mean score"):
            tamis.parse("scor(price, category) > 1", schema)

    def test_its_kinds_and_arity_are_checked(self):
        with pytest.raises(ArityError):
            parse("score(price) > 1")
        with pytest.raises(TypeMismatchError):
            parse("score('x', category) > 1")
        with pytest.raises(TypeMismatchError):
            parse("score(a, b) = 'x'")

    @pytest.mark.parametrize("name", ["least", "case", "at_least", "Score", "a b", "and", "1st"])
    def test_built_in_names_cannot_be_taken(self, name):
        decorate = tamis.function(takes=(), gives="number", version=1, name=name)
        with pytest.raises(FunctionError):
            decorate(lambda: 1)

    def test_two_functions_of_one_name_are_not_one_registry(self):
        with pytest.raises(FunctionError, match="two functions are called score"):
            tamis.Functions([score, score])
        with pytest.raises(FunctionError, match=r"made by tamis.function"):
            tamis.Functions([len])

    @pytest.mark.parametrize(
        "options",
        [
            {"gives": "float"},
            {"takes": ["int"]},
            {"version": "1"},
            {"null": "maybe"},
            {"limit_s": 0},
            {"implies": lambda one, two: True},
        ],
    )
    def test_bad_options_are_typed_errors(self, options):
        with pytest.raises(FunctionError):
            tamis.function(**{"takes": ["number"], "gives": "number", "version": 1, **options})

    def test_the_schema_s_digest_has_the_versions(self):
        attributes = {"a": "int"}
        plain, with_functions = tamis.Schema(attributes), tamis.Schema(attributes, functions=FUNCTIONS_OF_HOST)
        assert plain.digest != with_functions.digest
        assert (
            with_functions.digest
            == tamis.Schema(attributes, functions=tamis.Functions([is_even, fragile, score, kind_name])).digest
        )

    def test_ranked_subscriptions_rank_by_it(self):
        processor = tamis.TopK(functions=FUNCTIONS_OF_HOST)
        processor.add("best", "TOP 1 BY score(price, category) DESC OVER 10 EVENTS WHERE kind_name(category) = 'str'")
        told = [
            delivery.event
            for number, event in enumerate(EVENTS)
            for delivery in processor.process(event, float(number), id=number)
        ]
        assert told == [1, 2]


class TestHooks:
    @staticmethod
    def registry(is_lying=False):
        @tamis.function(
            takes=("number", "number"),
            gives="boolean",
            version=1,
            implies=lambda one, two: is_lying or one[0] % two[0] == 0,
            excludes=lambda one, two: False,
            unites=lambda one, two: one if two[0] % one[0] == 0 else two if one[0] % two[0] == 0 else None,
        )
        def divides(number, divisor):
            return number % divisor == 0

        return tamis.Functions([divides])

    def test_covering_follows_what_the_function_says_of_itself(self):
        functions = self.registry()
        parse = lambda text: tamis.parse(text, functions=functions)  # noqa: E731
        assert covers(parse("divides(a, 3)"), parse("divides(a, 6)"))
        assert not covers(parse("divides(a, 6)"), parse("divides(a, 3)"))
        assert not covers(parse("divides(a, 3)"), parse("divides(b, 6)"))
        assert covers(parse("divides(a, 3) OR b = 1"), parse("divides(a, 6) AND b = 2"))
        assert overlaps(parse("divides(a, 3)"), parse("divides(a, 7)"))
        for number in range(40):
            assert not tamis.holds(parse("divides(a, 6)"), {"a": number}) or tamis.holds(
                parse("divides(a, 3)"), {"a": number}
            )

    def test_without_hooks_nothing_is_proven(self):
        functions = FUNCTIONS_OF_HOST
        assert not covers(
            tamis.parse("is_even(a)", functions=functions), tamis.parse("is_even(b)", functions=functions)
        )
        assert overlaps(
            tamis.parse("is_even(a)", functions=functions), tamis.parse("NOT is_even(b)", functions=functions)
        )

    def test_mergers_lose_no_event(self):
        functions = self.registry()
        one, two = (tamis.parse(f"divides(a, {number})", functions=functions) for number in (3, 6))
        merger = merge([one, two])
        assert merger.expression == one
        assert merger.perfect


def test_the_table_of_the_language_is_as_it_was():
    assert "score" not in FUNCTIONS
