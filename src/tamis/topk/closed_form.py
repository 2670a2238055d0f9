"""When does each event of a finite stream enter the best k, without playing the stream? A sweep over a finite stream.

Look at the better events around it. To be one of the best k with `a` better ones older than itself in the window, the
(a+1)-th better one before it must have left, and the (k−a)-th better one after it must not have come yet. The first
moment for which some `a` fits is when it enters. No event's answer depends on another's, and no state is kept: history
can be cut anywhere, and computed in parallel.

Source: ours; it follows from the definition (Pripužić 2010, equations 3.4 to 3.7) and agrees with it in the tests.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from tamis.topk import kernels
from tamis.topk.windows import TimeWindow

if TYPE_CHECKING:
    import numpy.typing as npt

    from tamis.topk.kernels import Floats
    from tamis.topk.windows import Window


def entering_times(
    keys: npt.ArrayLike, times: npt.ArrayLike, k: int, window: Window, until: float = math.inf
) -> Floats:
    """Return when each event of a stream enters the best k of a window, NaN where it never does.

    The stream is that of one subscription: what passes its filter, from its first event on, in order of time. Keys are
    the smaller the better, NaN for none. `until` is the last moment at which something may still leave a time window.

    >>> from tamis.topk.windows import CountWindow
    >>> entering_times([9.0, 8, 5, 3, 1, 2], [1.0, 2, 3, 4, 5, 6], k=2, window=CountWindow(4)).tolist()
    [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    >>> entering_times([1.0, 2, 5, 8, 9, 3], [1.0, 2, 3, 4, 5, 6], k=2, window=CountWindow(4)).tolist()
    [1.0, 2.0, 5.0, nan, nan, 6.0]
    """
    values = np.ascontiguousarray(keys, np.float64)
    moments = np.ascontiguousarray(times, np.float64)
    room = min(k, max(1, len(values)))
    ats, causes = np.full(len(values), math.nan), np.zeros(len(values), np.int64)
    kernels.entries(values, moments, room, window.span, isinstance(window, TimeWindow), until, ats, causes)
    return ats
