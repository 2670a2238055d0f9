"""Which match is this, when a program is run again? Idempotency keys.

A match is an event and a subscription. The name of an event is its place in a stream or a file, or an attribute that
names it; the name of a match is a digest of that and of the subscription's id and text. So a program that is killed and
run again gives a match the name that it had, however the events are cut into batches, and a receiver that knows the
names of what it has passes over what comes twice.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


def name_of(*parts: Any) -> str:
    """Return a name for what is made of parts; equal parts of one type give equal names, on every machine.

    >>> name_of("EVENTS", 17, "cheap")
    'ccb56cf39db132ab7942efd661831b8e'
    >>> name_of(1) == name_of("1"), name_of("a", "b") == name_of("ab")
    (False, False)
    """
    digest = blake2b(digest_size=16)
    for part in parts:
        written = json.dumps(part, default=str, sort_keys=True).encode()
        digest.update(len(written).to_bytes(8, "little") + written)
    return digest.hexdigest()


def match_name(event: str, subscription_id: Any, text: str) -> str:
    """Return the name of a match. The text is part of it: another rule with this id gives other matches."""
    return name_of(event, subscription_id, text)


def named_by(attribute: str, event: Mapping[str, Any]) -> str | None:
    """Return the name of an event that an attribute names; None if it has none."""
    value = event.get(attribute)
    return None if value is None else name_of("attribute", attribute, value)


@dataclass(frozen=True)
class MatchNames:
    """The names of the matches of a batch, in their order, for who sends them (`place.Place` for those of Spark)."""

    names: list[str]

    @property
    def batch_name(self) -> str:
        """Return the name of all of them together."""
        return name_of(self.names)

    def name(self, number: int, *content: bytes) -> str:
        """Return the name of a match that goes to a subject.

        Its body has no part in it: how numbers are written may depend on what else is in a batch.
        """
        return name_of(self.names[number], content[0].decode())

    def portion(self, number: int, rows: range, body: bytes) -> str:
        """Return the name of several matches that are sent at once."""
        return name_of([self.names[row] for row in rows], body.decode())
