"""What do requests say in JSON? The Structs that decode them, and of which `/openapi.json` is made."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

Seconds = Annotated[float, Meta(ge=0, le=31_536_000)]


class SubscriberBody(msgspec.Struct, forbid_unknown_fields=True):
    """How deliveries to a durable subscriber are repeated."""

    wait_s: Annotated[Seconds, Meta(description="so long after a delivery that is not done it comes again")] = 30.0
    attempts: Annotated[
        int,
        Meta(ge=0, le=1_000_000, description="deliveries of an event before it is a dead letter; 0: for ever"),
    ] = 0
    ordered: Annotated[bool, Meta(description="whether what follows a delivery that comes again does, too")] = False
    forget_after_s: Annotated[
        Seconds, Meta(description="so long after its last connection a subscriber is forgotten; 0: never")
    ] = 0.0
    backoff_s: Annotated[
        Seconds, Meta(description="a pause before a delivery comes again; it doubles with every further attempt")
    ] = 0.0


class TakeBody(msgspec.Struct, forbid_unknown_fields=True):
    """A long poll."""

    most: Annotated[int, Meta(ge=1, le=10_000, description="at most so many events")] = 100
    wait_s: Annotated[Seconds, Meta(description="how long to wait if there is none")] = 0.0


class DoneBody(msgspec.Struct, forbid_unknown_fields=True):
    """What a consumer says of deliveries, by their positions."""

    done: Annotated[list[str], Meta(description="these are done")] = []
    done_through: Annotated[str, Meta(description="everything delivered up to here is done")] = ""
    again: Annotated[list[str], Meta(description="these are to come again")] = []
    in_s: Annotated[Seconds, Meta(description="after how long those of `again` come again")] = 0.0
    never: Annotated[list[str], Meta(description="these become dead letters")] = []
    reason: Annotated[str, Meta(max_length=1_000, description="why, for those of `never`")] = ""


class AgainBody(msgspec.Struct, forbid_unknown_fields=True):
    """Which dead letters are to be delivered once more."""

    at: Annotated[list[str] | None, Meta(description="their positions; all of them, if this is left out")] = None


class PublishedBody(msgspec.Struct, omit_defaults=True):
    """The events are taken."""

    position: Annotated[str, Meta(description="of the last event")]
    positions: Annotated[list[str], Meta(description="of each event")]
    events: int
    known: Annotated[int, Meta(description="how many of them had been taken before")]
    durable: Annotated[bool, Meta(description="whether they are on disk")]
    wanted: Annotated[
        list[int | None] | None,
        Meta(
            description="if that was asked: of each event, how many subscribers and neighbours want it; 0 if nobody in "
            "the network does, null if it was known already"
        ),
    ] = None


class SubscribedBody(msgspec.Struct):
    """The subscriptions are in force."""

    since: Annotated[str, Meta(description="for every event behind this position")]
    settled: Annotated[bool, Meta(description="whether every broker of the network that has to know of them does")]
    effective: Annotated[dict[str, str], Meta(description="what is matched, by key")]


class LinkBody(msgspec.Struct, forbid_unknown_fields=True):
    """A link to another broker, and what may pass over it."""

    url: Annotated[str, Meta(description="where it is called; empty: it calls")] = ""
    may_send: Annotated[str, Meta(description="a filter of the events that may go there")] = "TRUE"
    may_receive: Annotated[str, Meta(description="a filter of the events that may come from there")] = "TRUE"
    rate: Annotated[float, Meta(ge=0, description="events a second that are taken from there; 0: no limit")] = 0.0
    patience_s: Annotated[float, Meta(gt=0, description="so long after its last connection it is gone")] = 3600.0
    strategy: Annotated[
        Literal["", "flooding", "simple", "identity", "covering", "merging", "imperfect merging"],
        Meta(description="how filters are summarised for it; empty: as for all others"),
    ] = ""


class CheckedBody(msgspec.Struct):
    """The filter has a meaning."""

    text: Annotated[str, Meta(description="its canonical form")]
    effective: Annotated[str, Meta(description="what would be matched: restricted to what you may receive")]
    json: Annotated[Any, Meta(description="its JSON form")]


class MatchedBody(msgspec.Struct):
    """Who wants the events."""

    matches: Annotated[
        list[Any], Meta(description="pairs of subscriber and key; for a list of events, a list of such lists")
    ]
