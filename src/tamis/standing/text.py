"""How does a text become a sequence or a change?

    SEQUENCE step [AS name] [SAME OR] THEN step [AS name] ... [AFTER span] [WITHIN span] [PER attribute, ...]
        [TAKING LATEST | FIRST | EVERY | EACH ONCE]
    SEQUENCE step ... THEN NOT condition WITHIN span ...
    CHANGE TO | OF condition [UNTIL condition] [PER attribute, ...] [WHERE condition] [FORGET AFTER span]

Conditions are the language's own, and are read by its parser. As with ranked subscriptions, what is new is only where
they end: a name that stands where an operator should is the next keyword, because no operator is a name. So all of
these words remain names that attributes may have. Behind the steps, or behind the first condition, clauses may stand in
any order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from tamis.errors import ExpressionSyntaxError, LanguageError, LimitError
from tamis.language.expressions import TRUE, And, Attribute, Or, Xor
from tamis.language.limits import DEFAULT_LIMITS, Limits
from tamis.language.parser import parse, parse_term
from tamis.language.tokens import Token, next_token, opens_case
from tamis.standing.change import Change
from tamis.standing.errors import StandingFormError
from tamis.standing.sequence import TAKING, Sequence, Step, named
from tamis.topk.windows import TimeWindow, window_in_units

if TYPE_CHECKING:
    from collections.abc import Callable

    from tamis.language.expressions import Expression
    from tamis.language.schema import Schema
    from tamis.standing.groups import Paths

_ENDS_OPERAND = frozenset({"name", "quoted", "number", "string", ")", "TRUE", "FALSE", "NULL"})
_STARTS_OPERAND = _ENDS_OPERAND - {")"} | {"("}
_BEHIND_NOT = frozenset({"IN", "LIKE", "RLIKE", "BETWEEN"})
_LITERALS = frozenset({"string", "quoted", "number", "end"})
_SEQUENCE_HINT = "Write SEQUENCE kind = 'order' THEN kind = 'payment' WITHIN 1 HOUR PER customer."
_CHANGE_HINT = "Write CHANGE TO price > 30 UNTIL price < 28 PER symbol."
_Made = TypeVar("_Made")


def is_sequence(text: str) -> bool:
    """Does the text ask for a sequence? A condition may start with an attribute `sequence`, but not so.

    >>> is_sequence("SEQUENCE a = 1 THEN b = 2"), is_sequence("sequence = 5"), is_sequence("sequence NOT IN (1, 2)")
    (True, False, False)
    """
    try:
        first = next_token(text, 0)
        if first.kind != "name" or first.text.upper() != "SEQUENCE":
            return False
        second = next_token(text, first.end)
        if second.kind == "NOT":
            return next_token(text, second.end).kind not in _BEHIND_NOT
        return second.kind in _STARTS_OPERAND or (second.kind.isalpha() and second.text.upper() == "CASE")
    except LanguageError:
        return False


def is_change(text: str) -> bool:
    """Does the text ask for a change? A condition may start with an attribute `change`, but not so.

    >>> is_change("CHANGE TO price > 30"), is_change("change > 5")
    (True, False)
    """
    try:
        first = next_token(text, 0)
        second = next_token(text, first.end)
        return (
            first.kind == "name"
            and first.text.upper() == "CHANGE"
            and second.kind == "name"
            and second.text.upper() in ("TO", "OF")
        )
    except LanguageError:
        return False


def parse_sequence(text: str, schema: Schema | None = None, *, limits: Limits = DEFAULT_LIMITS) -> Sequence:
    """Return the sequence that a text says.

    >>> print(parse_sequence("sequence a = 1 then b = 2 per user within 300 seconds"))
    SEQUENCE a = 1 THEN b = 2 WITHIN 5 MINUTES PER user
    >>> parse_sequence("SEQUENCE a = 1 WITHIN 5 MINUTES")
    Traceback (most recent call last):
        ...
    tamis.errors.ExpressionSyntaxError: line 1, column 16: found WITHIN, expected THEN
      SEQUENCE a = 1 WITHIN 5 MINUTES
                     ^
      Write SEQUENCE kind = 'order' THEN kind = 'payment' WITHIN 1 HOUR PER customer.
    """
    return _TextReader(text, schema, limits, _SEQUENCE_HINT).sequence()


def parse_change(text: str, schema: Schema | None = None, *, limits: Limits = DEFAULT_LIMITS) -> Change:
    """Return the change that a text says.

    >>> print(parse_change("change to price>30 where exchange='NYSE' per symbol"))
    CHANGE TO price > 30 PER symbol WHERE exchange = 'NYSE'
    """
    return _TextReader(text, schema, limits, _CHANGE_HINT).change()


class _TextReader:
    def __init__(self, text: str, schema: Schema | None, limits: Limits, hint: str) -> None:
        if not isinstance(text, str):
            raise TypeError(f"a subscription's text is a str, not {type(text).__name__}")
        if len(text) > limits.text_length:
            raise LimitError("text_length", limits.text_length, f"{len(text):,} characters")
        self.text = text
        self.schema = schema
        self.known = schema
        """The schema with the names of the steps so far."""
        self.limits = limits
        self.hint = hint
        self.token = next_token(text, 0)

    # -- Sequences

    def sequence(self) -> Sequence:
        start = self.token.start
        self.keyword("SEQUENCE")
        steps = [self.step(is_same=False)]
        while self.is_word("THEN", "SAME"):
            is_same = self.is_word("SAME")
            if is_same:
                self.next()
                if self.token.kind != "OR":
                    self.fail(("OR THEN",))
                self.next()
            self.keyword("THEN")
            steps.append(self.step(is_same=is_same) if self.token.kind != "NOT" else self.absence(is_same))
            if steps[-1].is_absent:
                break
        if len(steps) == 1:
            self.fail(("THEN",))
        clauses = self.clauses(
            {"AFTER": self.span, "WITHIN": self.span, "PER": self.attributes, "TAKING": self.taking},
        )
        return self.placed_at(
            start,
            lambda: Sequence(
                steps,
                after=clauses.get("AFTER"),
                within=clauses.get("WITHIN"),
                per=clauses.get("PER", ()),
                taking=clauses.get("TAKING", "LATEST"),
            ),
        )

    def step(self, *, is_same: bool) -> Step:
        condition = self.condition()
        name = None
        if self.is_word("AS"):
            self.next()
            token = self.token
            if token.kind not in ("name", "quoted") or (token.kind == "name" and "." in token.text):
                self.fail(("a name without dots",))
            name = token.text if token.kind == "name" else token.text[1:-1].replace("``", "`")
            if self.schema is not None and self.known is not None:
                known, schema = self.known, self.schema
                self.known = self.placed_at(token.start, lambda: named(known, name, schema))
            self.next()
        return self.placed_at(self.token.start, lambda: Step(condition, name, is_same=is_same))

    def absence(self, is_same: bool) -> Step:
        if is_same:
            self.fail(("a step",), hint="What does not happen is not the event before: write THEN NOT.")
        self.next()
        start = self.token
        condition = self.condition()
        if isinstance(condition, And | Or | Xor) and not self.is_wrapped(start):
            raise ExpressionSyntaxError(
                f"THEN NOT could mean all of {condition} or its first part",
                text=self.text,
                position=start.start,
                hint="Write THEN NOT (a AND b) for an absence, or THEN (NOT a) AND b for an event.",
            )
        if self.is_word("AS"):
            self.fail(("WITHIN",), hint="An absence cannot have a name.")
        return Step(condition, is_absent=True)

    def is_wrapped(self, first: Token) -> bool:
        """Does the parenthesis that opens here close at the end of the condition?"""
        if first.kind != "(":
            return False
        nesting, token = 1, first
        while nesting:
            token = next_token(self.text, token.end)
            nesting += (token.kind == "(") - (token.kind == ")")
        return next_token(self.text, token.end).start == self.token.start

    def taking(self) -> str:
        words = self.token.text.upper()
        if words == "EACH":
            self.next()
            words = f"EACH {self.token.text.upper()}"
        if words not in TAKING:
            self.fail(TAKING)
        self.next()
        return words

    # -- Changes

    def change(self) -> Change:
        start = self.token.start
        self.keyword("CHANGE")
        if not self.is_word("TO", "OF"):
            self.fail(("TO", "OF"))
        key = self.token.text.lower()
        self.next()
        condition = self.condition()
        clauses = self.clauses(
            {"UNTIL": self.condition, "PER": self.attributes, "WHERE": self.condition, "FORGET": self.forget_after}
        )
        return self.placed_at(
            start,
            lambda: Change(
                **{key: condition},
                until=clauses.get("UNTIL"),
                per=clauses.get("PER", ()),
                where=clauses.get("WHERE", TRUE),
                forget_after=clauses.get("FORGET"),
            ),
        )

    def forget_after(self) -> TimeWindow:
        self.keyword("AFTER")
        return self.span()

    # -- Clauses

    def clauses(self, readers: dict[str, Callable[[], Any]]) -> dict[str, Any]:
        """Read clauses in any order, each at most once, up to the end."""
        clauses: dict[str, Any] = {}
        while self.token.kind != "end":
            open_ = tuple(word for word in readers if word not in clauses)
            if not self.is_word(*open_):
                self.fail((*open_, "the end"))
            word = self.token.text.upper()
            self.next()
            clauses[word] = readers[word]()
        return clauses

    def condition(self) -> Expression:
        """Read a condition, which ends where a name stands in the place of an operator."""
        start = self.token.start
        nesting = cases = 0
        is_complete = is_distinct = False
        while self.token.kind != "end":
            token = self.token
            word = token.text.upper() if token.kind not in _LITERALS else ""
            if cases and word == "END" and is_complete:
                cases -= 1
                self.next()
                continue
            if nesting == 0 and not cases and is_complete and word.isidentifier() and self.is_keyword(token):
                break
            # IS DISTINCT FROM is the one operator that has names in it.
            if word == "DISTINCT" and is_distinct:
                self.next()
                is_complete = is_distinct = False
                if self.token.text.upper() == "FROM":
                    self.next()
                continue
            is_distinct = token.kind == "IS" or (is_distinct and token.kind == "NOT")
            nesting += (token.kind == "(") - (token.kind == ")")
            if not is_complete and opens_case(self.text, token):
                cases += 1
            # Words of CASE are followed by an operand.
            is_complete = token.kind in _ENDS_OPERAND and not (cases and word in ("CASE", "WHEN", "THEN", "ELSE"))
            self.next()
        end = self.token.start if self.token.kind != "end" else len(self.text)
        return self.read(start, end)

    def is_keyword(self, token: Token) -> bool:
        return token.kind == "name" or token.kind in ("THEN", "END", "CASE", "WHEN", "ELSE")

    def read(self, start: int, end: int) -> Expression:
        """Read a part of the text, so that errors point into the whole."""
        try:
            return parse(" " * start + self.text[start:end], self.known, limits=self.limits)
        except LanguageError as error:
            if error.position is not None:
                error.text = self.text
            raise

    def span(self) -> TimeWindow:
        number = self.token
        if number.kind != "number":
            self.fail(("a number of seconds, minutes, hours, …",))
        self.next()
        unit = self.token
        if unit.kind != "name" or unit.text.upper() in ("EVENT", "EVENTS"):
            self.fail(("SECONDS", "MINUTES", "HOURS", "DAYS"))
        try:
            window = window_in_units(number.text, unit.text)
        except LanguageError as error:
            error.text, error.position = self.text, unit.start if "unit" in error.message else number.start
            raise
        assert isinstance(window, TimeWindow)
        self.next()
        return window

    def attributes(self) -> Paths:
        """Read attributes with commas between them."""
        read = []
        while True:
            start = self.token.start
            if self.token.kind not in ("name", "quoted"):
                self.fail(("an attribute",))
            self.next()
            while self.token.kind == ".":
                self.next()
                self.next()
            end = self.token.start if self.token.kind != "end" else len(self.text)
            try:
                term = parse_term(" " * start + self.text[start:end], self.schema, limits=self.limits)
            except LanguageError as error:
                error.text = self.text
                raise
            if not isinstance(term, Attribute):
                raise StandingFormError("PER takes attributes", text=self.text, position=start)
            read.append(term.path)
            if self.token.kind != ",":
                return tuple(read)
            self.next()

    # -- Tokens

    def next(self) -> None:
        self.token = next_token(self.text, self.token.end)

    def is_word(self, *words: str) -> bool:
        return self.token.kind not in _LITERALS and self.token.text.upper() in words

    def keyword(self, word: str) -> None:
        if not self.is_word(word):
            self.fail((word,))
        self.next()

    def placed_at(self, position: int, make: Callable[[], _Made]) -> _Made:
        """Make something whose error should point at a place of the text."""
        try:
            return make()
        except LanguageError as error:
            if error.position is None:
                error.text, error.position = self.text, position
            raise

    def fail(self, expected: tuple[str, ...], hint: str | None = None) -> NoReturn:
        token: Token = self.token
        shown = "the end of the text" if token.kind == "end" else token.text[:40]
        raise ExpressionSyntaxError(
            f"found {shown}", text=self.text, position=token.start, expected=expected, hint=hint or self.hint
        )
