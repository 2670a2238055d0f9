"""How much in a while? Quotas: token buckets, one for each principal and kind.

A bucket fills at a rate, up to its capacity; what is taken must be in it. It is kept as a single number, the time at
which it is full again if nothing more is taken: taking n moves that time by n / rate, and is refused if it would then
lie further ahead than an empty bucket needs to fill. So in any t seconds at most capacity + rate · t are taken. A full
bucket is one whose time has passed, and need not be kept at all.

Source: the generic cell rate algorithm of ATM (ITU-T I.371), in its virtual scheduling form.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tamis.service.errors import TooLargeError, TooManyError

if TYPE_CHECKING:
    from tamis.service.messages import Principal
    from tamis.service.settings import LimitSettings

ROUNDING_S = 1e-6
"""So much early is not early: who waits as long as it was told is let in, whatever floats make of the sum."""
_SWEPT_AT = 1_024


class Bucket(NamedTuple):
    """How fast a bucket fills and how much it holds. With a rate of 0 there is no limit."""

    limit: str
    """The setting that decides it."""
    rate: float
    capacity: float

    @property
    def fill_s(self) -> float:
        """How long an empty one takes to be full."""
        return self.capacity / self.rate


class Quotas:
    """What principals may still send.

    >>> from tamis.service.messages import Principal
    >>> from tamis.service.settings import Duration, LimitSettings
    >>> quotas = Quotas(LimitSettings(events_per_s=2.0, batch_events=4, burst=Duration(2)))
    >>> quotas.take(Principal("ann"), events=4, now=10.0)
    >>> quotas.take(Principal("ann"), events=1, now=10.0)
    Traceback (most recent call last):
        ...
    tamis.service.errors.TooManyError: ann has used up its events; expected at most 2 a second (...), again in 0.5 s
    """

    def __init__(self, limits: LimitSettings) -> None:
        self._full_at: dict[str, tuple[float, float, float]] = {}
        self._sweep_at = _SWEPT_AT
        self._buckets = _buckets(limits)

    def change(self, limits: LimitSettings) -> None:
        """Go on with other limits; who has to wait still has to."""
        self._buckets = _buckets(limits)

    def take(
        self, principal: Principal, *, events: int = 0, size_bytes: int = 0, subscriptions: int = 0, now: float
    ) -> None:
        """Take all of this, or raise a `TooManyError` that says when to come back, and take nothing.

        What no bucket can ever hold is a `TooLargeError`.
        """
        before = self._full_at.get(principal.name, (now, now, now))
        after = []
        wait_s, short = 0.0, self._buckets[0]
        for bucket, full_at, amount in zip(self._buckets, before, (events, size_bytes, subscriptions), strict=True):
            if not bucket.rate or not amount:
                after.append(full_at)
                continue
            if amount > bucket.capacity:
                raise TooLargeError(
                    f"{amount:,} {_noun(bucket)} at once are more than limits.{bucket.limit} ever allows",
                    f"at most {bucket.capacity:,.0f} at once",
                )
            filled_at = max(full_at, now) + amount / bucket.rate
            if filled_at - now - bucket.fill_s > max(wait_s, ROUNDING_S):
                wait_s, short = filled_at - now - bucket.fill_s, bucket
            after.append(filled_at)
        if wait_s:
            raise TooManyError(
                f"{principal.name} has used up its {_noun(short)}",
                f"at most {short.rate:,g} a second (limits.{short.limit}), again in {wait_s:.3g} s",
                retry_s=wait_s,
            )
        self._full_at[principal.name] = (after[0], after[1], after[2])
        if len(self._full_at) >= self._sweep_at:
            self._sweep(now)

    def _sweep(self, now: float) -> None:
        """Forget who has full buckets. As often as so many were added that the work is a constant for each."""
        self._full_at = {name: times for name, times in self._full_at.items() if max(times) > now}
        self._sweep_at = max(_SWEPT_AT, 2 * len(self._full_at))

    def __len__(self) -> int:
        """How many principals are remembered."""
        return len(self._full_at)


class Connections:
    """How many connections there are, of all and of each."""

    def __init__(self, limits: LimitSettings) -> None:
        self.limits = limits
        self.count = 0
        self._counts: dict[str, int] = {}

    def enter(self, principal: Principal) -> None:
        """Count a new connection, or raise a `TooManyError`."""
        own = self._counts.get(principal.name, 0)
        if own >= self.limits.connections_each:
            raise TooManyError(
                f"{principal.name} has {own:,} connections", f"at most {own:,} at a time (limits.connections_each)"
            )
        if self.count >= self.limits.connections:
            raise TooManyError(
                f"there are {self.count:,} connections", "fewer than limits.connections at a time", retry_s=5.0
            )
        self._counts[principal.name] = own + 1
        self.count += 1

    def leave(self, principal: Principal) -> None:
        """Count a connection that has ended; it was counted by `enter`."""
        own = self._counts[principal.name] - 1
        if own:
            self._counts[principal.name] = own
        else:
            del self._counts[principal.name]
        self.count -= 1


def _buckets(limits: LimitSettings) -> tuple[Bucket, Bucket, Bucket]:
    """Return the buckets; each holds at least one request of the largest size, or that could never be sent."""

    def bucket(limit: str, most: int) -> Bucket:
        rate = float(getattr(limits, limit))
        return Bucket(limit, rate, max(rate * limits.burst, float(most)))

    return (
        bucket("events_per_s", limits.batch_events),
        bucket("bytes_per_s", limits.batch_bytes),
        bucket("subscriptions_per_s", limits.texts),
    )


def _noun(bucket: Bucket) -> str:
    return bucket.limit.removesuffix("_per_s")
