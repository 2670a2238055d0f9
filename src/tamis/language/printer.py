"""How is an expression written as text?

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
from tamis.language.functions import FUNCTIONS
from tamis.language.literals import quoted
from tamis.language.literals import to_text as literal_text
from tamis.language.tokens import RESERVED
from tamis.language.values import is_number

# The parser's precedences; a piece in a tighter context than its own needs parentheses.
_ANY, _OR, _XOR, _AND, _NOT, _PREDICATE, _COMPARISON, _SUM, _PRODUCT, _SIGN, _PRIMARY = range(11)
_ARITHMETIC = {"add": _SUM, "subtract": _SUM, "multiply": _PRODUCT, "divide": _PRODUCT, "remainder": _PRODUCT}
_MOST_PIECES = 20_000_000

_Piece: TypeAlias = "str | tuple[Expression, int]"
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")


def to_text(expression: Expression) -> str:
    """Write an expression as text.

    >>> import tamis
    >>> to_text(tamis.parse("((a = 1)) and not(b in (1,2)) and (c < 3 or d)"))
    'a = 1 AND b NOT IN (1, 2) AND (c < 3 OR d)'
    """
    written: list[str] = []
    stack: list[_Piece] = [(expression, _ANY)]
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
            return [literal_text(constant)], _PRIMARY
        case Attribute(path):
            return [name_text(path)], _PRIMARY
        case Call("negate", (operand,)):
            is_signed = isinstance(operand, Literal) and is_number(operand.value)
            is_signed = is_signed or (isinstance(operand, Call) and operand.function == "negate")
            # `--x` would be a comment, and `-5` a literal
            return (["-(", (operand, _ANY), ")"] if is_signed else ["-", (operand, _SIGN)]), _SIGN
        case Call(name, (left, right)) if name in _ARITHMETIC:
            own = _ARITHMETIC[name]
            return [(left, own), f" {FUNCTIONS[name].symbol} ", (right, own + 1)], own
        case Call(name, arguments) | Test(name, arguments):
            return [f"{name}(", *_listed(arguments), ")"], _PRIMARY
        case Compare(operator, left, right):
            return [(left, _COMPARISON), f" {operator} ", (right, _SUM)], _COMPARISON
        case Between(value, low, high):
            return [(value, _COMPARISON), f" {negation}BETWEEN ", (low, _SUM), " AND ", (high, _SUM)], _PREDICATE
        case In(value, members):
            return [(value, _COMPARISON), f" {negation}IN (", ", ".join(map(literal_text, members)), ")"], _PREDICATE
        case Like(value, pattern, escape):
            escaping = "" if escape == "\\" else f" ESCAPE {quoted(escape)}"
            return [(value, _COMPARISON), f" {negation}LIKE {quoted(pattern)}{escaping}"], _PREDICATE
        case RLike(value, pattern):
            return [(value, _COMPARISON), f" {negation}RLIKE {quoted(pattern)}"], _PREDICATE
        case IsNull(value):
            return [(value, _COMPARISON), f" IS {negation}NULL"], _PREDICATE
        case IsA(value, event_type):
            return [(value, _COMPARISON), f" IS {negation}A {quoted(event_type)}"], _PREDICATE
        case Not(operand):
            if isinstance(operand, Between | In | Like | RLike | IsNull | IsA):
                return _pieces(operand, "NOT ")
            return ["NOT ", (operand, _NOT)], _NOT
        case And(operands):
            return _joined(operands, " AND ", _AND), _AND
        case Or(operands):
            return _joined(operands, " OR ", _OR), _OR
        case Xor(operands):
            return _joined(operands, " XOR ", _XOR), _XOR
        case AtLeast(count, operands):
            return [f"at_least({count}, ", *_listed(operands), ")"], _PRIMARY
    raise AssertionError(f"a node of an unknown class: {type(node).__name__}")


def _joined(operands: tuple[Expression, ...], between: str, own: int) -> list[_Piece]:
    pieces: list[_Piece] = []
    for operand in operands:
        pieces += [between, (operand, own + 1)]
    return pieces[1:]


def _listed(operands: tuple[Expression, ...]) -> list[_Piece]:
    return _joined(operands, ", ", _ANY - 1)


def name_text(path: tuple[str, ...]) -> str:
    """Write an attribute's name, back-quoted where it has to be.

    >>> name_text(("position", "x y"))
    'position.`x y`'
    """
    return ".".join(part if _is_plain(part) else f"`{part.replace('`', '``')}`" for part in path)


def _is_plain(part: str) -> bool:
    return _PLAIN_NAME.fullmatch(part) is not None and part.upper() not in RESERVED
