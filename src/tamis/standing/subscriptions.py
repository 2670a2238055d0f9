"""Which kinds of subscription are there, and how is one read, whichever it is?

A condition is matched by single events; a ranked subscription, a sequence and a change remember earlier ones. The first
words of a text tell them apart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from tamis.errors import TypeMismatchError
from tamis.language.builder import Value
from tamis.language.checking import check
from tamis.language.expressions import Expression, is_condition
from tamis.language.limits import DEFAULT_LIMITS, Limits
from tamis.language.parser import parse
from tamis.language.rewrites.monotone import any_of
from tamis.standing.change import Change
from tamis.standing.references import without_references
from tamis.standing.sequence import Sequence
from tamis.standing.text import is_change, is_sequence, parse_change, parse_sequence
from tamis.topk.ranked import Ranked
from tamis.topk.text import is_ranked, parse_ranked

if TYPE_CHECKING:
    from tamis.language.schema import Schema

Subscription: TypeAlias = "Expression | Ranked | Sequence | Change"


def parse_subscription(text: str, schema: Schema | None = None, *, limits: Limits = DEFAULT_LIMITS) -> Subscription:
    """Return what a text says: a condition, a ranked subscription, a sequence or a change.

    >>> for text in ("price < 20", "top 5 by price over 1 hour", "sequence a then b", "change to a"):
    ...     print(parse_subscription(text))
    price < 20
    TOP 5 BY price ASC OVER 1 HOUR
    SEQUENCE a THEN b
    CHANGE TO a
    """
    if isinstance(text, str):
        if is_ranked(text):
            return parse_ranked(text, schema, limits=limits)
        if is_sequence(text):
            return parse_sequence(text, schema, limits=limits)
        if is_change(text):
            return parse_change(text, schema, limits=limits)
    return parse(text, schema, limits=limits)


def subscription_of(wanted: Any, schema: Schema | None = None) -> Subscription:
    """Return what a text, a record, an expression or the builder says, checked against a schema, or raise."""
    if isinstance(wanted, str):
        return parse_subscription(wanted, schema)
    if isinstance(wanted, Ranked | Sequence | Change):
        return wanted.checked(schema)
    expression = wanted.expression if isinstance(wanted, Value) else wanted
    if not isinstance(expression, Expression) or not is_condition(expression):
        raise TypeMismatchError(
            f"a subscription is a text, a condition, a Ranked, a Sequence or a Change, not {type(wanted).__name__}"
        )
    check(expression, schema)
    return expression


def interest(subscription: Subscription) -> Expression:
    """Return the stateless part: a condition that is true for every event that a subscription needs to see.

    A broker that has this of a subscription can pass on what matters without keeping any state. A change needs the
    events for which it is known whether they fulfil its condition, and with FORGET AFTER all that concern it.

    >>> print(interest(parse_subscription("SEQUENCE a = 1 AS x THEN b > x.b AND c = 2 WITHIN 1 HOUR")))
    a = 1 OR c = 2
    >>> print(interest(parse_subscription("CHANGE TO price > 30 WHERE symbol = 'IBM'")))
    symbol = 'IBM' AND price > 30 OR symbol = 'IBM' AND NOT price > 30
    """
    match subscription:
        case Ranked():
            return subscription.where
        case Sequence():
            return any_of(without_references(step.condition, subscription.names) for step in subscription.steps)
        case Change():
            if subscription.forget_after is not None:
                return subscription.where
            return any_of([subscription.entry, subscription.exit])
    return subscription
