"""Which events does nobody want, and who is told of them? A second look at an event that nobody took.

An event is *unwanted* if no subscription of the network wants it, of those that do not ask for just that. The broker of
its publisher decides that, when the event comes: it knows its own subscribers, and its neighbours have told it what is
wanted behind them. If the strategies are perfect that is exactly what is wanted there; if not, less is found to be
unwanted, and never something that somebody wants.

What is unwanted has the attribute `unwanted` for filters, with the value TRUE; no other event has it, whatever it says
of itself. It is marked in the log and on links, and with that it is an event like any other: a subscription such as
`unwanted AND type = 'order'` is told to neighbours, covered and merged, matched, replayed and restricted by roles as
every other, wherever it was made. So there is no other way for such events, and nothing that routing has to know.

As long as no subscription mentions the attribute nothing is looked at twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.service.cloud_events import UNWANTED_ATTRIBUTE
from tamis.service.log.base import UNWANTED
from tamis.service.messages import Incoming

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tamis.routing import Broker
    from tamis.service.interest import Interest


def is_asked_for(broker: Broker) -> bool:
    """Does anybody, here or behind a neighbour, ask for what nobody wants?"""
    return broker.table.mentions(UNWANTED_ATTRIBUTE)


def marked(group: Sequence[Incoming], sources: Sequence[str], interest: Interest) -> list[Incoming]:
    """Return events, those of clients that nobody wants marked; what came from neighbours was judged where it began."""
    _, counts = interest.hits_and_counts([event.record for event in group])
    return [
        event
        if count or source
        else Incoming(event.key, event.body, {**event.record, UNWANTED_ATTRIBUTE: True}, event.flags | UNWANTED)
        for event, source, count in zip(group, sources, counts, strict=True)
    ]
