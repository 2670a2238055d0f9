"""How does a program talk to a broker? Clients, asynchronous and synchronous.

`AsyncClient` publishes, subscribes, reads history and asks; `Client` is the same for programs without a loop. They
reconnect, send again under the same ids what was not acknowledged, and go on where they were. They load no matcher:
neither numba nor Arrow is imported, so a small program stays small.
"""

from tamis.service.errors import ServiceMissingError as _ServiceMissingError

try:
    import aiohttp as _aiohttp  # noqa: F401
    import msgspec as _msgspec  # noqa: F401
except ImportError as error:
    raise _ServiceMissingError("tamis.service.client", str(error.name)) from None

from tamis.service.client.asynchronous import AsyncClient
from tamis.service.client.events import Event, Told
from tamis.service.client.polling import TakenDelivery
from tamis.service.client.subscribing import Delivery, Gap, Subscription
from tamis.service.client.synchronous import BlockingDelivery, BlockingSubscription, Client

__all__ = [
    "AsyncClient",
    "BlockingDelivery",
    "BlockingSubscription",
    "Client",
    "Delivery",
    "Event",
    "Gap",
    "Subscription",
    "TakenDelivery",
    "Told",
]
