"""What must another node know of a ranked subscription to tell whether an event interests it? Moving filters.

Not k, not the window, not a single event: the score, the order, the filter, and the threshold of the moment. That is a
*proxy*. Asking it costs as much as asking a Boolean subscription; but its threshold moves, and has to be kept in step.
A proxy whose threshold is too loose costs messages, one whose threshold is too tight loses events. So what loosens must
travel at once, what tightens may wait.

Only algorithms with a threshold have proxies that spare anything: probabilistic pruning, and filters over a recent
buffer. With a filter, a proxy is asked twice: when an event is published, and when it leaves the recent buffer.

Source: Pripužić 2010, section 4.2, definition 4.3 and theorem 4.3; ranking Boolean subscriptions: section 4.1.1
(docs/bibliography.md).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tamis.language.expressions import TRUE
from tamis.language.meaning import holds
from tamis.relations.geometry import covers
from tamis.relations.regions import Region, region_of
from tamis.topk.ranked import Ranked
from tamis.topk.scores import key

if TYPE_CHECKING:
    from tamis.language.meaning import Event
    from tamis.language.schema import Schema
    from tamis.topk.processor import TopK


@dataclass(frozen=True, slots=True)
class Proxy:
    """A ranked subscription as other nodes see it. If its threshold never moves, it is a ranking Boolean one."""

    subscription: Any
    ranked: Ranked
    threshold: float
    """A score: events beyond it do not interest the subscription."""
    version: int = 0

    @staticmethod
    def of(processor: TopK, subscription_id: Any, version: int = 0) -> Proxy:
        """Return the proxy of a processor's subscription, as it is now."""
        ranked = processor.wanted(subscription_id)
        assert isinstance(ranked, Ranked)
        return Proxy(subscription_id, ranked, processor.threshold(subscription_id), version)

    def wants(self, event: Event, schema: Schema | None = None) -> bool:
        """Does an event that is published now, or leaves the recent buffer now, interest the subscription?

        >>> Proxy("s", Ranked("price", 1, "1 HOUR", order="DESC"), threshold=10.0).wants({"price": 12})
        True
        """
        sign = 1 if self.ranked.is_ascending else -1
        return holds(self.ranked.where, event, schema) and key(self.ranked, event, schema) <= sign * self.threshold

    def moved(self, threshold: float) -> Proxy:
        """Return the proxy with another threshold, and the next version."""
        return replace(self, threshold=threshold, version=self.version + 1)

    def newer(self, other: Proxy) -> Proxy:
        """Return the newer of two versions."""
        return other if other.version > self.version else self

    @property
    def region(self) -> Region:
        """The region of the events that interest the subscription; its filter may shut some of them out."""
        return region_of(self.ranked.score, self.threshold, is_ascending=self.ranked.is_ascending)

    def covers(self, other: Proxy) -> bool:
        """Does it surely want everything that the other wants, as long as neither moves?"""
        is_wider = self.ranked.where in (TRUE, other.ranked.where)
        return is_wider and covers(self.region, other.region)
