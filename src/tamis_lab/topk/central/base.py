"""What is the same for every strategy of a centralized system?

Clients, one service, and a count of messages by kind. Messages go between a client and the service, or,
where a strategy says so, from client to client.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from tamis.topk.errors import SettingError

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping

    from tamis.language.expressions import Expression
    from tamis.topk.ranked import Ranked


class ClientDelivery(NamedTuple):
    """A client learns of an event."""

    client: Any
    event: Any
    at: float


class CentralSystem(ABC):
    """A service and its clients."""

    def __init__(self, clients: Iterable[Hashable]) -> None:
        self.clients = list(clients)
        if len(set(self.clients)) < len(self.clients):
            raise SettingError("two clients have one name")
        self.messages: Counter[str] = Counter()
        """How many messages of each kind were sent: subscribe, unsubscribe, publish, notify, update."""

    @property
    def message_count(self) -> int:
        """How many messages were sent."""
        return self.messages.total()

    @abstractmethod
    def subscribe(self, client: Hashable, subscription_id: Hashable, wanted: str | Ranked | Expression) -> None:
        """A client subscribes."""

    @abstractmethod
    def unsubscribe(self, client: Hashable, subscription_id: Hashable) -> None:
        """A client ends a subscription."""

    @abstractmethod
    def publish(
        self, client: Hashable, event: Mapping[str, Any], now: float, event_id: Any, *, expires: float = math.inf
    ) -> list[ClientDelivery]:
        """A client publishes an event, of which nobody learns after `expires`; return who learns of what."""

    @abstractmethod
    def unpublish(self, client: Hashable, event_id: Any, now: float) -> list[ClientDelivery]:
        """A client withdraws its event: it keeps its place in all windows, but nobody learns of it any more."""

    @abstractmethod
    def advance(self, now: float) -> list[ClientDelivery]:
        """Let the time pass; return who learns of what because something left a window."""
