"""What does a step ask about earlier events? References, and what remains of a step without them.

`high.price` in a later step is the price of the event that was taken for the step named `high`. So a step is a
condition over an event that has the earlier events inside, each under its step's name. Which events may fulfil it at
all can be asked without any earlier event: a reference can be anything, so whatever contains one counts as true.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tamis.errors import BudgetError
from tamis.language.expressions import TRUE, And, AtLeast, Attribute, Or, fold_shared, postorder
from tamis.language.meaning import attribute_value
from tamis.language.rewrites import nnf
from tamis.language.rewrites.monotone import joined

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tamis.language.expressions import Expression

Path = tuple[str, ...]


def paths_of(expression: Expression) -> set[Path]:
    """Return the paths of all attributes of an expression.

    >>> import tamis
    >>> sorted(paths_of(tamis.parse("price < high.price AND sold")))
    [('high', 'price'), ('price',), ('sold',)]
    """
    return {node.path for node in postorder(expression) if isinstance(node, Attribute)}


def bound(event: Mapping[str, Any], earlier: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return an event with the earlier ones inside, each under the name of its step."""
    return {**event, **earlier} if earlier else event


def without_references(expression: Expression, names: Iterable[str]) -> Expression:
    """Return a condition without references that is true wherever the given one is, whatever the references are.

    >>> import tamis
    >>> print(without_references(tamis.parse("kind = 'bid' AND (price < high.price OR sold)"), ["high"]))
    kind = 'bid'
    """
    hidden = frozenset(names)
    if not any(path[0] in hidden for path in paths_of(expression)):
        return expression
    try:
        root = nnf(expression)
    except BudgetError:
        return TRUE

    def loosened(node: Expression, below: list[tuple[Expression, bool]]) -> tuple[Expression, bool]:
        """Return what is left of a node, and whether there is a reference in it."""
        refers = any(has for _, has in below)
        if isinstance(node, And | Or | AtLeast):
            # In negation normal form these are monotone: what becomes true below never makes them less true.
            return (joined(node, [kept for kept, _ in below]) if refers else node), refers
        if isinstance(node, Attribute):
            refers = node.path[0] in hidden
        return (TRUE if refers else node), refers

    return fold_shared(root, loosened)[0]


def projected(event: Mapping[str, Any], paths: Iterable[Path]) -> dict[str, Any]:
    """Return an event that has these attributes only, so that no more of it is kept than is asked for.

    >>> projected({"position": {"x": 1, "y": 2}, "title": "It"}, [("position", "x")])
    {'position': {'x': 1}}
    """
    kept: dict[str, Any] = {}
    whole: Path | None = None
    for path in sorted(paths):
        if whole is not None and path[: len(whole)] == whole:
            continue  # it is inside of what is kept already
        value = attribute_value(event, path)
        if value is None:
            continue
        whole = path
        place = kept
        for name in path[:-1]:
            place = place.setdefault(name, {})
        place[path[-1]] = value
    return kept
