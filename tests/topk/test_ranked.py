from __future__ import annotations

import datetime as dt
import json
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tamis
from tamis import errors
from tamis.language.expressions import TRUE
from tamis.topk import CountWindow, Ranked, RankedFormError, TimeWindow, WindowError
from tamis.topk.ranked import check_score
from tamis.topk.text import is_ranked
from tamis.topk.windows import window_of
from tests.strategies import conditions, number_terms

FLATS = "TOP 5 BY distance(lat, lon, 45.8, 15.97) ASC OVER 1 HOUR WHERE category = 'flat' AND rent < 900"


@st.composite
def rankeds(draw):
    window = draw(
        st.one_of(
            st.integers(1, 2**53).map(CountWindow),
            st.floats(0, 1e12, exclude_min=True, allow_subnormal=True).map(TimeWindow),
            st.integers(1, 10**6).map(TimeWindow),
        )
    )
    where = draw(st.one_of(st.just(TRUE), conditions))
    return Ranked(
        draw(number_terms), draw(st.integers(1, 10**9)), window, where, order=draw(st.sampled_from("ASC DESC".split()))
    )


def test_the_text_of_the_issue_is_understood():
    flats = Ranked.parse(FLATS)
    assert flats == Ranked("distance(lat, lon, 45.8, 15.97)", 5, "1 HOUR", "category = 'flat' AND rent < 900")
    assert (flats.k, flats.order, flats.window, flats.is_ascending) == (5, "ASC", TimeWindow(3600), True)
    assert str(flats) == FLATS


@given(ranked=rankeds())
def test_a_ranked_subscription_is_the_same_after_it_was_written_and_read(ranked):
    assert Ranked.parse(str(ranked)) == ranked
    assert Ranked.from_json(ranked.to_json()) == ranked
    assert Ranked.from_json(json.loads(ranked.to_json())) == ranked
    assert Ranked.from_json(ranked.to_json().encode()) == ranked
    copied = pickle.loads(pickle.dumps(ranked))
    assert copied == ranked and hash(copied) == hash(ranked)


def test_the_builder_takes_texts_expressions_and_values():
    by_hand = Ranked(tamis.attr("rent") / tamis.attr("area"), 5, dt.timedelta(hours=1), where=tamis.attr("rooms") > 2)
    assert by_hand == Ranked.parse("TOP 5 BY rent / area ASC OVER 1 HOUR WHERE rooms > 2")
    assert Ranked(tamis.parse("price < 20").left, 1, CountWindow(3), tamis.parse("signed")) == Ranked.parse(
        "TOP 1 BY price OVER 3 EVENTS WHERE signed"
    )
    assert Ranked("price", 1, "1 EVENT", order="desc") == Ranked.parse("TOP 1 BY price DESC OVER 1 EVENT")


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("top 2 by price over 5 events", "TOP 2 BY price ASC OVER 5 EVENTS"),
        ("TOP 2 BY over OVER 5 EVENTS", "TOP 2 BY over ASC OVER 5 EVENTS"),
        ("TOP 2 BY asc + desc DESC OVER 1 EVENT", "TOP 2 BY asc + desc DESC OVER 1 EVENT"),
        ("TOP 2 BY (price) OVER 60 seconds", "TOP 2 BY price ASC OVER 1 MINUTE"),
        ("TOP 2 BY -price OVER 1.5 HOURS", "TOP 2 BY -price ASC OVER 90 MINUTES"),
        ("TOP 2 BY least(a, b) /* the better */ OVER 250 MILLISECONDS", "TOP 2 BY least(a, b) ASC OVER 0.25 SECONDS"),
        (
            "TOP 1 BY where OVER 2 WEEKS WHERE where > 1 AND over",
            "TOP 1 BY where ASC OVER 2 WEEKS WHERE where > 1 AND over",
        ),
        ("TOP 1 BY `odd name` OVER 1 DAY WHERE TRUE", "TOP 1 BY `odd name` ASC OVER 1 DAY"),
        ("TOP 1 BY ends ASC OVER 1e3 EVENTS", "TOP 1 BY ends ASC OVER 1000 EVENTS"),
    ],
)
def test_keywords_remain_names_and_units_are_reduced(text, same):
    assert str(Ranked.parse(text)) == same


@pytest.mark.parametrize(
    ("text", "error", "column", "words"),
    [
        ("TOP 2 BY price ASC", errors.ExpressionSyntaxError, 19, "expected OVER"),
        ("TOP price", errors.ExpressionSyntaxError, 5, "whole number of at least 1"),
        ("TOP 0 BY price OVER 1 HOUR", errors.ExpressionSyntaxError, 5, "whole number of at least 1"),
        ("TOP 2.5 BY price OVER 1 HOUR", errors.ExpressionSyntaxError, 5, "whole number of at least 1"),
        ("TOP 2 price", errors.ExpressionSyntaxError, 7, "expected BY"),
        ("price < 5", errors.ExpressionSyntaxError, 1, "expected TOP"),
        ("TOP 2 BY price < 5 OVER 1 HOUR", errors.TypeMismatchError, 10, "a condition stands"),
        ("TOP 2 BY lower(title) OVER 1 HOUR", errors.TypeMismatchError, 10, "neither a number nor a time"),
        ("TOP 2 BY 'x' OVER 1 HOUR", errors.TypeMismatchError, 10, "neither a number nor a time"),
        ("TOP 2 BY prize( OVER 1 HOUR", errors.UnknownFunctionError, 10, "no function prize"),
        ("TOP 2 BY price OVER 5 MONTHS", WindowError, 23, "no unit MONTHS"),
        ("TOP 2 BY price OVER 5 SECOND WHEREVER", errors.ExpressionSyntaxError, 30, "expected WHERE"),
        ("TOP 2 BY price OVER 0 EVENTS", WindowError, 21, "at least 1"),
        ("TOP 2 BY price OVER 1.5 EVENTS", WindowError, 21, "whole events"),
        ("TOP 2 BY price OVER HOUR", errors.ExpressionSyntaxError, 21, "number of events"),
        ("TOP 2 BY price OVER 1 HOUR WHERE", errors.ExpressionSyntaxError, 33, "expected a condition"),
        ("TOP 2 BY price OVER 1 HOUR WHERE price <", errors.ExpressionSyntaxError, 41, "expected a value"),
        ("TOP 2 BY (price OVER 1 HOUR", errors.ExpressionSyntaxError, 17, "found OVER"),
    ],
)
def test_a_mistake_is_found_where_it_is(text, error, column, words):
    with pytest.raises(error) as caught:
        Ranked.parse(text)
    assert (caught.value.column, words in str(caught.value)) == (column, True), str(caught.value)
    assert caught.value.text == text


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("price", 0, "1 HOUR"), RankedFormError),
        (("price", True, "1 HOUR"), RankedFormError),
        (("price", 1.0, "1 HOUR"), RankedFormError),
        (("price", 1, "HOUR"), WindowError),
        (("price", 1, 5), WindowError),
        (("price", 1, dt.timedelta(0)), WindowError),
        (("price", 1, "1 HOUR", "price"), None),
        (("price", 1, "1 HOUR", "price + 1"), errors.TypeMismatchError),
        ((tamis.parse("a = 1"), 1, "1 HOUR"), errors.TypeMismatchError),
        (("tags LIKE 'a'", 1, "1 HOUR"), errors.TypeMismatchError),
    ],
)
def test_arguments_that_make_no_sense_are_refused(arguments, error):
    if error is None:
        Ranked(*arguments)
    else:
        with pytest.raises(error):
            Ranked(*arguments)


def test_names_and_types_are_checked_against_a_schema():
    schema = tamis.Schema({"price": "double", "title": "string", "ends": "timestamp", "sold": "bool"})
    for text in ("TOP 1 BY price OVER 1 HOUR", "TOP 1 BY ends OVER 1 HOUR WHERE sold"):
        assert Ranked.parse(text, schema).checked(schema) == Ranked.parse(text)
    for text, error in {
        "TOP 1 BY prize OVER 1 HOUR": errors.UnknownAttributeError,
        "TOP 1 BY title OVER 1 HOUR": errors.TypeMismatchError,
        "TOP 1 BY sold OVER 1 HOUR": errors.TypeMismatchError,
        "TOP 1 BY price OVER 1 HOUR WHERE titel = 'x'": errors.UnknownAttributeError,
    }.items():
        with pytest.raises(error) as caught:
            Ranked.parse(text, schema)
        assert caught.value.text == text
        with pytest.raises(error):
            Ranked.parse(text).checked(schema)
    check_score(tamis.language.parser.parse_term("ends"), schema)


@pytest.mark.parametrize(
    "document",
    [
        "{",
        "[]",
        '{"tamis":1}',
        '{"tamis":2,"ranked":{"k":1,"by":1,"window":{"events":1}}}',
        '{"tamis":1,"ranked":{"k":1,"by":{"attribute":["x"]}}}',
        '{"tamis":1,"ranked":{"k":1,"by":{"attribute":["x"]},"window":{"events":1},"more":1}}',
        '{"tamis":1,"ranked":{"k":1,"by":{"attribute":["x"]},"window":{"events":1,"seconds":2}}}',
        '{"tamis":1,"ranked":{"k":1,"by":{"attribute":["x"]},"window":5}}',
        '{"tamis":1,"ranked":{"k":0,"by":{"attribute":["x"]},"window":{"events":1}}}',
        '{"tamis":1,"ranked":{"k":"1","by":{"attribute":["x"]},"window":{"events":1}}}',
        '{"tamis":1,"ranked":{"k":1,"by":{"attribute":["x"]},"window":{"events":true}}}',
        '{"tamis":1,"ranked":{"k":1,"by":{"attribute":["x"]},"window":{"events":1},"order":"UP"}}',
        '{"tamis":1,"ranked":{"k":1,"by":"text","window":{"events":1}}}',
        '{"tamis":1,"ranked":{"k":1,"by":{"compare":"=","arguments":[1,1]},"window":{"events":1}}}',
        '{"tamis":1,"ranked":{"k":1,"by":{"attribute":["x"]},"window":{"events":1},"where":{"attribute":[]}}}',
        "[" * 100_000,
    ],
)
def test_a_json_document_that_is_none_is_refused_with_a_typed_error(document):
    with pytest.raises(errors.LanguageError):
        Ranked.from_json(document)


def test_limits_hold_for_ranked_texts_too():
    with pytest.raises(errors.LimitError):
        Ranked.parse("TOP 1 BY " + "- " * 1_000 + "x OVER 1 HOUR")
    with pytest.raises(errors.LimitError):
        Ranked.parse(FLATS, limits=tamis.Limits(text_length=10))
    with pytest.raises(TypeError):
        Ranked.parse(b"TOP")


def test_windows_are_written_in_their_largest_whole_unit():
    assert [str(window_of(each)) for each in ("3600 SECONDS", "24 HOURS", "7 DAYS", "90 seconds", "0.1 seconds", "1 EVENT")] == [
        "1 HOUR", "1 DAY", "1 WEEK", "90 SECONDS", "0.1 SECONDS", "1 EVENT",
    ]  # fmt: skip


def test_a_condition_on_an_attribute_top_is_no_ranked_text():
    assert not is_ranked("top = 5")
    assert not is_ranked("'")
    assert is_ranked("top 5 by x over 1 hour")
