"""Which value does a choice give, and when? CASE, `if`, `coalesce` and `nullif`, read alike.

All four give the value behind the first of some conditions that is true: `coalesce(a, b)` is
`CASE WHEN a IS NOT NULL THEN a ELSE b END`, and `nullif(a, b)` is `CASE WHEN a = b THEN NULL ELSE a END`. Whoever
rewrites choices or compares filters that have them asks here, and need not know four forms.
"""

from __future__ import annotations

from typing import NamedTuple

from tamis.language.expressions import UNKNOWN, Call, Compare, Expression, IsNull, Literal, Not

CHOICES = frozenset({"case", "if", "coalesce", "nullif"})


class Arm(NamedTuple):
    """A condition, and the value where it is the first that is true."""

    deciding: Expression
    value: Expression


class Choice(NamedTuple):
    """The arms of a choice, and what it gives where none of their conditions is true."""

    arms: tuple[Arm, ...]
    otherwise: Expression

    @property
    def values(self) -> tuple[Expression, ...]:
        """Everything that it may give, before it is brought into the widest type among them."""
        return (*(arm.value for arm in self.arms), self.otherwise)


def choice_of(node: Expression) -> Choice | None:
    """Return what a choice chooses from; None for what is none.

    >>> import tamis
    >>> choice = choice_of(tamis.parse("coalesce(price, estimate) < 20").left)
    >>> [(str(arm.deciding), str(arm.value)) for arm in choice.arms], str(choice.otherwise)
    ([('price IS NOT NULL', 'price')], 'estimate')
    """
    match node:
        case Call("case" | "if", arguments):
            pairs, rest = arguments[: len(arguments) // 2 * 2], arguments[len(arguments) // 2 * 2 :]
            arms = tuple(map(Arm, pairs[::2], pairs[1::2]))
            return Choice(arms, rest[0] if rest else UNKNOWN)
        case Call("coalesce", (*first, last)):
            return Choice(tuple(Arm(Not(IsNull(each)), each) for each in first), last)
        case Call("nullif", (value, other)):
            return Choice((Arm(Compare("=", value, other), UNKNOWN),), value)
    return None


def widens_nothing(node: Expression) -> bool:
    """Is this a constant that leaves the type of every value as it is that it may be chosen instead of?

    A double beside an integer makes that a double; an integer, a text, a Boolean or NULL changes nothing.
    """
    return isinstance(node, Literal) and isinstance(node.value, int | str | None)


def keeps_types(node: Expression) -> bool:
    """Does a choice give every value in the type that it has anyway, whatever the event?

    >>> import tamis
    >>> [keeps_types(tamis.parse(f"{text} = 1").left) for text in ("if(a, 2, 0)", "if(a, b, 0)", "coalesce(b, 0)")]
    [True, False, True]
    """
    choice = choice_of(node)
    if choice is None or not isinstance(node, Call):
        return False
    if node.function == "nullif":
        return True
    if node.function == "coalesce":  # what comes later is chosen only if what comes first is NULL, and has no type
        return all(map(widens_nothing, choice.values[1:]))
    present = {value for value in choice.values if value != UNKNOWN}
    constants = [value.value for value in present if isinstance(value, Literal)]
    if len(constants) == len(present):
        return len({type(each) for each in constants}) <= 1
    return len(present) - len(constants) == 1 and all(isinstance(each, str | bool) for each in constants)
