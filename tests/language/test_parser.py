"""What the parser reads, and what it says when it cannot."""

from __future__ import annotations

import pickle

import pytest

import tamis
from tamis import errors
from tamis.language.expressions import And, Attribute, Compare, In, Literal, Not, Or, Xor


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        # precedence, tightest first: sign, product, sum, comparison, predicate, NOT, AND, XOR, OR
        ("a = 1 OR b = 2 AND c = 3", "a = 1 OR b = 2 AND c = 3"),
        ("(a = 1 OR b = 2) AND c = 3", "(a = 1 OR b = 2) AND c = 3"),
        ("a = 1 XOR b = 2 OR c = 3 AND d = 4", "a = 1 XOR b = 2 OR c = 3 AND d = 4"),
        ("NOT a = 1 AND b = 2", "NOT a = 1 AND b = 2"),
        ("NOT (a = 1 AND b = 2)", "NOT (a = 1 AND b = 2)"),
        ("a + b * c - d < 5", "a + b * c - d < 5"),
        ("(a + b) * (c - d) < 5", "(a + b) * (c - d) < 5"),
        ("a - (b - c) < 5", "a - (b - c) < 5"),
        ("a - b - c < 5", "a - b - c < 5"),
        ("-a * b < 5", "-a * b < 5"),
        ("-(a * b) < 5", "-(a * b) < 5"),
        ("- - a < 5", "-(-a) < 5"),
        ("-(5) < a", "-(5) < a"),
        ("a < 3 IS NULL", "a < 3 IS NULL"),
        ("a = b = TRUE", "a = b = TRUE"),
        ("a = (b = TRUE)", "a = (b = TRUE)"),
        # one thing, several spellings
        ("a == 1 and b != 2", "a = 1 AND b <> 2"),
        ("!(a = 1)", "NOT a = 1"),
        ("a regexp 'x'", "a RLIKE 'x'"),
        ("NOT a IN (1)", "a NOT IN (1)"),
        ("a IS TRUE", "a <=> TRUE"),
        ("a IS NOT UNKNOWN", "a IS NOT NULL"),
        ("a IS DISTINCT FROM b + 1", "NOT a <=> b + 1"),
        ("a IS NOT DISTINCT FROM b AND c", "a <=> b AND c"),
        ("a IN (b, 1, 2)", "a = b OR a IN (1, 2)"),
        ("xor(a, b, c)", "a XOR b XOR c"),
        ("a XOR (b)", "a XOR b"),
        ("+a < +5", "a < 5"),
        ("LOWER(a) = 'x'", "lower(a) = 'x'"),
        ("size(array()) = 0", "size(array()) = 0"),
        # names
        ("position . x = 1", "position.x = 1"),
        ("`a.b`.c = 1", "`a.b`.c = 1"),
        ("`and` = 1", "`and` = 1"),
        ("`x``y` = 1", "`x``y` = 1"),
        ("größe = 1", "`größe` = 1"),
        ("date = DATE '2024-1-5' OR timestamp = 1", "date = DATE '2024-01-05' OR timestamp = 1"),
        ("size < 3 AND length = 2", "size < 3 AND length = 2"),
        ("a.b.c = 1", "a.b.c = 1"),
        # literals
        ("a = 1.5e3", "a = 1500.0D"),
        ("a = .5", "a = 0.5"),
        ("a = 5.", "a = 5BD"),
        ("a = 9223372036854775808", "a = 9223372036854775808"),
        ("a = -9223372036854775808", "a = -9223372036854775808"),
        ("a = 5L OR a = 5S OR a = 5Y OR a = 5BD", "a = 5 OR a = 5 OR a = 5 OR a = 5BD"),
        ("a = 0.1F", "a = 0.10000000149011612D"),
        ("a = double('NaN')", "a = double('NaN')"),
        ("a = double('-inf')", "a = double('-Infinity')"),
        ("a = 'it''s' 'x'", r"a = 'it\'sx'"),
        (r"a = 'tab\t\u00e9\x\101'", r"a = 'tab\téxA'"),
        (r"a = r'\d'", r"a = '\\d'"),
        ('a = "x"', "a = 'x'"),
        ("a = TIMESTAMP '2024-01-02T10:00:00.5+02:00'", "a = TIMESTAMP '2024-01-02 08:00:00.500000'"),
        # white space and comments
        ("a=1-- one\nAND/* two /* nested */ */b=2", "a = 1 AND b = 2"),
        ("\n\ta\n=\n1\n", "a = 1"),
        # escapes
        ("a LIKE 'x!%' ESCAPE '!'", "a LIKE 'x!%' ESCAPE '!'"),
        ("a NOT LIKE 'x'", "a NOT LIKE 'x'"),
        ("type IS NOT A 'Quote'", "type IS NOT A 'Quote'"),
        ("sold", "sold"),
        ("TRUE", "TRUE"),
        ("NULL", "NULL"),
    ],
)
def test_a_text_is_read_and_printed(text, printed):
    expression = tamis.parse(text)
    assert str(expression) == printed
    assert tamis.parse(printed) == expression


def test_chains_of_one_operator_are_one_node():
    assert tamis.parse("a = 1 AND b = 2 AND c = 3") == And(
        tuple(Compare("=", Attribute((name,)), Literal(value)) for name, value in (("a", 1), ("b", 2), ("c", 3)))
    )
    assert len(tamis.parse("a OR b OR c OR d").operands) == 4
    assert isinstance(tamis.parse("a XOR b XOR c"), Xor)
    assert len(tamis.parse("a XOR b XOR c").operands) == 3
    assert len(tamis.parse("(a AND b) AND c").operands) == 2


def test_between_takes_its_own_and():
    expression = tamis.parse("a BETWEEN 1 AND 2 AND b BETWEEN c + 1 AND d OR e")
    assert isinstance(expression, Or)
    assert str(expression) == "a BETWEEN 1 AND 2 AND b BETWEEN c + 1 AND d OR e"


def test_a_list_may_mix_types_and_hold_null():
    assert tamis.parse("a IN (1, 'x', NULL, 2.5, -3)") == In(
        Attribute(("a",)), (1, "x", None, tamis.lit(tamis.parse("a = 2.5").right.value).expression.value, -3)
    )


@pytest.mark.parametrize(
    ("text", "kind", "column", "words"),
    [
        ("price < 20 AND", errors.ExpressionSyntaxError, 15, "end of the text"),
        ("", errors.ExpressionSyntaxError, 1, "a condition"),
        ("   ", errors.ExpressionSyntaxError, 4, "a condition"),
        ("price <", errors.ExpressionSyntaxError, 8, "a value"),
        ("price 20", errors.ExpressionSyntaxError, 7, "An operator is missing"),
        ("price < 20 ADN sold", errors.ExpressionSyntaxError, 12, "Did you mean AND?"),
        ("(price < 20", errors.ExpressionSyntaxError, 12, "column 1 is never closed"),
        ("price < 20)", errors.ExpressionSyntaxError, 11, "never opened"),
        ("price < 20 AND OR sold", errors.ExpressionSyntaxError, 16, "a condition"),
        ("a IN ()", errors.ExpressionSyntaxError, 7, "at least one value"),
        ("a IN 5", errors.ExpressionSyntaxError, 6, "("),
        ("a BETWEEN 1 OR 2", errors.ExpressionSyntaxError, 13, "BETWEEN takes two ends"),
        ("a IS 5", errors.ExpressionSyntaxError, 6, "NULL"),
        ("a LIKE b", errors.ExpressionSyntaxError, 8, "A pattern is a literal"),
        ("a NOT = 5", errors.ExpressionSyntaxError, 7, "BETWEEN"),
        ("a = NOT b", errors.ExpressionSyntaxError, 5, "parentheses"),
        ("a IS NULL = TRUE", errors.ExpressionSyntaxError, 11, "parentheses"),
        ("a IS NULL IS NULL", errors.ExpressionSyntaxError, 11, "parentheses"),
        ("a = 'x", errors.ExpressionSyntaxError, 5, "never closed"),
        ("`a = 1", errors.ExpressionSyntaxError, 1, "never closed"),
        ("a = 1 /* x", errors.ExpressionSyntaxError, 7, "never closed"),
        ("a = 1; b = 2", errors.ExpressionSyntaxError, 6, "semicolon"),
        ("a = 1 && b = 2", errors.ExpressionSyntaxError, 7, "Write AND"),
        ("a ≤ 1", errors.ExpressionSyntaxError, 3, "Write <="),
        ("a = ‘x’", errors.ExpressionSyntaxError, 5, "Quote texts"),
        ("a, b", errors.ExpressionSyntaxError, 2, "AND"),
        ("and = 1", errors.ExpressionSyntaxError, 1, "a condition"),
        ("``= 1", errors.ExpressionSyntaxError, 1, "a name"),
        ("2nd = 1", errors.LiteralError, 1, "back-quoted"),
        ("a = 1" + "0" * 38, errors.LiteralError, 5, "38 digits"),
        ("a = 1e400", errors.LiteralError, 5, "beyond the range"),
        ("a = 300Y", errors.LiteralError, 5, "8 bits"),
        ("day = DATE '2024-02-30'", errors.LiteralError, 12, "not a date"),
        ("ts = TIMESTAMP 'noon'", errors.LiteralError, 16, "not a timestamp"),
        (r"a = '\ud800'", errors.LiteralError, 5, "Unicode"),
        (r"a = '\UFFFFFFFF'", errors.LiteralError, 5, "Unicode"),
        ("a LIKE 'x\\\\'", errors.PatternError, 8, "ends with its escape"),
        ("a LIKE 'x!y' ESCAPE '!'", errors.PatternError, 8, "needs no escape"),
        ("a LIKE 'x' ESCAPE '!!'", errors.PatternError, 8, "one character"),
        ("a RLIKE '('", errors.PatternError, 9, "RE2"),
        ("a RLIKE '(?=x)'", errors.PatternError, 9, "look-around"),
        ("lenght(a) > 3", errors.UnknownFunctionError, 1, "Did you mean length?"),
        ("a = 1 AND rand() < 0.5", errors.UnknownFunctionError, 11, "tamis language"),
        ("lower(a, b) = 'x'", errors.ArityError, 1, "lower(string)"),
        ("at_least(2)", errors.ArityError, 1, "at_least"),
        ("xor(a)", errors.ArityError, 1, "xor"),
        ("at_least(x, a, b)", errors.TypeMismatchError, 10, "whole number"),
        ("at_least(-1, a, b)", errors.TypeMismatchError, 10, "at least 0"),
        ("5", errors.TypeMismatchError, 1, "a condition is expected"),
        ("a = 1 AND 'x'", errors.TypeMismatchError, 11, "a text stands where a condition"),
        ("a AND price + 1", errors.TypeMismatchError, 7, "a condition is expected"),
        ("a = 1 OR 'a' < 5", errors.TypeMismatchError, 10, "cannot be compared"),
        ("lower(a) > 5", errors.TypeMismatchError, 1, "a text cannot be compared with a number"),
        ("length(5) > 5", errors.TypeMismatchError, 8, "length takes a text"),
        ("a + 'x' > 5", errors.TypeMismatchError, 5, "+ takes a number"),
        ("(a < 3) + 1 > 5", errors.TypeMismatchError, 2, "a condition"),
        ("array('a') = b", errors.TypeMismatchError, 1, "array_contains"),
        ("double(5) = a", errors.TypeMismatchError, 1, "5D"),
        ("in_cidr(ip, '10.0.0.1/8')", errors.LiteralError, 1, "10.0.0.0/8"),
        ("in_cidr(ip, 'ten')", errors.LiteralError, 1, "2001:db8::/32"),
        ("distance(lat, lon, 100, 0) < 5", errors.LiteralError, 1, "not a latitude"),
        ("array_contains(array('a'), 5)", errors.TypeMismatchError, 1, "holds strings"),
        ("least(1, 'a') = b", errors.TypeMismatchError, 1, "different kinds"),
    ],
)
def test_a_mistake_is_named_placed_and_helped(text, kind, column, words):
    with pytest.raises(kind) as caught:
        tamis.parse(text)
    error = caught.value
    assert words in str(error)
    assert error.line == 1
    assert error.column == column
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_an_error_points_at_its_line_and_column():
    with pytest.raises(errors.ExpressionSyntaxError) as caught:
        tamis.parse("a = 1\n  AND b = = 2")
    assert (caught.value.line, caught.value.column) == (2, 11)
    assert str(caught.value).splitlines()[1:3] == ["    AND b = = 2", "            ^"]


def test_a_long_line_is_shown_as_a_window_around_the_mistake():
    with pytest.raises(errors.ExpressionSyntaxError) as caught:
        tamis.parse("a = 1 AND " * 500 + "b = = 2" + " AND c = 3" * 500)
    shown, caret = str(caught.value).splitlines()[1:3]
    assert len(shown) < 120
    assert shown[caret.index("^")] == "="


def test_an_error_is_data_too():
    with pytest.raises(errors.ExpressionSyntaxError) as caught:
        tamis.parse("price <")
    assert caught.value.as_dict() == {
        "error": "ExpressionSyntaxError",
        "message": "found the end of the text",
        "line": 1,
        "column": 8,
        "expected": ["a value"],
        "hint": None,
    }


def test_a_text_that_is_not_a_str_is_a_type_error():
    with pytest.raises(TypeError, match="str"):
        tamis.parse(b"a = 1")


def test_predicates_of_different_texts_are_shared():
    one, two = tamis.parse("price < 20 AND sold"), tamis.parse("price < 20 OR bids = 3")
    assert one.operands[0] is two.operands[0]


def test_the_negation_of_a_predicate_is_not_the_predicate():
    assert tamis.parse("a NOT IN (1, 2)") == Not(tamis.parse("a IN (1, 2)"))
    assert tamis.parse("a IS NOT NULL") == Not(tamis.parse("a IS NULL"))
