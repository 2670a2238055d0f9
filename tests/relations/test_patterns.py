"""What is said of two patterns is true of all short texts."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.language.expressions import Attribute, Like
from tamis.language.patterns import like_matches
from tamis.relations.patterns import exclude, implies

A = Attribute(("a",))
TEXTS = ["".join(letters) for length in range(5) for letters in product("abc", repeat=length)]
patterns = st.lists(st.sampled_from(["%", "_", "a", "b"]), max_size=5).map("".join)


@given(one=patterns, two=patterns)
def test_implications_and_exclusions_hold_for_every_text(one, two):
    fitting, others = ({text for text in TEXTS if like_matches(text, each, "\\")} for each in (one, two))
    if implies(Like(A, one), Like(A, two)):
        assert fitting <= others
    if exclude(Like(A, one), Like(A, two)):
        assert not fitting & others


@given(one=patterns.filter(lambda each: "_" not in each), two=patterns.filter(lambda each: "_" not in each))
def test_without_single_wild_cards_every_implication_is_seen(one, two):
    fitting, others = ({text for text in TEXTS if like_matches(text, each, "\\")} for each in (one, two))
    if len(one) <= 4 and len(two) <= 4:  # short enough for a text with a letter of its own to show the difference
        assert implies(Like(A, one), Like(A, two)) is (fitting <= others)


@pytest.mark.parametrize(
    ("special", "general", "is_implied"),
    [
        ("%Hobbit%", "%bit%", True),
        ("The %", "%", True),
        ("a_c", "a%", True),
        ("a%", "a_%", False),
        ("_", "%", True),
        ("%", "_", False),
        ("100\\%", "1%", True),
        ("%a%b%", "%a%", True),
        ("", "%", True),
        ("", "_", False),
        ("x" * 300, "x%", False),  # too long to look at
    ],
)
def test_implications_by_hand(special, general, is_implied):
    assert implies(Like(A, special), Like(A, general)) is is_implied


@pytest.mark.parametrize(
    ("one", "two", "is_excluded"),
    [
        ("%.jpg", "%.png", True),
        ("a%", "b%", True),
        ("a_", "a", True),
        ("a_", "ab", False),
        ("%a", "b%", False),
        ("ab%", "a%", False),
        ("", "_", True),
    ],
)
def test_exclusions_by_hand(one, two, is_excluded):
    assert exclude(Like(A, one), Like(A, two)) is exclude(Like(A, two), Like(A, one)) is is_excluded
