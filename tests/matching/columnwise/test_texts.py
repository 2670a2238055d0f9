"""Texts in columns: what Arrow is asked, what it is not, and that nobody can tell."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tamis
from tamis.errors import PatternError
from tamis.language.expressions import Attribute, Like
from tamis.language.patterns import like_matches, regex_matches
from tamis.matching.closures import compiled
from tamis.matching.columns import Events
from tamis.matching.columnwise import BatchSeries, texts, truth_codes
from tamis.matching.columnwise.series import from_column, from_values

CODES = {None: 0, False: 1, True: 2}
characters = st.sampled_from([*"aAbBsSkK .\n\0\\%_", "é", "ſ", "K", "ß", "İ", "😀", "\u0301"])
words = st.text(characters, max_size=5)
like_patterns = st.lists(
    st.sampled_from(["%", "%", "_", "a", "B", "é", "😀", "\n", ".", "(", "^", "$", "\\%", "\\_", "\\\\", "\0"]),
    max_size=6,
).map("".join)
pieces = r"a b . ^ $ é 😀 a* [ab] [^a] (a|b) \d \w \s \b x? \. (?i)K (?i:s) \pL \PL (?s). (?m)^ [[:alpha:]] \x{e9} \z (?U)a+ \Q.\E \n"
regexes = st.lists(st.sampled_from(pieces.split()), max_size=5).map("".join)


@given(strings=st.lists(words, min_size=1, max_size=8), pattern=like_patterns)
def test_like_finds_in_a_column_what_it_finds_in_each_text(strings, pattern):
    found = texts.like(from_values([*strings, None]), pattern, "\\")
    assert found.tolist() == [*(like_matches(text, pattern, "\\") for text in strings), None]


@pytest.mark.parametrize(
    "pattern", ["%ab", "ab%", "%ab%", "a%b", "ab", "_b", "b_", "%", "%%", "", "_", "%a%b%", "\\%%", "%\\_"]
)
def test_every_shape_of_a_like_pattern_finds_what_it_says(pattern):
    strings = ["ab", "xab", "abx", "xabx", "a\nb", "axb", "b", "", "a", "%", "%x", "x_", "_", "aab", "abab", "bx"]
    expected = [like_matches(text, pattern, "\\") for text in strings]
    assert texts.like(from_values(strings), pattern, "\\").tolist() == expected
    assert [compiled(Like(Attribute(("a",)), pattern))({"a": text}) for text in strings] == expected
    assert any(expected) and (not all(expected) or pattern in ("%", "%%"))


@given(strings=st.lists(words, min_size=1, max_size=8), pattern=regexes)
def test_rlike_finds_in_a_column_what_it_finds_in_each_text(strings, pattern):
    try:
        expected = [regex_matches(text, pattern) for text in strings]
    except PatternError:
        return  # nobody can write it
    assert texts.rlike(from_values([*strings, None]), pattern).tolist() == [*expected, None]


@pytest.mark.parametrize("pattern", ["(?i)straße", "\\p{Greek}", "\\PL", "a(?si:b)", "(?i:k)"])
def test_what_depends_on_the_version_of_unicode_is_not_left_to_another_library(pattern):
    with patch.object(texts, "_searched", side_effect=AssertionError("Arrow was asked")):
        strings = ["straße", "STRASSE", "αβγ", "aB", "K", "1"]
        assert texts.rlike(from_values(strings), pattern).tolist() == [regex_matches(text, pattern) for text in strings]


@pytest.mark.parametrize("pattern", ["a.*b", "^[0-9]+$", "\\bHobbit", "(a|b){2,3}", "é|😀", "[[:alpha:]]+"])
def test_a_plain_regular_expression_is_left_to_arrow(pattern):
    with patch.object(texts, "remembered_regex", side_effect=AssertionError("each text was asked")):
        strings = ["a b", "007", "The Hobbit", "aba", "é", ""]
        assert texts.rlike(from_values(strings), pattern).tolist() == [regex_matches(text, pattern) for text in strings]


def test_a_regular_expression_that_arrow_does_not_take_is_searched_text_by_text():
    strings = ["ab", "b"]
    with patch.object(texts.pc, "match_substring_regex", side_effect=pa.ArrowInvalid("pattern too large")):
        assert texts.rlike(from_values(strings), "^a").tolist() == [True, False]
        assert texts.like(from_values(strings), "a_", "\\").tolist() == [True, False]


def test_a_predicate_is_asked_once_for_each_distinct_text():
    table = pa.table({"a": pa.array(["x", "y", None, "x"] * 500).dictionary_encode()})
    asked = []
    with patch.object(texts, "remembered_cidr", lambda text, network: asked.append(text) or None):
        codes = truth_codes(tamis.parse("in_cidr(a, '10.0.0.0/8')"), Events(table))
    assert sorted(asked) == ["x", "y"] and codes.tolist() == [0] * 2_000


@pytest.mark.parametrize("has_null", [False, True])
def test_texts_of_a_dictionary_that_no_event_has_are_not_looked_at(has_null):
    dictionary = pa.array([f"text {number}" for number in range(1_000)])
    positions = pa.array([7, None if has_null else 7, 999, 0, 7], pa.int32())
    events = Events(pa.table({"a": pa.DictionaryArray.from_arrays(positions, dictionary)}))
    series = from_column(events.column(("a",)))
    assert len(series.words) == 3
    assert series.tolist() == ["text 7", None if has_null else "text 7", "text 999", "text 0", "text 7"]
    codes = truth_codes(tamis.parse("a LIKE '%7' AND a <> 'text 0'"), events).tolist()
    assert codes == [2, 0 if has_null else 2, 1, 1, 2]


@given(one=st.lists(words | st.none(), min_size=2, max_size=8), two=st.lists(words | st.none(), min_size=2, max_size=8))
def test_two_columns_of_texts_compare_by_code_point(one, two):
    count = min(len(one), len(two))
    events = Events(pa.table({"a": pa.array(one[:count], pa.string()), "b": pa.array(two[:count], pa.large_string())}))
    for operator in ("=", "<>", "<", "<=", ">", ">=", "<=>"):
        asked = tamis.parse(f"a {operator} b")
        expected = [CODES[tamis.truth(asked, event)] for event in events.mappings()]
        assert truth_codes(asked, events).tolist() == expected


def test_a_function_of_texts_is_computed_once_for_all_that_is_asked_about_it():
    events = Events([{"a": "The HOBBIT"}, {"a": "x"}, {}])
    calls = []
    of_text = texts.of_text
    with patch.object(texts, "of_text", lambda name, text: calls.append(name) or of_text(name, text)):
        assert truth_codes(tamis.parse("lower(a) LIKE '%hob%'"), events).tolist() == [2, 1, 0]
        assert truth_codes(tamis.parse("endswith(lower(a), 'bit')"), events).tolist() == [2, 1, 0]
        assert truth_codes(tamis.parse("lower(a) RLIKE '^[a-z]$'"), events).tolist() == [1, 2, 0]
    assert calls == ["lower"]


def test_lengths_are_counted_in_characters():
    length = BatchSeries.of(Events([{"a": "añ😀"}, {"a": ""}, {"a": None}, {"a": "e\u0301"}])).evaluated(
        tamis.parse("length(a) = 3").left
    )
    assert length.kind == "int" and length.tolist() == [3, 0, None, 2]
    assert length.values.dtype == np.int64
