"""All functions of the language, a row each.

All of them are deterministic, and none of them raises: an argument of the wrong kind gives NULL. Whoever looks a
function up does so in `FUNCTIONS` at the time of the question, so that a row that is added is there for everybody.
"""

from __future__ import annotations

from tamis.language import values
from tamis.language.functions import meanings
from tamis.language.functions.row import Function
from tamis.language.precedence import PRODUCT, SIGN, SUM
from tamis.language.vectors import check_vectors, cosine, euclidean

_NUMBER, _NUMBERS = ("number",), ("number", "number")
_TEXT, _TEXTS = ("string",), ("string", "string")
_TOO_LARGE = "an operand is NULL or no number, or the result is too large"
_BY_ZERO = "an operand is NULL or no number, or the divisor is zero"
_ALL_NULL = "all its arguments are NULL, or they do not compare with one another"


def _widest(arguments: frozenset[str]) -> str:
    """Return the type of arithmetic: double beside a double, else exact, and whole if all operands are."""
    if "double" in arguments:
        return "double"
    return "int" if arguments == {"int"} else "decimal" if arguments <= {"int", "decimal"} else "number"


def _quotient(arguments: frozenset[str]) -> str:
    return "double" if arguments == {"int"} else _widest(arguments)


def _in_company(arguments: frozenset[str]) -> str:
    """Return the type of a value that is one of several: theirs if they have one in common.

    Beside a double that is NULL, an integer stays one: so of several types of numbers no more is known than that.
    """
    if len(arguments) == 1:
        (only,) = arguments
        return only
    if arguments <= {"int", "decimal"}:
        return "decimal"
    return "number" if arguments <= {"int", "decimal", "double", "number"} else "any"


_ROWS = (
    # -- Choice
    Function(
        name="case",
        takes=("boolean", "any"),
        gives="any",
        meaning=meanings.case,
        takes_nulls=True,
        summary="the value behind the first condition that is true; without ELSE, NULL if none is",
        topic="Choice",
        example="CASE WHEN signed THEN 2 * price ELSE price END < 50",
        spark="case",
        variadic=True,
        alike=True,
        deciding=lambda count: range(0, count - count % 2, 2),
        result=_in_company,
        over_columns=True,
        no_value="no condition in it is true and there is no ELSE, or what it chose is NULL",
        symbol="CASE",
    ),
    Function(
        name="if",
        takes=("boolean", "any", "any"),
        gives="any",
        meaning=meanings.case,
        takes_nulls=True,
        summary="the second where the condition is true, else the third",
        topic="Choice",
        example="if(signed, 2, 0) + if(bids < 3, 1, 0) >= 2",
        spark="if",
        alike=True,
        deciding=lambda count: range(1),
        result=_in_company,
        over_columns=True,
        no_value="what it chose is NULL",
    ),
    Function(
        name="coalesce",
        takes=("any",),
        gives="any",
        meaning=meanings.coalesce,
        takes_nulls=True,
        summary="the first value that is not NULL",
        topic="Choice",
        example="coalesce(reserve, estimate, 0) < 20",
        spark="coalesce",
        variadic=True,
        alike=True,
        result=_in_company,
        over_columns=True,
        no_value="all its arguments are NULL",
    ),
    Function(
        name="nullif",
        takes=("any", "any"),
        gives="any",
        meaning=meanings.nullif,
        takes_nulls=True,
        summary="NULL where the two are equal, else the first",
        topic="Choice",
        example="price / nullif(bids, 0) > 5",
        spark="nullif",
        alike=True,
        over_columns=True,
        no_value="its first argument is NULL, or equal to the second",
    ),
    # -- Comparison
    Function(
        name="least",
        takes=("any", "any"),
        gives="any",
        meaning=lambda *arguments: values.extreme(arguments, -1),
        takes_nulls=True,
        summary="the least value, NULLs left out",
        topic="Comparison",
        example="price < least(estimate, buy_now)",
        spark="least",
        variadic=True,
        alike=True,
        over_columns=True,
        no_value=_ALL_NULL,
    ),
    Function(
        name="greatest",
        takes=("any", "any"),
        gives="any",
        meaning=lambda *arguments: values.extreme(arguments, 1),
        takes_nulls=True,
        summary="the greatest value, NULLs left out",
        topic="Comparison",
        example="greatest(bid, price) > 100",
        spark="greatest",
        variadic=True,
        alike=True,
        over_columns=True,
        no_value=_ALL_NULL,
    ),
    # -- Patterns
    Function(
        name="startswith",
        takes=_TEXTS,
        gives="boolean",
        meaning=meanings.of_texts(str.startswith),
        takes_nulls=False,
        summary="does the text start so?",
        topic="Patterns",
        example="startswith(title, 'The ')",
        spark="startswith",
        over_columns=True,
    ),
    Function(
        name="endswith",
        takes=_TEXTS,
        gives="boolean",
        meaning=meanings.of_texts(str.endswith),
        takes_nulls=False,
        summary="does the text end so?",
        topic="Patterns",
        example="endswith(title, '!')",
        spark="endswith",
        over_columns=True,
    ),
    Function(
        name="contains",
        takes=_TEXTS,
        gives="boolean",
        meaning=meanings.of_texts(str.__contains__),
        takes_nulls=False,
        summary="is the second text in the first?",
        topic="Patterns",
        example="contains(title, 'castle')",
        spark="contains",
        over_columns=True,
    ),
    # -- Text
    Function(
        name="lower",
        takes=_TEXT,
        gives="string",
        meaning=meanings.of_text(str.lower),
        takes_nulls=False,
        summary="in lower case",
        topic="Text",
        example="lower(author) = 'ivo andrić'",
        spark="lower",
        over_columns=True,
    ),
    Function(
        name="upper",
        takes=_TEXT,
        gives="string",
        meaning=meanings.of_text(str.upper),
        takes_nulls=False,
        summary="in upper case",
        topic="Text",
        example="upper(country) = 'HR'",
        spark="upper",
        over_columns=True,
    ),
    Function(
        name="trim",
        takes=_TEXT,
        gives="string",
        meaning=meanings.of_text(lambda text: text.strip(" ")),
        takes_nulls=False,
        summary="without spaces at the ends",
        topic="Text",
        example="trim(title) <> ''",
        spark="trim",
        over_columns=True,
    ),
    Function(
        name="length",
        takes=_TEXT,
        gives="number",
        meaning=meanings.of_text(len),
        takes_nulls=False,
        summary="number of characters",
        topic="Text",
        example="length(title) < 30",
        spark="length",
        result="int",
        bounds=(0, None),
        over_columns=True,
    ),
    # -- Arrays
    Function(
        name="array_contains",
        takes=("array", "any"),
        gives="boolean",
        meaning=meanings.array_contains,
        takes_nulls=False,
        summary="is the element in the array?",
        topic="Arrays",
        example="array_contains(tags, 'rare')",
        spark="array_contains",
        over_columns=True,
    ),
    Function(
        name="arrays_overlap",
        takes=("array", "array"),
        gives="boolean",
        meaning=meanings.arrays_overlap,
        takes_nulls=False,
        summary="do the arrays share an element?",
        topic="Arrays",
        example="arrays_overlap(tags, array('map'))",
        spark="arrays_overlap",
        over_columns=True,
    ),
    Function(
        name="array",
        takes=(),
        gives="array",
        meaning=lambda *elements: list(elements),
        takes_nulls=True,
        summary="an array",
        topic="Arrays",
        example="array_contains(array(1, 2), grade)",
        spark="array",
        variadic=True,
        alike=True,
        over_columns=True,
    ),
    Function(
        name="size",
        takes=("array",),
        gives="number",
        meaning=meanings.size,
        takes_nulls=False,
        summary="number of elements",
        topic="Arrays",
        example="size(tags) >= 3",
        spark="size",
        result="int",
        bounds=(0, None),
        over_columns=True,
    ),
    # -- Numbers
    Function(
        name="add",
        takes=_NUMBERS,
        gives="number",
        meaning=values.add,
        takes_nulls=False,
        summary="sum",
        topic="Numbers",
        example="price + shipping <= 25",
        spark="+",
        result=_widest,
        over_columns=True,
        no_value=_TOO_LARGE,
        symbol="+",
        binding=SUM,
    ),
    Function(
        name="subtract",
        takes=_NUMBERS,
        gives="number",
        meaning=values.subtract,
        takes_nulls=False,
        summary="difference",
        topic="Numbers",
        example="estimate - price > 10",
        spark="-",
        result=_widest,
        over_columns=True,
        no_value=_TOO_LARGE,
        symbol="-",
        binding=SUM,
    ),
    Function(
        name="multiply",
        takes=_NUMBERS,
        gives="number",
        meaning=values.multiply,
        takes_nulls=False,
        summary="product",
        topic="Numbers",
        example="price * 1.25 < 30",
        spark="*",
        result=_widest,
        over_columns=True,
        no_value=_TOO_LARGE,
        symbol="*",
        binding=PRODUCT,
    ),
    Function(
        name="divide",
        takes=_NUMBERS,
        gives="number",
        meaning=values.divide,
        takes_nulls=False,
        summary="quotient; by zero unknown",
        topic="Numbers",
        example="price / estimate < 0.5",
        spark="/",
        result=_quotient,
        over_columns=True,
        no_value=_BY_ZERO,
        symbol="/",
        binding=PRODUCT,
    ),
    Function(
        name="remainder",
        takes=_NUMBERS,
        gives="number",
        meaning=values.remainder,
        takes_nulls=False,
        summary="remainder, with the sign of x; by zero unknown",
        topic="Numbers",
        example="year % 100 = 0",
        spark="%",
        result=_widest,
        over_columns=True,
        no_value=_BY_ZERO,
        symbol="%",
        binding=PRODUCT,
    ),
    Function(
        name="negate",
        takes=_NUMBER,
        gives="number",
        meaning=values.negate,
        takes_nulls=False,
        summary="opposite",
        topic="Numbers",
        example="-balance > 10",
        spark="negative",
        result=_widest,
        over_columns=True,
        no_value=_TOO_LARGE,
        symbol="-",
        binding=SIGN,
    ),
    Function(
        name="abs",
        takes=_NUMBER,
        gives="number",
        meaning=values.absolute,
        takes_nulls=False,
        summary="absolute value",
        topic="Numbers",
        example="abs(price - estimate) <= 5",
        spark="abs",
        result=_widest,
        over_columns=True,
    ),
    Function(
        name="avg",
        takes=_NUMBER,
        gives="number",
        meaning=lambda *arguments: values.mean(list(arguments)),
        takes_nulls=False,
        summary="the mean of its arguments; unknown if one is NULL",
        topic="Numbers",
        example="avg(score_a, score_b) >= 4",
        spark=None,
        variadic=True,
        over_columns=True,
    ),
    Function(
        name="euclidean",
        takes=("array", "array"),
        gives="number",
        meaning=euclidean,
        takes_nulls=False,
        summary="distance of two vectors, with a third of weights if you like",
        topic="Numbers",
        example="euclidean(array(x, y), array(3, 4)) < 5",
        spark=None,
        variadic=True,
        over_columns=True,
        check=lambda arguments: check_vectors(arguments, 3),
    ),
    Function(
        name="cosine",
        takes=("array", "array"),
        gives="number",
        meaning=cosine,
        takes_nulls=False,
        summary="cosine of the angle between two vectors",
        topic="Numbers",
        example="cosine(words, array(0.6, 0, 0.8)) > 0.9",
        spark=None,
        over_columns=True,
        check=lambda arguments: check_vectors(arguments, 2),
    ),
    # -- Places and networks
    Function(
        name="distance",
        takes=("number",) * 4,
        gives="number",
        meaning=values.distance_km,
        takes_nulls=False,
        summary="kilometres between (latitude, longitude) and (latitude, longitude)",
        topic="Places and networks",
        example="distance(lat, lon, 45.8, 16) < 10",
        spark=None,
        result="double",
        bounds=(0, 20_016),  # no two places are farther apart
        over_columns=True,
        check=meanings.check_distance,
    ),
    Function(
        name="in_cidr",
        takes=_TEXTS,
        gives="boolean",
        meaning=meanings.in_cidr,
        takes_nulls=False,
        summary="is the IPv4 or IPv6 address in the network?",
        topic="Places and networks",
        example="in_cidr(address, '10.0.0.0/8')",
        spark=None,
        over_columns=True,
        check=meanings.check_cidr,
        implies=meanings.is_in_network,
        excludes=meanings.are_disjoint_networks,
        unites=meanings.united_network,
        is_known_alike=True,
    ),
)

FUNCTIONS: dict[str, Function] = {function.name: function for function in _ROWS}

_OF_THE_PARSER = ("xor", "at_least", "double")
"""What is written like a function and is none: connectives of conditions, and `double('NaN')`, which is a literal."""


def is_callable(name: str) -> bool:
    """May this name stand before a parenthesis?"""
    function = FUNCTIONS.get(name)
    return name in _OF_THE_PARSER if function is None else not function.symbol


def callable_names() -> tuple[str, ...]:
    """Return every name that may stand before a parenthesis.

    >>> "least" in callable_names(), "add" in callable_names()
    (True, False)
    """
    return (*(name for name, function in FUNCTIONS.items() if not function.symbol), *_OF_THE_PARSER)
