"""Filters in every form, and starting points."""

from __future__ import annotations

import datetime as dt
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tamis
from tamis.errors import LanguageError, LimitError, TamisError
from tamis.language.expressions import Not
from tamis.language.limits import Limits
from tamis.service.dialects import from_dialect
from tamis.service.errors import BadRequestError, GoneError
from tamis.service.filters import all_wanted, wanted_of
from tamis.service.permissions import EFFECTIVE_LIMITS
from tamis.service.starting_points import Place, SinceTime, starting_point

from ..strategies import conditions_over, simple_predicates

NAMES = ("type", "source", "subject", "ext")
VALUES = ("a", "ab", "b", "5", "true")


def definition(filter_, event):
    """What the filter dialects of the Subscriptions API mean: true or false, attributes as texts."""
    [(dialect, content)] = filter_.items()

    def text(name):
        value = event.get(name)
        return None if value is None else str(value).lower() if isinstance(value, bool) else str(value)

    if dialect == "exact":
        return all(text(name) == wanted for name, wanted in content.items())
    if dialect == "prefix":
        return all(
            isinstance(event.get(name), str) and event[name].startswith(wanted) for name, wanted in content.items()
        )
    if dialect == "suffix":
        return all(
            isinstance(event.get(name), str) and event[name].endswith(wanted) for name, wanted in content.items()
        )
    if dialect == "not":
        return not definition(content, event)
    return (all if dialect == "all" else any)(definition(part, event) for part in content)


leaves = st.builds(
    lambda dialect, content: {dialect: content},
    st.sampled_from(["exact", "prefix", "suffix"]),
    st.dictionaries(st.sampled_from(NAMES), st.sampled_from(VALUES), min_size=1, max_size=2),
)
dialect_filters = st.recursive(
    leaves,
    lambda inner: (
        st.builds(lambda part: {"not": part}, inner)
        | st.builds(
            lambda name, parts: {name: parts}, st.sampled_from(["all", "any"]), st.lists(inner, min_size=1, max_size=3)
        )
    ),
    max_leaves=6,
)
contexts = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(NAMES[:3], st.sampled_from(VALUES)),
        "ext": st.sampled_from([*VALUES, 5, 7, True, False]),
    },
)


@given(dialect_filters, contexts)
def test_a_dialect_means_the_same_after_translation(filter_, event):
    wanted = wanted_of(filter_)
    assert tamis.holds(wanted.filter, event) is definition(filter_, event)
    assert tamis.holds(tamis.parse(wanted.text), event) is definition(filter_, event), "and as the text that is kept"


def test_sql_and_lists_and_times_are_dialects_too():
    record = {"type": "offer", "price": 12, "time": dt.datetime(2026, 1, 31, 12, tzinfo=dt.UTC)}
    assert tamis.holds(from_dialect([{"sql": "price < 20"}, {"cesql": "type LIKE 'off%'"}]), record)
    assert tamis.holds(from_dialect({"exact": {"time": "2026-01-31T13:00:00+01:00"}}), record)
    assert not tamis.holds(from_dialect({"exact": {"time": "2026-01-31T13:00:00Z"}}), record)


@given(conditions_over(simple_predicates))
def test_every_form_of_an_expression_says_the_same(expression):
    text, document = str(expression), json.loads(expression.to_json())
    for form in (text, {"where": text}, document):
        wanted = wanted_of(form)
        assert wanted.filter == tamis.parse(text)
        assert tamis.parse(wanted.text) == wanted.filter


nonsense = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["exact", "prefix", "all", "any", "not", "sql", "where", "tamis", "expression", "time"])
            | st.text(max_size=3),
            inner,
            max_size=2,
        )
    ),
    max_leaves=8,
)


@given(nonsense)
def test_any_json_is_a_filter_or_a_typed_error(form):
    try:
        wanted = wanted_of(form)
    except TamisError:
        return
    assert tamis.parse(wanted.text) == wanted.filter


@pytest.mark.parametrize(
    "form",
    [
        None, 7, [], {}, {"exact": {}}, {"exact": {"type": ""}}, {"exact": {"type": 7}}, {"exact": {"type": "a"}, "prefix": {"type": "b"}},
        {"all": []}, {"any": {}}, {"not": []}, {"sql": 7}, {"like": {"type": "a"}}, {"prefix": {"time": "2026"}}, {"exact": {"time": "now"}},
    ],
)  # fmt: skip
def test_what_is_no_filter_is_refused_with_what_would_be_one(form):
    with pytest.raises(BadRequestError) as caught:
        wanted_of(form)
    assert caught.value.expected


def test_a_filter_that_is_nested_without_end_is_refused():
    form = {"exact": {"type": "a"}}
    for _ in range(5_000):
        form = {"not": form}
    with pytest.raises(BadRequestError, match="nested too deeply"):
        wanted_of(form)


@pytest.mark.parametrize("levels", [10, 120, 124, 130, 249, 250])
def test_a_dialect_is_within_the_limits_of_the_language_and_what_is_kept_of_it_can_be_read(levels):
    form = {"exact": {"type": "a"}}
    for _ in range(levels):
        form = {"not": form}
    if levels >= 130:  # each is two operators in our words
        with pytest.raises(LimitError, match="depth"):
            wanted_of(form)
    else:
        wanted = wanted_of(form)
        assert tamis.parse(wanted.text, limits=EFFECTIVE_LIMITS) == wanted.filter


def test_the_deepest_json_form_can_be_read_again_from_its_text():
    expression = tamis.parse("sold")
    while True:
        deeper = Not(expression)
        try:
            wanted = wanted_of(json.loads(deeper.to_json()))
        except LimitError:
            break
        expression = deeper
    assert tamis.parse(wanted.text, limits=EFFECTIVE_LIMITS) == wanted.filter == expression


def test_a_filter_in_json_is_no_longer_than_a_text_may_be():
    limits = Limits(text_length=100)
    for form in ({"exact": {"type": "x" * 100}}, json.loads(tamis.parse(f"type = '{'x' * 100}'").to_json())):
        with pytest.raises(LimitError, match="text_length"):
            wanted_of(form, None, limits)


def test_errors_of_several_subscriptions_say_which():
    with pytest.raises(LanguageError) as caught:
        all_wanted({"good": "TRUE", "bad": "price <"})
    assert caught.value.__notes__ == ["subscription 'bad'"]
    with pytest.raises(BadRequestError, match="subscription 'odd': "):
        all_wanted({"odd": 7})


# -- Starting points


@pytest.mark.parametrize(
    ("text", "point"),
    [
        ("first", Place(1)), ("now", Place(0)), ("", Place(0)), ("k3f9-812", Place(812)), ("k3f9-812.97", Place(97)), ("k3f9-0", Place(1)),
        ("-90s", SinceTime(1_000_000_000 - 90_000_000)), ("-1.5m", SinceTime(1_000_000_000 - 90_000_000)), ("-1d", SinceTime(0)),
        ("1970-01-01T00:00:10.5Z", SinceTime(10_500_000)), ("1970-01-01T01:00:00+01:00", SinceTime(0)), ("1969-01-01T00:00:00Z", SinceTime(0)),
    ],
)  # fmt: skip
def test_starting_points_are_read(text, point):
    assert starting_point(text, "k3f9", 1_000_000_000) == point


@pytest.mark.parametrize(
    "text",
    [
        "yesterday",
        "-1",
        "-1y",
        "1h",
        "2026-01-31",
        "2026-01-31T12:00:00",
        "-" + "9" * 30 + "s",
        "812",
        "k3f9-",
        "k3f9-x",
    ],
)
def test_what_is_no_starting_point_is_refused(text):
    with pytest.raises(BadRequestError):
        starting_point(text, "k3f9", 0)


def test_a_position_of_another_log_is_gone():
    with pytest.raises(GoneError):
        starting_point("a7x2-5", "k3f9", 0)


@given(st.text(max_size=30))
def test_any_text_is_a_starting_point_or_a_typed_error(text):
    try:
        starting_point(text, "k3f9", 10**15)
    except (BadRequestError, GoneError):
        return
