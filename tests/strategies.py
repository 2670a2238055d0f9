"""Generated expressions and events, the ugly ones included.

Attributes come from a small pool, and literals and event values from another, so that predicates meet values often
enough to be true, false and unknown. Expressions are of the right kinds: what the checker refuses has its own tests.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from tamis.language.expressions import (
    And,
    AtLeast,
    Attribute,
    Between,
    Call,
    Compare,
    Expression,
    In,
    IsA,
    IsNull,
    Like,
    Literal,
    Not,
    Or,
    RLike,
    Test,
    Xor,
)

NAMES = ("a", "b", "c", "pos.x", "odd name", "für")
COMPARISONS = ("=", "<>", "<", "<=", ">", ">=", "<=>")

numbers = st.one_of(
    st.sampled_from([0, 1, 2, 3, -1, 5, 10]),
    st.sampled_from([0.0, -0.0, 0.5, 1.0, 2.5, float("nan"), float("inf"), float("-inf"), 1e308, 5e-324]),
    st.sampled_from([Decimal("0.5"), Decimal("1"), Decimal("1.50"), Decimal("-2.25"), Decimal("0.1"), Decimal(2**63)]),
    st.sampled_from([2**53, 2**53 + 1, 2**63 - 1, -(2**63)]),
    st.sampled_from([float(2**53), float(2**53 + 2), 9.2e18]),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(),
    st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=-(10**30), max_value=10**30),
)
texts = st.one_of(
    st.sampled_from(
        ["", "a", "b", "ab", "abc", "The Hobbit", "%", "_", "\\", "'", '"', "é", "😀", "a\nb", "ß", "İ", "\0"]
    ),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=6),
)
times = st.one_of(
    st.sampled_from([dt.date(2024, 2, 29), dt.datetime(2024, 2, 29), dt.datetime(2024, 2, 29, 12, 0, 0, 1)]),
    st.dates(),
    st.datetimes(),
)
scalars = st.one_of(st.none(), st.booleans(), numbers, texts, times)

attributes = st.sampled_from([Attribute(tuple(name.split("."))) for name in NAMES])


def literals(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Expression]:
    return values.map(Literal)


def choices_of(
    values: st.SearchStrategy[Expression], deciding: st.SearchStrategy[Expression], height: int = 1
) -> st.SearchStrategy[Expression]:
    """CASE, if, coalesce and nullif of some values, one in another up to a height."""

    @st.composite
    def choice(draw: st.DrawFn, height: int = height) -> Expression:
        def value() -> Expression:
            return draw(choice(height - 1)) if height > 1 and draw(st.booleans()) else draw(values)

        name = draw(st.sampled_from(["case", "if", "coalesce", "nullif"]))
        match name:
            case "case":
                arguments = [each for _ in range(draw(st.integers(1, 3))) for each in (draw(deciding), value())]
                return Call(name, (*arguments, *([value()] if draw(st.booleans()) else [])))
            case "if":
                return Call(name, (draw(deciding), value(), value()))
            case "coalesce":
                return Call(name, tuple(value() for _ in range(draw(st.integers(1, 3)))))
            case _:
                return Call(name, (value(), value()))

    return choice()


places = st.one_of(attributes, st.floats(-90, 90).map(Literal))
number_terms: st.SearchStrategy[Expression] = st.recursive(
    st.one_of(attributes, literals(numbers)),
    lambda inner: st.one_of(
        st.builds(
            lambda name, left, right: Call(name, (left, right)),
            st.sampled_from(["add", "subtract", "multiply", "divide", "remainder"]),
            inner,
            inner,
        ),
        st.builds(lambda name, one: Call(name, (one,)), st.sampled_from(["negate", "abs"]), inner),
        st.builds(
            lambda name, parts: Call(name, tuple(parts)),
            st.sampled_from(["least", "greatest", "avg"]),
            st.lists(inner, min_size=2, max_size=3),
        ),
        choices_of(inner, st.deferred(lambda: st.one_of(simple_predicates, attributes, constants))),
        st.builds(lambda text: Call("length", (text,)), attributes),
        st.builds(lambda array: Call("size", (array,)), attributes),
        st.builds(lambda lat, lon: Call("distance", (lat, lon, Literal(45.8), Literal(15.97))), places, places),
        st.builds(
            lambda name, x, y: Call(name, (Call("array", (x, y)), Call("array", (Literal(3), Literal(0.5))))),
            st.sampled_from(["euclidean", "cosine"]),
            attributes,
            attributes,
        ),
    ),
    max_leaves=4,
)
text_terms: st.SearchStrategy[Expression] = st.recursive(
    st.one_of(attributes, literals(texts)),
    lambda inner: st.one_of(
        st.builds(lambda name, text: Call(name, (text,)), st.sampled_from(["lower", "upper", "trim"]), inner),
        choices_of(inner, st.deferred(lambda: st.one_of(simple_predicates, attributes))),
    ),
    max_leaves=2,
)
arrays: st.SearchStrategy[Expression] = st.one_of(
    attributes,
    st.builds(lambda parts: Call("array", tuple(parts)), st.lists(literals(texts), max_size=3)),
    st.builds(lambda parts: Call("array", tuple(parts)), st.lists(literals(numbers), max_size=3)),
)


@st.composite
def comparable_pairs(draw: st.DrawFn) -> tuple[Expression, Expression]:
    kind = draw(st.sampled_from(["attribute", "number", "text", "time", "boolean"]))
    match kind:
        case "attribute":
            return draw(attributes), draw(st.one_of(attributes, literals(scalars)))
        case "number":
            return draw(number_terms), draw(number_terms)
        case "text":
            return draw(text_terms), draw(text_terms)
        case "time":
            return draw(attributes), draw(literals(times))
        case _:
            return draw(attributes), draw(literals(st.booleans()))


@st.composite
def comparisons(draw: st.DrawFn) -> Expression:
    left, right = draw(comparable_pairs())
    if draw(st.booleans()):
        left, right = right, left
    return Compare(draw(st.sampled_from(COMPARISONS)), left, right)


@st.composite
def betweens(draw: st.DrawFn) -> Expression:
    values = draw(st.sampled_from([numbers, texts, times, st.none()]))
    return Between(draw(attributes), Literal(draw(values)), Literal(draw(values)))


like_patterns = st.lists(
    st.sampled_from(["%", "_", "a", "b", "The ", "é", "\\%", "\\_", "\\\\", ".", "("]), max_size=5
).map("".join)
regexes = st.sampled_from(["a", "^a.*b$", "(a|b)+", "[^a]", "H.b+it", "", "é", r"\d+", "(?i)THE"])

simple_predicates = st.builds(
    lambda operator, attribute, value: Compare(operator, attribute, Literal(value)),
    st.sampled_from(COMPARISONS[:6]),
    attributes,
    scalars,
)

predicates: st.SearchStrategy[Expression] = st.one_of(
    simple_predicates,
    comparisons(),
    betweens(),
    st.builds(In, attributes, st.lists(scalars, min_size=1, max_size=4).map(tuple)),
    st.builds(IsNull, attributes),
    st.builds(IsA, attributes, st.sampled_from(["Quote", "StockQuote", "Other"])),
    st.builds(Like, text_terms, like_patterns),
    st.builds(RLike, text_terms, regexes),
    st.builds(
        lambda name, text, part: Test(name, (text, part)),
        st.sampled_from(["startswith", "endswith", "contains"]),
        text_terms,
        text_terms,
    ),
    st.builds(
        lambda array, part: Test("array_contains", (array, part)), attributes, literals(st.one_of(numbers, texts))
    ),
    st.builds(lambda one, two: Test("arrays_overlap", (one, two)), arrays, arrays),
    st.builds(lambda part: Test("in_cidr", (part, Literal("10.0.0.0/8"))), attributes),
    attributes,
)
constants = st.sampled_from([Literal(True), Literal(False), Literal(None)])


def conditions_over(leaves: st.SearchStrategy[Expression], max_leaves: int = 12) -> st.SearchStrategy[Expression]:
    def larger(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
        several = st.lists(inner, min_size=2, max_size=4).map(tuple)
        return st.one_of(
            several.map(And),
            several.map(Or),
            several.map(Xor),
            inner.map(Not),
            st.builds(AtLeast, st.integers(0, 4), st.lists(inner, min_size=1, max_size=4).map(tuple)),
        )

    return st.recursive(leaves, larger, max_leaves=max_leaves)


conditions: st.SearchStrategy[Expression] = conditions_over(
    st.one_of(
        predicates,
        constants,
        # conditions inside predicates
        st.builds(lambda inner: IsNull(inner), simple_predicates),
        st.builds(lambda one, two: Compare("<=>", one, two), simple_predicates, simple_predicates),
        st.builds(lambda one, value: Compare("=", one, Literal(value)), simple_predicates, st.booleans()),
        st.builds(
            lambda one, value: Compare("=", one, Literal(value)),
            choices_of(st.one_of(simple_predicates, attributes, constants), simple_predicates, height=2),
            st.booleans(),
        ),
    )
)

event_values = st.one_of(
    scalars,
    st.lists(st.one_of(texts, st.none()), max_size=3),
    st.lists(st.one_of(numbers, st.none()), max_size=3),
    st.sampled_from(
        [
            "Quote",
            "StockQuote",
            "10.1.2.3",
            "::1",
            b"bytes",
            10**40,
            Decimal("NaN"),
            "\ud800",
            {"x": 1},
            {1, 2},
            object(),
        ]
    ),
    st.sampled_from([dt.datetime(2024, 2, 29, 13, tzinfo=dt.timezone(dt.timedelta(hours=1)))]),
)


@st.composite
def events(draw: st.DrawFn) -> dict[str, Any]:
    event: dict[str, Any] = {}
    for name in ("a", "b", "c", "odd name", "für"):
        if draw(st.integers(0, 3)):
            event[name] = draw(event_values)
    if draw(st.booleans()):
        event["pos"] = draw(st.one_of(st.fixed_dictionaries({"x": event_values}), st.just({}), event_values))
    return event
