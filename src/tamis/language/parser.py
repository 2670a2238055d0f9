"""How does a text become an expression? An operator-precedence (shunting-yard) parser.

An operator-precedence parser with its stacks in sight: operands wait on one, operators on the
other until one of lower precedence comes. Nothing recurses, so a hostile text meets a limit, never the
end of Python's stack. The grammar and its precedences are Spark SQL's (see docs/language.md).

Most predicates of most subscriptions are `attribute operator literal`. One regular expression takes
such a predicate in a single step, and a table remembers the node it made: rules that share predicates
share nodes from the start.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NoReturn

from tamis.errors import (
    ArityError,
    ExpressionSyntaxError,
    LanguageError,
    LimitError,
    LiteralError,
    TypeMismatchError,
    UnknownFunctionError,
    did_you_mean,
)
from tamis.language import dialects, literals, patterns
from tamis.language.checking import check, check_size
from tamis.language.expressions import (
    FALSE,
    TRUE,
    UNKNOWN,
    And,
    AtLeast,
    Attribute,
    Between,
    Call,
    Compare,
    Condition,
    Expression,
    In,
    IsA,
    IsNull,
    Like,
    Literal,
    Not,
    Or,
    RLike,
    Scalar,
    Test,
    Xor,
    as_condition,
)
from tamis.language.functions import FUNCTIONS, callable_names, function_of, in_use, is_callable
from tamis.language.limits import DEFAULT_LIMITS, Limits
from tamis.language.measures import size
from tamis.language.precedence import AND, COMPARISON, FRAME, NOT, OR, PREDICATE, PRIMARY, SIGN, XOR
from tamis.language.tokens import NUMBER, RESERVED, STRING, Token, next_token, opens_case, string_value
from tamis.language.values import kind_of

if TYPE_CHECKING:
    from tamis.language.functions import Functions
    from tamis.language.schema import Schema

_CONNECTIVES = {"OR": (OR, Or), "XOR": (XOR, Xor), "AND": (AND, And)}
_COMPARISONS = frozenset({"=", "<>", "<", "<=", ">", ">=", "<=>"})
_ARITHMETIC = {
    row.symbol: (row.binding, row.name)
    for row in FUNCTIONS.values()
    if row.symbol and len(row.takes) == 2 and row.binding < PRIMARY
}
_PREDICATES = frozenset({"NOT", "BETWEEN", "IN", "LIKE", "RLIKE", "IS"})

# A predicate on one attribute with plain literals, and nothing behind it that could bind tighter.
_PLAIN = r"(?:-?[0-9][0-9.]*+|'[^'\\]*+')"
_SIMPLE = re.compile(
    rf"""\s*+([A-Za-z_]\w*+(?:\.[A-Za-z_]\w*+)*+)\s*+(?:
      (<=>|<=|>=|<>|!=|==?|<|>)\s*+({_PLAIN})
    | (?i:(NOT\s++)?+(?:
        BETWEEN\s++({_PLAIN})\s++AND\s++({_PLAIN})
      | IN\s*+\(\s*+({_PLAIN}(?:\s*+,\s*+{_PLAIN})*+)\s*+\)
      | LIKE\s++('[^'\\]*+')))
    | (?i:IS\s++(NOT\s++)?+(NULL))
    )(?=\s*+(?:\)|AND\b|OR\b|and\b|or\b|THEN\b|WHEN\b|ELSE\b|END\b|\Z))""",
    re.VERBOSE,
)
_AFTER = re.compile(r"\s*+(AND\b|OR\b|and\b|or\b|\))")
_CONNECTIVE_KINDS = {"AND": "AND", "and": "AND", "OR": "OR", "or": "OR"}
_LITERAL = rf"(?:[+-]?{NUMBER}|{STRING})"
_LITERAL_LIST = re.compile(rf"\s*+\(\s*+({_LITERAL}(?:\s*+,\s*+{_LITERAL})*+)\s*+\)", re.DOTALL)
_LISTED = re.compile(rf"\s*+({_LITERAL})\s*+,?+", re.DOTALL)

_CASE_WORDS = {
    "CASE": ("WHEN",),
    "WHEN": ("THEN",),
    "THEN": ("WHEN", "ELSE", "END"),
    "ELSE": ("END",),
}
"""Which words may follow an operand, by the word before it, inside CASE."""
_INSIDE_CASE = frozenset({"WHEN", "THEN", "ELSE", "END"})
_CASE_HINT = "Write CASE WHEN signed THEN 2 ELSE 0 END."

_REMEMBERED = 1 << 16
_simple_predicates: dict[str, Expression] = {}
_attributes: dict[str, Attribute] = {}


def parse(
    text: str,
    schema: Schema | None = None,
    *,
    limits: Limits = DEFAULT_LIMITS,
    functions: Functions | None = None,
) -> Expression:
    """Return the expression that a text says; with a schema, names and types are checked too.

    `functions` are those of the host that the text may call; without them, those in use, or else those of the schema.

    >>> str(parse("price<20 and not (sold or bids>=3)"))
    'price < 20 AND NOT (sold OR bids >= 3)'
    """
    return _parsed(text, schema, limits, functions, is_term=False)


def parse_term(
    text: str,
    schema: Schema | None = None,
    *,
    limits: Limits = DEFAULT_LIMITS,
    functions: Functions | None = None,
) -> Expression:
    """Return the term that a text says: a value, such as what events are ranked by.

    >>> str(parse_term("2*price+shipping"))
    '2 * price + shipping'
    """
    return _parsed(text, schema, limits, functions, is_term=True)


def _parsed(
    text: str, schema: Schema | None, limits: Limits, functions: Functions | None, *, is_term: bool
) -> Expression:
    if not isinstance(text, str):
        raise TypeError(f"an expression's text must be a str, not {type(text).__name__}")
    if len(text) > limits.text_length:
        raise LimitError("text_length", limits.text_length, f"{len(text):,} characters")
    if not text.isascii():
        _check_unicode(text)
    if functions is None:
        functions = in_use()
        if not functions and schema is not None:
            functions = schema.functions
    parser = _Parser(text, limits, functions, is_term=is_term)
    expression = parser.run()
    if schema is None and parser.is_plain:
        return expression
    try:
        check(expression, schema)
    except LanguageError as error:
        raise _placed(error, text, schema, limits, functions, is_term) from None
    return expression


def _check_unicode(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ExpressionSyntaxError(
            "half a surrogate pair is not a character",
            text=text,
            position=error.start,
            hint="The text is not valid Unicode.",
        ) from None


def _placed(
    error: LanguageError, text: str, schema: Schema | None, limits: Limits, functions: Functions, is_term: bool
) -> LanguageError:
    """Find the place of a checker's error: read the text again, remembering where each node came from."""
    parser = _Parser(text, limits, functions, places={}, is_term=is_term)
    expression = parser.run()
    try:
        check(expression, schema)
    except LanguageError as again:
        again.text = text
        again.position = (parser.places or {}).get(id(again.__dict__.pop("node", None)), 0)
        return again
    return error


class _Pending:
    """An operator that waits for its operands, or a frame that waits for its closing parenthesis."""

    __slots__ = ("base", "count", "kind", "precedence", "start")

    def __init__(self, precedence: int, kind: str, start: int, base: int = 0) -> None:
        self.precedence = precedence
        self.kind = kind
        self.start = start
        self.base = base  # how many operands stood before it
        self.count = 2  # how many operands a connective has so far


class _Parser:
    def __init__(
        self,
        text: str,
        limits: Limits,
        functions: Functions,
        places: dict[int, int] | None = None,
        *,
        is_term: bool = False,
    ) -> None:
        self.text = text
        self.functions = functions
        self.is_term = is_term  # the whole is a value, not a condition
        self.limits = limits
        self.places = places
        # What is remembered was checked against the default limits, and comes from no particular place.
        self.is_quick = limits is DEFAULT_LIMITS and places is None
        self.position = 0
        self.operands: list[Expression] = []
        self.starts: list[int] = []
        self.operators: list[_Pending] = [_Pending(FRAME, "start", 0)]
        self.nesting = 0
        self.steps = 0  # bounds the nodes and, with the nesting, the depth of the result
        self.is_plain = True  # no node yet that the checker could refuse without a schema
        self.is_closed = False  # the operand on top is a predicate such as `a IS NULL`, which ends a comparison

    # -- The loop: operand, operator, operand, ...

    def run(self) -> Expression:
        while True:
            while not self.read_operand():
                pass
            while not self.read_operator():
                if self.operators[-1].kind == "end":
                    return self.finished()

    def finished(self) -> Expression:
        expression = self.operands[0]
        if not self.is_term:
            expression = self.condition(expression, self.starts[0])
        elif isinstance(expression, Condition):
            raise TypeMismatchError(
                "a condition stands where a value is expected", text=self.text, position=self.starts[0]
            )
        bound = self.steps + self.nesting
        if bound > self.limits.depth or bound > self.limits.nodes:
            try:
                check_size(expression, self.limits)
            except LimitError as error:
                error.text, error.position = self.text, 0
                raise
        return expression

    def push(self, node: Expression, start: int) -> None:
        self.operands.append(node)
        self.starts.append(start)
        self.steps += 1
        if self.places is not None:
            self.places[id(node)] = start

    def pop(self) -> tuple[Expression, int]:
        return self.operands.pop(), self.starts.pop()

    def take(self) -> Token:
        token = next_token(self.text, self.position)
        self.position = token.end
        return token

    def peek(self) -> Token:
        return next_token(self.text, self.position)

    # -- Operands

    def read_operand(self) -> bool:
        """Read an operand, or what may stand before one. Return whether the operand is complete."""
        self.is_closed = False
        if self.is_quick and self.operators[-1].precedence <= NOT:
            predicate_match = _SIMPLE.match(self.text, self.position)
            if predicate_match:
                node = _simple_predicates.get(predicate_match[0])
                if node is None:
                    node = _simple_predicate(predicate_match)
                if node is not None:
                    self.position = predicate_match.end()
                    self.operands.append(node)
                    self.starts.append(predicate_match.start(1))
                    self.steps += 4
                    self.is_closed = type(node) is not Compare
                    return True
        token = self.take()
        start = token.start
        match token.kind:
            case "name":
                return self.read_name(token)
            case "number":
                self.push(Literal(self.placed(start, literals.number, token.text)), start)
            case "string":
                self.push(Literal(self.string(token)), start)
            case "(":
                self.open("(", start)
                return False
            case "quoted":
                self.push(self.attribute(token), start)
            case "TRUE" | "FALSE" | "NULL":
                self.push({"TRUE": TRUE, "FALSE": FALSE, "NULL": UNKNOWN}[token.kind], start)
            case "NOT":
                if self.operators[-1].precedence > NOT:
                    self.fail(token, ("a value",), hint="Put a NOT that is compared into parentheses.")
                self.open("NOT", start, NOT)
                return False
            case "-" | "+":
                return self.read_sign(token)
            case "XOR" if self.peek().kind == "(":
                return self.read_name(token)
            case ")" if self.operators[-1].kind == "array" and self.operators[-1].base == len(self.operands):
                self.close_call(self.operators.pop())
            case _:
                is_value = self.is_term or self.operators[-1].precedence > NOT
                self.fail(token, ("a value",) if is_value else ("a condition",))
        return True

    def read_sign(self, token: Token) -> bool:
        following = self.peek()
        if following.kind == "number":
            self.take()
            sign = "-" if token.kind == "-" else ""
            self.push(Literal(self.placed(following.start, literals.number, sign + following.text)), token.start)
            return True
        self.open("negate" if token.kind == "-" else "plus", token.start, SIGN)
        return False

    def read_name(self, token: Token) -> bool:
        following = self.peek()
        if opens_case(self.text, token):
            self.open_case(token, following)
            return False
        if following.kind == "(":
            self.open_call(token)
            self.take()
            return False
        if following.kind == "string" and token.text.upper() in ("DATE", "TIMESTAMP"):
            read = literals.date if token.text.upper() == "DATE" else literals.timestamp
            self.push(Literal(self.placed(following.start, read, self.string(self.take()))), token.start)
        elif following.kind == ".":
            self.push(self.attribute(token), token.start)
        else:
            self.push(_attribute(token.text) if self.places is None else _new_attribute(token.text), token.start)
        return True

    def open_case(self, token: Token, following: Token) -> None:
        self.open("CASE", token.start)
        self.operators[-1].count = 0  # no value yet that every WHEN is compared with
        if following.kind == "name" and following.text.upper() == "WHEN":
            self.take()
            self.operators[-1].kind = "WHEN"

    def attribute(self, token: Token) -> Attribute:
        """A name with back-quoted parts or spaces around its dots."""
        path = self.name_parts(token)
        while self.peek().kind == ".":
            self.take()
            part = self.take()
            if part.kind not in ("name", "quoted") and part.text.upper() not in RESERVED:
                self.fail(part, ("a name",))
            path += self.name_parts(part)
        return Attribute(path)

    def name_parts(self, token: Token) -> tuple[str, ...]:
        if token.kind != "quoted":
            return tuple(token.text.split("."))
        name = token.text[1:-1].replace("``", "`")
        if not name:
            self.fail(token, ("a name",))
        return (name,)

    def string(self, token: Token) -> str:
        """A text; adjacent ones are joined, as in Spark SQL."""
        whole = ""
        while True:
            try:
                whole += string_value(token.text)
                whole.encode()
            except ValueError as error:
                raise LiteralError(
                    f"this text is not valid Unicode ({error})", text=self.text, position=token.start
                ) from None
            if self.peek().kind != "string":
                return whole
            token = self.take()

    # -- Operators

    def read_operator(self) -> bool:
        """Read what stands behind an operand. Return whether an operand is due next."""
        operator_match = _AFTER.match(self.text, self.position)
        if operator_match:
            self.position = operator_match.end()
            kind = _CONNECTIVE_KINDS.get(operator_match[1])
            if kind is not None:
                return self.read_connective(kind, operator_match.start(1))
            self.close(operator_match.start(1))
            return False
        token = self.take()
        kind = token.kind
        if kind in _CONNECTIVES:
            return self.read_connective(kind, token.start)
        if kind in _COMPARISONS:
            self.open_operand(token, COMPARISON)
            self.operators.append(_Pending(COMPARISON, kind, token.start))
            return True
        if kind == "end":
            self.read_end(token)
        elif kind == ",":
            return self.read_comma(token)
        elif kind in _PREDICATES:
            return self.read_predicate(token)
        elif kind == "name" and token.text.upper() in _INSIDE_CASE:
            return self.read_case_word(token)
        elif kind in _ARITHMETIC:
            self.open_operand(token, _ARITHMETIC[kind][0])
            self.operators.append(_Pending(_ARITHMETIC[kind][0], kind, token.start))
            return True
        else:
            self.fail(token, ("AND", "OR", "an operator"), hint=_operator_hint(token))
        return False

    def open_operand(self, token: Token, precedence: int) -> None:
        """Make the operand on the left of an operator complete."""
        if self.is_closed:
            self.fail(token, ("AND", "OR"), hint="Put the condition on the left into parentheses.")
        self.reduce(precedence)

    def read_connective(self, kind: str, start: int) -> bool:
        top = self.operators[-1]
        if top.precedence >= PREDICATE:
            self.reduce(COMPARISON)
            top = self.operators[-1]
            if top.kind == "BETWEEN" and kind == "AND":
                top.kind = "BETWEEN AND"
                return True
        precedence = _CONNECTIVES[kind][0]
        if top.precedence > precedence:
            self.reduce(precedence + 1)
            top = self.operators[-1]
        if not isinstance(self.operands[-1], Condition):
            self.operands[-1] = self.condition(self.operands[-1], self.starts[-1])
        if top.kind == kind:
            top.count += 1
        else:
            self.operators.append(_Pending(precedence, kind, start))
        return True

    def read_predicate(self, token: Token) -> bool:
        """Read BETWEEN, IN, LIKE, RLIKE or IS, negated or not. Return whether an operand is due next."""
        self.open_operand(token, COMPARISON)
        if self.operators[-1].precedence == PREDICATE:
            self.fail(token, ("AND", "OR"), hint="Put the condition on the left into parentheses.")
        is_negated = token.kind == "NOT"
        if is_negated:
            token = self.take()
        if token.kind == "BETWEEN":
            self.operators.append(_Pending(PREDICATE, "BETWEEN", token.start, base=int(is_negated)))
            return True
        value, start = self.pop()
        match token.kind:
            case "IN":
                return self.read_in(value, start, is_negated)
            case "LIKE":
                self.finish_predicate(self.read_like(value), start, is_negated)
            case "RLIKE":
                pattern = self.pattern()
                self.placed(pattern[1], patterns.check_regex, pattern[0], self.limits)
                self.finish_predicate(RLike(value, pattern[0]), start, is_negated)
            case "IS" if not is_negated:
                return self.read_is(value, start)
            case _:
                self.fail(token, ("BETWEEN", "IN", "LIKE", "RLIKE"), hint=_operator_hint(token))
        return False

    def finish_predicate(self, node: Expression, start: int, is_negated: bool) -> None:
        if self.places is not None:
            self.places[id(node)] = start
        self.push(Not(node) if is_negated else node, start)
        self.is_plain = False
        self.is_closed = True

    def read_like(self, value: Expression) -> Like:
        pattern, start = self.pattern()
        escape = "\\"
        if self.peek().kind == "ESCAPE":
            self.take()
            escape, _ = self.pattern()
        self.placed(start, patterns.check_like, pattern, escape, self.limits)
        return Like(value, pattern, escape)

    def pattern(self) -> tuple[str, int]:
        token = self.take()
        if token.kind != "string":
            self.fail(token, ("a text in quotes",), hint="A pattern is a literal, so that it can be compiled once.")
        return self.string(token), token.start

    def read_is(self, value: Expression, start: int) -> bool:
        token = self.take()
        is_negated = token.kind == "NOT"
        if is_negated:
            token = self.take()
        word = token.text.upper()
        if word == "NULL" or word == "UNKNOWN":
            self.finish_predicate(IsNull(value), start, is_negated)
        elif word == "TRUE" or word == "FALSE":
            self.finish_predicate(Compare("<=>", value, TRUE if word == "TRUE" else FALSE), start, is_negated)
        elif word == "A" and self.peek().kind == "string":
            self.finish_predicate(IsA(value, self.string(self.take())), start, is_negated)
        elif word == "DISTINCT" and self.peek().text.upper() == "FROM":
            self.take()
            self.push(value, start)
            self.operators.append(_Pending(PREDICATE, "DISTINCT", token.start, base=int(not is_negated)))
            return True
        else:
            self.fail(token, ("NULL", "TRUE", "FALSE", "UNKNOWN", "A 'type'", "DISTINCT FROM"))
        return False

    def read_in(self, value: Expression, start: int, is_negated: bool) -> bool:
        """Read a list of literals at one go; anything else in the list is read as usual."""
        list_match = _LITERAL_LIST.match(self.text, self.position)
        if list_match:
            members = self.listed(list_match.start(1), list_match.end(1))
            self.position = list_match.end()
            self.finish_predicate(In(value, members), start, is_negated)
            return False
        token = self.take()
        if token.kind != "(":
            self.fail(token, ("(",), hint=_array_hint(token, value, is_negated))
        if self.peek().kind == ")":
            self.fail(self.take(), ("at least one value",))
        self.push(value, start)
        self.open("NOT IN" if is_negated else "IN", token.start)
        return True

    def listed(self, position: int, end: int) -> tuple[Scalar, ...]:
        members: list[Scalar] = []
        for member in _LISTED.finditer(self.text, position, end):
            if len(members) >= self.limits.list_length:
                raise LimitError("list_length", self.limits.list_length, "more", text=self.text, position=position)
            piece, start = member[1], member.start(1)
            if piece[-1] in "'\"":
                members.append(self.string_alone(piece, start))
            else:
                members.append(self.placed(start, literals.number, piece))
        return tuple(members)

    def string_alone(self, piece: str, start: int) -> str:
        if "\\" not in piece and piece.isascii() and "''" not in piece and '""' not in piece and piece[0] in "'\"":
            return piece[1:-1]
        return self.string(Token("string", piece, start, start + len(piece)))

    def read_comma(self, token: Token) -> bool:
        self.reduce(FRAME + 1)
        if self.operators[-1].kind in _CASE_WORDS:
            self.fail(token, _CASE_WORDS[self.operators[-1].kind], hint=_CASE_HINT)
        if self.operators[-1].kind in ("(", "start"):
            self.fail(token, (")",) if self.operators[-1].kind == "(" else ("AND", "OR", "the end"))
        if len(self.operands) - self.operators[-1].base > self.limits.list_length:
            raise LimitError("list_length", self.limits.list_length, "more", text=self.text, position=token.start)
        return True

    def read_case_word(self, token: Token) -> bool:
        """Read WHEN, THEN, ELSE or END behind an operand. Return whether an operand is due next."""
        word = token.text.upper()
        self.reduce(FRAME + 1)
        frame = self.operators[-1]
        if word not in _CASE_WORDS.get(frame.kind, ()):
            expected = _CASE_WORDS.get(frame.kind) or ("AND", "OR", "an operator")
            self.fail(token, expected, hint=_CASE_HINT if frame.kind in _CASE_WORDS else _operator_hint(token))
        if frame.kind == "CASE":
            frame.count = 1
        elif frame.kind == "WHEN" and frame.count:  # `CASE a WHEN b` is `CASE WHEN a = b`, as in Spark SQL
            self.operands[-1] = Compare("=", self.operands[frame.base], self.operands[-1])
            if self.places is not None:
                self.places[id(self.operands[-1])] = self.starts[-1]
        frame.kind = word
        if word != "END":
            return True
        self.operators.pop()
        self.is_closed = self.is_plain = False
        subject, arguments = self.operands[frame.base], self.arguments(frame)[frame.count :]
        if frame.count:  # which is there once for every WHEN
            self.steps += len(arguments) // 2 * (size(subject) + 1)
        self.push(Call("case", arguments), frame.start)
        return False

    def read_end(self, token: Token) -> None:
        self.reduce(FRAME + 1)
        frame = self.operators[-1]
        if frame.kind in _CASE_WORDS:
            self.fail(token, _CASE_WORDS[frame.kind], hint=_CASE_HINT)
        if frame.kind != "start":
            self.fail(
                token, (")",), hint=f"The parenthesis of column {_column(self.text, frame.start)} is never closed."
            )
        self.operators.append(_Pending(FRAME, "end", token.start))

    # -- Frames

    def open(self, kind: str, start: int, precedence: int = FRAME) -> None:
        self.nesting += 1
        # Nothing that is open can be closed without having been counted, so this bounds the stacks.
        if len(self.operators) > 4 * self.limits.depth or (
            len(self.operators) > self.limits.depth
            and sum(waiting.precedence in (FRAME, NOT, SIGN) for waiting in self.operators) > self.limits.depth
        ):
            raise LimitError("depth", self.limits.depth, "more", text=self.text, position=start)
        self.operators.append(_Pending(precedence, kind, start, base=len(self.operands)))

    def open_call(self, token: Token) -> None:
        name = token.text.lower()
        if not is_callable(name) and name not in self.functions:
            raise UnknownFunctionError(
                f"there is no function {token.text}",
                text=self.text,
                position=token.start,
                hint=dialects.FUNCTIONS.get(name)
                or did_you_mean(name, (*callable_names(), *self.functions))
                or f"`tamis language` lists the functions{self._of_host()}.",
            )
        self.open(name, token.start)

    def _of_host(self) -> str:
        return f"; those of this host are {', '.join(sorted(self.functions))}" if self.functions else ""

    def close(self, start: int) -> None:
        self.reduce(FRAME + 1)
        frame = self.operators.pop()
        if frame.kind == "start":
            self.operators.append(frame)
            self.fail(
                Token(")", ")", start, start + 1), ("AND", "OR", "the end"), hint="This parenthesis was never opened."
            )
        if frame.kind in _CASE_WORDS:
            self.fail(Token(")", ")", start, start + 1), _CASE_WORDS[frame.kind], hint=_CASE_HINT)
        self.is_closed = False
        if frame.kind == "(":
            self.starts[-1] = frame.start
        elif frame.kind in ("IN", "NOT IN"):
            self.close_in(frame)
        else:
            self.close_call(frame)

    def arguments(self, frame: _Pending) -> tuple[Expression, ...]:
        operands = tuple(self.operands[frame.base :])
        del self.operands[frame.base :]
        del self.starts[frame.base :]
        return operands

    def close_in(self, frame: _Pending) -> None:
        """`a IN (b, 1)` is `a = b OR a IN (1)`, and with literals only it is a list of them."""
        members = self.arguments(frame)
        value, start = self.pop()
        constants = tuple(member.value for member in members if isinstance(member, Literal))
        node: Expression = In(value, constants)
        if len(constants) < len(members):
            others: list[Expression] = [
                Compare("=", value, member) for member in members if not isinstance(member, Literal)
            ]
            choices = (*others, node) if constants else tuple(others)
            node = Or(choices) if len(choices) > 1 else choices[0]
        self.finish_predicate(node, start, frame.kind == "NOT IN")

    def close_call(self, frame: _Pending) -> None:
        starts = self.starts[frame.base :]
        arguments = self.arguments(frame)
        name = frame.kind
        self.is_plain = False
        if name == "xor":
            self.push(self.xor(arguments, starts, frame.start), frame.start)
        elif name == "at_least":
            self.push(self.at_least(arguments, starts, frame.start), frame.start)
        elif name == "double":
            self.push(self.double(arguments, frame.start), frame.start)
        else:
            if name in self.functions:
                name = self.functions[name].node_name
            function = function_of(name)
            if not function.accepts(len(arguments)):
                self.wrong_arity(name, function.signature, len(arguments), frame.start)
            self.placed(frame.start, function.check, arguments)
            self.push((Test if function.is_test else Call)(name, arguments), frame.start)

    def xor(self, arguments: tuple[Expression, ...], starts: list[int], start: int) -> Xor:
        if len(arguments) < 2:
            self.wrong_arity("xor", "xor(condition, condition, …)", len(arguments), start)
        return Xor(tuple(map(self.condition, arguments, starts)))

    def at_least(self, arguments: tuple[Expression, ...], starts: list[int], start: int) -> AtLeast:
        if len(arguments) < 2:
            self.wrong_arity("at_least", "at_least(count, condition, …)", len(arguments), start)
        count, *conditions = arguments
        if not isinstance(count, Literal) or type(count.value) is not int or count.value < 0:
            raise TypeMismatchError(
                "at_least takes a count that is a whole number of at least 0",
                text=self.text,
                position=starts[0],
                hint="Write at_least(2, a = 1, b = 2, c = 3).",
            )
        return AtLeast(count.value, tuple(map(self.condition, conditions, starts[1:])))

    def double(self, arguments: tuple[Expression, ...], start: int) -> Literal:
        if len(arguments) != 1 or not isinstance(arguments[0], Literal) or not isinstance(arguments[0].value, str):
            raise TypeMismatchError(
                "double takes one text", text=self.text, position=start, hint="Write double('NaN'), or 5D for a number."
            )
        return Literal(self.placed(start, literals.special_double, arguments[0].value))

    # -- Reduction: operators that bind at least this tightly get their operands

    def reduce(self, precedence: int) -> None:
        operators = self.operators
        while operators[-1].precedence >= precedence:
            pending = operators.pop()
            kind = pending.kind
            if kind in _CONNECTIVES:
                if not isinstance(self.operands[-1], Condition):
                    self.operands[-1] = self.condition(self.operands[-1], self.starts[-1])
                first = len(self.operands) - pending.count
                node = _CONNECTIVES[kind][1](tuple(self.operands[first:]))
                del self.operands[first:]
                start = self.starts[first]
                del self.starts[first:]
                self.push(node, start)
            elif kind == "NOT":
                operand, start = self.pop()
                self.push(Not(self.condition(operand, start)), pending.start)
            elif kind == "plus":
                self.is_plain = False
                self.starts[-1] = pending.start
            elif kind == "negate":
                operand, _ = self.pop()
                self.push(Call("negate", (operand,)), pending.start)
                self.is_plain = False
            elif kind == "BETWEEN":
                self.fail(self.last_token(), ("AND",), hint="BETWEEN takes two ends: x BETWEEN 1 AND 5.")
            else:
                self.reduce_values(pending)

    def reduce_values(self, pending: _Pending) -> None:
        right, _ = self.pop()
        left, start = self.pop()
        self.is_plain = False
        match pending.kind:
            case "BETWEEN AND":
                value, start = self.pop()
                self.finish_predicate(Between(value, left, right), start, bool(pending.base))
            case "DISTINCT":
                self.finish_predicate(Compare("<=>", left, right), start, bool(pending.base))
            case kind if kind in _COMPARISONS:
                self.push(Compare(kind, left, right), start)
            case kind:
                self.push(Call(_ARITHMETIC[kind][1], (left, right)), start)

    # -- Errors

    def condition(self, node: Expression, start: int) -> Expression:
        """Return what an operand says where a condition is expected."""
        condition = as_condition(node)
        if condition is not None:
            if condition is not node:
                self.steps += 2
                if self.places is not None:
                    self.places[id(condition)] = start
            return condition
        kind = "a text" if isinstance(node, Literal) and isinstance(node.value, str) else "a value"
        raise TypeMismatchError(
            f"{kind} stands where a condition is expected",
            text=self.text,
            position=start,
            hint="Compare it with something: price < 20.",
        )

    def placed(self, start: int, function: Any, *arguments: Any) -> Any:
        """Call a function whose error should point at a place of the text."""
        try:
            return function(*arguments)
        except LanguageError as error:
            error.text, error.position = self.text, start
            raise

    def wrong_arity(self, name: str, signature: str, count: int, start: int) -> NoReturn:
        raise ArityError(
            f"{name} does not take {count} argument{'' if count == 1 else 's'}",
            text=self.text,
            position=start,
            hint=f"It is {signature}.",
        )

    def last_token(self) -> Token:
        """The token that made a reduction necessary: the last one before the position."""
        start = self.starts[-1]
        token = next_token(self.text, start)
        while token.end < self.position:
            token = next_token(self.text, token.end)
        return token

    def fail(self, token: Token, expected: tuple[str, ...], hint: str | None = None) -> NoReturn:
        shown = "the end of the text" if token.kind == "end" else token.text
        if len(shown) > 40:
            shown = f"{shown[:37]}..."
        raise ExpressionSyntaxError(
            f"found {shown}", text=self.text, position=token.start, expected=expected, hint=hint
        )


def _attribute(name: str) -> Attribute:
    return _attributes.get(name) or _new_attribute(name)


def _new_attribute(name: str) -> Attribute:
    attribute = Attribute(tuple(name.split(".")))
    if len(_attributes) >= _REMEMBERED:
        _attributes.clear()
    _attributes[name] = attribute
    return attribute


def _simple_predicate(match: re.Match[str]) -> Expression | None:
    """Make and remember the node of a simple predicate; None where it is not that simple after all."""
    name, operator, operand, negation, low, high, members, pattern, is_not, null = match.groups()
    if name.upper() in RESERVED:
        return None
    attribute = _attribute(name)
    node: Expression
    try:
        if operator:
            node = Compare(_SAME_OPERATOR.get(operator, operator), attribute, Literal(_plain_value(operand)))
        elif low:
            node = Between(attribute, Literal(_plain_value(low)), Literal(_plain_value(high)))
            if kind_of(node.low.value) != kind_of(node.high.value):  # type: ignore[attr-defined]
                return None
        elif members:
            if len(members) > _LONGEST_LIST:
                return None
            node = In(attribute, tuple(map(_plain_value, _PLAIN_MEMBERS.findall(members))))
        elif null:
            node = IsNull(attribute)
        else:
            text = _plain_value(pattern)
            assert isinstance(text, str)
            patterns.check_like(text, "\\", DEFAULT_LIMITS)
            node = Like(attribute, text)
    except (LanguageError, ValueError):
        return None  # the long way finds the place of the mistake
    if negation or is_not:
        node = Not(node)
    if len(_simple_predicates) >= _REMEMBERED:
        _simple_predicates.clear()
    _simple_predicates[match[0]] = node
    return node


_SAME_OPERATOR = {"!=": "<>", "==": "="}
_PLAIN_MEMBERS = re.compile(_PLAIN)
_LONGEST_LIST = 1_000


def _plain_value(piece: str) -> Scalar:
    return piece[1:-1] if piece[0] == "'" else literals.number(piece)


def _operator_hint(token: Token) -> str | None:
    if token.kind in ("number", "string"):
        return "An operator is missing before it."
    if token.kind == "name" and token.text.lower() in dialects.OPERATORS:
        return dialects.OPERATORS[token.text.lower()]
    if token.kind == "name":
        return did_you_mean(token.text.upper(), ("AND", "OR", "XOR", "NOT", "LIKE", "RLIKE", "BETWEEN", "IS", "IN"))
    return None


def _array_hint(token: Token, value: Expression, is_negated: bool) -> str | None:
    """Say what to write where IN is followed by a name, which may be an array's."""
    if token.kind != "name":
        return "IN takes a list: category IN ('Thriller', 'Crime')."
    negated = "NOT " if is_negated else ""
    return (
        f"IN takes a list in parentheses. If {token.text} is an array: {negated}array_contains({token.text}, {value})."
    )


def _column(text: str, position: int) -> int:
    return position - text.rfind("\n", 0, position)
