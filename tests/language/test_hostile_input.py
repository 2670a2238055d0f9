"""Hostile input gets a typed error or a correct answer, in bounded time and memory, and never a RecursionError."""

from __future__ import annotations

import os
import random
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from tamis.errors import LanguageError, LimitError
from tamis.language.limits import Limits
from tests.lengths import so_many
from tests.strategies import events

WIDE = Limits(text_length=10**8, depth=10**6, nodes=10**7, list_length=10**7)


def answer(text, limits=Limits()):
    """Parse; return the expression, or the typed error."""
    try:
        return tamis.parse(text, limits=limits)
    except LanguageError as error:
        str(error)
        return error


@pytest.mark.parametrize("seed", range(5))
def test_a_megabyte_of_random_bytes(seed):
    noise = random.Random(seed).randbytes(1_000_000)
    assert isinstance(answer(noise.decode("latin-1")), LanguageError)
    assert isinstance(answer(noise.decode("utf-8", "replace"), WIDE), LanguageError)
    with pytest.raises(LanguageError):
        tamis.from_json(noise)


@pytest.mark.parametrize(
    "opening", ["(", "NOT ", "- ", "NOT(", "lower(", "xor(a, ", "at_least(1, ", "a IN (", "/*", "'", "`", "((a)", "!"]
)
@pytest.mark.parametrize("count", [19_999, pytest.param(99_999, marks=pytest.mark.slow)])  # odd: no quote is closed
def test_many_thousand_openings(opening, count):
    for limits in (Limits(), WIDE):
        assert isinstance(answer(opening * count, limits), LanguageError)


@pytest.mark.parametrize("count", [20_000, pytest.param(100_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("piece", ["a = 1 AND ", "a OR ", "NOT ", "a XOR ", "a + ", "a = ", "- ", "(", "a IN (1) AND "])
def test_many_thousand_operators_are_a_limit_by_default_and_work_without_limits(piece, count):
    text = piece * count + "b" + ")" * (count if piece == "(" else 0)
    if piece in ("a + ", "- "):
        text += " = 1"
    # A flat text of 20,000 operators keeps to the limits; the others are too deep, and at 100,000 all are too large.
    is_within = count == 20_000 and piece in ("a = 1 AND ", "a OR ", "a XOR ", "a IN (1) AND ")
    assert isinstance(answer(text), LimitError) is not is_within
    whole = tamis.parse(text, limits=WIDE)
    tamis.truth(whole, {"a": True, "b": True})
    assert tamis.parse(str(whole), limits=WIDE) == whole


@pytest.mark.parametrize("count", [200_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_a_list_of_up_to_a_million_elements(count):
    text = f"a IN ({', '.join(map(str, range(count)))})"
    assert isinstance(answer(text), LimitError)  # for its length: so many numbers have more than a million characters
    expression = tamis.parse(text, limits=WIDE)
    assert tamis.holds(expression, {"a": count - 1})
    assert not tamis.holds(expression, {"a": count})
    assert tamis.attr("a").isin(range(count)) == expression


def test_a_hundred_thousand_strings_in_a_list_of_mixed_terms():
    text = "a IN (b, " + ", ".join(["'x'"] * 100_000) + ")"
    assert tamis.holds(tamis.parse(text, limits=WIDE), {"a": "x"})


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|aa)+$", "(.*a){20}$", "(a*)*b", "^(([a-z])+.)+[A-Z]([a-z])+$"])
def test_catastrophic_patterns_run_in_linear_time(pattern):
    expression = tamis.parse(f"x RLIKE '{pattern}'")
    assert tamis.truth(expression, {"x": "a" * 100_000 + "!"}) in (True, False)


def test_catastrophic_like_patterns_run_in_linear_time():
    expression = tamis.parse("x LIKE '" + "%a" * 500 + "%b'")
    assert tamis.truth(expression, {"x": "a" * 100_000}) is False


@pytest.mark.parametrize(
    "pattern", ["(((a{100}){100}){100}){100}", "a{1001}", "[" * 1000, "x" * 10_000, r"(\\pL{500}){2}"]
)
def test_a_pattern_that_is_too_large_is_refused(pattern):
    assert isinstance(answer(f"x RLIKE '{pattern}'"), LanguageError)


def test_deep_json_is_a_typed_error():
    document = '{"tamis":1,"expression":' + '{"not":' * 100_000 + "true" + "}" * 100_000 + "}"
    with pytest.raises(LimitError):
        tamis.from_json(document, limits=WIDE)
    with pytest.raises(LimitError):
        tamis.from_json(document.replace(" ", ""))
    nested: object = True
    for _ in range(50_000):
        nested = {"not": nested}
    assert tamis.from_json({"tamis": 1, "expression": nested}, limits=WIDE) is not None
    with pytest.raises(LimitError):
        tamis.from_json({"tamis": 1, "expression": nested})


@pytest.mark.parametrize(
    "document",
    [
        "", "[]", "{}", "null", '{"tamis":2,"expression":true}', '{"tamis":1}', '{"tamis":1,"expression":5}',
        '{"tamis":1,"expression":{"and":[true]}}', '{"tamis":1,"expression":{"and":[true,5]}}',
        '{"tamis":1,"expression":{"attribute":[]}}', '{"tamis":1,"expression":{"attribute":[""]}}',
        '{"tamis":1,"expression":{"call":"system","arguments":[]}}', '{"tamis":1,"expression":{"test":"lower","arguments":["a"]}}',
        '{"tamis":1,"expression":{"compare":"~","arguments":[1,2]}}', '{"tamis":1,"expression":{"compare":"<","arguments":[1,"a"]}}',
        '{"tamis":1,"expression":{"in":{"attribute":["a"]},"values":[]}}', '{"tamis":1,"expression":{"is_null":1,"x":2}}',
        '{"tamis":1,"expression":{"rlike":{"attribute":["a"]},"pattern":"("}}', '{"tamis":1,"expression":1e999}',
        '{"tamis":1,"expression":{"compare":"<","arguments":[{"attribute":["a"]},99999999999999999999]}}',
        '{"tamis":1,"expression":{"compare":"<","arguments":[{"attribute":["a"]},{"decimal":"x"}]}}',
        '{"tamis":1,"expression":{"compare":"<","arguments":[{"attribute":["a"]},{"date":"2024-02-30"}]}}',
        '{"tamis":1,"expression":{"is_null":{"attribute":["\\ud800"]}}}', '{"tamis":1,"expression":{"at_least":true,"of":[true]}}',
        '{"tamis":1,"expression":{"in":{"attribute":["a"]},"values":[1.5]}}', '{"tamis":1,"expression":true,"more":1}',
    ],
)  # fmt: skip
def test_json_that_is_no_expression_is_a_typed_error(document):
    with pytest.raises(LanguageError):
        tamis.from_json(document)


_PIECES = (
    "a b.c `x y` AND OR NOT XOR ( ) , = <> < <= > >= <=> IN BETWEEN LIKE RLIKE IS NULL TRUE FALSE ESCAPE DISTINCT FROM A "
    "1 -2.5 1e3 99999999999999999999 'x' 'a%' \"y\" r'z' DATE TIMESTAMP '2024-01-01' + - * / % ! . -- /* */ xor( at_least( "
    "lower( size( array( distance( in_cidr( least( double( 'NaN' '10.0.0.0/8' \\ \ud800 \0 é 😀 # ;"
).split(" ")


@given(st.lists(st.sampled_from(_PIECES), max_size=30), st.sampled_from(["", " "]), events())
@settings(max_examples=1_000)
def test_any_sequence_of_tokens_is_an_expression_or_a_typed_error(pieces, between, event):
    found = answer(between.join(pieces))
    if not isinstance(found, LanguageError):
        tamis.truth(found, event)
        assert tamis.parse(str(found)) == found


@given(st.text(max_size=60))
@settings(max_examples=1_000)
def test_any_text_is_an_expression_or_a_typed_error(text):
    answer(text)


@pytest.mark.slow
def test_up_to_a_million_generated_texts_are_expressions_or_typed_errors():
    chance = random.Random(7)
    for _ in range(so_many(1_000_000)):
        count = chance.randint(1, 14)
        answer(" ".join(chance.choices(_PIECES, k=count)))


@pytest.mark.slow
def test_the_coverage_guided_fuzzer_finds_nothing(tmp_path):
    pytest.importorskip("atheris")
    seconds = int(os.environ.get("TAMIS_FUZZ_SECONDS", "120"))
    options = [f"-max_total_time={seconds}", "-max_len=400", f"-artifact_prefix={tmp_path}/"]
    command = [sys.executable, "-m", "tests.fuzz", *options]
    found = subprocess.run(command, capture_output=True, text=True, timeout=seconds + 300, check=False)
    assert found.returncode == 0, found.stderr[-3000:]
