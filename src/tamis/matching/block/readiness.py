"""Are the compiled loops there, or would the first events wait for the compiler? Readiness, at a cold start.

To compile the loops takes some ten seconds, once for an installation; to load them from disk takes a tenth of one. A
process that finds none on the disk is *cold*. Whatever it matches first is answered by functions of Python, as what is
not laid out yet always is (`open_part`), while a thread in the background lays it out and matches made-up events, which
compiles the loops for just the types that they are needed for. A large batch of many subscriptions would take longer
that way than the compiler does: it waits.

The process does not end before that thread does, so that the next one finds the loops on the disk.
"""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING

from numba import config

from tamis.compilation import is_compiled
from tamis.matching.block import kernels, probing

if TYPE_CHECKING:
    from collections.abc import Callable

    from tamis.matching.block.open_part import OpenPart
    from tamis.matching.columns import Events

SWITCH, WAITING = "TAMIS_COLD_START", "wait"
"""A variable, and what it says where events are to wait for the compiler: who measures wants the same way each time."""
MOST_OPEN = 1 << 14
"""So many subscriptions are left to Python at a cold start; to register more takes as long as to compile."""
_MOST_PAIRS = 4_000_000
"""So many pairs of an event and a subscription Python asks in the time that the compiler takes."""
_EVENT_COSTS = 50
"""To find out who is asked takes as long as to ask so many."""
_SHOWN = 16
_NEEDED_FIRST = (probing.choose_probes, probing.match_event_of_columns, kernels.match_keys, kernels.match_maps)
"""Those that take the compiler most of its time."""
_LOGGER = logging.getLogger("tamis.matching")
_LINE = (
    "Kernels are being compiled in the background, once for this installation. Until then, for some ten seconds, "
    "events are matched more slowly, and the process does not end. `tamis warm` compiles ahead."
)


class Readiness:
    """What a process knows of its compiled loops."""

    def __init__(self) -> None:
        self._is_cold: bool | None = None
        self._has_told = False

    def look(self) -> bool:
        """Look whether events would wait for the compiler; once they would not, they never do."""
        if self._is_cold is None:
            does_wait = config.DISABLE_JIT or os.environ.get(SWITCH) == WAITING
            self._is_cold = not does_wait and not all(map(is_compiled, _NEEDED_FIRST))
        elif self._is_cold and all(kernel.signatures for kernel in _NEEDED_FIRST):
            self._is_cold = False  # somebody did wait
        return self._is_cold

    def compile(self, exercise: Callable[[], None]) -> None:
        """Say that events are matched more slowly, and call all that has to be compiled, in this thread."""
        if not self._has_told:
            self._has_told = True
            _LOGGER.warning(_LINE)
        try:
            exercise()
        finally:
            self._is_cold = False  # whatever could not be compiled fails where it is needed


OF_THIS_PROCESS = Readiness()


def are_answered_sooner(opened: OpenPart, events: Events) -> bool:
    """Does Python answer events sooner than the compiler is done? A few of them show how many are asked."""
    if len(opened) * events.count <= _MOST_PAIRS:
        return True
    shown = list(events.slice(0, _SHOWN).mappings())
    asked = sum(sum(map(len, opened.asked_by(event))) for event in shown)
    return (asked + _EVENT_COSTS * len(shown)) * events.count <= _MOST_PAIRS * len(shown)
