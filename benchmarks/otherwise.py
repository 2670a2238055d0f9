"""What would people do without an index of their rules?

They write a loop: every rule, compiled to a Python function, is asked about every event. Or they ask every rule about
a table of events in an engine that works by columns, here polars. Both take time in proportion to the number of rules.
The rules are those of bidders at book auctions: predicates with AND and OR, 0.05 % of which match an event.

Rates are by processor time, all threads of a process together, so they are those of one core, and a busy machine
changes them little. `wrong` counts the pairs of Tamis that differ from those of the loop, whose functions share no code
with the matcher, and by how many pairs the other ways differ.
"""

from __future__ import annotations

from decimal import Decimal
from functools import partial
from time import process_time
from typing import TYPE_CHECKING, Any

from benchmarks.cases import CASES, events_of
from tamis.language import parse
from tamis.language.expressions import And, Attribute, Compare, Literal, Not, Or
from tamis.matching import Matcher

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow as pa

    from tamis.language import Expression

    Rule = Callable[[dict[str, Any]], bool]

_LOOPED_PAIRS = 2_000_000
"""So many pairs of event and rule are asked one by one: some seconds."""
_LEAST_S = 0.5
"""What is quicker is repeated for so long."""


def otherwise(
    subscription_counts: Sequence[int] = (100, 1_000, 10_000, 100_000), event_count: int = 8_192, seed: int = 1
) -> Iterator[dict[str, Any]]:
    """How many events a second does one core do, with Tamis and without?"""
    workload = CASES["auction"]()
    table = workload.events(event_count, seed + 2)
    events = events_of(table)
    for subscription_count in subscription_counts:
        texts = workload.subscriptions(subscription_count, seed)["condition"].to_pylist()
        matcher = Matcher()
        matcher.add_many(dict(enumerate(texts)))
        matcher.learn(workload.events(2_048, seed + 1))
        rules = [_as_python(parse(text)) for text in texts]
        few = events[: max(1, min(event_count, _LOOPED_PAIRS // subscription_count))]
        looped, loop_s = _timed(partial(_by_loop, rules, few))
        by_columns, polars_s = _timed(partial(_by_columns, texts, table))
        matcher.match_batch(table), matcher.match(events[0])  # compiles
        batch, batch_s = _timed(partial(matcher.match_batch, table))
        single, single_s = _timed(partial(_one_by_one, matcher, events))
        pairs = list(zip(batch["event"].to_pylist(), batch["subscription"].to_pylist(), strict=True))
        expected = {pair for pair in pairs if pair[0] < len(few)}
        yield {
            "subscriptions": subscription_count,
            "loop_per_s": len(few) / loop_s,
            "polars_per_s": len(events) / polars_s,
            "single_per_s": len(events) / single_s,
            "batch_per_s": len(events) / batch_s,
            "times_loop": len(events) / batch_s / (len(few) / loop_s),
            "times_polars": polars_s / batch_s,
            "matches": len(pairs) / len(events),
            "wrong": len(expected ^ set(looped)) + abs(by_columns - len(pairs)) + abs(single - len(pairs)),
        }


def _timed(action: Callable[[], Any]) -> tuple[Any, float]:
    """Return what an action gives, and the processor time that it takes, repeated while it is short."""
    start, times = process_time(), 0
    while True:
        result = action()
        times += 1
        if (spent := process_time() - start) >= _LEAST_S:
            return result, spent / times


def _by_loop(rules: list[Rule], events: list[dict[str, Any]]) -> list[tuple[int, int]]:
    return [(row, number) for row, event in enumerate(events) for number, rule in enumerate(rules) if rule(event)]


def _one_by_one(matcher: Matcher, events: list[dict[str, Any]]) -> int:
    return sum(len(matcher.match(event)) for event in events)


def _as_python(expression: Expression) -> Rule:
    """Return a condition of the auctions as a Python function.

    >>> rule = _as_python(parse("price < 20 AND (bids = 0 OR NOT signed = TRUE)"))
    >>> rule({"price": 12, "bids": 3, "signed": False}), rule({"price": 12, "bids": 3, "signed": True})
    (True, False)
    """
    rule: Rule = eval(f"lambda event: {_python_text(expression)}")  # texts of our own workload
    return rule


def _python_text(expression: Expression) -> str:
    match expression:
        case And(parts):
            return "(" + " and ".join(map(_python_text, parts)) + ")"
        case Or(parts):
            return "(" + " or ".join(map(_python_text, parts)) + ")"
        case Not(part):
            return f"(not {_python_text(part)})"
        case Compare(operator, Attribute(path), Literal(value)):
            constant = float(value) if isinstance(value, Decimal) else value  # as SQL compares them with a double
            return f"event[{'.'.join(path)!r}] {'==' if operator == '=' else operator} {constant!r}"
    raise AssertionError(f"auctions have no {type(expression).__name__}")


def _by_columns(texts: list[str], events: pa.Table) -> int:
    """Return how many pairs polars finds, rule by rule."""
    import polars as pl

    frame = pl.from_arrow(events)
    assert isinstance(frame, pl.DataFrame)
    return sum(frame.filter(pl.sql_expr(text)).height for text in texts)
