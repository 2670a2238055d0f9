"""What does a change ask for?

To be told when a condition becomes true, and not again while it stays so: a state-persistent subscription. CHANGE TO
tells of the change to true alone, CHANGE OF of both. Every group (PER) has a state of its own, and only events for
which WHERE is true say anything about it; UNTIL is a condition of its own for the way back (hysteresis).

    CHANGE TO price > 30 UNTIL price < 28 PER symbol WHERE exchange = 'NYSE'

Source: Jewel 2004, section 2.5, after Leung and Jacobsen (docs/bibliography.md).
Departs: the text has one state per subscription, and does not say which events may change it back. Groups, WHERE,
UNTIL, the change to false and the end of a state (FORGET AFTER) are ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tamis.language.builder import condition
from tamis.language.checking import check
from tamis.language.expressions import TRUE, Attribute, Expression, Not
from tamis.language.limits import DEFAULT_LIMITS, Limits
from tamis.language.parser import parse
from tamis.language.rewrites.monotone import all_of
from tamis.standing.errors import StandingFormError
from tamis.standing.sequence import paths, paths_text
from tamis.standing.spans import span_of, span_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tamis.language.schema import Schema
    from tamis.standing.groups import Paths


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Change:
    """A standing question for the moments at which a condition becomes true.

    >>> print(Change(to="price > 30", until="price < 28", per=["symbol"]))
    CHANGE TO price > 30 UNTIL price < 28 PER symbol
    >>> Change.parse("change of online per host forget after 1 day").is_both_ways
    True
    """

    condition: Expression
    is_both_ways: bool
    """Is the change to false told, too? (CHANGE OF)"""
    until: Expression | None
    per: Paths
    where: Expression
    forget_after: float | None

    def __init__(
        self,
        to: Any = None,
        *,
        of: Any = None,
        until: Any = None,
        per: Iterable[Any] | str = (),
        where: Any = TRUE,
        forget_after: Any = None,
    ) -> None:
        """Take either `to` or `of`; conditions in any form, a span, and attributes for `per`."""
        if (to is None) is (of is None):
            raise StandingFormError(
                "a change is either `to` a condition or `of` it", hint='Write Change("price > 30").'
            )
        for field, value in (
            ("condition", _condition(of if to is None else to)),
            ("is_both_ways", to is None),
            ("until", None if until is None else _condition(until)),
            ("per", paths(per)),
            ("where", _condition(where)),
            ("forget_after", span_of(forget_after)),
        ):
            object.__setattr__(self, field, value)

    @property
    def entry(self) -> Expression:
        """Which events make the state true?"""
        return all_of([self.where, self.condition])

    @property
    def exit(self) -> Expression:
        """Which events, if they do not make it true, make it false?"""
        return all_of([self.where, Not(self.condition) if self.until is None else self.until])

    def __str__(self) -> str:
        text = f"CHANGE {'OF' if self.is_both_ways else 'TO'} {self.condition}"
        if self.until is not None:
            text += f" UNTIL {self.until}"
        if self.per:
            text += f" PER {paths_text(self.per)}"
        if self.where != TRUE:
            text += f" WHERE {self.where}"
        return text if self.forget_after is None else f"{text} FORGET AFTER {span_text(self.forget_after)}"

    def __repr__(self) -> str:
        return f"<Change {self}>"

    @staticmethod
    def parse(text: str, schema: Schema | None = None, *, limits: Limits = DEFAULT_LIMITS) -> Change:
        """Return the change that a text says; with a schema, names and types are checked too."""
        from tamis.standing.text import parse_change

        return parse_change(text, schema, limits=limits)

    def to_json(self) -> str:
        """Return the JSON form, which `Change.from_json` reads back."""
        from tamis.standing.json_form import to_json

        return to_json(self)

    @staticmethod
    def from_json(document: str | bytes | dict[str, Any], *, limits: Limits = DEFAULT_LIMITS) -> Change:
        """Read a change from a JSON document, given as text or as the object it denotes."""
        from tamis.standing.json_form import from_json

        made = from_json(document, limits=limits)
        if not isinstance(made, Change):
            raise StandingFormError("this document is a sequence, not a change")
        return made

    def checked(self, schema: Schema | None) -> Change:
        """Return itself if the schema has its names and types, or raise."""
        if schema is not None:
            for each in (self.condition, self.until, self.where, *map(Attribute, self.per)):
                if each is not None:
                    check(each, schema)
        return self


def _condition(written: Any) -> Expression:
    return parse(written) if isinstance(written, str) else condition(written)
