"""Which parts of an expression are the same for every event? Constant folding.

Constants are computed once, here, and disappear from the connectives. NULL is a constant too: it stays
where SQL's logic needs it, because `NULL OR x` is unknown or true, but never false.
"""

from __future__ import annotations

from tamis.language.choices import CHOICES, Arm, choice_of, widens_nothing
from tamis.language.expressions import (
    FALSE,
    TRUE,
    UNKNOWN,
    And,
    AtLeast,
    Call,
    Compare,
    Condition,
    Expression,
    In,
    IsNull,
    Literal,
    Not,
    Or,
    Xor,
    fold_shared,
)
from tamis.language.meaning import meaning
from tamis.language.rewrites.junctions import conjunction, disjunction
from tamis.language.rewrites.operands import over

_CONSTANTS = {True: TRUE, False: FALSE, None: UNKNOWN}


def fold_constants(expression: Expression) -> Expression:
    """Compute what does not depend on the event.

    >>> import tamis
    >>> print(fold_constants(tamis.parse("price < 4 * 5 AND 1 < 2 AND at_least(1, a = 1, FALSE)")))
    price < 20 AND a = 1
    """
    return fold_shared(expression, _folded)


def _folded(node: Expression, below: list[Expression]) -> Expression:
    match node:
        case And():
            return _conjunction(below)
        case Or():
            return _disjunction(below)
        case Xor():
            return _parity(below)
        case AtLeast(count):
            return _at_least(count, below)
        case Not():
            return _negation(below[0])
        case Call("array"):
            return over(node, below)
        case Call(name) if name in CHOICES:
            return _chosen(_computed(node, below))
        case Compare("<=>", _, _) if Literal(None) in below:
            other = below[0] if below[1] == UNKNOWN else below[1]
            return _computed(IsNull(other), [other])
        case Compare() if UNKNOWN in below:
            return UNKNOWN
        case In(_, members) if all(member is None for member in members):
            return UNKNOWN
        case Call() | Condition():
            return _computed(node, below)
        case _:
            return node


def _computed(node: Expression, below: list[Expression]) -> Expression:
    if not all(isinstance(child, Literal) for child in below):
        return over(node, below)
    value = meaning(node, [child.value for child in below if isinstance(child, Literal)], {}, None)
    return _CONSTANTS[value] if isinstance(node, Condition) else Literal(value)


def _chosen(node: Expression) -> Expression:
    """Drop the arms of a choice that are never taken, as long as the others keep their types without them."""
    choice = choice_of(node)
    if choice is None:
        return node
    arms: list[Arm] = []
    for index, arm in enumerate(choice.arms):
        deciding = fold_constants(arm.deciding)
        if deciding == TRUE:
            unreachable = [*(each.value for each in choice.arms[index + 1 :]), choice.otherwise]
            if all(map(widens_nothing, unreachable)):
                return _again(node, arms, arm.value)
        elif deciding in (FALSE, UNKNOWN) and widens_nothing(arm.value):
            continue
        arms.append(arm)
    return _again(node, arms, choice.otherwise) if len(arms) < len(choice.arms) else node


def _again(node: Expression, arms: list[Arm], otherwise: Expression) -> Expression:
    """Return a choice with other arms, in its own words where it has them."""
    if not arms:
        return otherwise
    if isinstance(node, Call) and node.function == "coalesce":
        return Call("coalesce", (*(arm.value for arm in arms), otherwise))
    arguments = [part for arm in arms for part in arm]
    return Call("case", (*arguments, *([] if otherwise == UNKNOWN else [otherwise])))


def _conjunction(below: list[Expression]) -> Expression:
    if FALSE in below:
        return FALSE
    return conjunction(_once_unknown([child for child in below if child != TRUE]))


def _disjunction(below: list[Expression]) -> Expression:
    if TRUE in below:
        return TRUE
    return disjunction(_once_unknown([child for child in below if child != FALSE]))


def _once_unknown(operands: list[Expression]) -> list[Expression]:
    first = next((index for index, operand in enumerate(operands) if operand == UNKNOWN), None)
    return [operand for index, operand in enumerate(operands) if operand != UNKNOWN or index == first]


def _parity(below: list[Expression]) -> Expression:
    if UNKNOWN in below:
        return UNKNOWN
    is_flipped = below.count(TRUE) % 2 == 1
    operands = tuple(child for child in below if child not in (TRUE, FALSE))
    if not operands:
        return TRUE if is_flipped else FALSE
    rest = Xor(operands) if len(operands) > 1 else operands[0]
    return Not(rest) if is_flipped else rest


def _at_least(count: int, below: list[Expression]) -> Expression:
    count -= below.count(TRUE)
    operands = tuple(child for child in below if child not in (TRUE, FALSE))
    if count <= 0:
        return TRUE
    if count > len(operands):
        return FALSE
    if count == len(operands):
        return conjunction(operands)
    return disjunction(operands) if count == 1 else AtLeast(count, operands)


def _negation(operand: Expression) -> Expression:
    if isinstance(operand, Literal):
        return {TRUE: FALSE, FALSE: TRUE}.get(operand, UNKNOWN)
    return Not(operand)
