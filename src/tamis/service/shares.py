"""How much does each subscription of a subscriber match? Shares of the latest events.

Nobody counts while events come: what is asked now and then is cheaper to count from the log. All subscriptions are
matched together, over a part of the past; and each is compared with its siblings, because one that another covers
brings its subscriber nothing.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tamis.relations import covers
from tamis.service.history import chosen, entries_of, fitting

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tamis.language.expressions import Expression
    from tamis.language.schema import Schema
    from tamis.service.history import Range, Readable

MOST_EVENTS = 20_000
LONGEST_S = 1.0


@dataclass(slots=True)
class Shares:
    """What subscriptions matched of a part of the past."""

    seen: int = 0
    first_us: int = 0
    last_us: int = 0
    matched: dict[str, int] = field(default_factory=dict)
    """By the key of the subscription."""
    covered_by: dict[str, list[str]] = field(default_factory=dict)
    """The keys of its siblings that match all of what a subscription matches; only what is proven."""
    compared_all: bool = True


def shares_of(
    log: Readable,
    positions: Range,
    filters: Mapping[str, Expression],
    allowed: Expression | None,
    schema: Schema | None,
    *,
    clock: Callable[[], float],
) -> Shares:
    """Count what each filter matches of a part of the log, as far as the one who asks may receive it."""
    shares = Shares(matched=dict.fromkeys(filters, 0))
    records: list[Mapping[str, Any]] = []
    if positions.first < positions.until:
        may_see = chosen(allowed, schema)
        for block in log.read(positions.first, positions.until - 1):
            records += [each.record for each in entries_of(block, positions, may_see)]
            shares.first_us, shares.last_us = shares.first_us or block.time_us, block.time_us
            if len(records) >= MOST_EVENTS:
                break
    shares.seen = len(records)
    if records and filters:
        from tamis.matching import Matcher  # what compiles kernels is loaded by who matches

        matcher = Matcher(schema=schema)
        matcher.add_many(dict(filters))
        # What does not fit the schema came before there was one, and is delivered to nobody.
        delivered = [record for record in (fitting(each, schema) for each in records) if record is not None]
        shares.matched.update(Counter(matcher.match_batch(delivered)["subscription"].to_pylist()))
    ends_s = clock() + LONGEST_S
    for key, wanted in filters.items():
        shares.covered_by[key] = []
        for other, general in filters.items():
            if clock() >= ends_s:
                shares.compared_all = False
                return shares
            if other != key:
                verdict = covers(general, wanted, schema)
                if verdict.holds and verdict.proven:
                    shares.covered_by[key].append(other)
    return shares
