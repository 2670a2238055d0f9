"""Subscriptions to shares that are more or less alike.

Everybody wants to hear of a share while its price is in some range of round prices. The fewer shares there are, the
more subscriptions are identical, cover each other, or become one.

Source: stock quotes are the application of Mühl et al. 2002, section 5 (docs/bibliography.md); the knob is ours.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

from tamis.language import parse

if TYPE_CHECKING:
    from tamis.language.expressions import Expression

HIGHEST, STEP = 200, 20


def quotes(
    count: int, event_count: int, share_count: int, seed: int, traded_count: int = 0
) -> tuple[list[Expression], list[dict[str, Any]]]:
    """Return subscriptions and events about so many shares.

    If more shares are traded than somebody subscribes to, most events are wanted by nobody.

    >>> filters, events = quotes(1, 1, share_count=3, seed=1)
    >>> print(filters[0], events[0])
    name = 'share 0' AND price BETWEEN 40 AND 100 {'name': 'share 1', 'price': 94.4...}
    """
    chance = Random(seed)

    def share(of: int = share_count) -> str:
        return f"share {chance.randrange(of)}"

    def price(least: int, most: int) -> int:
        return chance.randrange(least, most + STEP, STEP)

    texts = [
        chance.choice(
            (
                f"name = '{share()}' AND price < {price(STEP, HIGHEST)}",
                f"name = '{share()}' AND price BETWEEN {price(0, 100)} AND {price(100, HIGHEST)}",
            )
        )
        for _ in range(count)
    ]
    traded = traded_count or share_count
    events = [{"name": share(traded), "price": chance.uniform(0, HIGHEST)} for _ in range(event_count)]
    return [parse(text) for text in texts], events
