"""Does a broker still have the functions that its kept subscriptions call? The same versions, or it does not start.

A subscription is kept as a text, which names functions without their versions; the state has the versions with which
the broker ran last. Another version of a function may give something else, and nobody was asked. So a broker that has
subscriptions of the old one says which, and the operator decides.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from tamis.errors import UnknownFunctionError
from tamis.language.expressions import postorder
from tamis.language.functions import hosted_in
from tamis.service.errors import SettingsError
from tamis.service.permissions import EFFECTIVE_LIMITS
from tamis.service.standing import expressions_of
from tamis.standing.subscriptions import parse_subscription

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tamis.language.functions import Functions
    from tamis.service.changes import Stored


def demand_functions(stored: Stored, before: Mapping[str, int], functions: Functions) -> None:
    """Raise unless all functions that kept subscriptions call are there, in the versions that they had."""
    for row in stored.subscriptions:
        if not any(name in row.effective.lower() for name in before):
            continue  # most call none, and need not be read for that
        try:
            with functions.in_use():
                subscription = parse_subscription(row.effective, limits=EFFECTIVE_LIMITS)
            parts = chain.from_iterable(map(postorder, expressions_of(subscription)))
            for name in hosted_in(parts):
                if name in before:
                    functions.hosted(f"{name}@{before[name]}")
        except UnknownFunctionError as error:
            raise SettingsError(
                f"functions: the subscription {row.key!r} of {row.subscriber!r} calls a function: {error.message}",
                "the earlier functions, or a broker without this subscription",
            ) from error
