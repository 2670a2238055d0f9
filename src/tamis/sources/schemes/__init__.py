"""Which kinds of addresses are there, and what is known of each? A table of connectors, one record per scheme.

`row` says what a record holds, `table` holds the records. Commands, sources and Spark ask `scheme_at` and do what the
record says; nobody else compares the beginnings of addresses. To add a scheme is to add a record.
"""

from tamis.sources.schemes.row import Deferred, Refusal, Requirement, Scheme, Sink, Source
from tamis.sources.schemes.table import BROKER, FILES, KAFKA, NATS, SCHEMES, WEBHOOK, scheme_at

__all__ = [
    "BROKER",
    "FILES",
    "KAFKA",
    "NATS",
    "SCHEMES",
    "WEBHOOK",
    "Deferred",
    "Refusal",
    "Requirement",
    "Scheme",
    "Sink",
    "Source",
    "scheme_at",
]
