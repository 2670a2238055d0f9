"""Can all of these formulas hold at once? A solver decides.

Formulas become clauses. An axis is written in *order encoding*: one variable for each cut, "the value lies at or behind
this cut", so that every set of values is a few clauses of two literals, whatever it was made of; `Threshold` becomes
a counter, and inner formulas get a variable that implies them. All formulas are asked to hold, so one direction is
enough.

The solver is MiniSat, through the library python-sat; measured beside others in `benchmarks/relations.py`, it is the
quickest on the small questions that filters ask. It works within a budget of conflicts, which does not depend on the
machine.

Source: Eén & Sörensson 2003; clauses in one direction, Plaisted & Greenbaum 1986 (docs/bibliography.md).
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from tamis.relations.formulas import Conjunction, Constant, Disjunction, Fact, Formula, Threshold, Within, fold, leaves

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tamis.language.expressions import Expression
    from tamis.language.ranges.lines import Cut
    from tamis.language.ranges.value_sets import Values
    from tamis.relations.domains import TermAxis
    from tamis.relations.search import Facts

MOST_LITERALS = 500_000
"""Questions that need more than so many literals are not asked: to write them down would take a second."""

_PROPAGATIONS = 100
"""So many consequences may be drawn for each conflict allowed: large questions have costly conflicts."""

_TRUE: Final = 0  # no variable has this number; a literal that is always true
_FALSE: Final = None


class TooManyClausesError(Exception):
    """A question that would need too many clauses."""


@dataclass(slots=True)
class Model:
    """A way in which all formulas hold: for each axis the stretch between two cuts, and which facts hold."""

    stretches: dict[TermAxis, tuple[Cut, Cut]]
    facts: Facts


class SatProblem:
    """Formulas as clauses, to which lemmas may be added between one attempt and the next."""

    def __init__(self, formulas: Iterable[Formula]) -> None:
        from pysat.solvers import Minisat22

        formulas = list(formulas)
        for formula in formulas:
            fold(formula, _check_table)  # before a thousand operands are written down for nothing
        self._count = 0
        self._literal_count = 0
        self._is_impossible = False
        self._clauses: list[list[int]] = []
        self._sets: dict[Within, int | None] = {}
        self._junctions: dict[tuple[type[Formula], int, tuple[int | None, ...]], int | None] = {}
        self._seen: dict[int, int | None] = {}  # by identity, while the formulas live
        self._facts: dict[tuple[Expression, bool], int] = {}
        self._cuts: dict[TermAxis, list[Cut]] = {}
        self._first: dict[TermAxis, int] = {}
        self._lay_out(formulas)
        for formula in formulas:
            self._assert(formula)
        self._seen.clear()  # lemmas are new objects, which may lie where others were
        self._solver = Minisat22(bootstrap_with=self._clauses)

    def close(self) -> None:
        """Give the solver's memory back."""
        self._solver.delete()

    def __enter__(self) -> SatProblem:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def solve(self, conflicts: int) -> Model | bool | None:
        """Return a model, False if there is none, None if the budget did not suffice to tell."""
        if self._is_impossible:
            return False
        self._solver.conf_budget(conflicts)
        self._solver.prop_budget(conflicts * _PROPAGATIONS)
        is_possible = self._solver.solve_limited()
        if not is_possible:
            return is_possible  # type: ignore[no-any-return]
        true = {literal for literal in self._solver.get_model() if literal > 0}
        stretches = {axis: self._stretch(axis, true) for axis in self._cuts}
        return Model(stretches, {key: variable in true for key, variable in self._facts.items()})

    @property
    def spent(self) -> int:
        """How much of a budget of conflicts has been used so far, consequences included."""
        counts = self._solver.accum_stats()
        return int(max(counts["conflicts"], counts["propagations"] // _PROPAGATIONS))

    def add(self, any_of_these: Sequence[Within | Fact]) -> None:
        """Add a lemma: one of these leaves holds. Sets must have cuts that the question has already."""
        before = len(self._clauses)
        self._add([self._implying(leaf, []) for leaf in any_of_these])
        for clause in self._clauses[before:]:
            self._solver.add_clause(clause)

    def around(self, axis: TermAxis, cut: Cut) -> tuple[Cut, Cut]:
        """Return the stretch of an axis, between cuts that the question has, in which a value lies."""
        bounds = [axis.values[0], *self._cuts[axis], axis.values[-1]]
        at = bisect_left(bounds, cut)
        at = at if at < len(bounds) and bounds[at] == cut else at - 1
        return bounds[at], bounds[at + 1]

    # -- Axes

    def _lay_out(self, formulas: Sequence[Formula]) -> None:
        """Give each axis its cuts, in order, and each cut its variable."""
        cuts: dict[TermAxis, set[Cut]] = {}
        for formula in formulas:
            for leaf in leaves(formula):
                if isinstance(leaf, Within):
                    if leaf.axis not in cuts:
                        cuts[leaf.axis] = set(leaf.axis.values[1:-1])
                    cuts[leaf.axis].update(leaf.values)
        for axis, places in cuts.items():
            inner = sorted(places - {axis.values[0], axis.values[-1]})
            self._cuts[axis] = inner
            self._first[axis] = self._count + 1
            self._count += len(inner)
            for variable in range(self._first[axis], self._count):
                self._add([variable, -variable - 1])  # behind a cut is behind those before it
            for clause in self._within(axis, axis.values):
                self._add(clause)

    def _behind(self, axis: TermAxis, cut: Cut) -> int | None:
        if cut <= axis.values[0]:
            return _TRUE
        return _FALSE if cut >= axis.values[-1] else self._first[axis] + bisect_left(self._cuts[axis], cut)

    def _within(self, axis: TermAxis, values: Values) -> list[list[int | None]]:
        """Return the clauses that say that the axis is in a set: behind its start, and not in one of its gaps."""
        clauses: list[list[int | None]] = [[self._behind(axis, values[0])]]
        for end, start in zip(values[1:-1:2], values[2::2], strict=True):
            clauses.append([_opposite(self._behind(axis, end)), self._behind(axis, start)])
        clauses.append([_opposite(self._behind(axis, values[-1]))])
        return [clause for clause in clauses if _TRUE not in clause]

    def _stretch(self, axis: TermAxis, true: set[int]) -> tuple[Cut, Cut]:
        first = self._first[axis]
        behind = sum(first + index in true for index in range(len(self._cuts[axis])))
        bounds = [axis.values[0], *self._cuts[axis], axis.values[-1]]
        return bounds[behind], bounds[behind + 1]

    # -- Formulas

    def _assert(self, formula: Formula) -> None:
        stack = [formula]
        while stack:
            node = stack.pop()
            if isinstance(node, Conjunction):
                stack.extend(node.children)
            elif isinstance(node, Within):
                for clause in self._within(node.axis, node.values):
                    self._add(clause)
            elif isinstance(node, Disjunction):
                self._add([self._literal(child) for child in node.children])
            else:
                self._add([self._literal(node)])

    def _literal(self, formula: Formula) -> int | None:
        """Return a literal that implies a formula, each node of which is written down once.

        Nodes go by identity: conditions about conditions have many equal nodes that are not the same, and to compare
        these would take the square of their number. They live as long as the question is being written down.
        """
        stack = [formula]
        while stack:
            node = stack[-1]
            missing = (
                [] if id(node) in self._seen else [child for child in node.children if id(child) not in self._seen]
            )
            if missing:
                stack.extend(missing)
                continue
            stack.pop()
            if id(node) not in self._seen:
                self._seen[id(node)] = self._implying(node, [self._seen[id(child)] for child in node.children])
        return self._seen[id(formula)]

    def _implying(self, node: Formula, below: list[int | None]) -> int | None:
        """Return a literal that implies a node, by those of its operands: equal ones have the same."""
        match node:
            case Constant():
                return _TRUE if node.is_true else _FALSE
            case Fact(predicate=predicate, truth=truth, is_so=is_so):
                if (predicate, truth) not in self._facts:
                    self._facts[predicate, truth] = self._new()
                return self._facts[predicate, truth] * (1 if is_so else -1)
            case Within(axis=axis, values=values):
                if node not in self._sets:
                    self._sets[node] = self._named(self._within(axis, values))
                return self._sets[node]
        # A threshold counts an operand as often as it occurs; AND and OR do not.
        is_counted = isinstance(node, Threshold)
        operands = tuple(sorted(below if is_counted else set(below), key=_place))
        key = (type(node), node.count if isinstance(node, Threshold) else 0, operands)
        if key not in self._junctions:
            self._junctions[key] = self._joined(node, below)
        return self._junctions[key]

    def _joined(self, node: Formula, below: list[int | None]) -> int | None:
        match node:
            case Conjunction():
                return self._named([[literal] for literal in below])
            case Disjunction():
                return self._named([below])
            case Threshold(count=count):
                return self._counted(count, below)
        raise AssertionError(f"a formula of an unknown class: {type(node).__name__}")

    def _named(self, clauses: list[list[int | None]]) -> int | None:
        """Return a literal that implies some clauses: the one there is, or a new one."""
        kept = [[literal for literal in clause if literal is not _FALSE] for clause in clauses if _TRUE not in clause]
        if [] in kept:
            return _FALSE
        if not kept:
            return _TRUE
        if len(kept) == 1 and len(kept[0]) == 1:
            return kept[0][0]
        name = self._new()
        for clause in kept:
            self._add([-name, *clause])
        return name

    def _counted(self, count: int, operands: list[int | None]) -> int | None:
        """Return a literal that implies that so many operands hold: a table of "so many of the first so many"."""
        row: list[int | None] = [_TRUE] + [_FALSE] * count
        for operand in operands:
            next_row: list[int | None] = [_TRUE]
            for fewer, same in pairwise(row):
                # so many already, or one fewer and this operand too
                next_row.append(self._named([[same, operand], [same, fewer]]))
            row = next_row
        return row[count]

    def _new(self) -> int:
        self._count += 1
        return self._count

    def _add(self, clause: list[int | None]) -> None:
        if _TRUE in clause:
            return
        literals = [literal for literal in clause if literal is not _FALSE]
        self._literal_count += len(literals) + 1
        if self._literal_count > MOST_LITERALS:
            raise TooManyClausesError
        if literals:
            self._clauses.append(literals)
        else:
            self._is_impossible = True


def _check_table(node: Formula, _: list[None]) -> None:
    if isinstance(node, Threshold) and len(node.children) * node.count > MOST_LITERALS // 6:
        raise TooManyClausesError  # each place of its table is two clauses


def _place(literal: int | None) -> tuple[bool, int]:
    return literal is _FALSE, literal or 0


def _opposite(literal: int | None) -> int | None:
    if literal is _FALSE:
        return _TRUE
    return _FALSE if literal == _TRUE else -literal
