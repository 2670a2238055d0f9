"""Which book auctions do the labs draw?

By the captions of its tables A.1 to A.2 and A.4 to A.5, 15.5 % of the source's books are signed and 1.8 % are first
editions; where its text works with signed books, about one in a hundred is (example 6.2). One of the two must be
wrong, probably the captions. It matters: class 3 of the subscriptions and two classes of advertisements ask for signed
books. All labs draw them exchanged, as the text has it; where it decides a verdict, the other is measured beside it.

Source: Bittner 2008, chapter 3, appendix A (docs/bibliography.md).
"""

from __future__ import annotations

from typing import Any

from tamis.workloads import Auction


def books(*, is_as_captioned: bool = False, **knobs: Any) -> Auction:
    """Return the auctions of the labs, with other knobs as they are wanted.

    >>> books().swap_signed_and_first_edition, books(is_as_captioned=True).swap_signed_and_first_edition
    (True, False)
    """
    return Auction(swap_signed_and_first_edition=not is_as_captioned, **knobs)
