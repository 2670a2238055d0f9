from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.errors import LanguageError, LimitError, TamisError
from tamis.service import errors
from tamis.service.client.problems import rebuilt
from tamis.service.errors import LogError, ServiceError, TooManyError


def kinds(of):
    return [of, *(kind for below in of.__subclasses__() for kind in kinds(below))]


TOLD = [
    kind
    for kind in kinds(ServiceError)
    if kind.__module__ == errors.__name__  # those that a client knows; whatever else tests have loaded does not matter
    and kind not in (errors.UnreachableError, errors.ClosedError, errors.DamagedLogError)
]


@pytest.mark.parametrize("kind", TOLD, ids=lambda kind: kind.__name__)
def test_every_error_of_the_service_comes_back_as_itself(kind):
    error = kind("what is wrong", "what would be right")
    problem = {"status": kind.status, "title": kind.title, "detail": error.detail, "expected": error.expected}
    back = rebuilt(problem)
    assert type(back) is kind
    assert str(back) == str(error)


def test_a_wait_comes_back_from_the_document_or_the_header():
    assert rebuilt({"status": 429, "detail": "slow down", "retry_s": 7}).retry_s == 7
    back = rebuilt({"status": 503, "detail": "busy"}, retry_s=3)
    assert isinstance(back, TooManyError) and back.retry_s == 3


def test_damage_is_told_in_its_words():
    error = errors.DamagedLogError("log/1.db", 3, 9, "a checksum is wrong")
    back = rebuilt({"status": error.status, "title": error.title, "detail": error.detail, "expected": error.expected})
    assert type(back) is LogError and str(back) == str(error)


def test_a_filter_that_is_too_large_is_an_error_of_the_language():
    assert isinstance(rebuilt({"status": 413, "title": "The filter is too large", "detail": "depth"}), LimitError)


JSON = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.text()) | st.dictionaries(
    st.text() | st.sampled_from(["line", "column", "text"]), st.integers() | st.text()
)  # fmt: skip
NAMES = st.sampled_from(
    ["status", "title", "detail", "expected", "where", "error", "hint", "text", "retry_s", "message"]
)


@given(problem=st.dictionaries(NAMES, JSON), text=st.none() | st.text())
def test_whatever_a_broker_says_becomes_an_error_that_can_be_shown(problem, text):
    error = rebuilt(problem, text=text)
    assert isinstance(error, TamisError)
    assert isinstance(str(error), str)


@given(text=st.text(), line=st.integers(-1, 5), column=st.integers(-1, 40))
def test_a_place_outside_of_the_text_does_not_break_the_caret(text, line, column):
    error = rebuilt({"status": 400, "detail": "wrong", "where": {"line": line, "column": column}}, text=text)
    assert isinstance(error, LanguageError)
    assert "wrong" in str(error)
