"""How the tests of the clients run: in a loop of their own, and never longer than a minute or so."""

from __future__ import annotations

import asyncio
from functools import wraps
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

DEADLINE_S = 90.0
"""No test asserts a time; this ends one that hangs."""


def in_a_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run an asynchronous test."""

    @wraps(test)
    def run(*args: Any, **options: Any) -> None:
        asyncio.run(asyncio.wait_for(test(*args, **options), DEADLINE_S))

    return run


async def until(condition: Callable[[], Any]) -> None:
    """Wait until something is so."""
    while not condition():
        await asyncio.sleep(0.005)


async def taken(events: Any, count: int) -> list[Any]:
    """Return so many events of a subscription."""
    return [await anext(events) for _ in range(count)]
