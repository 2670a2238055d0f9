"""How does an expression become instructions for the graph?

One walk, no recursion. NOT goes down to the predicates, each of which has a complement; what remains is AND, OR and
`at_least`, in which "unknown" may be read as "false". XOR is written out, with both polarities of its operands. Where
an operand is never unknown (see `certainty`) and the filter can take it, NOT and XOR stay what they are, and become
nodes: then the positive and the negative users of an expression share it, and XOR needs no complements.

Source: Jewel 2004, section 3.2.3, names both ways to treat NOT (docs/bibliography.md).
Departs: the source chooses NOT nodes, which its filters never evaluate where the operand is untouched.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tamis.errors import BudgetError
from tamis.language.expressions import (
    COMPLEMENTS,
    And,
    AtLeast,
    Compare,
    Expression,
    Literal,
    Not,
    Or,
    Xor,
)
from tamis.language.rewrites.negation import nnf
from tamis.matching.errors import UnsupportedExpressionError
from tamis_lab.matching.atree.certainty import Promises, promises
from tamis_lab.matching.atree.filters.kernels import PATH_BITS
from tamis_lab.matching.atree.graph import Programs, kernels

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tamis.language.schema import Schema

_NEVER, _EVER = kernels.NEVER, kernels.EVER
_MOST_NEEDED = (1 << PATH_BITS) - 1


@dataclass(frozen=True, slots=True)
class Translated:
    """Expressions ready to be inserted."""

    predicates: list[Expression]
    """Those that the programs speak of, each once."""
    programs: Programs
    promises: Promises
    """What events must keep for the NOT and XOR among the instructions to be right."""
    trusting: list[int]
    """The expressions that rely on it."""

    def __len__(self) -> int:
        return len(self.programs)


class _Frame:
    """An operation whose operands are being translated."""

    __slots__ = ("key", "kind", "label", "pending", "refs", "taken_apart")

    def __init__(self, kind: int, label: int, pending: list[tuple[Expression, bool]], key: tuple[int, bool]) -> None:
        self.kind = kind
        self.label = label
        self.pending = pending
        """Operands yet to come, and whether they are wanted as they are or negated; the next one last."""
        self.refs: list[int] = []
        self.key = key
        self.taken_apart: set[tuple[int, bool]] | None = None
        """Operands of the same kind whose operands stand here instead."""


class NodeTranslator:
    """Translates for one algorithm.

    >>> from tamis.language import parse
    >>> translated = NodeTranslator("atree").translated([parse("price < 20 AND NOT (sold OR bids > 3)")])
    >>> [str(predicate) for predicate in translated.predicates]
    ['price < 20', 'NOT sold', 'bids <= 3']
    >>> translated.programs.code.tolist()  # one AND of the leaves 0, 1 and 2
    [1, 0, 3, 0, 1, 2]
    """

    def __init__(self, algorithm: str, schema: Schema | None = None, *, has_not: bool = False) -> None:
        self._algorithm = algorithm
        self._schema = schema
        self._has_not = has_not
        self._leaves: dict[Expression, int] = {}
        self._code: list[int] = []
        self._count = 0
        self._promises: Promises = {}
        self._trusts = False
        self._known: dict[tuple[int, bool], int] = {}
        self._kept: list[Expression] = []

    def translated(self, expressions: Iterable[Expression]) -> Translated:
        """Translate expressions; raises `UnsupportedExpressionError` for what the filters cannot take."""
        self._leaves, self._code, self._promises = {}, [], {}
        starts, roots, trusting = [0], [], []
        for number, expression in enumerate(expressions):
            self._count = 0
            self._trusts = False
            self._known, self._kept = {}, []
            roots.append(self._translate(expression))
            starts.append(len(self._code))
            if self._trusts:
                trusting.append(number)
        programs = Programs(np.array(self._code, np.int32), np.array(starts, np.int64), np.array(roots, np.int32))
        return Translated(list(self._leaves), programs, self._promises, trusting)

    def _translate(self, expression: Expression) -> int:
        opened = self._opened(expression, True)
        if not isinstance(opened, _Frame):
            return opened
        stack = [opened]
        leaves = self._leaves
        while True:
            frame = stack[-1]
            pending, refs = frame.pending, frame.refs
            while pending:
                node, is_wanted = pending.pop()
                if is_wanted and type(node) is Compare:  # as most are
                    refs.append(leaves.setdefault(node, len(leaves)))
                    continue
                opened = self._opened(node, is_wanted)
                if not isinstance(opened, _Frame):
                    refs.append(opened)
                elif opened.kind == frame.kind and opened.kind <= kernels.OR:
                    self._take_apart(frame, opened)
                else:
                    stack.append(opened)
                    break
            else:
                ref = self._closed(frame)
                self._known[frame.key] = ref
                stack.pop()
                if not stack:
                    return ref
                stack[-1].refs.append(ref)

    def _take_apart(self, frame: _Frame, inner: _Frame) -> None:
        """Let the operands of an operand of the same kind stand in its place, once."""
        if frame.taken_apart is None:
            frame.taken_apart = set()
        if inner.key not in frame.taken_apart:
            frame.taken_apart.add(inner.key)
            frame.pending += inner.pending

    def _opened(self, node: Expression, is_wanted: bool) -> int | _Frame:
        """Return what stands for a condition or its negation: a leaf, a constant, a result, or an open operation."""
        kind = type(node)
        while kind is Not:
            assert isinstance(node, Not)
            node, is_wanted = node.value, not is_wanted
            kind = type(node)
        if kind is not And and kind is not Or and kind is not AtLeast and kind is not Xor:
            return self._leaf(node, is_wanted)
        key = (id(node), is_wanted)
        known = self._known.get(key)
        if known is not None:
            return known
        if (not is_wanted or kind is Xor) and self._has_not and self._trust(node):
            if not is_wanted:
                return _Frame(kernels.NOT, 0, [(node, True)], key)
            return _Frame(kernels.XOR, 0, [(each, True) for each in reversed(node.children)], key)
        if kind is Xor:
            return self._opened(self._written_out(node), is_wanted)
        pending = [(each, is_wanted) for each in reversed(node.children)]
        if kind is AtLeast:
            assert isinstance(node, AtLeast)
            # Fewer than so many are true when enough are false to keep the others below it.
            needed = node.count if is_wanted else len(pending) - node.count + 1
            return _Frame(kernels.AT_LEAST, needed, pending, key)
        return _Frame(kernels.AND if (kind is And) is is_wanted else kernels.OR, 0, pending, key)

    def _leaf(self, node: Expression, is_wanted: bool) -> int:
        if type(node) is Literal:
            return _EVER if node.value is is_wanted else _NEVER
        if not is_wanted:
            if type(node) is Compare and node.operator in COMPLEMENTS:
                node = Compare(COMPLEMENTS[node.operator], node.left, node.right)
            else:
                node = Not(node)
        return self._leaves.setdefault(node, len(self._leaves))

    def _trust(self, node: Expression) -> bool:
        """Rely on what events promise, if that keeps a node from being unknown; return whether it does."""
        needed = promises(node, self._schema)
        if needed is None:
            return False
        self._promises |= needed
        self._trusts |= bool(needed)
        return True

    def _written_out(self, node: Expression) -> Expression:
        try:
            written = nnf(node)
        except BudgetError as error:
            raise UnsupportedExpressionError(self._algorithm, f"XOR written out is too large: {error}") from error
        self._kept.append(written)  # its nodes are known by their identity
        return written

    def _closed(self, frame: _Frame) -> int:
        """Write the instruction of an operation, or return what it comes to without one."""
        refs = frame.refs
        kind, label = frame.kind, frame.label
        if kind == kernels.AT_LEAST:
            label -= refs.count(_EVER)
            refs = [ref for ref in refs if ref > _EVER]
            if label <= 0 or label > len(refs):
                return _EVER if label <= 0 else _NEVER
            if label > _MOST_NEEDED and label < len(refs):
                raise UnsupportedExpressionError(
                    self._algorithm, f"at_least needs no more than {_MOST_NEEDED:,} of its operands, not {label:,}"
                )
        elif kind == kernels.NOT:
            if refs[0] <= _EVER:
                return _EVER + _NEVER - refs[0]
        elif min(refs) <= _EVER:
            is_turned = kind == kernels.XOR and refs.count(_EVER) % 2 == 1
            decides = _EVER if kind == kernels.OR else _NEVER
            if kind != kernels.XOR and decides in refs:
                return decides
            refs = [ref for ref in refs if ref > _EVER]
            if not refs:
                return _EVER if is_turned or kind == kernels.AND else _NEVER
            if is_turned:
                return self._instruction(kernels.NOT, 0, [self._instruction(kind, label, refs)])
        return self._instruction(kind, label, refs)

    def _instruction(self, kind: int, label: int, refs: list[int]) -> int:
        if len(refs) == 1 and kind <= kernels.XOR:
            return refs[0]
        self._code += (kind, label, len(refs), *refs)
        self._count += 1
        return -self._count
