"""What is there to see on a new broker? A small live feed of book auctions.

It is a client of its own broker like any other, over loopback: some events a second, until it is told to stop.
"""

from __future__ import annotations

import asyncio
from itertools import count
from typing import TYPE_CHECKING, Any

from tamis.errors import TamisError

if TYPE_CHECKING:
    from collections.abc import Iterator

EVENTS_PER_S = 5.0
_PORTION = 500

EXAMPLE_TEXT = "category = 'Mystery, Thriller' AND price < 10"
"""What about every tenth auction of the feed is."""


async def feed(url: str, seed: int = 1, per_s: float = EVENTS_PER_S) -> None:
    """Publish auctions to a broker until cancelled."""
    from tamis.service.client import AsyncClient

    async with AsyncClient(url, source="/auctions") as client:
        try:
            for auction in auctions(seed):
                await client.publish(auction, type="auction")
                await asyncio.sleep(1 / per_s)
        except TamisError as error:
            import logging

            logging.getLogger("tamis.service").error("the feed of auctions has ended: %s", error)


def auctions(seed: int) -> Iterator[dict[str, Any]]:
    """Yield auctions without end; one seed decides them.

    >>> sorted(next(auctions(1)))[:4]
    ['author', 'bids', 'buy_it_now', 'category']
    """
    from tamis.workloads import Auction

    workload = Auction()
    for portion in count():
        for row in workload.events(_PORTION, seed=seed + portion).to_pylist():
            yield {name: value for name, value in row.items() if value is not None}
