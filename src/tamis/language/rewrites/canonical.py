"""When do two expressions count as the same? The canonical form.

The canonical form is the composition of the passes, with operands in one order and duplicates gone, so
that expressions that differ only in how they were written become equal. It does not decide
equivalence: that is a question for `relations`.
"""

from __future__ import annotations

from decimal import Decimal
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from tamis.language.expressions import (
    MIRRORED,
    And,
    AtLeast,
    Call,
    Compare,
    Expression,
    In,
    Literal,
    Not,
    Or,
    Scalar,
    Xor,
    fold_shared,
)
from tamis.language.literals import to_text as literal_text
from tamis.language.rewrites.constants import fold_constants
from tamis.language.rewrites.flattening import flatten
from tamis.language.rewrites.junctions import conjunction, disjunction
from tamis.language.rewrites.negation import nnf
from tamis.language.rewrites.operands import over
from tamis.language.rewrites.simplification import simplify
from tamis.language.values import EXACT, kind_of

if TYPE_CHECKING:
    from tamis.language.schema import Schema

_Key = tuple[str, bytes]


def canonical(expression: Expression, schema: Schema | None = None) -> Expression:
    """Return the canonical form: true for the same events, and one form for many spellings.

    >>> import tamis
    >>> one = tamis.parse("NOT (price >= 20 OR sold) AND 3 < bids")
    >>> two = tamis.parse("(bids > 3 AND bids > 1) AND sold = FALSE AND price < 20")
    >>> canonical(one) == canonical(two)
    True
    """
    folded = flatten(fold_constants(ordered(flatten(fold_constants(nnf(expression))))))
    return ordered(flatten(fold_constants(simplify(folded, schema))))


def ordered(expression: Expression) -> Expression:
    """Put operands into one order, literals on the right, and drop what occurs twice in an AND or OR.

    >>> import tamis
    >>> print(ordered(tamis.parse("20 > b AND a IN (3, 1, 3) AND 20 > b")))
    a IN (1, 3) AND b < 20
    """
    interner = Interner()
    rewritten, _ = fold_shared(expression, lambda node, below: _ordered(node, below, interner))
    return rewritten


class Interner:
    """Hash-consing: equal expressions become the same object.

    >>> import tamis
    >>> intern = Interner()
    >>> intern(tamis.parse("a = 1 AND b = 2")) is intern(tamis.parse("a = 1 AND b = 2"))
    True
    """

    def __init__(self) -> None:
        self._known: dict[Expression, Expression] = {}

    def __len__(self) -> int:
        return len(self._known)

    def __call__(self, expression: Expression) -> Expression:
        return fold_shared(expression, self._interned)

    def _interned(self, node: Expression, below: list[Expression]) -> Expression:
        known = self._known.get(node)
        if known is not None:
            return known
        return self.one(node.with_children(tuple(below)) if below else node)

    def one(self, node: Expression) -> Expression:
        """Intern a node whose children are interned already."""
        return self._known.setdefault(node, node)


def _ordered(node: Expression, below: list[tuple[Expression, _Key]], interner: Interner) -> tuple[Expression, _Key]:
    children = [child for child, _ in below]
    match node:
        case And() | Or():
            distinct = dict(sorted(below, key=lambda pair: pair[1]))
            junction = conjunction if isinstance(node, And) else disjunction
            rewritten = interner.one(junction(distinct))
            keys = list(distinct.values())
            return rewritten, keys[0] if len(keys) == 1 else _key_of(node, keys)
        case Xor() | AtLeast():
            pairs = sorted(below, key=lambda pair: pair[1])
            return interner.one(node.with_children(tuple(child for child, _ in pairs))), _key_of(
                node, [key for _, key in pairs]
            )
        case Not():
            return interner.one(Not(*children)), _key_of(node, [key for _, key in below])
        case Compare(operator) if isinstance(children[0], Literal) and not isinstance(children[1], Literal):
            rewritten = Compare(MIRRORED[operator], over(node, children).children[1], children[0])
        case In(_, members):
            rewritten = _in(over(node, children).children[0], members)
        case Literal(Decimal() as number):
            rewritten = Literal(_shortest(number))
        case Call("if"):
            rewritten = over(Call("case", node.arguments), children)
        case _:
            rewritten = over(node, children)
    text = str(rewritten)
    return interner.one(rewritten), (text, _digest([text.encode()]))


def _in(value: Expression, members: tuple[Scalar, ...]) -> Expression:
    distinct = {Literal(_shortest(member)): None for member in members}
    constants = sorted((literal.value for literal in distinct), key=_member_key)
    return Compare("=", value, Literal(constants[0])) if len(constants) == 1 else In(value, tuple(constants))


def _member_key(member: Scalar) -> tuple[str, Any, str]:
    kind = kind_of(member)
    by_size = float(member) if kind == "number" else 0.0  # type: ignore[arg-type]
    return kind, by_size, literal_text(member)


def _shortest(member: Scalar) -> Any:
    """A decimal without zeros at its end; every other value as it is."""
    if not isinstance(member, Decimal):
        return member
    shortest = member.normalize(EXACT)
    return shortest.quantize(Decimal(1), context=EXACT) if int(shortest.as_tuple().exponent) > 0 else shortest


def _key_of(node: Expression, keys: list[_Key]) -> _Key:
    label = "" if node.label is None else str(node.label)
    return keys[0][0], _digest([type(node).__name__.encode(), label.encode(), *(digest for _, digest in keys)])


def _digest(parts: list[bytes]) -> bytes:
    # A digest, not hash(): the order must be the same in every process.
    digest = blake2b(digest_size=16)
    for part in parts:
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.digest()
