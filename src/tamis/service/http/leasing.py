"""For how long is something asked for? The lease of a subscription, as requests name it."""

from __future__ import annotations

from tamis.service.errors import BadRequestError
from tamis.service.settings import Duration

LONGEST_LEASE_S = 100 * 365 * 86_400.0


def lease_time(text: str | None) -> float:
    """Return after how many seconds a subscription is to end that an address leases; 0 if it does not.

    >>> lease_time("90s"), lease_time(None)
    (90.0, 0.0)
    """
    if text is None:
        return 0.0
    try:
        return checked_lease(float(Duration.read(text)) or -1.0)
    except ValueError as error:
        if isinstance(error, BadRequestError):
            raise
        what, _, expected = str(error).partition("; expected ")
        raise BadRequestError(f"lease: {what}", expected) from None


def checked_lease(lease_s: float) -> float:
    """Return a lease in seconds, or 0 for none; raise an error if it would be over at once, or go on for a century.

    >>> checked_lease(0.0)
    0.0
    """
    if not 0 <= lease_s <= LONGEST_LEASE_S:
        shown = "nothing" if lease_s == -1 else f"{lease_s:g} seconds"
        raise BadRequestError(
            f"lease: a subscription for {shown}", "more than 0 seconds, up to 100 years; or no lease, and it never ends"
        )
    return lease_s
