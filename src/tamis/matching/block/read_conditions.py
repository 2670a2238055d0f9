"""How do conditions become a draft without a step of Python's for each predicate? Plans, filled in from columns.

A reader has written texts as structures over numbered predicates, or a walker has written expressions so (`reading`). A
structure has an outline, and an outline with what its leaves ask has a plan (`plans`): so there are as many rewrites
and plans as there are structures, and the loops fill in what each condition has of its own. Leaves are made of the
different predicates, whose operands are sorted axis by axis.

What a reader left out is drafted as an expression, and takes its place among the others by its handle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.language.expressions import FALSE, TRUE, And, Attribute, Compare, Expression, Literal, Not
from tamis.matching.block.breathing import breathe
from tamis.matching.block.budgets import asked_whole, is_linear
from tamis.matching.block.draft import ClauseTable, Draft, Drafting, TreeJumps, TreeSteps, monotone
from tamis.matching.block.joining import ordered
from tamis.matching.block.plans import ALL, ALWAYS, CLOSE, LEAF, NEVER, Clause, plan_of, sketched
from tamis.matching.leaves import Leaves, ReadLeaves
from tamis.matching.operations import (
    ABOVE,
    AMONG,
    AT_LEAST,
    AT_MOST,
    BELOW,
    BEYOND,
    EQUAL,
    GUESSES,
    NOT_AMONG,
    UNEQUAL,
    WITHIN,
)
from tamis.matching.reading import kernels
from tamis.matching.reading.kernels import UNREAD, ClauseRoom, Outlines, Plans
from tamis.matching.reading.numbering import KeyNumbers
from tamis.matching.reading.reader import KINDS, NO_KIND, Reader, expression_of
from tamis.matching.reading.walker import Walker
from tamis.ragged import Ragged, starts_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tamis.language.schema import Schema

Ints = npt.NDArray[np.int64]

_OPERATIONS = np.array(
    [
        [EQUAL, UNEQUAL, BELOW, AT_MOST, ABOVE, AT_LEAST, WITHIN, AMONG],
        [UNEQUAL, EQUAL, AT_LEAST, ABOVE, AT_MOST, BELOW, BEYOND, NOT_AMONG],
    ],
    np.uint8,
)
"""What the forms of predicates ask as they are, and negated."""
_WORTH_AN_OUTLINE = 4
"""Fewer expressions of one structure are drafted one by one."""
_AT_A_TIME = 1 << 15
"""So many texts are filled in at a time: what is needed for that is soon used again."""


class _Outline(NamedTuple):
    """What a structure becomes: an outline whose plan depends on what its leaves ask, or a plan that does not."""

    outline: tuple[int, ...] | None
    positions: list[int]
    signs: list[int]
    plan: tuple[Clause, ...] | None = None


class ReadConditions:
    """Conditions that were read in columns, and the drafts that they make.

    >>> from tamis.language.parser import parse
    >>> texts = ReadConditions.of_texts(["price < 20", "lower(title) = 'x'", "price <"], None)
    >>> [texts.is_understood(number) for number in range(3)]
    [True, False, False]
    >>> draft = texts.draft([0, 1], lambda number: parse("lower(title) = 'x'"))
    >>> draft.handles.tolist(), draft.clauses.owners.tolist()
    ([0, 1], [0, 1])
    """

    def __init__(self, reader: Reader | Walker, least_uses: int = 1) -> None:
        self._reader = reader
        self._structures = reader.structures
        self._leaves = reader.leaves
        uses = np.bincount(self._structures[self._structures != UNREAD], minlength=reader.shapes.list_count)
        self._outlines = [
            _outline_of(_words(reader.shapes, number)) if count >= least_uses else None
            for number, count in enumerate(uses.tolist())
        ]
        counts = [0 if outline is None else len(outline.positions) for outline in self._outlines]
        has_outline = [outline for outline in self._outlines if outline is not None]
        self._outline_columns = Outlines(
            starts_of(counts),
            np.array([place for outline in has_outline for place in outline.positions], np.int64),
            np.array([sign for outline in has_outline for sign in outline.signs], np.int64),
        )
        of_structures = np.array([outline is not None for outline in self._outlines] + [False])  # the last is UNREAD's
        self._is_understood: npt.NDArray[np.bool_] = of_structures[self._structures]
        mistakes = self._mistakes(self._used(np.flatnonzero(self._is_understood)))
        if mistakes.any():
            self._is_understood &= ~self._has_mistake(mistakes)

    @classmethod
    def of_texts(cls, texts: Sequence[str], schema: Schema | None) -> ReadConditions:
        """Read texts, which the compiled reader understands for the most part."""
        reader = Reader(schema)
        reader.read(texts)
        return cls(reader)

    @classmethod
    def of_expressions(cls, expressions: Sequence[Expression]) -> ReadConditions:
        """Read expressions, level by level; somebody has to keep them meanwhile.

        An outline is dearer than drafting a few expressions one by one, so those of rare structures are left out.
        """
        return cls(Walker(expressions), _WORTH_AN_OUTLINE)

    def is_understood(self, number: int) -> bool:
        """Is nothing left to the parser of this text?"""
        return bool(self._is_understood[number])

    def draft(self, numbers: Sequence[int], understood: Callable[[int], Expression]) -> Draft:
        """Return the draft of some texts, which come in order; their handles are counted from 0.

        `understood` returns the expression of a text by its number, or raises. It is asked for those that are left to
        the parser, in order.
        """
        chosen = np.asarray(numbers, np.int64)
        is_read = self._is_understood[chosen]
        handles, texts = np.flatnonzero(is_read), chosen[is_read]
        left = np.flatnonzero(~is_read)
        drafting = Drafting()
        drafting.add_many(left.tolist(), map(understood, chosen[left].tolist()))
        read, leaf_numbers, operations = self._read_leaves(drafting.leaves, self._used(texts))
        draft = drafting.finished(read)
        rooms = self._filled(texts, leaf_numbers, operations, len(draft.handles))
        whole = _extended(draft, handles, rooms)
        return ordered(whole) if len(left) and len(texts) else whole

    # -- Which predicates

    def _used(self, texts: Ints) -> npt.NDArray[np.bool_]:
        """Return which predicates some texts ask, as they are and negated."""
        used = np.zeros((2, self._reader.predicates.list_count), np.bool_)
        starts, leaves = self._leaves
        kernels.mark_used(texts, self._structures, starts, leaves, self._outline_columns, used)
        return used

    def _mistakes(self, used: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Return which predicates are a mistake, of those that are used."""
        reader = self._reader
        mistakes = np.zeros(used.shape[1], np.bool_)
        for number in np.flatnonzero((reader.predicate_kinds() == NO_KIND) & used.any(axis=0)).tolist():
            mistakes[number] = reader.predicate(number) is None
        return mistakes

    def _has_mistake(self, mistakes: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Return which texts have a predicate that is a mistake."""
        counts = np.concatenate([[0], np.cumsum(mistakes[self._leaves.values])])
        starts = self._leaves.starts
        flags: npt.NDArray[np.bool_] = counts[starts[1:]] > counts[starts[:-1]]
        return flags

    def _read_leaves(
        self, leaves: Leaves, used: npt.NDArray[np.bool_]
    ) -> tuple[ReadLeaves, npt.NDArray[np.uint32], npt.NDArray[np.uint8]]:
        """Return the leaves of all predicates that are used: in columns, by number, and what each asks."""
        reader = self._reader
        kinds, forms = reader.predicate_kinds(), reader.forms()
        numbers = np.zeros(used.shape, np.uint32)
        asked_alone = (kinds == NO_KIND) & used
        for sign, predicate in zip(*(each.tolist() for each in np.nonzero(asked_alone)), strict=True):
            expression = reader.predicate(predicate)
            assert expression is not None, "mistakes are left to the parser"
            if sign:
                expression = expression.value if isinstance(expression, Not) else Not(expression)
            leaf = leaves.leaf(expression)
            assert leaf >= 0, f"{expression} is a predicate"
            numbers[sign, predicate] = leaf
        signs, predicates = np.nonzero(used & ~asked_alone)
        first = len(leaves)
        numbers[signs, predicates] = np.arange(first, first + len(predicates))
        operations = np.concatenate(
            [
                np.array([leaves.operation(leaf) for leaf in range(first)], np.uint8),
                _OPERATIONS[signs, forms[predicates]],
            ]
        )
        chosen = reader.predicates.chosen(predicates)
        firsts = chosen.starts[:-1]
        names = reader.operand_names
        is_used = np.zeros(len(names), np.bool_)
        is_operand = np.ones(len(chosen.values), np.bool_)
        is_operand[firsts] = False
        is_used[chosen.values[is_operand]] = True
        a = chosen.values[firsts + 1] if len(firsts) else np.zeros(0, np.int64)
        axes, places = self._axes_and_places(leaves, names[a], kinds[predicates], is_used)
        is_span = forms[predicates] == kernels.BETWEEN
        b = np.where(is_span, chosen.values[np.minimum(firsts + 2, len(chosen.values) - 1)] if len(firsts) else 0, a)
        is_set = forms[predicates] == kernels.AMONG
        sets = chosen.chosen(is_set)
        is_member = np.ones(len(sets.values), np.bool_)
        is_member[sets.starts[:-1]] = False
        sets = Ragged(starts_of(sets.counts - 1), sets.values[is_member])
        a = np.where(is_set, np.cumsum(is_set) - 1, a)
        read = ReadLeaves(axes, operations[first:], a, np.where(is_set, 0, b), sets, len(names), places)
        return read, numbers, operations

    def _axes_and_places(
        self, leaves: Leaves, names: Ints, kinds: npt.NDArray[np.uint8], is_used: npt.NDArray[np.bool_]
    ) -> tuple[Ints, dict[int, tuple[Ints, list[Any]]]]:
        """Return the axis of each leaf, given its name and kind; and of each axis the operands, and their values."""
        reader = self._reader
        width = NO_KIND + 1
        pairs, of_leaves = np.unique(names * width + kinds, return_inverse=True)
        axis_of_pairs = [leaves.axis(reader.term(pair // width), KINDS[pair % width]) for pair in pairs.tolist()]
        axes = np.array(axis_of_pairs, np.int64)[of_leaves] if len(pairs) else np.zeros(0, np.int64)
        numbers = np.flatnonzero(is_used)
        of_operands = reader.operand_names[numbers] * width + reader.operand_kinds()[numbers]
        order = np.argsort(of_operands, kind="stable")
        in_order = of_operands[order]
        begins: Ints = np.asarray(np.searchsorted(in_order, pairs), np.int64)
        ends: Ints = np.asarray(np.searchsorted(in_order, pairs, "right"), np.int64)
        places: dict[int, tuple[Ints, list[Any]]] = {}
        for axis, begin, end in zip(axis_of_pairs, begins.tolist(), ends.tolist(), strict=True):
            chosen = numbers[order[begin:end]]
            values = reader.values(chosen)
            if axis in places:  # one attribute under several names, such as a and `a`
                chosen, values = np.concatenate([places[axis][0], chosen]), places[axis][1] + values
            places[axis] = chosen, values
            breathe()
        return axes, places

    # -- Which clauses

    def _filled(
        self, texts: Ints, leaf_numbers: npt.NDArray[np.uint32], operations: npt.NDArray[np.uint8], first_owner: int
    ) -> list[ClauseRoom]:
        """Return the clauses of texts."""
        starts, leaves = self._leaves
        plans = _Plans(self._outlines)
        depends = np.array(
            [outline is not None and outline.outline is not None for outline in self._outlines], np.bool_
        )
        costs = np.unique(GUESSES, return_inverse=True)[1][operations] if len(operations) else np.zeros(0, np.int64)
        rooms: list[ClauseRoom] = []
        for begin in range(0, len(texts), _AT_A_TIME):
            some = texts[begin : begin + _AT_A_TIME]
            structures = self._structures[some]
            ends = np.empty(len(some), np.int64)
            asked = np.empty(int(np.diff(self._outline_columns.starts)[structures].sum()), np.uint32)
            kernels.leaves_of_outlines(
                some, self._structures, starts, leaves, self._outline_columns, leaf_numbers, ends, asked
            )
            numbers = plans.numbers(structures, ends, asked, depends, costs, operations)
            room = plans.room(numbers)
            kernels.fill_plans(numbers, ends, asked, plans.columns(), first_owner + begin, room)
            rooms.append(room)
            breathe()
        return rooms


class _Plans:
    """The plans of outlines, by what their leaves cost: only that decides.

    Of the leaves that are operands of one AND only the cheapest counts: none of the others finds anything.
    """

    def __init__(self, outlines: list[_Outline | None]) -> None:
        self._outlines = outlines
        of_outlines = [() if each is None else _conjunctions_of(each) for each in outlines]
        self._conjunctions: Ragged[np.int64] = Ragged.of_counts(
            list(map(len, of_outlines)), np.array([number for each in of_outlines for number in each], np.int64)
        )
        self._keys = KeyNumbers(np.int64)
        self._plans: list[tuple[Clause, ...]] = []
        self._columns: Plans | None = None

    def numbers(
        self,
        structures: npt.NDArray[np.int32],
        ends: Ints,
        asked: npt.NDArray[np.uint32],
        depends: npt.NDArray[np.bool_],
        costs: Ints,
        operations: npt.NDArray[np.uint8],
    ) -> Ints:
        """Return the number of the plan of each of some texts."""
        counts = np.diff(ends, prepend=0)
        keys = np.empty(len(asked) + len(structures), np.int64)
        begins, key_ends = np.empty((2, len(structures)), np.int64)
        kernels.keys_of_plans(structures, asked, costs, depends, self._conjunctions, keys, begins, key_ends)
        numbers = self._keys.numbers(keys, begins, key_ends)
        new, firsts = np.unique(numbers, return_index=True)
        for number, text in zip(new.tolist(), firsts.tolist(), strict=True):
            if number >= len(self._plans):
                outline = self._outlines[structures[text]]
                assert outline is not None, "texts without an outline are left to the parser"
                asks = operations[asked[ends[text] - counts[text] : ends[text]]]
                plan = outline.plan if outline.outline is None else plan_of(outline.outline, tuple(asks.tolist()))
                assert plan is not None
                self._plans.append(plan)
                self._columns = None
        return numbers

    def columns(self) -> Plans:
        """Return all plans so far."""
        if self._columns is None:
            clauses = [clause for plan in self._plans for clause in plan]

            def column(name: str) -> Ints:
                return np.array([value for clause in clauses for value in getattr(clause, name)], np.int64)

            def starts(name: str) -> Ints:
                return starts_of([len(getattr(clause, name)) for clause in clauses])

            self._columns = Plans(
                starts_of(list(map(len, self._plans))), starts("leaves"), column("leaves"),
                starts("tree_leaves"), column("tree_leaves"), column("tree_trues"), column("tree_falses"),
                starts("step_actions"), column("step_actions"), column("step_leaves"),
            )  # fmt: skip
        return self._columns

    def room(self, numbers: Ints) -> ClauseRoom:
        """Return room for the clauses of texts with these plans."""
        columns = self.columns()
        clauses = int(np.diff(columns.starts)[numbers].sum())

        def total(starts: Ints) -> int:
            of_plans = starts[columns.starts[1:]] - starts[columns.starts[:-1]]
            return int(of_plans[numbers].sum())

        leaves, jumps, steps = map(total, (columns.leaf_starts, columns.tree_starts, columns.step_starts))
        return ClauseRoom(
            np.zeros(4, np.int64), np.empty(clauses, np.uint32), np.empty(clauses, np.uint16),
            np.empty(clauses, np.int32), np.empty(clauses, np.int32), np.empty(leaves, np.uint32),
            np.empty(jumps, np.uint32), np.empty(jumps, np.uint32), np.empty(jumps, np.uint32),
            np.empty(clauses, np.int32), np.empty(steps, np.uint8), np.empty(steps, np.uint32),
        )  # fmt: skip


# -- Structures


def _words(lists: Ragged[np.int64], number: int) -> list[int]:
    return list(lists.members(number).tolist())


def _outline_of(shape: list[int]) -> _Outline | None:
    """Return the outline of a structure; None where its texts had better be expressions.

    It is what the draft of an expression has too (`draft`), with a placeholder for each predicate.
    """
    if not shape:
        return None  # that of texts that were not read
    count = sum(word & 7 == kernels.LEAF for word in shape)
    predicates = [Compare("=", Attribute((f"p{number}",)), Literal(0)) for number in range(count)]
    numbers = {each.left: number for number, each in enumerate(predicates)}
    expression = expression_of(shape, iter(predicates))
    operands = expression.operands if isinstance(expression, And) else (expression,)
    if all(map(_is_leaf, operands)):
        positions, signs = _placed(operands, numbers)
        return _Outline(None, positions, signs, (Clause(tuple(range(len(positions)))),))
    if not is_linear(expression) and asked_whole(operands):
        return None
    sketch = sketched(expression)
    if sketch is None or not all(map(_is_leaf, sketch[1])):
        rewritten = monotone(expression)
        if rewritten in (TRUE, FALSE):
            return _Outline(None, [], [], ALWAYS if rewritten == TRUE else NEVER)
        sketch = sketched(rewritten)
        if sketch is None or not all(map(_is_leaf, sketch[1])):
            return None
    outline, leaves = sketch
    return _Outline(outline, *_placed(leaves, numbers))


def _conjunctions_of(outline: _Outline) -> list[int]:
    """Return the AND that each leaf of an outline is an operand of, by number; -1 where it is something else.

    >>> from tamis.matching.block.plans import ANY
    >>> _conjunctions_of(_Outline((ALL, LEAF, ANY, LEAF, LEAF, CLOSE, LEAF, CLOSE), [0, 1, 2, 3], [0] * 4))
    [0, -1, -1, 0]
    """
    numbers: list[int] = []
    opened = [-1]
    for place, word in enumerate(outline.outline or [LEAF] * len(outline.positions)):
        if word == LEAF:
            numbers.append(opened[-1])
        elif word == CLOSE:
            opened.pop()
        else:
            opened.append(place if word == ALL else -1)
    return numbers


def _is_leaf(node: Expression) -> bool:
    return isinstance(node, Compare) or (isinstance(node, Not) and isinstance(node.value, Compare))


def _placed(leaves: Sequence[Expression], numbers: dict[Expression, int]) -> tuple[list[int], list[int]]:
    """Return which placeholders leaves are, and whether they are negated."""
    positions, signs = [], []
    for leaf in leaves:
        compare = leaf.value if isinstance(leaf, Not) else leaf
        assert isinstance(compare, Compare)
        positions.append(numbers[compare.left])
        signs.append(int(isinstance(leaf, Not)) ^ int(compare.operator == "<>"))
    return positions, signs


# -- The draft


def _extended(draft: Draft, handles: Ints, rooms: list[ClauseRoom]) -> Draft:
    """Return a draft with the clauses of texts, under these handles, behind its own."""
    clauses, jumps, steps = draft.clauses, draft.jumps, draft.steps
    leaf_ends, step_ends = [clauses.leaves.starts], [steps.starts]
    trees = [clauses.trees]
    leaf_count, jump_count, step_count = len(clauses.leaves.values), len(jumps.leaves), len(steps.actions)
    for room in rooms:
        leaf_ends.append(room.clause_ends + np.int32(leaf_count))
        step_ends.append(room.step_ends + np.int32(step_count))
        trees.append(np.where(room.trees < 0, -1, room.trees + np.int32(jump_count)).astype(np.int32))
        leaf_count += len(room.clause_leaves)
        jump_count += len(room.tree_leaves)
        step_count += len(room.step_actions)

    def behind(column: npt.NDArray[Any], name: str) -> Any:
        return np.concatenate([column, *(getattr(room, name) for room in rooms)])

    return Draft(
        draft.axes,
        np.concatenate([draft.handles, handles]),
        draft.leaves,
        draft.sets,
        ClauseTable(
            behind(clauses.owners, "owners"),
            behind(clauses.ordinals, "ordinals"),
            np.concatenate(trees),
            Ragged(np.concatenate(leaf_ends), behind(clauses.leaves.values, "clause_leaves")),
        ),
        TreeJumps(
            behind(jumps.leaves, "tree_leaves"),
            behind(jumps.on_true, "tree_trues"),
            behind(jumps.on_false, "tree_falses"),
        ),
        TreeSteps(
            np.concatenate(step_ends), behind(steps.actions, "step_actions"), behind(steps.leaves, "step_leaves")
        ),
    )
