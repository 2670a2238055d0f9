"""Which kind of subscription is a text, and of which conditions is it made?

A command reads every kind: conditions, ranked subscriptions, sequences and changes. Those that remember earlier events
are asked for by their first word, so that a condition waits for no compiler.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tamis.errors import LanguageError
from tamis.language import Expression, Schema, parse
from tamis.language.expressions import TRUE
from tamis.language.tokens import next_token

if TYPE_CHECKING:
    from tamis.standing.sequence import Step
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
    step 2, which is not to come, without what refers to earlier events: c = 1
    """
    from tamis.standing import Change, Sequence
    from tamis.topk import Ranked

    match subscription:
        case Ranked():
            return [("it is in the window", subscription.where)]
        case Sequence():
            return [_step(number, step, subscription.names) for number, step in enumerate(subscription.steps, start=1)]
        case Change():
            return [("it becomes true", subscription.entry), ("it becomes false", subscription.exit)]
    return [("it matches", subscription)]


def _step(number: int, step: Step, names: tuple[str, ...]) -> tuple[str, Expression]:
    """Return what a step is called, and what can be asked of one event for it."""
    from tamis.standing.references import without_references

    condition = without_references(step.condition, names)
    name = f"step {number}{', which is not to come' if step.is_absent else ''}"
    if condition is not step.condition:
        name += ", without what refers to earlier events"
    return name, condition


def expressions_of(subscription: Subscription) -> list[Expression]:
    """Return the expressions that a subscription was written with.

    >>> [str(each) for each in expressions_of(read_subscription("SEQUENCE a AS x THEN b > x.b WITHIN 1 HOUR"))]
    ['a', 'b > x.b']
    >>> [str(each) for each in expressions_of(read_subscription("CHANGE TO a > 3 UNTIL a < 2 WHERE b"))]
    ['a > 3', 'a < 2', 'b']
    """
    from tamis.standing import Change, Sequence
    from tamis.topk import Ranked

    match subscription:
        case Ranked():
            return [subscription.score, *([] if subscription.where == TRUE else [subscription.where])]
        case Sequence():
            return [step.condition for step in subscription.steps]
        case Change():
            ends = [] if subscription.until is None else [subscription.until]
            return [subscription.condition, *ends, *([] if subscription.where == TRUE else [subscription.where])]
    return [subscription]
