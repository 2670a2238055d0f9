"""How are advertisements generalised?

The same way as subscriptions, by leaving operands of ANDs out, and by a queue; but what is to be kept is another
thing. A generalised advertisement overlaps more subscriptions, which then travel farther: so what is left out first
is what keeps the fewest subscriptions out (`characteristics`). Loss is proportional: it counts against what the
original advertisement kept out. No overlap is ever lost.

    >>> pruner = advertisement_pruner(["condition = 'New' AND price < 15", "price < 12"], lambda predicate: 100)
    >>> pruner.add("a", "author = 'Herbert' AND condition = 'Used' AND price > 20")
    >>> pruner.prune(count=1)
    ['a']
    >>> print(pruner.expression("a"))
    condition = 'Used' AND price > 20

Source: Bittner 2008, section 7.3 (docs/bibliography.md).
Departs: a part of the characteristic that was 0 cannot be lost, where the published fraction is 0/0; of equals the
one goes
  that saves the most bytes, which the source leaves open.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.pruning.characteristics import Characteristics
from tamis.pruning.pruner import Pruner

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tamis.language.expressions import Expression
    from tamis.language.schema import Schema


def advertisement_pruner(
    subscriptions: Iterable[str | Expression],
    fulfilled: Callable[[Expression], float],
    schema: Schema | None = None,
) -> Pruner:
    """Return a pruner for advertisements that meet these subscriptions.

    `fulfilled` says how many events made a predicate true so far; `Pruner.learn` takes other `Characteristics` later.
    """
    return Pruner(Characteristics(subscriptions, fulfilled, schema), "overlap")
