"""When does a broker stop filtering for a neighbour, and when does it start again? Adaptive filtering, with hysteresis.

If nearly every event goes to a neighbour, matching its filters is in vain: the sender stops, and passes everything on.
Only the receiver then sees how much of it nobody wants; if that is too much, it asks for filtering again. Both look at
the latest so many events on the link. A sender that was asked waits a while before it may stop again, so they do not
quarrel.

Source: Mühl et al. 2002, section 2.8 (docs/bibliography.md).
Departs: the values are ours, none are given there.
"""

from __future__ import annotations

from dataclasses import dataclass

from tamis.errors import TamisError


class AdaptationError(TamisError, ValueError):
    """Bounds with which one broker would stop filtering while the other asks for it, again and again."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.problem}; stop_above and ask_above are shares from 0 to 1, and together more than 1"


@dataclass(frozen=True, slots=True)
class Adaptation:
    """When to stop filtering, and when to ask for it.

    >>> Adaptation(stop_above=0.5, ask_above=0.2)
    Traceback (most recent call last):
        ...
    tamis.routing.adaptation.AdaptationError: with 0.5 and 0.2 a link would stop filtering and ask for it at once; ...
    """

    stop_above: float = 0.9
    """The share of events that match, above which the sender stops filtering."""
    ask_above: float = 0.3
    """The share of events that nobody wants, above which the receiver asks for filtering."""
    event_count: int = 100
    """How many events are looked at."""
    wait_s: float = 60.0
    """For how long a sender that was asked goes on filtering."""

    def __post_init__(self) -> None:
        if not (0 <= self.stop_above <= 1 and 0 <= self.ask_above <= 1):
            raise AdaptationError(f"{self.stop_above} and {self.ask_above} are not shares")
        if self.stop_above + self.ask_above <= 1:
            raise AdaptationError(
                f"with {self.stop_above} and {self.ask_above} a link would stop filtering and ask for it at once"
            )
        if self.event_count < 1 or not self.wait_s >= 0:
            raise AdaptationError(
                f"event_count must be at least 1 and wait_s at least 0, not {self.event_count} and {self.wait_s}"
            )


class Rates:
    """What was seen on one link: of the events that might go there, and of those that came from there."""

    def __init__(self, settings: Adaptation) -> None:
        self._settings = settings
        self.is_filtering = True
        self._seen = self._matched = self._came = self._missed = 0
        self._not_before_s = float("-inf")

    @property
    def events_to_decision(self) -> int:
        """How many more events might go there until it is decided whether to stop filtering, with the last of them."""
        return self._settings.event_count - self._seen

    def note_sent(self, is_match: bool, now: float) -> bool:
        """Take note of an event that might go there; return whether it is time to stop filtering."""
        self._seen += 1
        self._matched += is_match
        if self._seen < self._settings.event_count:
            return False
        is_enough = self._matched > self._settings.stop_above * self._seen and now >= self._not_before_s
        self._seen = self._matched = 0
        return is_enough

    def note_received(self, is_wanted: bool) -> bool:
        """Take note of an event that came from there; return whether it is time to ask for filtering."""
        self._came += 1
        self._missed += not is_wanted
        if self._came < self._settings.event_count:
            return False
        is_too_much = self._missed > self._settings.ask_above * self._came
        self._came = self._missed = 0
        return is_too_much

    def asked(self, now: float) -> None:
        """The neighbour asked for filtering."""
        self._seen = self._matched = 0
        self._not_before_s = now + self._settings.wait_s
