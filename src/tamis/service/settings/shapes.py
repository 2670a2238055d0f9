"""What may an operator decide? The settings, with their defaults and what each is for.

Each table of `tamis.toml` is a Struct. What a setting is for stands in its annotation, because `docs/settings.md` and
the example file are written from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import Meta

from tamis.language.functions import NO_FUNCTIONS, Functions, imported_functions
from tamis.language.limits import Limits
from tamis.language.schema import Schema
from tamis.service.settings.quantities import Duration, KeepLimits, Size, Sync

Count: TypeAlias = Annotated[int, Meta(ge=1)]
Rate: TypeAlias = Annotated[float, Meta(ge=0, le=1e12)]
Share: TypeAlias = Annotated[float, Meta(ge=0, le=1)]
Number: TypeAlias = Annotated[int, Meta(ge=0)]
Names: TypeAlias = tuple[str, ...]


class _Table(msgspec.Struct, frozen=True, kw_only=True):
    """The base of all tables."""


class Tls(_Table, frozen=True, kw_only=True):
    """The certificate of a listener, and which certificates clients may show."""

    certificate: Annotated[str, Meta(description="the file of the certificate and its chain (PEM)")]
    key: Annotated[str, Meta(description="the file of its private key (PEM)")]
    client_ca: Annotated[
        str | None, Meta(description="the file of the authorities whose certificates clients may show (PEM)")
    ] = None
    clients: Annotated[
        Literal["optional", "required"],
        Meta(description="whether clients must show a certificate, if `client_ca` is given"),
    ] = "optional"


class Listener(_Table, frozen=True, kw_only=True):
    """An address that the broker listens on."""

    host: Annotated[str, Meta(description="the name or number of the address")] = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65_535, description="the port; 0 takes any that is free")] = 7410
    shared: Annotated[
        bool, Meta(description="whether other processes of this machine listen there too, as edge brokers do")
    ] = False
    tls: Annotated[Tls | None, Meta(description="how it is encrypted; without this table it is not")] = None


class LinkTls(_Table, frozen=True, kw_only=True):
    """The certificate that a broker shows when it calls another, and which it takes from there."""

    ca: Annotated[str, Meta(description="the file of the authorities whose certificates the other end may show (PEM)")]
    certificate: Annotated[
        str | None, Meta(description="the file of the certificate with this broker's name in it (PEM)")
    ] = None
    key: Annotated[str | None, Meta(description="the file of its private key (PEM)")] = None


class LinkListener(_Table, frozen=True, kw_only=True):
    """An address at which neighbours call."""

    host: Annotated[str, Meta(description="the name or number of the address")] = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65_535, description="the port; 0 takes any that is free")] = 7411
    path: Annotated[str, Meta(description="the path of a Unix socket, in place of host and port")] = ""
    tls: Annotated[Tls | None, Meta(description="how it is encrypted; without this table it is not")] = None


class LinkPruning(_Table, frozen=True, kw_only=True):
    """How far filters are generalised before they are sent to the neighbour; whichever comes first ends it."""

    reduction: Annotated[Share | None, Meta(description="until this share of all conditions of the link is gone")] = (
        None
    )
    share: Annotated[Share | None, Meta(description="this share of all prunings that are possible")] = None
    count: Annotated[Number | None, Meta(description="so many conditions of each filter")] = None
    threshold: Annotated[float | None, Meta(description="what each pruning may cost, by the measure")] = None
    memory_bytes: Annotated[Size | None, Meta(description="until all filters of the link take no more")] = None
    measure: Annotated[
        Literal["accuracy", "efficiency", "memory", "occurrence", "distance", "network", "throughput"],
        Meta(description="what is pruned first; shares of predicates are learnt from the events that pass"),
    ] = "accuracy"


class LinkAdaptation(_Table, frozen=True, kw_only=True):
    """When events are no longer filtered on the way to a neighbour, because nearly all of them go there."""

    stop_above: Annotated[Share, Meta(description="the share of events that go there, above which all are sent")] = 0.9
    ask_above: Annotated[
        Share, Meta(description="the share of events from there that nobody wants, above which it filters")
    ] = 0.3
    events: Annotated[Count, Meta(description="how many events are looked at before that is decided")] = 100
    wait: Annotated[Duration, Meta(description="for how long filtering goes on after it was asked for")] = Duration(60)


StrategyName: TypeAlias = Literal["flooding", "simple", "identity", "covering", "merging", "imperfect merging"]


class LinkSettings(_Table, frozen=True, kw_only=True):
    """A link to the broker of this name: where it is, and what may pass."""

    url: Annotated[
        str, Meta(description="where it is called: tamis://host:7411, tamis+tls://… or unix:///…; empty: it calls")
    ] = ""
    tls: Annotated[LinkTls | None, Meta(description="certificates for this link alone")] = None
    may_send: Annotated[str, Meta(description="a filter of the events that may go there")] = "TRUE"
    may_receive: Annotated[str, Meta(description="a filter of the events that may come from there")] = "TRUE"
    rate: Annotated[Rate, Meta(description="events a second that are taken from there; 0 is without a limit")] = 0.0
    patience: Annotated[
        Duration, Meta(description="how long after its last connection a neighbour is removed, with its filters")
    ] = Duration(3600)
    strategy: Annotated[
        StrategyName | None, Meta(description="how filters are summarised for it; without: as for all others")
    ] = None
    pruning: Annotated[
        LinkPruning | None, Meta(description="how far filters are generalised for it; without: not at all")
    ] = None
    adaptation: Annotated[
        LinkAdaptation | None, Meta(description="when filtering stops and begins again; without: never")
    ] = None


class JetStream(_Table, frozen=True, kw_only=True):
    """A stream of NATS JetStream, as the log in place of files in the data folder."""

    url: Annotated[str, Meta(description="the server or servers, separated by commas: nats://host:4222")]
    stream: Annotated[str, Meta(description="the name of the stream; it is made if it is not there")] = "tamis"
    replicas: Annotated[Count, Meta(description="how many servers keep each event")] = 1


class LogSettings(_Table, frozen=True, kw_only=True):
    """The log of events: when it is on disk, and how long it stays."""

    sync: Annotated[
        Sync,
        Meta(description="when events are forced to disk: always (before they are acknowledged), never, or every 0.2s"),
    ] = Sync(0.0)
    keep: Annotated[
        KeepLimits, Meta(description="how old and large the log may become: an age, a size, both, or forever")
    ] = KeepLimits(604_800.0, 20_000_000_000)
    hold: Annotated[
        Duration, Meta(description="how long events that a durable subscriber still needs stay beyond `keep`")
    ] = Duration(30 * 86_400)
    segment_bytes: Annotated[Size, Meta(description="how large a file of the log becomes before the next is begun")] = (
        Size(64_000_000)
    )
    segment_age: Annotated[Duration, Meta(description="how old a file of the log becomes before the next is begun")] = (
        Duration(3600)
    )
    check: Annotated[
        Literal["last", "all"], Meta(description="whose checksums are verified at the start: the last file's, or all")
    ] = "all"
    jetstream: Annotated[
        JetStream | None, Meta(description="a NATS stream in place of files; `sync` and `segment` do not count then")
    ] = None


class LimitSettings(_Table, frozen=True, kw_only=True):
    """How much is too much."""

    event_bytes: Annotated[Size, Meta(description="the size of an event")] = Size(256_000)
    batch_events: Annotated[Count, Meta(description="events in one request or message")] = 1_000
    batch_bytes: Annotated[Size, Meta(description="the size of one request or message")] = Size(4_000_000)
    depth: Annotated[Count, Meta(description="how deeply the values of an event are nested")] = 32
    attributes: Annotated[Count, Meta(description="attributes of an event, nested ones included")] = 256
    subscriptions: Annotated[Count, Meta(description="subscriptions of one principal")] = 10_000
    subscribers: Annotated[Count, Meta(description="durable subscribers of one principal")] = 1_000
    texts: Annotated[Count, Meta(description="subscriptions in one request or message")] = 1_000
    text_length: Annotated[Count, Meta(description="characters of a filter")] = 100_000
    connections: Annotated[Count, Meta(description="connections at a time")] = 10_000
    connections_each: Annotated[Count, Meta(description="connections of one principal at a time")] = 100
    events_per_s: Annotated[Rate, Meta(description="events of one principal a second; 0 is without a limit")] = 50_000.0
    bytes_per_s: Annotated[
        Size, Meta(description="bytes of events of one principal a second; 0 is without a limit")
    ] = Size(100_000_000)
    subscriptions_per_s: Annotated[
        Rate, Meta(description="subscriptions that one principal makes or ends a second; 0 is without a limit")
    ] = 10_000.0
    burst: Annotated[
        Duration, Meta(description="for how long unused rates are saved up; always enough for one batch")
    ] = Duration(2)
    inbox_events: Annotated[
        Count, Meta(description="events that wait for the core, before the broker says it is busy")
    ] = 16_384
    inbox_bytes: Annotated[
        Size, Meta(description="bytes that wait for the core, before the broker says it is busy")
    ] = Size(32_000_000)
    group_events: Annotated[Count, Meta(description="events that the core takes at once")] = 512
    group_bytes: Annotated[Size, Meta(description="bytes of events that the core takes at once")] = Size(1_000_000)
    credit: Annotated[
        Count, Meta(description="deliveries that a consumer may have without saying that they are done")
    ] = 256
    credit_bytes: Annotated[Size, Meta(description="the size of these deliveries")] = Size(1_000_000)
    queue_bytes: Annotated[Size, Meta(description="bytes that wait for one connection to read them")] = Size(1_000_000)
    passing_events: Annotated[
        Count, Meta(description="events that wait for a passing subscriber, before it loses some")
    ] = 1_000
    passing_bytes: Annotated[Size, Meta(description="the size of these events")] = Size(1_000_000)
    waiting_bytes: Annotated[
        Size, Meta(description="memory for the positions that wait for subscribers who are behind, all together")
    ] = Size(64_000_000)
    ring_bytes: Annotated[
        Size, Meta(description="memory for recent events, so that they need not be read from disk")
    ] = Size(64_000_000)
    window: Annotated[Duration, Meta(description="how far back a ranked subscription or a sequence may remember")] = (
        Duration(86_400)
    )
    window_events: Annotated[Count, Meta(description="how many events a ranked subscription may choose from")] = 100_000
    keys: Annotated[
        Count, Meta(description="the least number of events whose keys are kept, to recognise a repeated one")
    ] = 200_000
    keys_age: Annotated[
        Duration,
        Meta(
            description="the least time for which a repeated event is recognised, "
            "if no more than 2,000,000 events come in it"
        ),
    ] = Duration(600)
    wait: Annotated[Duration, Meta(description="how long a long poll may wait")] = Duration(60)
    idle: Annotated[Duration, Meta(description="how long a connection may be silent before it is asked or closed")] = (
        Duration(75)
    )
    header: Annotated[Duration, Meta(description="how long a client may take for a request, and for a greeting")] = (
        Duration(10)
    )

    def of_filters(self) -> Limits:
        """Return the limits of a filter from outside, as `tamis.parse` takes them."""
        return Limits(text_length=self.text_length)


class Publishing(_Table, frozen=True, kw_only=True):
    """What a role may publish: events that fit all three; an empty list fits everything."""

    source: Annotated[Names, Meta(description="patterns of sources, in which * stands for anything")] = ()
    type: Annotated[Names, Meta(description="patterns of types, in which * stands for anything")] = ()
    where: Annotated[str | None, Meta(description="a filter that the event must match")] = None


class Role(_Table, frozen=True, kw_only=True):
    """What those who have this role may do. What is not said is not allowed."""

    publish: Annotated[
        Publishing | None, Meta(description="what it may publish; an empty table is everything, none is nothing")
    ] = None
    receive: Annotated[
        str | None, Meta(description="a filter of the events that it may see; TRUE is all of them, none is nothing")
    ] = None
    mode: Annotated[
        Literal["restrict", "require"],
        Meta(description="whether subscriptions are restricted to `receive`, or refused if they ask for more"),
    ] = "restrict"
    subscribers: Annotated[
        Names, Meta(description="patterns of the names of subscribers that it may use, besides its own")
    ] = ()
    admin: Annotated[bool, Meta(description="whether it may do everything")] = False


Algorithm: TypeAlias = Literal[
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "HS256", "HS384", "HS512"
]


class Issuer(_Table, frozen=True, kw_only=True):
    """An issuer of JSON Web Tokens, such as a provider of OpenID Connect, and whom its tokens stand for."""

    issuer: Annotated[str, Meta(min_length=1, description="the claim `iss` of its tokens, exactly as it stands there")]
    audience: Annotated[Names, Meta(min_length=1, description="what this broker is called in the claim `aud`")]
    algorithms: Annotated[
        tuple[Algorithm, ...], Meta(min_length=1, description="how its tokens may be signed; no other way counts")
    ] = ("RS256",)
    keys: Annotated[
        str,
        Meta(
            description="the file or address of its keys (JWKS); empty: found by OpenID Connect Discovery, which asks "
            "`issuer` + /.well-known/openid-configuration"
        ),
    ] = ""
    ca: Annotated[
        str | None, Meta(description="the file of the authorities that the address may show certificates of (PEM)")
    ] = None
    principal: Annotated[
        str, Meta(min_length=1, description="the claim that names the principal; dots lead into objects")
    ] = "sub"
    prefix: Annotated[
        str, Meta(description="put before the name, so that nobody of another issuer or with a token has the same")
    ] = ""
    roles: Annotated[
        str, Meta(min_length=1, description="the claim with the roles: a list, or a text with blanks between them")
    ] = "roles"
    role_names: Annotated[
        Mapping[str, Names],
        Meta(description="roles of this broker by what the claim says; without: of the same name, but never admin"),
    ] = msgspec.field(default_factory=dict)
    default_roles: Annotated[Names, Meta(description="roles that everybody has who shows one of its tokens")] = ()
    leeway: Annotated[Duration, Meta(description="by how much clocks may differ")] = Duration(30)
    refresh: Annotated[
        Duration, Meta(description="how long keys of an address are used before they are fetched again")
    ] = Duration(3600)
    pause: Annotated[Duration, Meta(description="the least time between two fetches, whatever keys tokens name")] = (
        Duration(10)
    )
    timeout: Annotated[Duration, Meta(description="how long a fetch may take")] = Duration(5)

    def __hash__(self) -> int:
        """A hash for a table that has a table in it."""
        return hash((self.issuer, self.keys))


class WebhookSettings(_Table, frozen=True, kw_only=True):
    """Where events may be posted to."""

    allow: Annotated[
        Names,
        Meta(description="networks that webhooks may reach although they are not of the internet, such as 10.1.0.0/16"),
    ] = ()


class TracingSettings(_Table, frozen=True, kw_only=True):
    """Where spans of traced events are sent."""

    endpoint: Annotated[
        str,
        Meta(
            description="the address that spans are posted to (OTLP over HTTP), such as "
            "http://127.0.0.1:4318/v1/traces; empty: there are none. Needs `pip install 'tamis[otel]'`"
        ),
    ] = ""


class CatchUp(_Table, frozen=True, kw_only=True):
    """How those are served who are far behind."""

    share: Annotated[
        float, Meta(gt=0, le=1, description="the share of the core that catching up takes while events come in")
    ] = 0.2


class Logging(_Table, frozen=True, kw_only=True):
    """What the broker says of itself."""

    level: Annotated[
        Literal["debug", "info", "warning", "error"], Meta(description="from which level on; contents only at debug")
    ] = "info"
    form: Annotated[Literal["text", "json"], Meta(description="lines for people, or JSON lines")] = "text"


class Settings(_Table, frozen=True, kw_only=True):
    """Everything that an operator decides."""

    name: Annotated[str, Meta(min_length=1, description="the name of the broker")] = "tamis"
    data: Annotated[str, Meta(min_length=1, description="the folder for log, state and tokens")] = "tamis-data"
    insecure: Annotated[
        bool,
        Meta(
            description="allows an address that others can reach without TLS or without roles; the broker warns of it"
        ),
    ] = False
    origins: Annotated[
        Names,
        Meta(description="origins of pages in browsers that may use the broker (CORS), besides its own; * is all"),
    ] = ()
    strategy: Annotated[
        StrategyName,
        Meta(description="how filters are forwarded to neighbours"),
    ] = "identity"
    steps: Annotated[
        Literal["always", "while open"],
        Meta(
            description="when neighbours are asked for the later steps of a sequence: always, or only while a run of "
            "it is open, which is less traffic; what is published within the time that asking takes is lost to it then"
        ),
    ] = "always"
    schema: Annotated[
        Mapping[str, Any] | None,
        Meta(description="attributes of events and their types; events that do not fit are refused"),
    ] = None
    functions: Annotated[
        str | None,
        Meta(description="functions that filters may call, as module:name of a tamis.Functions that can be imported"),
    ] = None
    principals: Annotated[
        Mapping[str, Names], Meta(description="roles of those who show a certificate, by the name in it")
    ] = msgspec.field(default_factory=dict)
    issuers: Annotated[
        Mapping[str, Issuer], Meta(description="whose JSON Web Tokens count; a table [issuers.NAME] for each")
    ] = msgspec.field(default_factory=dict)
    listeners: Annotated[tuple[Listener, ...], Meta(description="addresses; a table [[listeners]] for each")] = (
        Listener(),
    )
    network: Annotated[str, Meta(min_length=1, description="the network of brokers that this one belongs to")] = "tamis"
    topology: Annotated[
        Literal["tree", "graph"],
        Meta(
            description="what links form: a tree, in which one that would close a cycle is refused, or a graph, in "
            "which brokers agree on a tree of links that carry events; the same at all brokers of a network"
        ),
    ] = "tree"
    reroute_after: Annotated[
        Duration, Meta(description="in a graph: how long after a link broke events go another way")
    ] = Duration(3)
    link_secret: Annotated[
        str | None,
        Meta(description="a secret that all brokers of the network share; it is never sent (certificates do instead)"),
    ] = None
    neighbours: Annotated[Names, Meta(description="addresses of brokers to call, whatever their names")] = ()
    link_tls: Annotated[LinkTls | None, Meta(description="certificates for calling other brokers")] = None
    link_listeners: Annotated[
        tuple[LinkListener, ...], Meta(description="addresses for neighbours; a table [[link_listeners]] for each")
    ] = ()
    links: Annotated[
        Mapping[str, LinkSettings], Meta(description="other brokers by name; a table [links.NAME] for each")
    ] = msgspec.field(default_factory=dict)
    log: Annotated[LogSettings, Meta(description="the log")] = LogSettings()
    limits: Annotated[LimitSettings, Meta(description="limits")] = LimitSettings()
    edges: Annotated[
        int, Meta(ge=0, le=64, description="edge brokers: more processes behind the same addresses, for more cores")
    ] = 0
    webhooks: Annotated[WebhookSettings, Meta(description="webhooks")] = WebhookSettings()
    tracing: Annotated[TracingSettings, Meta(description="tracing")] = TracingSettings()
    catch_up: Annotated[CatchUp, Meta(description="catching up")] = CatchUp()
    logging: Annotated[Logging, Meta(description="logging")] = Logging()
    roles: Annotated[Mapping[str, Role], Meta(description="who may do what; a table [roles.NAME] for each")] = (
        msgspec.field(default_factory=dict)
    )

    def event_schema(self) -> Schema | None:
        """Return the schema of what filters see of an event: the declared attributes, and the context of CloudEvents.

        >>> str(Settings(schema={"price": "double"}).event_schema().type_of(("data", "price")))
        'double'
        """
        if self.schema is None:
            return None
        attributes = {**self.schema, "data": dict(self.schema), **CONTEXT}
        return Schema(attributes, functions=self.host_functions())

    def host_functions(self) -> Functions:
        """Return the functions that filters may call: what the named module has, imported from where it is installed.

        >>> Settings().host_functions().versions
        {}
        """
        return NO_FUNCTIONS if self.functions is None else imported_functions(self.functions)


CONTEXT = {
    "specversion": "string", "id": "string", "source": "string", "type": "string", "subject": "string",
    "datacontenttype": "string", "dataschema": "string", "time": "timestamp", "unwanted": "boolean",
}  # fmt: skip
"""The attributes that every CloudEvent has, or may have; they win over attributes of the data with the same name.

`unwanted` is said by the broker: of an event that nobody wanted.
"""
