"""When does one ranked subscription make another one's deliveries, too? Containment of ranked subscriptions.

With the same score, order and filter, more events (k) of a shorter window: what is among the best k of a longer window
is among the best k of every shorter one that it is in, at no later moment. So a broker that serves the first need not
be asked for the second.

But a window starts empty, and takes everything at first. A subscription that is older has a fuller window, and refuses
what a new one still takes. So the rule holds for events that come at least one window of the covering subscription
after the covered one began: only then may the covered one be left out.

Source: Pripužić 2010, section 4.3.1 (docs/bibliography.md).
Departs: the thesis asks for equal windows and more events; windows of different length and the warm-up are ours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.language.rewrites import canonical

if TYPE_CHECKING:
    from tamis.topk.ranked import Ranked


def covers(one: Ranked, two: Ranked) -> bool:
    """Is everything that is delivered for the second delivered for the first, and no later, once it has warmed up?

    >>> from tamis.topk.ranked import Ranked
    >>> hourly, daily = Ranked("price", 5, "1 HOUR"), Ranked("price", 2, "1 DAY")
    >>> covers(hourly, daily), covers(daily, hourly)
    (True, False)
    """
    return (
        one.order == two.order
        and one.half_life_s == two.half_life_s
        and type(one.window) is type(two.window)
        and one.k >= two.k
        and one.window.span <= two.window.span
        and one.score == two.score
        and (one.where == two.where or canonical(one.where) == canonical(two.where))
    )


def warm_up(one: Ranked) -> float:
    """Return how long after a covered subscription began it still needs to be asked itself.

    By the clock of the covering subscription's window: seconds, or events that pass the filter.
    """
    return one.window.span
