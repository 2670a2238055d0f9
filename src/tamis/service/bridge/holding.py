"""How does a log wait for somebody who reads it by himself? A durable subscriber of which only the floor is used.

A query keeps its own place, and takes no deliveries. So that retention does not overtake it (`log.hold`), and so that
other brokers send what it wants, it is a durable subscriber with the filter that it reads with, whose floor is moved
when a batch is done. What was before the subscription is a replay of it, and is held, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tamis.service.client.endpoints import subscriber_path
from tamis.service.positions import Position, read_position
from tamis.sources.errors import BrokerError

if TYPE_CHECKING:
    from tamis.service.bridge.connection import BrokerConnection

KEY = "read"
"""The key of the one subscription."""


class Held:
    """The place of a query, as its broker knows it."""

    def __init__(self, name: str, where: str | None) -> None:
        self._path, self._where = subscriber_path(name), where or "TRUE"
        self._since: Position | None = None

    def begin(self, connection: BrokerConnection, epoch: str, start: int) -> None:
        """See to it that everything from a position on is held; a subscriber that is there already stays."""
        if self._since is not None:
            return
        known = self._known(connection)
        if known is None or known.get("text") != self._where:
            if known is not None:  # another filter has another past, which begins here
                connection.ask("DELETE", self._path)
            path = f"{self._path}/subscriptions/{KEY}"
            known = connection.ask("PUT", path, {"from": f"{epoch}-{start}"}, body={"where": self._where})
        self._since = read_position(str(known.get("since", "")), epoch)

    def move(self, connection: BrokerConnection, epoch: str, done: int) -> None:
        """Let go of everything through a position."""
        assert self._since is not None, "begin comes first"
        # What was before the subscription is decided right behind it: that is the order of its deliveries.
        head = self._since.head + 1 if done <= self._since.head else done
        connection.ask("POST", f"{self._path}/done", body={"floor": Position(head, done).text(epoch)})

    def _known(self, connection: BrokerConnection) -> dict[str, Any] | None:
        """Return the subscription if it is there."""
        facts = connection.find(self._path)
        if facts is None:
            return None
        known = facts.get("subscriptions")
        if not isinstance(known, dict):
            raise BrokerError("the broker answered a question about a subscriber with something else")
        return dict(known.get(KEY) or {})
