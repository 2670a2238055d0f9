"""How do matchers that were compiled apart become one? Merging of compiled matchers.

Parsing is nearly all of the work of registering, and texts can be parsed anywhere: by many processes, on many machines.
What each of them compiled is joined without going back to the texts, which takes a hundredth of the time.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tamis.matching.axes import paths_of
from tamis.matching.block.joining import joined
from tamis.matching.block.segment import compiled
from tamis.matching.matcher import Matcher

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tamis.language.schema import Schema
    from tamis.matching.columns import Path


def united(matchers: Sequence[Matcher], schema: Schema | None = None) -> Matcher:
    """Return one matcher of the subscriptions of several `block` matchers, in their order.

    >>> one, two = Matcher(), Matcher()
    >>> one.add("cheap", "price < 20")
    >>> two.add("signed", "signed", priority=1)
    >>> united([one, two]).match({"price": 12, "signed": True})
    ['signed', 'cheap']
    """
    whole = Matcher(schema=schema)
    registers, drafts, flags, handle_count = [], [], [], 0
    for matcher in matchers:
        assert matcher.algorithm == whole.algorithm, f"{matcher.algorithm} has no drafts to join"
        register, parts = matcher.exported()
        for segment, alive in parts:
            # Whoever lives has the handle that follows those of the matchers before; what is dead is left out below.
            drafts.append(replace(segment.draft, handles=handle_count + segment.draft.handles))
            flags.append(alive)
        registers.append(register)
        handle_count += len(register)
    united_parts = []
    if drafts:
        segment = compiled(joined(drafts, flags), None, schema)
        united_parts.append((segment, np.ones(len(segment), np.bool_)))
    whole.adopt(registers, united_parts)
    return whole


def mentioned(matcher: Matcher) -> tuple[Path, ...]:
    """Return the attributes that decide anything in a `block` matcher: no others need be shown to it.

    >>> matcher = Matcher()
    >>> matcher.add("near", "position.x < 3 AND NOT signed")
    >>> mentioned(matcher)
    (('position', 'x'), ('signed',))
    """
    return tuple(sorted({path for axis in matcher.axes() or () for path in paths_of(axis.key.term)}))
