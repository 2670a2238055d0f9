"""Which kind of subscription is a text, and of which conditions is it made?

A command reads every kind: conditions, ranked subscriptions, sequences and changes. Those that remember earlier events
are asked for by their first word, so that a condition waits for no compiler.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tamis.errors import LanguageError
from tamis.language import Expression, Schema, parse
from tamis.language.tokens import next_token

if TYPE_CHECKING:
    from tamis.standing.subscriptions import Subscription

_FIRST_WORDS = ("TOP", "SEQUENCE", "CHANGE")


def may_be_stateful(text: Any) -> bool:
    """Does a text begin as one that remembers earlier events does? It may still be a condition.

    >>> may_be_stateful("TOP 5 BY price OVER 1 HOUR"), may_be_stateful("price < 20")
    (True, False)
    """
    try:
        return isinstance(text, str) and next_token(text, 0).text.upper() in _FIRST_WORDS
    except LanguageError:
        return False


def read_subscription(text: str, schema: Schema | None = None) -> Subscription:
    """Return what a text says, of whichever kind.

    >>> print(read_subscription("change to price > 30"))
    CHANGE TO price > 30
    """
    if may_be_stateful(text):
        from tamis.standing import parse_subscription

        return parse_subscription(text, schema)
    return parse(text, schema)


def kind_of(subscription: Subscription) -> str:
    """Name the kind.

    >>> kind_of(read_subscription("price < 20")), kind_of(read_subscription("TOP 5 BY price OVER 1 HOUR"))
    ('condition', 'ranked')
    """
    if isinstance(subscription, Expression):
        return "condition"
    return {"Ranked": "ranked", "Sequence": "sequence", "Change": "change"}[type(subscription).__name__]


def parts_of(subscription: Subscription) -> list[tuple[str, Expression]]:
    """Return the conditions that events are asked for, each with what it is there for.

    >>> for name, condition in parts_of(read_subscription("CHANGE TO price > 30 UNTIL price < 28")):
    ...     print(f"{name}: {condition}")
    it becomes true: price > 30
    it becomes false: price < 28
    >>> absence = read_subscription("SEQUENCE a AS x THEN NOT (b = x.b AND c = 1) WITHIN 1 HOUR")
    >>> for name, condition in parts_of(absence):
    ...     print(f"{name}: {condition}")
    step 1: a
    step 2, which is not to come: c = 1
    """
    from tamis.standing import Change, Sequence
    from tamis.standing.references import without_references
    from tamis.topk import Ranked

    match subscription:
        case Ranked():
            return [("it is in the window", subscription.where)]
        case Sequence():
            return [
                (
                    f"step {number}{', which is not to come' if step.is_absent else ''}",
                    without_references(step.condition, subscription.names),
                )
                for number, step in enumerate(subscription.steps, start=1)
            ]
        case Change():
            return [("it becomes true", subscription.entry), ("it becomes false", subscription.exit)]
    return [("it matches", subscription)]
