"""What may pass over a link, and how is it told? The terms of a link."""

from __future__ import annotations

import msgspec

LINK_SUBSCRIBER = "link\t"
"""What the name of a neighbour begins with among subscribers and peers of the broker.

No client can have such a name, because it is not printable.
"""


class LinkTerms(msgspec.Struct, frozen=True):
    """What two neighbours have agreed on for their link, as far as this end keeps to it."""

    may_send: str = "TRUE"
    """A filter of the events that may go to the neighbour."""
    may_receive: str = "TRUE"
    """A filter of the events that may come from there."""
    rate: float = 0.0
    """Events a second that are taken from there; 0 is without a limit."""
    patience_s: float = 3600.0
    """So long after the last connection the neighbour is gone for good."""
