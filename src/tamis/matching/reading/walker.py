"""How are very many expressions read without a loop of Python's over their predicates? Level by level, as columns.

All conditions are level 0, the operands of their connectives level 1, and so on. Of a level everything is asked at
once: of which types its nodes are, how many operands they have, what these are. Such a question is a `map` over a
column, and costs a fraction of what a step of a loop costs. What the levels say is put together in compiled loops, as
structures over numbered predicates: the same that the reader of texts writes.

The parser shares predicates between texts, so they are numbered by identity. Those that compare an attribute with
literals become columns of operands; every other predicate is asked for one by one, as a reader's are.

Left out, for whoever takes expressions one by one, are those with constants, those that compare the results of
functions (which may be weighed), and those that are large or deep, as nests of shared expressions can be.
"""

from __future__ import annotations

from itertools import chain, compress
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.compilation import is_compiled as was_compiled
from tamis.language.expressions import (
    And,
    AtLeast,
    Attribute,
    Between,
    Call,
    Compare,
    Expression,
    In,
    Literal,
    Not,
    Or,
    Xor,
)
from tamis.matching.axes import DOUBLE, NUMBER, STRING, TRUTH, axis_kind
from tamis.matching.reading import kernels
from tamis.matching.reading.kernels import UNREAD, NodeTable
from tamis.matching.reading.numbering import KeyNumbers
from tamis.matching.reading.reader import KINDS, NO_KIND
from tamis.ragged import Ragged, starts_of

if TYPE_CHECKING:
    from collections.abc import Sequence

Ints = npt.NDArray[np.int64]
Kinds = npt.NDArray[np.uint8]
Flags = npt.NDArray[np.bool_]

AT_A_TIME = 1 << 11
"""So many expressions are walked at a time: what is written down of them stays small."""
MOST_NODES = 2_000
"""Larger expressions are left out,"""
MOST_LEVELS = kernels.DEEPEST - 2
"""and deeper ones."""
_EXACT_IN_DOUBLES = 2**53
_CONSTANT = 6
"""What a literal is where a condition should be, behind what the words of structures are."""
_FORMS = {
    "=": kernels.EQUAL,
    "<>": kernels.UNEQUAL,
    "<": kernels.BELOW,
    "<=": kernels.AT_MOST,
    ">": kernels.ABOVE,
    ">=": kernels.AT_LEAST,
}
"""The comparisons whose opposite is another one; `<=>` is none of them, because it is false for NULL."""
_left, _right, _operator, _value = map(attrgetter, ("left", "right", "operator", "value"))
_low, _high, _values, _count = map(attrgetter, ("low", "high", "values", "count"))


class _ByType(dict[type, int]):
    """Numbers by type, with one for all others."""

    def __init__(self, numbers: dict[type, int], other: int) -> None:
        super().__init__(numbers)
        self._other = other

    def __missing__(self, key: type) -> int:
        self[key] = self._other
        return self._other

    def of(self, values: Sequence[Any]) -> Kinds:
        return np.fromiter(map(self.__getitem__, map(type, values)), np.uint8, len(values))


_WORDS = _ByType(
    {
        And: kernels.CONJUNCTION,
        Or: kernels.DISJUNCTION,
        Xor: kernels.PARITY,
        AtLeast: kernels.COUNT,
        Not: kernels.NEGATION,
        Literal: _CONSTANT,
    },
    kernels.LEAF,
)
_COMPARE, _BETWEEN, _IN, _ANYTHING = range(4)
_PREDICATES = _ByType({Compare: _COMPARE, Between: _BETWEEN, In: _IN}, _ANYTHING)
_KIND_OF_TYPE = {float: KINDS.index(DOUBLE), str: KINDS.index(STRING)}
"""Types of which every value lies on axes of one kind."""


class _Predicates(NamedTuple):
    """Predicates of one shape: their numbers, their forms, whom they ask, and how many operands each has."""

    numbers: Ints
    forms: Ints
    terms: list[Any]
    counts: Ints
    operands: list[Any]


class Walker:
    """Expressions that were read, as columns; as `reader.Reader` has texts. They have to be kept meanwhile.

    >>> from tamis.language.parser import parse
    >>> texts = ["price < 20 AND NOT sold", "lower(title) = 'x'", "price < 20 OR bids IN (1, 2)"]
    >>> walker = Walker(list(map(parse, texts)))
    >>> (walker.structures != UNREAD).tolist(), walker.predicates.list_count
    ([True, False, True], 4)
    >>> walker.values(np.flatnonzero(walker.operand_kinds() == KINDS.index(NUMBER)))
    [20, 1, 2]
    """

    def __init__(self, expressions: Sequence[Expression]) -> None:
        self._identities = KeyNumbers(np.int64)
        self._structures = KeyNumbers(np.int64)
        self._names: dict[Expression, int] = {}
        self._name_of_term: dict[int, int] = {}
        self._nodes: list[Any] = []
        """The predicates by number."""
        self._operands: list[Any] = []
        self._operand_names: list[Ints] = [np.zeros(0, np.int64)]
        self._operand_kinds: list[Kinds] = [np.zeros(0, np.uint8)]
        self._rows: list[tuple[Ints, Ints, Ints, Ints]] = []
        """Of predicates with operands: their numbers and forms, and which operands they have."""
        self._weighed = np.zeros(0, np.int64)
        """The predicates that compare what functions give."""
        of_texts, counts, leaves = [np.zeros(0, np.int32)], [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for first in range(0, len(expressions), AT_A_TIME):
            structures, ends, numbers = self._read(expressions[first : first + AT_A_TIME])
            of_texts.append(structures)
            counts.append(np.diff(ends, prepend=0))
            leaves.append(numbers)
        self.structures: npt.NDArray[np.int32] = np.concatenate(of_texts)
        """The structure of each expression, UNREAD where it is left out."""
        self.leaves: Ragged[np.int32] = Ragged.of_counts(
            np.concatenate(counts), np.concatenate(leaves).astype(np.int32)
        )
        """The predicates of each expression, in order."""
        self.operand_names = np.concatenate(self._operand_names)
        self._finish()

    # -- Walking

    def _read(self, expressions: Sequence[Expression]) -> tuple[npt.NDArray[np.int32], Ints, Ints]:
        """Return the structures of some expressions, where the predicates of each end, and these."""
        levels, nodes, is_whole = _walked(expressions)
        levels.firsts[levels.kinds == kernels.LEAF] = self._numbered(nodes)
        is_weighed = np.zeros(len(self._nodes), np.bool_)
        is_weighed[self._weighed] = True
        count = len(levels.kinds)
        words, word_ends = np.empty(count, np.int64), np.empty(len(expressions), np.int64)
        leaves, leaf_ends = np.empty(count, np.int64), np.empty(len(expressions), np.int64)
        stack = np.empty((2, kernels.DEEPEST + 2), np.int64)
        kernels.write_structures(levels, is_weighed, is_whole, words, word_ends, leaves, leaf_ends, stack)
        structures = self._structures.numbers(words, np.concatenate([[0], word_ends])[:-1], word_ends)
        is_read = is_whole & (np.diff(word_ends, prepend=0) > 0)
        of_texts = np.where(is_read, structures, UNREAD).astype(np.int32)
        return of_texts, leaf_ends, leaves[: leaf_ends[-1] if len(leaf_ends) else 0]

    def _numbered(self, nodes: list[Any]) -> Ints:
        """Return the numbers of predicates, and take note of those that are new."""
        known = len(self._nodes)
        identities = np.fromiter(map(id, nodes), np.int64, len(nodes))
        places = np.arange(len(nodes))
        numbers = self._identities.numbers(identities, places, places + 1)
        is_new = numbers > np.concatenate([[known - 1], np.maximum.accumulate(numbers)])[:-1]
        new = list(compress(nodes, is_new.tolist()))
        self._nodes += new
        sorts = _PREDICATES.of(new)
        weighed = []
        for sort, take in ((_COMPARE, _compared), (_BETWEEN, _within), (_IN, _among)):
            places = np.flatnonzero(sorts == sort)
            predicates, asks_functions = take(known + places, list(compress(new, (sorts == sort).tolist())))
            weighed.append(asks_functions)
            self._take(predicates)
        self._weighed = np.concatenate([self._weighed, *weighed])
        return numbers

    def _take(self, predicates: _Predicates) -> None:
        """Take note of what predicates compare with what."""
        names = self._named(predicates.terms)
        first = len(self._operands)
        self._operands += predicates.operands
        self._operand_names.append(np.repeat(names, predicates.counts))
        self._operand_kinds.append(_kinds_of(predicates.operands))
        self._rows.append(
            (predicates.numbers, predicates.forms, first + starts_of(predicates.counts)[:-1], predicates.counts)
        )

    def _named(self, terms: list[Any]) -> Ints:
        """Return the numbers of attributes."""
        known = self._name_of_term
        try:
            return np.fromiter(map(known.__getitem__, map(id, terms)), np.int64, len(terms))
        except KeyError:
            for term in terms:
                if id(term) not in known:
                    known[id(term)] = self._names.setdefault(term, len(self._names))
            return self._named(terms)

    # -- What was read

    def _finish(self) -> None:
        """Put the predicates in order."""
        self._terms = list(self._names)
        count = len(self._nodes)
        self._forms = np.full(count, kernels.OTHER, np.int64)
        self._kinds = np.full(count, NO_KIND, np.uint8)
        firsts, counts = np.zeros(count, np.int64), np.zeros(count, np.int64)
        kinds = np.concatenate(self._operand_kinds)
        self._kinds_of_operands = kinds
        for numbers, forms, begins, sizes in self._rows:
            self._forms[numbers], firsts[numbers], counts[numbers] = forms, begins, sizes
            if len(numbers):
                own = kinds[begins[0] : begins[-1] + sizes[-1]]
                least = np.minimum.reduceat(own, begins - begins[0])
                most = np.maximum.reduceat(own, begins - begins[0])
                self._kinds[numbers] = np.where(least == most, least, NO_KIND)
        starts = starts_of(1 + counts)
        values = np.empty(int(starts[-1]), np.int64)
        is_operand = np.ones(len(values), np.bool_)
        is_operand[starts[:-1]] = False
        values[starts[:-1]] = self._forms
        values[is_operand] = np.repeat(firsts - starts_of(counts)[:-1], counts) + np.arange(int(counts.sum()))
        self.predicates: Ragged[np.int64] = Ragged(starts, values)
        """The predicates by number: a form and operands each; of OTHER nothing else."""

    @property
    def shapes(self) -> Ragged[np.int64]:
        """The words of each structure."""
        return self._structures.lists

    def forms(self) -> Ints:
        """Return what each predicate asks."""
        return self._forms

    def predicate_kinds(self) -> Kinds:
        """Return on which of the `KINDS` of axes each predicate lies; NO_KIND for those to be asked for one by one."""
        return self._kinds

    def operand_kinds(self) -> Kinds:
        """Return on which of the `KINDS` of axes each operand lies."""
        return self._kinds_of_operands

    def predicate(self, number: int) -> Expression | None:
        """Return a predicate."""
        node: Expression = self._nodes[number]
        return node

    def term(self, name: int) -> Expression:
        """Return what a name names."""
        return self._terms[name]

    def values(self, numbers: Ints) -> list[Any]:
        """Return operands."""
        return list(map(self._operands.__getitem__, numbers.tolist()))


def _walked(expressions: Sequence[Expression]) -> tuple[NodeTable, list[Any], Flags]:
    """Return the levels of some expressions, their predicates, and which expressions they are whole of."""
    nodes: list[Any] = list(expressions)
    owners = np.arange(len(nodes))
    is_whole, sizes = np.ones(len(nodes), np.bool_), np.zeros(len(nodes), np.int64)
    kinds_of_levels, firsts_of_levels, words_of_levels = [], [], []
    predicates: list[Any] = []
    behind = 0  # where the next level begins
    for level in range(MOST_LEVELS + 1):
        kinds = _WORDS.of(nodes)
        behind += len(nodes)
        sizes += np.bincount(owners, minlength=len(sizes))
        is_whole[owners[kinds == _CONSTANT]] = False
        is_whole[sizes > MOST_NODES] = False
        is_leaf = kinds == kernels.LEAF
        predicates += compress(nodes, is_leaf.tolist())
        is_inner = ~is_leaf & is_whole[owners]
        if level == MOST_LEVELS:
            is_whole[owners[is_inner]] = False
            is_inner[:] = False
        inner = list(compress(nodes, is_inner.tolist()))
        operands = [(node.value,) if type(node) is Not else node.operands for node in inner]
        counts = np.zeros(len(nodes), np.int64)
        counts[is_inner] = np.fromiter(map(len, operands), np.int64, len(operands))
        needed = np.zeros(len(nodes), np.int64)
        is_count = is_inner & (kinds == kernels.COUNT)
        if is_count.any():
            asked = list(map(_count, compress(nodes, is_count.tolist())))
            is_usual = np.fromiter((each <= MOST_NODES for each in asked), np.bool_, len(asked))
            is_whole[owners[is_count][~is_usual]] = False
            needed[is_count] = np.where(is_usual, [min(each, MOST_NODES) for each in asked], 0)
        kinds_of_levels.append(kinds)
        firsts_of_levels.append(behind + starts_of(counts)[:-1])
        joins = (kinds != kernels.NEGATION) & is_inner
        words_of_levels.append(np.where(joins, kinds | counts << 3 | needed << kernels.COUNT_SHIFT, kinds))
        nodes, owners = list(chain.from_iterable(operands)), np.repeat(owners, counts)
        if not nodes:
            break
    levels = NodeTable(
        np.concatenate(kinds_of_levels), np.concatenate(firsts_of_levels), np.concatenate(words_of_levels)
    )
    return levels, predicates, is_whole


# -- Predicates of one shape


def _compared(numbers: Ints, nodes: list[Any]) -> tuple[_Predicates, Ints]:
    lefts, rights = list(map(_left, nodes)), list(map(_right, nodes))
    operators = list(map(_operator, nodes))
    usual = _usual(lefts, rights) & np.fromiter(map(_FORMS.__contains__, operators), np.bool_, len(nodes))
    weighed = numbers[_calls(lefts) | _calls(rights)]
    flags = usual.tolist()
    return _Predicates(
        numbers[usual],
        np.fromiter(map(_FORMS.__getitem__, compress(operators, flags)), np.int64, int(usual.sum())),
        list(compress(lefts, flags)),
        np.ones(int(usual.sum()), np.int64),
        list(map(_value, compress(rights, flags))),
    ), weighed


def _within(numbers: Ints, nodes: list[Any]) -> tuple[_Predicates, Ints]:
    terms, lows, highs = list(map(_value, nodes)), list(map(_low, nodes)), list(map(_high, nodes))
    usual = _usual(terms, lows) & _usual(terms, highs)
    weighed = numbers[_calls(terms) | _calls(lows) | _calls(highs)]
    flags, count = usual.tolist(), int(usual.sum())
    operands: list[Any] = [None] * (2 * count)
    operands[::2] = map(_value, compress(lows, flags))
    operands[1::2] = map(_value, compress(highs, flags))
    forms, counts = np.full(count, kernels.BETWEEN, np.int64), np.full(count, 2, np.int64)
    return _Predicates(numbers[usual], forms, list(compress(terms, flags)), counts, operands), weighed


def _among(numbers: Ints, nodes: list[Any]) -> tuple[_Predicates, Ints]:
    terms, members = list(map(_value, nodes)), list(map(_values, nodes))
    sizes = np.fromiter(map(len, members), np.int64, len(members))
    usual = _are(terms, Attribute) & (sizes > 0)
    flags = usual.tolist()
    forms = np.full(int(usual.sum()), kernels.AMONG, np.int64)
    operands = list(chain.from_iterable(compress(members, flags)))
    return _Predicates(numbers[usual], forms, list(compress(terms, flags)), sizes[usual], operands), numbers[
        _calls(terms)
    ]


def _usual(terms: list[Any], literals: list[Any]) -> Flags:
    """Return where an attribute stands beside a literal."""
    return np.asarray(_are(terms, Attribute) & _are(literals, Literal))


def _calls(terms: list[Any]) -> Flags:
    return _are(terms, Call)


def _are(values: list[Any], kind: type) -> Flags:
    """Return which values are of a type; mostly all of them are of one."""
    types = set(map(type, values))
    if len(types) < 2:
        return np.full(len(values), kind in types)
    return np.fromiter((type(value) is kind for value in values), np.bool_, len(values))


def _kinds_of(operands: list[Any]) -> Kinds:
    """Return on which of the `KINDS` of axes operands lie."""
    types = set(map(type, operands))
    if types == {str} or types == {float}:
        return np.full(len(operands), _KIND_OF_TYPE[types.pop()], np.uint8)
    if types == {int} and min(operands) >= -_EXACT_IN_DOUBLES and max(operands) <= _EXACT_IN_DOUBLES:
        return np.full(len(operands), KINDS.index(NUMBER), np.uint8)
    return np.fromiter(map(_kind_of, operands), np.uint8, len(operands))


def _kind_of(operand: Any) -> int:
    kind = _KIND_OF_TYPE.get(type(operand))
    if kind is None:
        kind_of_axis = TRUTH if operand is None else axis_kind(operand)
        kind = KINDS.index(kind_of_axis) if kind_of_axis in KINDS else NO_KIND
    return kind


def is_compiled() -> bool:
    """Were the loops compiled before?"""
    return was_compiled(kernels.write_structures)
