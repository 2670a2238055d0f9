"""How far does a ranked subscription reach before anything has come for it? As far as the best that came to others.

Fresh, it wants all of space, so every peer is told, and posts every event. What the peer's recent buffer holds gives a
guess: about as near as the k-th best of it will be enough soon. Only the threshold is guessed; nobody is told of an
event that was published before. The guess holds until as many have come that the ranking's own threshold is as near, or
a window has passed: then it was too near. What is farther is lost until then, so this is an option.

Source: Pripužić 2010, section 6.4.1, footnote 9 (docs/bibliography.md).
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, NamedTuple

from tamis.language.meaning import holds
from tamis.topk.ranked import Ranked
from tamis.topk.scores import key as key_of
from tamis.topk.windows import TimeWindow

if TYPE_CHECKING:
    from tamis.language.schema import Schema
    from tamis.routing.distributed.recent import ServedEvents
    from tamis.routing.distributed.residents import RankingSettings, Residents, Who
    from tamis.routing.messages import Deposit


class _Preset(NamedTuple):
    threshold: float
    end: float
    is_timed: bool


class Presets:
    """The guessed thresholds of fresh subscriptions that live at a peer."""

    def __init__(self, residents: Residents, settings: RankingSettings) -> None:
        self._residents, self._spread_s = residents, settings.spread_s
        self._presets: dict[Who, _Preset] = {}

    def begin(self, deposit: Deposit, recent: ServedEvents, schema: Schema | None) -> None:
        """Guess a threshold, if the buffer holds as many events as a subscription wants."""
        who, ranked = (deposit.home, deposit.client, deposit.key), deposit.wanted
        if not isinstance(ranked, Ranked) or who not in self._residents:
            return
        events = [passed.event for passed in recent.events]
        keys = sorted(key_of(ranked, event, schema) for event in events if holds(ranked.where, event, schema))
        keys = [key for key in keys if key == key]
        if len(keys) < ranked.k:
            return
        is_timed = isinstance(ranked.window, TimeWindow)
        begin = deposit.at + self._spread_s if is_timed else self._residents.number
        self._presets[who] = _Preset(keys[ranked.k - 1], begin + ranked.window.span, is_timed)

    def threshold(self, who: Who) -> float:
        """Return what was guessed; infinite if nothing was, or it holds no more."""
        preset = self._presets.get(who)
        return inf if preset is None else preset.threshold

    def end(self, now: float) -> None:
        """Forget guesses that are not needed any more, or were too near for a whole window."""
        for who, (threshold, end, is_timed) in list(self._presets.items()):
            if (
                who not in self._residents
                or self._residents.threshold(who) <= threshold
                or end <= (now if is_timed else self._residents.number)
            ):
                del self._presets[who]

    @property
    def due(self) -> float:
        """When the next guess ends by time."""
        return min((preset.end for preset in self._presets.values() if preset.is_timed), default=inf)
