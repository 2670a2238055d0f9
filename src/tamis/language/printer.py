"""How is an expression written as text? An unparser.

The text parses back to an equal expression, with no parentheses that could be left out. Pieces are
written from a stack, left to right, so that length costs time but depth costs nothing.
"""

from __future__ import annotations

import re
from typing import TypeAlias

from tamis.errors import LimitError
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
from tamis.language.functions import function_of
from tamis.language.literals import quoted
from tamis.language.literals import to_text as literal_text
from tamis.language.precedence import AND, COMPARISON, FRAME, NOT, OR, PREDICATE, PRIMARY, SIGN, SUM, XOR
from tamis.language.tokens import RESERVED
from tamis.language.values import is_number

_MOST_PIECES = 20_000_000

_Piece: TypeAlias = "str | tuple[Expression, int]"
_QUOTED = RESERVED | {"CASE"}  # which may be an attribute's name, but not before every word that may follow one
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")


def to_text(expression: Expression) -> str:
    """Write an expression as text.

    >>> import tamis
    >>> to_text(tamis.parse("((a = 1)) and not(b in (1,2)) and (c < 3 or d)"))
    'a = 1 AND b NOT IN (1, 2) AND (c < 3 OR d)'
    """
    written: list[str] = []
    stack: list[_Piece] = [(expression, FRAME)]
    while stack:
        piece = stack.pop()
        if isinstance(piece, str):
            written.append(piece)
            continue
        node, context = piece
        pieces, precedence = _pieces(node)
        if precedence < context:
            pieces = ["(", *pieces, ")"]
        stack.extend(reversed(pieces))
        if len(written) > _MOST_PIECES:
            raise LimitError("text", _MOST_PIECES, "more pieces", hint="Its graph is small, but its tree is not.")
    return "".join(written)


def _pieces(node: Expression, negation: str = "") -> tuple[list[_Piece], int]:
    """Return what to write for a node, and how tightly that binds."""
    match node:
        case Literal(constant):
            return [literal_text(constant)], PRIMARY
        case Attribute(path):
            return [name_text(path)], PRIMARY
        case Call("negate", (operand,)):
            is_signed = isinstance(operand, Literal) and is_number(operand.value)
            is_signed = is_signed or (isinstance(operand, Call) and operand.function == "negate")
            # `--x` would be a comment, and `-5` a literal
            return (["-(", (operand, FRAME), ")"] if is_signed else ["-", (operand, SIGN)]), SIGN
        case Call("case", arguments):
            return _case(arguments), PRIMARY
        case Call(name, (left, right)) if function_of(name).symbol:
            own = function_of(name).binding
            return [(left, own), f" {function_of(name).symbol} ", (right, own + 1)], own
        case Call(name, arguments) | Test(name, arguments):
            return [f"{name}(", *_listed(arguments), ")"], PRIMARY
        case Compare(operator, left, right):
            return [(left, COMPARISON), f" {operator} ", (right, SUM)], COMPARISON
        case Between(value, low, high):
            return [(value, COMPARISON), f" {negation}BETWEEN ", (low, SUM), " AND ", (high, SUM)], PREDICATE
        case In(value, members):
            return [(value, COMPARISON), f" {negation}IN (", ", ".join(map(literal_text, members)), ")"], PREDICATE
        case Like(value, pattern, escape):
            escaping = "" if escape == "\\" else f" ESCAPE {quoted(escape)}"
            return [(value, COMPARISON), f" {negation}LIKE {quoted(pattern)}{escaping}"], PREDICATE
        case RLike(value, pattern):
            return [(value, COMPARISON), f" {negation}RLIKE {quoted(pattern)}"], PREDICATE
        case IsNull(value):
            return [(value, COMPARISON), f" IS {negation}NULL"], PREDICATE
        case IsA(value, event_type):
            return [(value, COMPARISON), f" IS {negation}A {quoted(event_type)}"], PREDICATE
        case Not(operand):
            if isinstance(operand, Between | In | Like | RLike | IsNull | IsA):
                return _pieces(operand, "NOT ")
            return ["NOT ", (operand, NOT)], NOT
        case And(operands):
            return _joined(operands, " AND ", AND), AND
        case Or(operands):
            return _joined(operands, " OR ", OR), OR
        case Xor(operands):
            return _joined(operands, " XOR ", XOR), XOR
        case AtLeast(count, operands):
            return [f"at_least({count}, ", *_listed(operands), ")"], PRIMARY
    raise AssertionError(f"a node of an unknown class: {type(node).__name__}")


def _case(arguments: tuple[Expression, ...]) -> list[_Piece]:
    pieces: list[_Piece] = ["CASE"]
    for index in range(0, len(arguments) - 1, 2):
        pieces += [" WHEN ", (arguments[index], FRAME), " THEN ", (arguments[index + 1], FRAME)]
    if len(arguments) % 2:
        pieces += [" ELSE ", (arguments[-1], FRAME)]
    return [*pieces, " END"]


def _joined(operands: tuple[Expression, ...], between: str, own: int) -> list[_Piece]:
    pieces: list[_Piece] = []
    for operand in operands:
        pieces += [between, (operand, own + 1)]
    return pieces[1:]


def _listed(operands: tuple[Expression, ...]) -> list[_Piece]:
    return _joined(operands, ", ", FRAME - 1)


def name_text(path: tuple[str, ...]) -> str:
    """Write an attribute's name, back-quoted where it has to be.

    >>> name_text(("position", "x y"))
    'position.`x y`'
    """
    return ".".join(part if _is_plain(part) else f"`{part.replace('`', '``')}`" for part in path)


def _is_plain(part: str) -> bool:
    return _PLAIN_NAME.fullmatch(part) is not None and part.upper() not in _QUOTED
