"""What does a ranked subscription ask for?

The k best events of a window: by a score, the lowest first (ASC) or the highest (DESC), among the events that pass a
filter. It is told of an event at the moment when the event first belongs to them.

    TOP 5 BY distance(lat, lon, 45.8, 15.97) ASC OVER 1 HOUR WHERE category = 'flat' AND rent < 900
    TOP 5 BY votes DESC HALF LIFE 6 HOURS OVER 2 DAYS

With a half life, scores age (`ageing`).

Source: Pripužić 2010, sections 1.3, 2.3 and 4.1.2 (docs/bibliography.md).
Departs: a filter may stand before the score. What does not pass it is not in the window at all; what passes and has no
score is in the window, and ranks below everything.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tamis.errors import LanguageError, TypeMismatchError
from tamis.language.builder import Value, condition, expression
from tamis.language.checking import check
from tamis.language.expressions import TRUE, Compare, Condition, Expression, Literal
from tamis.language.limits import DEFAULT_LIMITS, Limits
from tamis.language.parser import parse, parse_term
from tamis.topk.errors import RankedFormError
from tamis.topk.windows import TimeWindow, Window, window_of

if TYPE_CHECKING:
    from tamis.language.schema import Schema

ORDERS = ("ASC", "DESC")


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Ranked:
    """A standing question for the best k events of a window.

    >>> import tamis
    >>> print(Ranked(tamis.attr("rent") / tamis.attr("area"), 5, "1 HOUR", where=tamis.attr("category") == "flat"))
    TOP 5 BY rent / area ASC OVER 1 HOUR WHERE category = 'flat'
    >>> Ranked.parse("top 2 by price over 5 events").window
    CountWindow(events=5)
    """

    score: Expression
    k: int
    window: Window
    where: Expression
    order: str
    half_life_s: float | None

    def __init__(
        self, score: Any, k: int, window: Any, where: Any = TRUE, *, order: str = "ASC", half_life: Any = None
    ) -> None:
        """Take texts, expressions or what the builder makes; `order` is ASC (the lowest score is best) or DESC.

        With a `half_life` ('6 HOURS', a timedelta, or seconds) scores age: with each that has passed since an event was
        published, a score that should be high has halved, and one that should be low has doubled.

        >>> print(Ranked("votes", 5, "2 DAYS", order="DESC", half_life="6 HOURS"))
        TOP 5 BY votes DESC HALF LIFE 6 HOURS OVER 2 DAYS
        """
        if isinstance(k, bool) or not isinstance(k, int) or k < 1:
            raise RankedFormError(f"k must be a whole number of at least 1, not {k!r}")
        if not isinstance(order, str) or order.upper() not in ORDERS:
            raise RankedFormError(f"the order must be ASC or DESC, not {order!r}")
        term = parse_term(score) if isinstance(score, str) else expression(score)
        filter_ = parse(where) if isinstance(where, str) else condition(where)
        half_life_s = None if half_life is None else _half_life_s(half_life)
        check_score(term, ages=half_life_s is not None)
        for field, value in (
            ("score", term),
            ("k", k),
            ("window", window_of(window)),
            ("where", filter_),
            ("order", order.upper()),
            ("half_life_s", half_life_s),
        ):
            object.__setattr__(self, field, value)

    @property
    def is_ascending(self) -> bool:
        """Is the lowest score the best?"""
        return self.order == "ASC"

    def __str__(self) -> str:
        where = "" if self.where == TRUE else f" WHERE {self.where}"
        ageing = "" if self.half_life_s is None else f" HALF LIFE {TimeWindow(self.half_life_s)}"
        return f"TOP {self.k} BY {self.score} {self.order}{ageing} OVER {self.window}{where}"

    def __repr__(self) -> str:
        return f"<Ranked {self}>"

    @staticmethod
    def parse(text: str, schema: Schema | None = None, *, limits: Limits = DEFAULT_LIMITS) -> Ranked:
        """Return the ranked subscription that a text says; with a schema, names and types are checked too."""
        from tamis.topk.text import parse_ranked

        return parse_ranked(text, schema, limits=limits)

    def to_json(self) -> str:
        """Return the JSON form, which `Ranked.from_json` reads back."""
        from tamis.topk.json_form import to_json

        return to_json(self)

    @staticmethod
    def from_json(document: str | bytes | dict[str, Any], *, limits: Limits = DEFAULT_LIMITS) -> Ranked:
        """Read a ranked subscription from a JSON document, given as text or as the object it denotes."""
        from tamis.topk.json_form import from_json

        return from_json(document, limits=limits)

    def checked(self, schema: Schema | None) -> Ranked:
        """Return itself if the schema has its names and types, or raise."""
        if schema is not None:
            check(self.score, schema)
            check(self.where, schema)
            check_score(self.score, schema, ages=self.half_life_s is not None)
        return self


def _half_life_s(written: object) -> float:
    """Return a half life in seconds."""
    if isinstance(written, int | float) and not isinstance(written, bool):
        written = TimeWindow(written)
    span = window_of(written)
    if not isinstance(span, TimeWindow):
        raise RankedFormError(f"a half life is a span of time, such as 6 HOURS, not {span}")
    return span.seconds


def check_score(score: Expression, schema: Schema | None = None, *, ages: bool = False) -> None:
    """Raise a `TypeMismatchError` unless the score can be a number or a time; only a number ages.

    >>> Ranked("lower(title)", 1, "1 HOUR")
    Traceback (most recent call last):
        ...
    tamis.errors.TypeMismatchError: lower(title) is neither a number nor a time, so events do not rank by it
    """
    if not isinstance(score, Value | Condition):
        for comparable in (0,) if ages else (0, dt.date(1970, 1, 1)):
            try:
                check(Compare("<", score, Literal(comparable)), schema)
            except LanguageError:
                continue
            return
    if ages:
        raise TypeMismatchError(f"{score} is not a number, so it has no half life")
    raise TypeMismatchError(f"{score} is neither a number nor a time, so events do not rank by it")
