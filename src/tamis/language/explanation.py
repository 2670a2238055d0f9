"""Why does an event match, or not? An evaluation trace.

The tree of the expression with the truth of every condition beside it and, for every predicate, the
values that decided. It shows the same evaluation as `meaning`, written down instead of reduced to one bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from tamis.language.expressions import (
    CONNECTIVES,
    And,
    AtLeast,
    Attribute,
    Between,
    Call,
    Compare,
    Expression,
    Literal,
    Not,
    Or,
    Xor,
    postorder,
)
from tamis.language.functions import function_of
from tamis.language.literals import to_text
from tamis.language.meaning import Event, as_expression, as_truth, meaning
from tamis.language.printer import name_text
from tamis.language.values import kind_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tamis.language.schema import Schema

TRUTHS = {True: "true", False: "false", None: "unknown"}
MARKS = {True: "✓", False: "✗", None: "?"}
_WORDS = {"string": "a text", "number": "a number", "boolean": "a Boolean", "time": "a time", "array": "an array"}
_WORDS |= {"record": "a record"}


@dataclass(frozen=True, slots=True)
class Explanation:
    """One condition, its truth, why, and the same for the conditions it is made of."""

    text: str
    truth: bool | None
    reason: str
    parts: tuple[Explanation, ...] = ()
    operator: str = ""
    """The connective, where it is one; its parts say the rest."""

    def lines(self) -> Iterator[tuple[str, Explanation]]:
        """Yield every condition behind the lines that draw the tree."""
        stack: list[tuple[str, str, Explanation]] = [("", "", self)]
        while stack:
            lead, below, part = stack.pop()
            yield lead, part
            last = len(part.parts) - 1
            for index in range(last, -1, -1):
                branch, stem = ("└─ ", "   ") if index == last else ("├─ ", "│  ")
                stack.append((below + branch, below + stem, part.parts[index]))

    def __str__(self) -> str:
        return "\n".join(
            f"{lead}{MARKS[part.truth]} {part.operator or part.text}{f'   ({part.reason})' if part.reason else ''}"
            for lead, part in self.lines()
        )

    def as_dict(self) -> dict[str, Any]:
        """The explanation as data: text, truth ("true", "false", "unknown"), reason, parts."""
        made: dict[int, dict[str, Any]] = {}
        parts = [part for _, part in self.lines()]
        for part in reversed(parts):
            made[id(part)] = {
                "text": part.text,
                "truth": TRUTHS[part.truth],
                "reason": part.reason,
                "parts": [made[id(inner)] for inner in part.parts],
            }
        return made[id(self)]


def explain(expression: Expression | str, event: Event, schema: Schema | None = None) -> Explanation:
    """Return the truth of every condition of an expression, or of its text, for this event, with the reasons.

    >>> print(explain("price < 20 OR NOT bids > 3", {"price": 25}))
    ? OR   (unknown: no part is true, 1 of 2 is unknown)
    ├─ ✗ price < 20   (price is 25)
    └─ ? NOT   (not of unknown is unknown)
       └─ ? bids > 3   (bids is absent)
    """
    expression = as_expression(expression, schema)
    values: list[_Evaluated] = []
    for node in postorder(expression):
        count = len(node.children)
        below = values[len(values) - count :] if count else []
        del values[len(values) - count :]
        value_of_node = meaning(node, [each.value for each in below], event, schema)
        inside = tuple(part for each in below for part in each.parts)
        parts = (_explained(node, value_of_node, below, event),) if _is_shown(node) else inside
        values.append(_Evaluated(value_of_node, parts))
    value_of_node, parts = values[0]
    if not _is_shown(expression):  # a Boolean attribute or literal on its own
        return Explanation(str(expression), as_truth(value_of_node), _operand_reason(expression, value_of_node, event))
    return parts[0]


class _Evaluated(NamedTuple):
    """What a node gives, and the conditions to show for it: its own, or those inside a function of conditions."""

    value: Any
    parts: tuple[Explanation, ...]


def _is_shown(node: Expression) -> bool:
    return not isinstance(node, Attribute | Literal | Call)


def _explained(node: Expression, result: Any, below: list[_Evaluated], event: Event) -> Explanation:
    parts: list[Explanation] = []
    for child, (value, inside) in zip(node.children, below, strict=True):
        if inside:
            parts.extend(inside)
        elif isinstance(node, CONNECTIVES):
            parts.append(Explanation(str(child), as_truth(value), _operand_reason(child, value, event)))
    if isinstance(node, CONNECTIVES):
        reason = _connective_reason(node, [as_truth(each.value) for each in below])
    else:
        reason = _predicate_reason(node, result, [each.value for each in below], event)
    return Explanation(str(node), as_truth(result), reason, tuple(parts), _operator(node))


def _operator(node: Expression) -> str:
    if isinstance(node, AtLeast):
        return f"at least {node.count} of"
    return type(node).__name__.upper() if isinstance(node, CONNECTIVES) else ""


def _connective_reason(node: Expression, truths: list[bool | None]) -> str:
    true, false, unknown = (truths.count(value) for value in (True, False, None))
    total = len(truths)
    match node:
        case Not():
            return f"not of {TRUTHS[truths[0]]} is {'unknown' if unknown else TRUTHS[not truths[0]]}"
        case And():
            if false:
                return f"{false} of {total} {_is(false)} false"
            return (
                f"unknown: no part is false, {unknown} of {total} {_is(unknown)} unknown" if unknown else "all are true"
            )
        case Or():
            if true:
                return f"{true} of {total} {_is(true)} true"
            return (
                f"unknown: no part is true, {unknown} of {total} {_is(unknown)} unknown" if unknown else "none is true"
            )
        case Xor():
            if unknown:
                return f"unknown: {unknown} of {total} {_is(unknown)} unknown"
            return f"{true} of {total} {_is(true)} true, {'an odd' if true % 2 else 'an even'} number"
        case AtLeast(count):
            maybe = f", {unknown} {_is(unknown)} unknown" if unknown else ""
            return f"{true} of {total} {_is(true)} true{maybe}; {count} {_is(count)} needed"
    raise AssertionError(f"no connective: {type(node).__name__}")


def _is(count: int) -> str:
    return "is" if count == 1 else "are"


def _predicate_reason(node: Expression, result: Any, values: list[Any], event: Event) -> str:
    values_in_words = [
        _operand_reason(child, value, event)
        for child, value in zip(node.children, values, strict=True)
        if not isinstance(child, Literal)
    ]
    if result is None and isinstance(node, Compare | Between) and all(value is not None for value in values):
        kinds = list(dict.fromkeys(_WORDS[kind_of(value)] for value in values))
        if len(kinds) > 1:
            values_in_words.append(f"{' and '.join(kinds)} do not compare")
    if result is None and any(isinstance(value, list) and None in value for value in values):
        values_in_words.append("a NULL among its elements could be it")
    return "; ".join(dict.fromkeys(values_in_words))


def _operand_reason(node: Expression, value: Any, event: Event) -> str:
    if isinstance(node, Attribute):
        name = name_text(node.path)
        if value is not None:
            return f"{name} is {_shown(value)}"
        return f"{name} is {_why_null(event, node.path)}"
    if isinstance(node, Call):
        if value is not None:
            return f"{node} is {_shown(value)}"
        return f"{node} has no value: {function_of(node.function).no_value}"
    if isinstance(node, Literal):
        return ""
    return f"{node} is {TRUTHS[as_truth(value)]}"


def _why_null(event: Event, path: tuple[str, ...]) -> str:
    record: Any = event
    for name in path:
        if not hasattr(record, "get") or name not in record:
            return "absent"
        record = record[name]
    return "NULL" if record is None else f"{record!r:.60}, which is not a value of the language"


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_shown, value))}]"
    if kind_of(value) == "record":
        return "a record"
    text = to_text(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
