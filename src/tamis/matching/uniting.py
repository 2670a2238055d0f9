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
    drafts, flags = [], []
    for matcher in matchers:
        assert matcher.algorithm == whole.algorithm, f"{matcher.algorithm} has no drafts to join"
        with matcher._lock:
            parts = matcher._engine.parts() or ()  # before the rest, because it compiles what is still open
            living = matcher._register.living()
            register = matcher._register.renumbered(living)
        first = len(whole._register)
        whole._register.check_new(register.ids)
        for segment, alive in parts:
            # Handles are counted anew, without the removed: the n-th that lives is the n-th of its matcher.
            drafts.append(replace(segment.draft, handles=first + np.searchsorted(living, segment.draft.handles)))
            flags.append(alive)
        whole._register.enter(register.rows())
    if drafts:
        segment = compiled(joined(drafts, flags), None, schema)
        whole._engine.restore([(segment, np.ones(len(segment), np.bool_))])
    return whole


def mentioned(matcher: Matcher) -> tuple[Path, ...]:
    """Return the attributes that decide anything in a `block` matcher: no others need be shown to it.

    >>> matcher = Matcher()
    >>> matcher.add("near", "position.x < 3 AND NOT signed")
    >>> mentioned(matcher)
    (('position', 'x'), ('signed',))
    """
    parts = matcher._engine.parts() or ()
    terms = (axis.key.term for segment, _ in parts for axis in segment.draft.axes)
    return tuple(sorted({path for term in terms for path in paths_of(term)}))
