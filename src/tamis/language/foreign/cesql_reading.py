"""How is an expression of CloudEvents SQL read? Tokens, and a grammar by precedence.

As its grammar has it: `NOT` and a sign bind most tightly, so that `NOT a = b` is `(NOT a) = b`; then `LIKE`, `EXISTS`
and `IN`, then arithmetic, then comparisons; `AND`, `OR` and `XOR` bind alike, and to the right: `a AND b OR c` is
`a AND (b OR c)`. Keywords come in any case; names of attributes are lower-case letters and digits.

Source: CloudEvents SQL Expression Language 1.0, section 2.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias

from tamis.errors import TranslationError

LONGEST = 10_000
DEEPEST = 100


@dataclass(frozen=True)
class CesqlName:
    """An attribute."""

    name: str
    at: int


@dataclass(frozen=True)
class CesqlConstant:
    """A text, an integer or a Boolean."""

    value: str | int | bool
    at: int


@dataclass(frozen=True)
class CesqlOperation:
    """An operator or a function, in capital letters, and what it is applied to."""

    operator: str
    operands: tuple[Node, ...]
    at: int


Node: TypeAlias = CesqlName | CesqlConstant | CesqlOperation

_TOKEN = re.compile(
    r"""\s*(?:(?P<text>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")|(?P<integer>\d+(?![A-Za-z0-9_]))"""
    r"""|(?P<word>[A-Za-z0-9_]+)|(?P<sign><=|>=|<>|!=|[-+*/%=<>(),]))""",
    re.DOTALL,
)
_LOGIC = ("AND", "OR", "XOR")
_COMPARISONS = ("=", "!=", "<>", "<", "<=", ">", ">=")
_KEYWORDS = frozenset({*_LOGIC, "NOT", "LIKE", "IN", "EXISTS", "TRUE", "FALSE"})
_LARGEST = 2**31


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    at: int

    @property
    def keyword(self) -> str:
        """The token as a keyword or a sign; a text is none."""
        return self.text.upper() if self.kind in ("word", "sign") else ""


def read_cesql(text: str) -> Node:
    """Return the tree of an expression.

    >>> read_cesql("type = 'a' AND EXISTS subject").operator
    'AND'
    >>> read_cesql("type = ")
    Traceback (most recent call last):
        ...
    tamis.errors.TranslationError: line 1, column 8: found the end of the text, expected a value
      type =
             ^
    """
    if len(text) > LONGEST:
        raise TranslationError(f"the expression has {len(text):,} characters, more than {LONGEST:,}")
    return _Descent(text).whole()


class _Descent:
    """A reader by recursive descent."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(self._cut())
        self._next = 0
        self._depth = 0

    def _cut(self) -> list[_Token]:
        tokens, at = [], 0
        end = len(self._text.rstrip())
        while at < end:
            piece = _TOKEN.match(self._text, at)
            if piece is None:
                at += len(self._text[at:]) - len(self._text[at:].lstrip())
                raise self._error(f"{self._text[at]!r} has no meaning here", at)
            kind = str(piece.lastgroup)
            tokens.append(_Token(kind, piece[kind], piece.start(kind)))
            at = piece.end()
        return tokens

    def whole(self) -> Node:
        """Read all of it."""
        node = self._logic()
        if self._next < len(self._tokens):
            token = self._tokens[self._next]
            raise self._error(f"found {token.text!r:.40}", token.at, "an operator, or the end")
        return node

    def _logic(self) -> Node:
        self._depth += 1
        if self._depth > DEEPEST:
            raise TranslationError(f"the expression is nested more than {DEEPEST} levels deep")
        left = self._binary(_COMPARISONS, self._sum)
        if (token := self._taken(*_LOGIC)) is not None:
            left = CesqlOperation(token.keyword, (left, self._logic()), token.at)
        self._depth -= 1
        return left

    def _sum(self) -> Node:
        return self._binary(("+", "-"), lambda: self._binary(("*", "/", "%"), self._predicate))

    def _binary(self, operators: tuple[str, ...], operand: object) -> Node:
        assert callable(operand)
        left: Node = operand()
        while (token := self._taken(*operators)) is not None:
            left = CesqlOperation(token.keyword, (left, operand()), token.at)
        return left

    def _predicate(self) -> Node:
        node = self._unary()
        while True:
            is_not = self._ahead("NOT") and self._ahead("LIKE", "IN", after=1)
            if is_not:
                self._next += 1
            token = self._taken("LIKE", "IN")
            if token is None:
                return node
            if token.keyword == "LIKE":
                pattern = self._unary()
                if not (isinstance(pattern, CesqlConstant) and isinstance(pattern.value, str)):
                    raise self._error("LIKE takes a text in quotes", token.at)
                node = CesqlOperation("LIKE", (node, pattern), token.at)
            else:
                node = CesqlOperation("IN", (node, *self._list()), token.at)
            if is_not:
                node = CesqlOperation("NOT", (node,), token.at)

    def _unary(self) -> Node:
        token = self._taken("NOT", "-", "+")
        if token is None:
            return self._atom()
        self._depth += 1
        if self._depth > DEEPEST:
            raise TranslationError(f"the expression is nested more than {DEEPEST} levels deep")
        operand = self._unary()
        self._depth -= 1
        if token.keyword == "NOT":
            return CesqlOperation("NOT", (operand,), token.at)
        if isinstance(operand, CesqlConstant) and type(operand.value) is int:
            return CesqlConstant(-operand.value if token.keyword == "-" else operand.value, token.at)
        return operand if token.keyword == "+" else CesqlOperation("NEGATE", (operand,), token.at)

    def _atom(self) -> Node:
        token = self._take("a value")
        if token.kind == "text":
            return CesqlConstant(re.sub(r"\\(['\"])", r"\1", token.text[1:-1]), token.at)
        if token.kind == "integer":
            if int(token.text) >= _LARGEST + 1:
                raise self._error(f"{token.text:.40} is not an integer of 32 bits", token.at)
            return CesqlConstant(int(token.text), token.at)
        if token.keyword == "(":
            node = self._logic()
            self._expect(")")
            return node
        if token.keyword in ("TRUE", "FALSE"):
            return CesqlConstant(token.keyword == "TRUE", token.at)
        if token.keyword == "EXISTS":
            name = self._take("the name of an attribute")
            return CesqlOperation("EXISTS", (self._name(name),), token.at)
        if token.kind == "word" and self._ahead("("):
            return CesqlOperation(token.keyword, self._list(is_empty_good=True), token.at)
        return self._name(token)

    def _name(self, token: _Token) -> CesqlName:
        if token.kind not in ("word", "integer") or token.keyword in _KEYWORDS:
            raise self._error(f"found {token.text!r:.40}", token.at, "a value")
        if not re.fullmatch(r"[a-z0-9]+", token.text):
            message = f"{token.text!r:.40} is not the name of an attribute"
            raise self._error(message, token.at, "lower-case letters and digits")
        return CesqlName(token.text, token.at)

    def _list(self, is_empty_good: bool = False) -> tuple[Node, ...]:
        self._expect("(")
        if is_empty_good and self._taken(")") is not None:
            return ()
        nodes = [self._logic()]
        while self._taken(",") is not None:
            nodes.append(self._logic())
        self._expect(")")
        return tuple(nodes)

    # -- Tokens

    def _ahead(self, *texts: str, after: int = 0) -> bool:
        place = self._next + after
        return place < len(self._tokens) and self._tokens[place].keyword in texts

    def _taken(self, *texts: str) -> _Token | None:
        if not self._ahead(*texts):
            return None
        self._next += 1
        return self._tokens[self._next - 1]

    def _take(self, expected: str) -> _Token:
        if self._next == len(self._tokens):
            raise self._error("found the end of the text", len(self._text), expected)
        self._next += 1
        return self._tokens[self._next - 1]

    def _expect(self, sign: str) -> None:
        token = self._take(f"'{sign}'")
        if token.keyword != sign:
            raise self._error(f"found {token.text!r:.40}", token.at, f"'{sign}'")

    def _error(self, message: str, at: int, expected: str = "") -> TranslationError:
        return TranslationError(message, text=self._text, position=at, expected=(expected,) if expected else ())
