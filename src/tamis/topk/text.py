"""How does a text become a ranked subscription?

    TOP k BY score [ASC | DESC] [HALF LIFE span] OVER window [WHERE condition]

The score and the condition are the language's own, and are read by its parser. What is new is only where they end: a
name that stands where an operator should is the next keyword, because no operator is a name. So `TOP`, `BY`, `OVER`,
`WHERE`, `ASC`, `DESC`, `HALF`, `LIFE` and the units remain names that attributes may have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from tamis.errors import ExpressionSyntaxError, LanguageError, LimitError
from tamis.language.expressions import TRUE
from tamis.language.limits import DEFAULT_LIMITS, Limits
from tamis.language.parser import parse, parse_term
from tamis.language.tokens import ENDS_OPERAND, Token, next_token, opens_case
from tamis.topk.errors import RankedFormError
from tamis.topk.ranked import Ranked, check_score
from tamis.topk.windows import TimeWindow, window_in_units

if TYPE_CHECKING:
    from tamis.language.expressions import Expression
    from tamis.language.schema import Schema
    from tamis.topk.windows import Window


def is_ranked(text: str) -> bool:
    """Does the text ask for the best of something? A condition may start with an attribute `top`, but not so.

    >>> is_ranked("TOP 2 BY price OVER 5 EVENTS"), is_ranked("top = 5")
    (True, False)
    """
    try:
        first = next_token(text, 0)
        return first.kind == "name" and first.text.upper() == "TOP" and next_token(text, first.end).kind == "number"
    except LanguageError:
        return False


def parse_ranked(text: str, schema: Schema | None = None, *, limits: Limits = DEFAULT_LIMITS) -> Ranked:
    """Return the ranked subscription that a text says.

    >>> print(parse_ranked("top 2 by price over 60 minutes where category = 'flat'"))
    TOP 2 BY price ASC OVER 1 HOUR WHERE category = 'flat'
    >>> parse_ranked("TOP 2 BY price ASC")
    Traceback (most recent call last):
        ...
    tamis.errors.ExpressionSyntaxError: line 1, column 19: found the end of the text, expected OVER
      TOP 2 BY price ASC
                        ^
      Write TOP 5 BY price ASC OVER 1 HOUR WHERE category = 'flat'.
    """
    if not isinstance(text, str):
        raise TypeError(f"a ranked subscription's text must be a str, not {type(text).__name__}")
    if len(text) > limits.text_length:
        raise LimitError("text_length", limits.text_length, f"{len(text):,} characters")
    return _RankedTextReader(text, schema, limits).ranked()


class _RankedTextReader:
    def __init__(self, text: str, schema: Schema | None, limits: Limits) -> None:
        self.text = text
        self.schema = schema
        self.limits = limits
        self.token = next_token(text, 0)

    def ranked(self) -> Ranked:
        self.keyword("TOP")
        k = self.count()
        self.keyword("BY")
        score_start = self.token.start
        score = self.score()
        order = self.token.text.upper() if self.is_word("ASC", "DESC") else "ASC"
        if self.is_word("ASC", "DESC"):
            self.next()
        half_life = self.half_life(score, score_start)
        self.keyword("OVER")
        window = self.window()
        return Ranked(score, k, window, self.where(), order=order, half_life=half_life)

    # -- Clauses

    def count(self) -> int:
        token = self.token
        if token.kind != "number" or not token.text.isdecimal() or int(token.text) < 1:
            self.fail(("a whole number of at least 1",))
        self.next()
        return int(token.text)

    def score(self) -> Expression:
        start = self.token.start
        nesting, is_complete = 0, False
        while self.token.kind != "end":
            if nesting == 0 and is_complete and self.token.kind == "name":
                break
            if not is_complete and opens_case(self.text, self.token):
                nesting += 1
                self.next()
                if not self.is_word("WHEN"):
                    continue
            elif is_complete and self.is_word("WHEN", "THEN", "ELSE"):
                is_complete = False
            elif is_complete and self.is_word("END"):
                nesting -= 1
            else:
                nesting += (self.token.kind == "(") - (self.token.kind == ")")
                is_complete = self.token.kind in ENDS_OPERAND
            # DATE '2024-02-29' and TIMESTAMP '...' are one operand of two tokens
            self.next()
        term = self.placed(parse_term, start, self.token.start if self.token.kind != "end" else len(self.text))
        try:
            check_score(term, self.schema)
        except LanguageError as error:
            error.text, error.position = self.text, start
            raise
        return term

    def half_life(self, score: Expression, score_start: int) -> Window | None:
        if not self.is_word("HALF"):
            return None
        self.next()
        self.keyword("LIFE")
        start = self.token.start
        span = self.window()
        try:
            if not isinstance(span, TimeWindow):
                raise RankedFormError(f"a half life is a span of time, such as 6 HOURS, not {span}")
            start = score_start
            check_score(score, self.schema, ages=True)
        except LanguageError as error:
            error.text, error.position = self.text, start
            raise
        return span

    def window(self) -> Window:
        number = self.token
        if number.kind != "number":
            self.fail(("a number of events, seconds, minutes, hours, …",))
        self.next()
        unit = self.token
        if unit.kind != "name":
            self.fail(("EVENTS", "SECONDS", "MINUTES", "HOURS", "DAYS"))
        try:
            window = window_in_units(number.text, unit.text)
        except LanguageError as error:
            error.text, error.position = self.text, unit.start if "unit" in error.message else number.start
            raise
        self.next()
        return window

    def where(self) -> Expression:
        if self.token.kind == "end":
            return TRUE
        if not self.is_word("WHERE"):
            self.fail(("WHERE", "the end"))
        return self.placed(parse, self.token.end, len(self.text))

    def placed(self, read: object, start: int, end: int) -> Expression:
        """Read a part of the text, so that errors point into the whole."""
        assert callable(read)
        try:
            expression: Expression = read(" " * start + self.text[start:end], self.schema, limits=self.limits)
        except LanguageError as error:
            if error.position is not None:
                error.text = self.text
            raise
        return expression

    # -- Tokens

    def next(self) -> None:
        self.token = next_token(self.text, self.token.end)

    def is_word(self, *words: str) -> bool:
        return self.token.kind == "name" and self.token.text.upper() in words

    def keyword(self, word: str) -> None:
        if not self.is_word(word):
            self.fail((word,))
        self.next()

    def fail(self, expected: tuple[str, ...]) -> NoReturn:
        token: Token = self.token
        shown = "the end of the text" if token.kind == "end" else token.text[:40]
        raise ExpressionSyntaxError(
            f"found {shown}",
            text=self.text,
            position=token.start,
            expected=expected,
            hint="Write TOP 5 BY price ASC OVER 1 HOUR WHERE category = 'flat'.",
        )
