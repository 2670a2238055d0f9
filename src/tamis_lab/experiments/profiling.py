"""Where does the time of an algorithm go?

Another thread looks, a thousand times a second, at which function of ours the working thread is in. Compiled loops run
without Python's lock, so they are seen as the function that called them. It costs little and needs nothing from those
who are looked at.
"""

from __future__ import annotations

import sys
import threading
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

_INTERVAL_S = 0.001

STAGES = {
    "tamis_lab.matching.predicates": "predicates",
    "tamis_lab.matching": "subscriptions",
    "tamis.matching.block": "subscriptions",
    "tamis.matching": "values",
}
"""What a module does while events are matched: values become codes, codes become predicates that hold, and these become
subscriptions. The first that fits counts."""
PARTS = ("values", "predicates", "subscriptions", "rest")


def stage_of(module: str) -> str:
    """Return which stage a module belongs to.

    >>> stage_of("tamis.matching.axes"), stage_of("tamis_lab.matching.counting"), stage_of("numpy")
    ('values', 'subscriptions', 'rest')
    """
    for prefix, stage in STAGES.items():
        if module == prefix or module.startswith(f"{prefix}."):
            return stage
    return "rest"


@contextmanager
def sampled() -> Iterator[Counter[tuple[str, str]]]:
    """Count, while the block runs, in which module and function of tamis this thread is found."""
    samples: Counter[tuple[str, str]] = Counter()
    watched = threading.get_ident()
    is_over = threading.Event()

    def watch() -> None:
        while not is_over.wait(_INTERVAL_S):
            frame = sys._current_frames().get(watched)
            samples[_place(frame)] += 1

    interval = sys.getswitchinterval()
    sys.setswitchinterval(_INTERVAL_S / 2)
    thread = threading.Thread(target=watch, name="tamis profile", daemon=True)
    thread.start()
    try:
        yield samples
    finally:
        is_over.set()
        thread.join()
        sys.setswitchinterval(interval)


def _place(frame: FrameType | None) -> tuple[str, str]:
    """Return the innermost function of the matchers that a frame is in."""
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if module.startswith(("tamis.matching", "tamis_lab.matching")):
            return module, frame.f_code.co_qualname
        frame = frame.f_back
    return "", "elsewhere"


def shares(samples: Counter[tuple[str, str]]) -> tuple[float, ...]:
    """Return the share of each stage.

    >>> shares(Counter({("tamis.matching.axes", "f"): 1, ("tamis_lab.matching.counting", "g"): 3}))
    (0.25, 0.0, 0.75, 0.0)
    """
    total = max(1, samples.total())
    by_stage: Counter[str] = Counter()
    for (module, _), count in samples.items():
        by_stage[stage_of(module)] += count
    return tuple(by_stage[part] / total for part in PARTS)


def busiest(samples: Counter[tuple[str, str]], count: int = 3) -> list[tuple[str, float]]:
    """Return the functions in which most of the time was spent, and their shares."""
    total = max(1, samples.total())
    names = [
        (f"{module.partition('.matching.')[2]}.{name}", hits) for (module, name), hits in samples.most_common(count)
    ]
    return [(name, hits / total) for name, hits in names]
