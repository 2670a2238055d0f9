"""Can all of these formulas hold at once? A short look before the solver is asked.

Sets narrow the axes, facts are noted, and where a choice is left (an OR of which no part follows from the rest) each
part is tried in turn. After a part has failed, its opposite is known. Most questions between filters of a few
predicates end within a handful of steps; those that do not are given up, for a solver learns from its mistakes and
this does not.

Source: Davis, Logemann & Loveland 1962, with sets of values for literals (docs/bibliography.md).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tamis.language.ranges.value_sets import intersection, is_disjoint, is_subset
from tamis.relations.formulas import (
    Conjunction,
    Constant,
    Disjunction,
    Fact,
    Formula,
    Threshold,
    Within,
    at_least,
    opposite,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tamis.language.expressions import Expression
    from tamis.relations.forms import Box

MOST_STEPS = 60
MOST_WORK = 10_000
"""How many choices are made, and how many cuts are looked at, before the solver is asked, which is quicker then."""

Facts = dict["tuple[Expression, bool]", bool]


@dataclass(slots=True)
class SearchResult:
    """What the search came to: `is_possible` is None if it gave up."""

    is_possible: bool | None
    box: Box = field(default_factory=dict)
    facts: Facts = field(default_factory=dict)


class _GivenUpError(Exception):
    """It takes too long."""


class _SearchBudget:
    """What may still be done."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = MOST_WORK

    def spend(self, amount: int) -> None:
        self.left -= amount
        if self.left < 0:
            raise _GivenUpError


class _SearchState:
    """What is assumed so far, and the choices still open."""

    __slots__ = ("box", "facts", "open", "work")

    def __init__(self, box: Box, facts: Facts, open_choices: list[Formula], work: _SearchBudget) -> None:
        self.box = box
        self.facts = facts
        self.open = open_choices
        self.work = work

    def copy(self) -> _SearchState:
        self.work.spend(len(self.box) + len(self.facts) + len(self.open))
        return _SearchState(self.box.copy(), self.facts.copy(), self.open.copy(), self.work)

    def assume(self, formulas: Iterable[Formula]) -> bool:
        """Take formulas for granted; return whether that is still possible."""
        stack = list(formulas)
        while stack:
            node = stack.pop()
            kind = type(node)
            if kind is Within:
                assert isinstance(node, Within)
                axis = node.axis
                assumed = self.box.get(axis, axis.values)
                self.work.spend(len(assumed) + len(node.values))
                left = intersection(assumed, node.values)
                if not left:
                    return False
                self.box[axis] = left
            elif kind is Conjunction:
                self.work.spend(len(node.children))
                stack.extend(node.children)
            elif kind is Disjunction or kind is Threshold:
                self.open.append(node)
            elif isinstance(node, Fact):
                if self.deduce(node) is False:
                    return False
                self.facts[node.predicate, node.truth] = node.is_so
                if node.is_so:
                    self.facts[node.predicate, not node.truth] = False
            elif isinstance(node, Constant) and not node.is_true:
                return False
        return True

    def deduce(self, node: Formula) -> bool | None:
        """Return whether a leaf follows from what is assumed, or its opposite; None if neither is seen at once.

        What is looked at counts as work.
        """
        if isinstance(node, Within):
            assumed = self.box.get(node.axis, node.axis.values)
            self.work.spend(len(assumed))
            if is_subset(assumed, node.values):
                return True
            return False if is_disjoint(assumed, node.values) else None
        if isinstance(node, Fact):
            known = self.facts.get((node.predicate, node.truth))
            return None if known is None else known is node.is_so
        if isinstance(node, Conjunction):
            self.work.spend(len(node.children))
            truths = [self.deduce(child) for child in node.children if not child.children]
            return False if False in truths else None
        return node.is_true if isinstance(node, Constant) else None

    def settle(self) -> Formula | bool | None:
        """Close the choices that are none; return one that is left, True if there is none, False if it cannot be."""
        while True:
            best: Formula | None = None
            still_open: list[Formula] = []
            forced: list[Formula] = []
            for choice in self.open:
                left = self._left_of(choice)
                if isinstance(left, Constant):
                    if not left.is_true:
                        return False
                elif isinstance(left, Disjunction | Threshold):
                    still_open.append(left)
                    if best is None or len(left.children) < len(best.children):
                        best = left
                else:
                    forced.append(left)
            self.open = still_open
            if not forced:
                return best if best is not None else True
            if not self.assume(forced):
                return False

    def _left_of(self, choice: Formula) -> Formula:
        """Return what a choice has come to under what is assumed."""
        self.work.spend(len(choice.children))
        truths = [self.deduce(child) for child in choice.children]
        if isinstance(choice, Threshold):
            rest = [child for child, truth in zip(choice.children, truths, strict=True) if truth is None]
            return at_least(choice.count - truths.count(True), rest)
        if True in truths:
            return Constant(True)
        if False not in truths:
            return choice
        rest = [child for child, truth in zip(choice.children, truths, strict=True) if truth is None]
        return Disjunction(tuple(rest)) if len(rest) > 1 else rest[0] if rest else Constant(False)


def search(formulas: Iterable[Formula], most_steps: int = MOST_STEPS) -> SearchResult:
    """Look for values and facts under which all formulas hold.

    >>> from tamis.relations.forms import context_of
    >>> forms = [context_of(None).form(text) for text in ("a > 5 OR b = 1", "a < 3 AND b = 2")]
    >>> search(form.formula for form in forms).is_possible
    False
    """
    try:
        return _searched(formulas, most_steps)
    except _GivenUpError:
        return SearchResult(None)


def _searched(formulas: Iterable[Formula], most_steps: int) -> SearchResult:
    start = _SearchState({}, {}, [], _SearchBudget())
    if not start.assume(formulas):
        return SearchResult(False)
    stack = [start]
    for _ in range(most_steps):
        if not stack:
            return SearchResult(False)
        state = stack.pop()
        choice = state.settle()
        if choice is True:
            return SearchResult(True, state.box, state.facts)
        if choice is False:
            continue
        assert isinstance(choice, Formula)
        state.open = [each for each in state.open if each is not choice]
        stack += reversed([branch for branch in _branches(state, choice) if branch is not None])
    return SearchResult(None) if stack else SearchResult(False)


def _branches(state: _SearchState, choice: Formula) -> list[_SearchState | None]:
    """Return the states in which a choice was made, one for each way that is not impossible at once."""
    branches: list[_SearchState | None] = []
    if isinstance(choice, Threshold):
        first, *rest = choice.children
        state.work.spend(len(rest))
        ways = [[first, at_least(choice.count - 1, rest)], [at_least(choice.count, rest)]]
        if isinstance(first, Within | Fact):
            ways[1].append(opposite(first))
        for way in ways:
            branch = state.copy()
            branches.append(branch if branch.assume(way) else None)
        return branches
    failed: list[Formula] = []
    for child in choice.children:
        branch = state.copy()
        branches.append(branch if branch.assume([child, *failed]) else None)
        if isinstance(child, Within | Fact):
            failed.append(opposite(child))
    return branches
