"""Do both readers of texts know one language? The compiled one beside the parser, which defines it."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tamis
from tamis.errors import LanguageError
from tamis.matching.reading import Reader
from tamis.matching.reading import reader as read
from tamis.matching.reading.kernels import LONGEST_TEXT
from tamis.workloads import WORKLOADS
from tests.lengths import so_many
from tests.matching.reading import texts as written
from tests.strategies import conditions

SCHEMA = tamis.Schema(
    {
        "price": "double", "bids": "bigint", "a": "string", "_x1": "boolean", "seller.rating": "double", "odd name": "string",
        "date": "date", "unknown": "boolean", "when": "timestamp", "Title": "string",
    }
)  # fmt: skip


def answer(text, schema=None):
    """Return what the parser says: an expression, or None for an error."""
    try:
        return tamis.parse(text, schema)
    except LanguageError:
        return None


def differing(texts, schema=None):
    """Return the texts that the compiled reader takes for something else than the parser does."""
    reader = Reader(schema)
    reader.read(texts)
    found = [(text, reader.expression(number)) for number, text in enumerate(texts)]
    return [
        (text, str(expression))
        for text, expression in found
        if expression is not None and expression != answer(text, schema)
    ]


def read_share(texts):
    reader = Reader()
    reader.read(texts)
    good = [number for number, text in enumerate(texts) if answer(text) is not None]
    return sum(reader.expression(number) is not None for number in good) / len(good)


def generated(count, seed):
    chance = Random(seed)
    return [written.condition(chance) for _ in range(count)]


def mutants(count, seed):
    chance = Random(seed)
    sources = [*written.of_the_docs(), *generated(500, seed)]
    return [written.mutated(chance.choice(sources), chance) for _ in range(count)]


@pytest.mark.parametrize("schema", [None, SCHEMA], ids=["no schema", "a schema"])
def test_what_is_read_of_generated_texts_is_what_the_parser_reads(schema):
    assert differing(generated(3_000, 1), schema) == []


@pytest.mark.parametrize("schema", [None, SCHEMA], ids=["no schema", "a schema"])
def test_what_is_read_of_mutated_texts_is_what_the_parser_reads(schema):
    assert differing(mutants(10_000, 2), schema) == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 100 + so_many(20)))
def test_what_is_read_of_a_million_mutated_texts_is_what_the_parser_reads(seed):
    assert differing(mutants(50_000, seed)) == []


def test_what_is_read_of_the_docs_is_what_the_parser_reads():
    texts = written.of_the_docs()
    assert len(texts) > 100
    assert differing(texts) == []


def test_every_odd_predicate_is_read_as_the_parser_does_or_left_to_it():
    alone = [*written.ODD, *written.NAMES]
    compared = [
        f"{name} {operator} {literal}"
        for name in written.NAMES
        for operator in written.COMPARISONS
        for literal in (*written.STRINGS, *written.NUMBERS, *written.TIMES)
    ]
    joined = [f"({text}) AND NOT a = 1" for text in alone]
    assert differing([*alone, *compared, *joined]) == []


def test_keywords_in_dotted_names_are_read_as_the_parser_does_or_left_to_it():
    words = (
        "AND",
        "or",
        "NOT",
        "xor",
        "BETWEEN",
        "in",
        "LIKE",
        "is",
        "NULL",
        "true",
        "CASE",
        "DATE",
        "timestamp",
        "IS_A",
        "at_least",
    )
    texts = [
        text.format(word) for word in words for text in ("{}.`é` = 1", "{}.x", "a.{} = 1", "NOT a.{}.b", "`a`.{}.c > 2")
    ]
    assert differing(texts) == []


def test_all_expressions_at_once_are_those_that_are_asked_for_one_by_one():
    texts = [*generated(500, 5), *mutants(500, 6), "a = 1 AND b = 2", "a <", "lower(a) = 'x'", ""]
    for schema in (None, SCHEMA):
        reader = Reader(schema)
        reader.read(texts)
        assert reader.expressions() == [reader.expression(number) for number in range(len(texts))]


def test_many_texts_are_read_as_the_parser_does_and_few_are_left_to_it(monkeypatch):
    texts = [*generated(300, 7), "a <", "lower(a) = 'x'"]
    monkeypatch.setattr(read, "is_compiled", lambda: True)
    monkeypatch.setattr(read, "READ_AT_ONCE", 70)
    expressions = read.read_many(texts)
    assert all(each in (None, answer(text)) for text, each in zip(texts, expressions, strict=True))
    assert sum(each is not None for each in expressions) > 30
    assert read.read_many(texts[:20]) == [None] * 20
    monkeypatch.setattr(read, "is_compiled", lambda: False)
    assert read.read_many(texts) == [None] * len(texts)


@given(st.lists(conditions, max_size=5))
def test_printed_expressions_are_read_as_themselves(expressions):
    assert differing([str(expression) for expression in expressions]) == []


@given(st.lists(st.text(alphabet="ab1.'\"`\\()=<>,- \nandornotxiAND_éÿ", max_size=40), max_size=20))
def test_noise_is_read_as_the_parser_does_or_left_to_it(texts):
    assert differing(texts) == []


@pytest.mark.parametrize("name", ["auction", "w1", "w2", "w3", "w4", "templates", "expressions", "flights"])
def test_everyday_subscriptions_are_read_and_not_left_to_the_parser(name):
    texts = WORKLOADS[name]().subscriptions(300, 3)["condition"].to_pylist()
    assert read_share(texts) == 1
    assert differing(texts) == []


@pytest.mark.parametrize(
    "text",
    [
        "a.b = 1", "`a b` = 'x'", "a <> -5", "a BETWEEN 1.5 AND 2", "a NOT IN ('x', 'y')", "a LIKE 'x%'", "a LIKE '_x%' ESCAPE '!'",
        "a IS NOT NULL", "a IS A 'T'", "a = 'it''s'", r"a = 'x\ty'", "a = DATE '2024-02-29'", "a < TIMESTAMP '2024-02-29 12:00:00'",
        "a XOR b", "NOT (a OR NOT b)", "at_least(2, a, b, c = 1)", "a = TRUE", "a < b", "a <=> 5", "a RLIKE 'x+'", "a = 1e5",
    ],
)  # fmt: skip
def test_the_everyday_language_is_read_and_not_left_to_the_parser(text):
    assert read_share([text]) == 1


def test_equal_predicates_have_one_number_however_they_are_spaced():
    reader = Reader()
    reader.read(["a = 1 AND b IN (1,2)", "b in ( 1 , 2 ) OR a=1", "NOT a == 1"])
    assert reader.leaves.values.tolist() == [0, 1, 1, 0, 0]


def test_what_is_deep_or_long_is_left_to_the_parser_with_its_limits():
    deep = ["(" * depth + "a" + ")" * depth for depth in (10, 85, 200, 260)]
    nots = ["NOT " * depth + "a" for depth in (10, 85, 249, 260)]
    long = " OR ".join(["a"] * LONGEST_TEXT)
    reader = Reader()
    reader.read([*deep, *nots, long, "a"])
    assert [reader.is_read(number) for number in range(10)] == [True, True, False, False] * 2 + [False, True]
    assert differing([*deep, *nots]) == []


def test_tables_grow_with_what_they_hold():
    texts = [f"name_{number} = {number} AND b = '{number}' OR c_{number}" for number in range(20_000)]
    reader = Reader()
    reader.read(texts)
    assert reader.expression(19_999) == tamis.parse(texts[-1])
    assert len(reader.predicates.counts) == 60_000


def test_nothing_is_read_of_nothing():
    reader = Reader()
    reader.read([])
    assert reader.structures.tolist() == []
    reader.read(["", " ", "a"])
    assert [reader.is_read(number) for number in range(3)] == [False, False, True]
