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
    floor: Annotated[
        str,
        Meta(description="everything up to here is done, delivered or not; refused while deliveries are under way"),
    ] = ""


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
    remembering: Annotated[
        list[str], Meta(description="the keys of those that remember earlier events: ranked ones, sequences, changes")
    ] = []


class TryBody(msgspec.Struct, forbid_unknown_fields=True):
    """A filter that is to be tried on events of the past."""

    where: Annotated[Any, Meta(description="the filter, in any of its forms")]
    from_: Annotated[str, Meta(description="from where on; the last hour, if this is left out")] = msgspec.field(
        default="-1h", name="from"
    )
    until: Annotated[str, Meta(description="up to where, not included; everything, if this is left out")] = ""
    as_: Annotated[
        str, Meta(description="compare it with the subscriptions of this subscriber; of all of yours, if left out")
    ] = msgspec.field(default="", name="as")
    most: Annotated[int, Meta(ge=0, le=100, description="at most so many examples of either kind")] = 5


class ExplainBody(msgspec.Struct, forbid_unknown_fields=True):
    """A filter and an event: does it match, and why? The event is given, or named by its position."""

    where: Annotated[Any, Meta(description="the filter, in any of its forms")]
    event: Annotated[Any, Meta(description="the event: a CloudEvent, or a JSON object")] = msgspec.UNSET
    at: Annotated[str, Meta(description="the position of an event")] = ""


class RelationsBody(msgspec.Struct, forbid_unknown_fields=True):
    """Two filters: does one cover the other, do they overlap?"""

    first: Annotated[Any, Meta(description="a filter, in any of its forms")]
    second: Annotated[Any, Meta(description="another one")]


class WebhookBody(msgspec.Struct, forbid_unknown_fields=True):
    """Where the events of a subscriber are posted to."""

    url: Annotated[str, Meta(description="the address of the receiver")]
    secrets: Annotated[
        list[str],
        Meta(max_length=2, description="each signs; one is made if there is none. Two while one replaces the other"),
    ] = []
    attempts: Annotated[
        int, Meta(ge=0, le=1_000_000, description="posts of an event before it is a dead letter; 0: for ever")
    ] = 12
    mode: Annotated[
        Literal["structured", "binary", "batch"],
        Meta(
            description="the content mode of CloudEvents: attributes in the body, in headers, or several events at once"
        ),
    ] = "structured"
    most: Annotated[
        int, Meta(ge=1, le=1_000, description="events in a batch, at most; they do not wait for others")
    ] = 100


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


class GapBody(msgspec.Struct):
    """Positions whose events are lost."""

    first: str
    last: str


class LogBody(msgspec.Struct, omit_defaults=True):
    """What the log holds."""

    epoch: Annotated[str, Meta(description="the name of this log: every position of it begins so")]
    first: Annotated[str, Meta(description="the position of the oldest event that there still is")]
    at: Annotated[str, Meta(description="the position of the newest event; 0 behind the hyphen if there was none yet")]
    gaps: Annotated[list[GapBody], Meta(description="what a repair has left out")]
    start: Annotated[str, Meta(description="the position that `from` says; behind the newest for `now`")] = ""


class MatchedBody(msgspec.Struct):
    """Who wants the events."""

    matches: Annotated[
        list[Any], Meta(description="pairs of subscriber and key; for a list of events, a list of such lists")
    ]


class ExplanationBody(msgspec.Struct):
    """A condition, its truth for an event, why, and the same for the conditions that it is made of."""

    text: str
    truth: Literal["true", "false", "unknown"]
    reason: str
    parts: list[ExplanationBody]


class SampleBody(msgspec.Struct, omit_defaults=True):
    """An event of the past."""

    at: Annotated[str, Meta(description="its position")]
    event: Annotated[Any, Meta(description="the CloudEvent")]
    changes: Annotated[
        int, Meta(description="how many predicates would have to come out otherwise for the filter to match it")
    ] = 0
    why: Annotated[str, Meta(description="the explanation, as a text")] = ""


class SpanBody(msgspec.Struct):
    """What came in a part of the time."""

    at: Annotated[str, Meta(description="when it began (RFC 3339)")]
    seen: int
    matched: int


class OwnBody(msgspec.Struct):
    """A subscription of yours."""

    subscriber: str
    key: str
    text: str


class TriedBody(msgspec.Struct):
    """What a filter would have matched, of the events that you may receive."""

    effective: Annotated[str, Meta(description="what would be matched: restricted to what you may receive")]
    seen: Annotated[int, Meta(description="events that you may receive")]
    matched: int
    share: Annotated[float | None, Meta(description="of what was seen; null if that is nothing")]
    first: Annotated[str, Meta(description="the first position that was looked at")]
    through: Annotated[str, Meta(description="the last one")]
    complete: Annotated[
        bool, Meta(description="whether that is all that was asked for; if not, go on behind `through`")
    ]
    span_s: Annotated[int, Meta(description="the length of a span in seconds")]
    spans: list[SpanBody]
    examples: Annotated[list[SampleBody], Meta(description="the latest events that match")]
    near_misses: Annotated[list[SampleBody], Meta(description="events that only just do not match")]
    same: Annotated[list[OwnBody], Meta(description="subscriptions of yours that match the same")]
    covered_by: Annotated[list[OwnBody], Meta(description="subscriptions of yours that match all of it, and more")]
    covers: Annotated[list[OwnBody], Meta(description="subscriptions of yours of which it matches all, and more")]
    compared: Annotated[int, Meta(description="with how many of your subscriptions it was compared")]
    compared_all: bool


class ExplainedBody(msgspec.Struct):
    """Whether a filter matches an event, and why."""

    matches: bool
    text: Annotated[str, Meta(description="the explanation, as a text")]
    explanation: ExplanationBody


class VerdictBody(msgspec.Struct):
    """The answer to a question about filters."""

    holds: bool
    proven: Annotated[bool, Meta(description="if not, it is the answer with which nothing is lost")]


class RelatedBody(msgspec.Struct):
    """How two filters relate."""

    covers: Annotated[VerdictBody, Meta(description="the first matches whatever the second matches")]
    covered: Annotated[VerdictBody, Meta(description="the second matches whatever the first matches")]
    identical: VerdictBody
    overlaps: Annotated[VerdictBody, Meta(description="there are events that both match")]
    only_first: Annotated[Any, Meta(description="attributes of an event that only the first matches, if one is found")]
    only_second: Annotated[Any, Meta(description="the same of the second")]
    both: Annotated[Any, Meta(description="attributes of an event that both match, if one is found")]


class ReasonBody(msgspec.Struct):
    """What a version of a subscription says of an event."""

    key: str
    text: str
    effective: str
    since: Annotated[str, Meta(description="it counts for the events behind this position")]
    until: Annotated[str | None, Meta(description="and up to this one; null while it is in force")]
    in_force: Annotated[bool, Meta(description="whether it counts for this event")]
    matches: Annotated[bool, Meta(description="whether the event counts for it")]
    withheld: Annotated[bool, Meta(description="whether it matches only what its owner may not receive")]
    explanation: Annotated[str, Meta(description="the truth of each condition, as a text")]


class ShareBody(msgspec.Struct):
    """How much a subscription matches."""

    matched: int
    share: Annotated[float | None, Meta(description="of the events that were looked at; null if there is none")]
    per_s: float
    covered_by: Annotated[list[str], Meta(description="keys of subscriptions of the same subscriber that match it all")]


class SharesBody(msgspec.Struct):
    """How much the subscriptions of a subscriber match, of the events that you may receive."""

    seen: int
    seconds: Annotated[float, Meta(description="from the first event that was looked at to the last")]
    subscriptions: dict[str, ShareBody]
    compared_all: bool


class WhyBody(msgspec.Struct, omit_defaults=True):
    """Why a subscriber got an event, or why not."""

    at: Annotated[str, Meta(description="the position of the event")]
    verdict: Annotated[str, Meta(description="the reason, in one sentence")]
    delivery: Annotated[
        str, Meta(description="none, done, sent, again, waiting, ahead or dead: what became of the delivery")
    ]
    attempts: Annotated[int, Meta(description="how often it was delivered, as far as that is known")]
    subscriptions: list[ReasonBody]
    event: Annotated[Any, Meta(description="the CloudEvent")]
    reason: Annotated[str, Meta(description="why it is a dead letter")] = ""


class WebhookFactsBody(msgspec.Struct, omit_defaults=True):
    """A webhook, and how it fares."""

    url: str
    mode: Literal["structured", "binary", "batch"]
    state: Annotated[
        Literal["waiting", "good", "failing", "over"],
        Meta(description="waiting: nothing was posted yet; over: the receiver has answered 410, and gets no more"),
    ]
    reason: Annotated[str, Meta(description="why the last post failed; empty if it did not")]
    posted: int
    failed: int
    secret: Annotated[str, Meta(description="the secret that was made now; it is not shown again")] = ""
