"""How long may something take? A span of time, as windows write it."""

from __future__ import annotations

from tamis.topk import WindowError
from tamis.topk.windows import CountWindow, TimeWindow, window_of


def span_of(written: object) -> float | None:
    """Return the seconds that a text, a timedelta, a number or a window says; None stays None.

    >>> span_of("5 minutes"), span_of(1.5), span_of(None)
    (300.0, 1.5, None)
    >>> span_of("5 EVENTS")
    Traceback (most recent call last):
        ...
    tamis.topk.errors.WindowError: a span is a time, not 5 EVENTS
      Write '5 MINUTES', or give a timedelta or a number of seconds.
    """
    if written is None:
        return None
    if isinstance(written, int | float) and not isinstance(written, bool):
        return TimeWindow(written).seconds
    window = window_of(written)
    if isinstance(window, CountWindow):
        raise WindowError(
            f"a span is a time, not {window}", hint="Write '5 MINUTES', or give a timedelta or a number of seconds."
        )
    return window.seconds


def span_text(seconds: float) -> str:
    """Write a span.

    >>> span_text(300.0)
    '5 MINUTES'
    """
    return str(TimeWindow(seconds))
