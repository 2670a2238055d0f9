"""How far back may a subscription remember? Limits of windows, checked at registration.

After a restart what is remembered is found again from the log, for which two windows of it are needed. So a window is
at most half as long as events are kept, and not so long that nobody could wait for it.
"""

from __future__ import annotations

import math
from typing import Any

import msgspec

from tamis.service.errors import BadRequestError, TooLargeError
from tamis.standing import Sequence
from tamis.standing.spans import span_text
from tamis.topk import Ranked
from tamis.topk.windows import CountWindow


class WindowLimits(msgspec.Struct, frozen=True):
    """The longest windows.

    >>> from tamis.standing import parse_subscription
    >>> WindowLimits(seconds=3600.0).check("best", parse_subscription("TOP 1 BY price OVER 2 HOURS"))
    Traceback (most recent call last):
        ...
    tamis.service.errors.TooLargeError: the subscription 'best' remembers 2 HOURS; expected at most 1 HOUR \
(limits.window, and half of log.keep)
    """

    seconds: float = 86_400.0
    events: int = 100_000
    mark_every_s: float = 5.0
    """So far apart are the points from which what is remembered is found again, at least."""

    def check(self, key: str, subscription: Any) -> None:
        """Raise unless a subscription that remembers earlier events may be hosted."""
        span = math.inf
        match subscription:
            case Ranked(window=CountWindow(events=events)):
                if events > self.events:
                    raise TooLargeError(
                        f"the subscription {key!r} remembers {events:,} events",
                        f"at most {self.events:,} (limits.window_events)",
                    )
                return
            case Ranked(window=window):
                span = window.span
            case Sequence(within=None):
                raise BadRequestError(
                    f"the sequence {key!r} has no end, so events would be remembered for ever",
                    f"WITHIN and a span of at most {span_text(self.seconds)}",
                )
            case Sequence(within=within) if within is not None:
                span = within
            case _:
                return  # a change keeps no events
        if span > self.seconds:
            raise TooLargeError(
                f"the subscription {key!r} remembers {span_text(span)}",
                f"at most {span_text(self.seconds)} (limits.window, and half of log.keep)",
            )
