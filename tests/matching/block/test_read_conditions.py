"""Do conditions that are read in columns match what they mean, and are mistakes reported as before?"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from random import Random

import pyarrow as pa
import pytest

import tamis
from tamis import Matcher
from tamis.errors import LanguageError
from tamis.matching.block import algorithm, read_conditions
from tamis.matching.block.plans import ALWAYS
from tamis.matching.block.read_conditions import ReadConditions
from tamis.workloads import WORKLOADS
from tests.matching.reading import texts as written

NAMES = ("price", "bids", "a", "_x1", "odd name", "date", "unknown", "when", "Title", "c")
VALUES = (
    5, -5, 0, 7, 123456789012345, 2**62, 5.0, -0.0, float("nan"), 1000.0, Decimal("5.0"), Decimal("5"), "x", "", "it's", "dear",
    "é😀", "%a_", True, False, dt.date(2024, 2, 29), dt.datetime(2024, 2, 29, 12), None,
)  # fmt: skip


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch):
    monkeypatch.setattr(algorithm, "_COMPILED_AT_ONCE", 1)
    monkeypatch.setattr(algorithm, "_WORTH_COMPILING", 1)
    monkeypatch.setattr(read_conditions, "_WORTH_AN_OUTLINE", 1)


def understood(text):
    try:
        return tamis.parse(text)
    except LanguageError:
        return None


def good_texts(count, seed):
    chance = Random(seed)
    texts = (written.condition(chance) for _ in range(count))
    return [text for text in texts if understood(text) is not None]


def drawn_events(count, seed):
    chance = Random(seed)
    return [{name: chance.choice(VALUES) for name in NAMES if chance.random() < 0.8} for _ in range(count)]


@pytest.mark.parametrize("are_texts", [True, False], ids=["texts", "expressions"])
@pytest.mark.parametrize("seed", range(4))
def test_what_is_read_matches_what_it_means(seed, are_texts):
    texts, events = good_texts(400, seed), drawn_events(60, seed)
    matcher = Matcher()
    expressions = list(map(tamis.parse, texts))
    matcher.add_many(dict(enumerate(texts if are_texts else expressions)))
    for event in events:
        assert matcher.match(event) == [number for number, each in enumerate(expressions) if tamis.holds(each, event)]
    batches = matcher.match_batch(events).to_pydict()
    singles = [(number, each) for number, event in enumerate(events) for each in matcher.match(event)]
    assert sorted(zip(batches["event"], batches["subscription"], strict=True)) == singles


@pytest.mark.parametrize("name", ["auction", "w2", "expressions", "flights", "storms"])
def test_workloads_match_the_same_however_they_are_read(name, monkeypatch):
    workload = WORKLOADS[name]()
    table, events = workload.subscriptions(400, 5), workload.events(200, 6)
    ids, texts = (table.column(number).to_pylist() for number in range(2))
    expressions = dict(zip(ids, map(tamis.parse, texts), strict=True))
    matchers = [Matcher() for _ in range(3)]
    matchers[0].add_many(table)
    matchers[1].add_many(expressions)
    monkeypatch.setattr(algorithm, "_COMPILED_AT_ONCE", 1_000)
    matchers[2].add_many(expressions)  # one by one
    in_order = [("event", "ascending"), ("subscription", "ascending")]
    read, walked, expected = (matcher.match_batch(events).sort_by(in_order) for matcher in matchers)
    assert read.equals(expected) and walked.equals(expected) and expected.num_rows


def test_expressions_are_checked_against_the_schema_in_order():
    matcher = Matcher(schema={"a": "bigint"})
    good, bad, worse = map(tamis.parse, ("a = 1", "a = 'x'", "b = 1"))
    with pytest.raises(LanguageError) as raised:
        matcher.add_many({1: good, 2: bad, 3: worse})
    assert raised.value.__notes__ == ["in the subscription 2"]
    matcher.add_many({1: good, 2: good | (tamis.parse("a BETWEEN 2 AND 3"))})
    assert [matcher.match({"a": value}) for value in (1, 3)] == [[1, 2], [2]]


def test_rare_structures_are_drafted_one_by_one(monkeypatch):
    monkeypatch.setattr(read_conditions, "_WORTH_AN_OUTLINE", 3)
    expressions = list(map(tamis.parse, ["a = 1", "a = 1 AND b = 2", "a = 2", "a = 3 OR b = 1", "a = 3"]))
    read = read_conditions.ReadConditions.of_expressions(expressions)
    assert [read.is_understood(number) for number in range(5)] == [True, False, True, False, True]
    draft = read.draft(range(5), expressions.__getitem__)
    assert draft.clauses.owners.tolist() == [0, 1, 2, 3, 3, 4]


def test_what_the_parser_has_to_read_keeps_its_place_among_the_others():
    texts = ["a = 1", "lower(b) = 'x'", "a = 1 AND c = 2", "length(b) = 1 OR a = 1", "NOT a = 2"]
    matcher = Matcher()
    matcher.add_many(dict(enumerate(texts)))
    assert matcher.match({"a": 1, "b": "X", "c": 2}) == [0, 1, 2, 3, 4]
    assert matcher.match_batch([{"a": 3, "b": "X"}] * 300).num_rows == 3 * 300
    assert [str(matcher.expression(number)) for number in (1, 3)] == ["lower(b) = 'x'", "length(b) = 1 OR a = 1"]


def test_only_what_the_reader_leaves_is_parsed():
    asked = []

    def parsed(number):
        asked.append(number)
        return tamis.parse(texts[number])

    texts = ["a = 1", "a + 1 = 2", "b LIKE '%x' OR c", "at_least(0, a, b)", "at_least(3, a, b)", "a XOR b XOR NOT c"]
    draft = ReadConditions.of_texts(texts, None).draft(range(6), parsed)
    assert asked == [1]
    assert draft.handles.tolist() == list(range(6))
    assert sorted(set(draft.clauses.owners.tolist())) == [0, 1, 2, 3, 5], "nothing asks for three of two"
    assert len(ALWAYS) == (draft.clauses.owners == 3).sum()


@pytest.mark.parametrize("place", [0, 3, 5])
@pytest.mark.parametrize(
    "bad",
    [
        "price <",
        "price < 20 AND",
        "prize < 20",
        "price < 'x'",
        "title",
        "a = DATE '2024-02-30'",
        "title LIKE 5",
        "sold > 1 OR title",
    ],
)
def test_a_mistake_is_the_error_of_the_parser_with_the_id_of_its_subscription(bad, place):
    schema = tamis.Schema({"price": "double", "title": "string", "sold": "boolean", "a": "date"})
    texts = ["price < 20 AND sold"] * 6
    texts[place] = bad
    matcher = Matcher(schema=schema)
    try:
        tamis.parse(bad, schema)
    except LanguageError as error:
        expected = error
    else:
        matcher.add_many(dict(enumerate(texts)))  # a name alone is not refused by the parser either
        return
    with pytest.raises(type(expected)) as raised:
        matcher.add_many(dict(enumerate(texts)))
    assert str(raised.value) == str(expected)
    assert raised.value.__notes__ == [f"in the subscription {place!r}"]
    assert len(matcher) == 0


def test_of_several_mistakes_the_first_is_reported():
    with pytest.raises(tamis.errors.LanguageError, match="second"):
        Matcher(schema={"first": "double"}).add_many({1: "first < 1", 2: "second < 1", 3: "third <", 4: "first < 'x'"})


def test_the_schema_decides_which_subtypes_there_are():
    schema = tamis.Schema({"type": "string"}, hierarchy={"Bid": None, "HighBid": "Bid"})
    matcher = Matcher(schema=schema)
    matcher.add_many({1: "type IS A 'Bid'", 2: "type IS NOT A 'HighBid'"})
    assert matcher.match({"type": "HighBid"}) == [1]


def test_columns_of_arrow_tables_are_read_too():
    matcher = Matcher()
    matcher.add_many(pa.table({"id": ["x", "y"], "condition": ["a = 1", "b = 'é'"], "priority": [0, 1]}))
    assert matcher.match({"a": 1, "b": "é"}) == ["y", "x"]


def test_one_attribute_under_two_spellings_is_one_axis():
    draft = ReadConditions.of_texts(["a = 1", "`a` = 2 AND a = 2.0", "`a` IS NULL OR `a` IN (3, 1)"], None).draft(
        range(3), tamis.parse
    )
    assert [axis.operands for axis in draft.axes if len(axis.operands) != 2] == [[1, 2, 3]]


def test_a_text_that_would_grow_too_large_is_asked_whole_as_its_expression_is():
    odd = " XOR ".join(f"(p{number} XOR q{number} AND r)" for number in range(30))
    matcher = Matcher()
    matcher.add_many({1: odd, 2: "r"})
    event = {f"{letter}{number}": number % 3 == 0 for letter in "pq" for number in range(30)} | {"r": True}
    assert matcher.match(event) == [number for number, text in ((1, odd), (2, "r")) if tamis.holds(text, event)]


@pytest.mark.parametrize("is_replacing", [False, True])
def test_bad_rows_are_skipped_with_the_reasons_that_they_had(is_replacing, monkeypatch):
    rows = [
        (1, "a = 1"), (2, "a <"), (1, "a = 2"), (3, "lower(a) = 'x'"), (4, "a = 'x'"), (None, "a = 1"), (5, "b = 1"),
        (4, "a = 1 AND"), (6, "a BETWEEN 1 AND 3 OR a = 7"), (3, "a = 3"),
    ]  # fmt: skip
    schema = tamis.Schema({"a": "bigint"})
    answers = []
    for taken in (1, 1_000):
        monkeypatch.setattr(algorithm, "_COMPILED_AT_ONCE", taken)
        matcher = Matcher(schema=schema)
        register = matcher.upsert_many if is_replacing else matcher.add_many
        rejected = register(rows, on_error="skip")
        answers.append((rejected, dict(matcher.items()), [matcher.match({"a": value}) for value in (1, 2, 3, 7)]))
    assert answers[0] == answers[1]
    assert len(answers[0][0]) > 4


@pytest.mark.parametrize("was_compiled", [False, True])
def test_a_few_thousand_texts_do_not_wait_until_what_reads_them_is_compiled(was_compiled, monkeypatch):
    monkeypatch.setattr(algorithm, "_WORTH_COMPILING", 3)
    monkeypatch.setattr(algorithm.reader, "is_compiled", lambda: was_compiled)
    engine = algorithm.BlockAlgorithm()
    assert (engine.read(["a = 1"] * 2) is not None) is was_compiled
    assert engine.read(["a = 1"] * 3) is not None


def test_thousands_of_expressions_match_as_their_texts_do():
    workload = WORKLOADS["templates"]()
    subscriptions = workload.subscriptions(5_000, 1)
    texts = dict(zip(subscriptions["subscription_id"].to_pylist(), subscriptions["condition"].to_pylist(), strict=True))
    of_texts, of_expressions = Matcher(), Matcher()
    of_texts.add_many(texts)
    of_expressions.add_many({each: tamis.parse(text) for each, text in texts.items()})
    events = workload.events(60, 3).to_pylist()
    found = [set(of_expressions.match(event)) for event in events]
    assert found == [set(of_texts.match(event)) for event in events]
    assert found[0] == {each for each, text in texts.items() if tamis.holds(tamis.parse(text), events[0])}
    assert sum(map(len, found)) > 50


def test_a_saved_matcher_that_is_compiled_again_is_read_in_columns(tmp_path):
    texts = ["a = 1", "lower(b) = 'x'", "a IN (1, 2) AND NOT c", "at_least(1, a = 2, c)"]
    saved = Matcher()
    saved.add_many(dict(enumerate(texts)))
    saved.remove(0)
    saved.save(tmp_path / "saved.tamis")
    loaded = Matcher.load(tmp_path / "saved.tamis", recompile=True)
    for event in ({"a": 1, "c": False}, {"a": 2, "b": "X"}, {"c": True}):
        assert loaded.match(event) == saved.match(event) != []
