"""What is an answer about filters?"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tamis.language.expressions import Expression


STAGES = ("equality", "propositions", "witness", "structure", "search", "solver", "budget")
"""What can decide, the quickest first: equal formulas, the propositions on conjunctions, an event known to match, the
structure of both filters, a short search, a solver; and the budget, which decides nothing."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a relation holds, and whether that is proven.

    What is not proven is on the safe side: a filter that may cover another or not counts as not covering it, and
    filters that may overlap or not count as overlapping. A broker that believes a verdict never loses an event.

    >>> verdict = Verdict(holds=True, proven=True)
    >>> "forward" if not verdict else "covered"
    'covered'
    """

    holds: bool
    proven: bool
    by: str = field(default="", compare=False)
    """What decided, one of `STAGES`."""

    def __bool__(self) -> bool:
        return self.holds


@dataclass(frozen=True, slots=True)
class Merger:
    """One filter for several: it matches what any of them matches, and perhaps more."""

    expression: Expression
    perfect: bool
    """Is it proven to match nothing that none of them matches?"""
    imperfection: float
    """The share of what it matches that none of them matches, as far as it was measured; 0 if perfect."""
    members: tuple[int, ...] = ()
    """Which of the given filters it stands for."""
