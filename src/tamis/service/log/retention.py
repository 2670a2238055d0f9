"""How much of the past is kept? Retention, as a decision without a disk.

Parts of the log go oldest first and as a whole. A part may go when it is older than is kept, or when what is newer
already fills the room; but what a durable subscriber still needs is held, for a longer but limited time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tamis.service.log.base import Extent


class Retention(NamedTuple):
    """What an operator wants kept; none is for: without a limit."""

    keep_s: float | None = None
    keep_bytes: int | None = None
    hold_s: float | None = None
    """How long events are held, at most, for a durable subscriber that still needs them."""

    def drop_before(self, extents: Sequence[Extent], now_us: int, needed: int | None = None) -> int:
        """Return the position before which everything may be dropped; that of the oldest event if nothing may.

        `needed` is the lowest position that a durable subscriber still needs; none if nobody needs any.

        >>> from tamis.service.log.base import Extent
        >>> extents = [Extent(1, 10, 0, 500), Extent(11, 20, 60_000_000, 500), Extent(21, 25, 90_000_000, 300)]
        >>> Retention(keep_s=40).drop_before(extents, now_us=100_000_000)
        11
        >>> Retention(keep_s=5, hold_s=50).drop_before(extents, now_us=100_000_000, needed=3)
        11
        >>> Retention(keep_bytes=700).drop_before(extents, now_us=100_000_000)
        21
        """
        before = extents[0].first if extents else 0
        following_bytes = sum(extent.size_bytes for extent in extents)
        for extent in extents:
            is_old = self.keep_s is not None and extent.time_us < now_us - self.keep_s * 1e6
            # The newest part stays however large it is: without it a small limit would keep nothing at all.
            is_too_much = self.keep_bytes is not None and following_bytes > self.keep_bytes and extent != extents[-1]
            is_needed = needed is not None and extent.last >= needed
            is_held = is_needed and (self.hold_s is None or extent.time_us >= now_us - self.hold_s * 1e6)
            if is_held or not (is_old or is_too_much):
                break
            before = extent.last + 1
            following_bytes -= extent.size_bytes
        return before
