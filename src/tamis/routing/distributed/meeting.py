"""Where do events and subscriptions meet? Two maps, from events and from subscriptions to nodes.

Whatever event a subscription wants, the node of the event must be among those of the subscription. Nobody else
needs to know of either. That restricts what may be subscribed to: what no node can be found for is refused.

Source: Pripužić 2010, section 6.2.4 (docs/bibliography.md).
"""

from __future__ import annotations

import datetime as dt
import zlib
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from tamis.language.expressions import And, Attribute, Compare, Expression, In, Literal
from tamis.language.meaning import attribute_value
from tamis.language.values import instant, is_number
from tamis.topk.ranked import Ranked

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tamis.language.meaning import Event


class Meeting(ABC):
    """Which nodes events and subscriptions go to."""

    @abstractmethod
    def of_event(self, event: Event) -> str:
        """Return the node that matches an event."""

    @abstractmethod
    def of_subscription(self, wanted: Expression | Ranked) -> tuple[str, ...]:
        """Return the nodes of all events that a subscription may want; none if it is not of the language."""


class OneNode(Meeting):
    """One node matches everything.

    >>> OneNode("B").of_event({"x": 1})
    'B'
    """

    def __init__(self, node: str) -> None:
        self._node = node

    def of_event(self, event: Event) -> str:
        return self._node

    def of_subscription(self, wanted: Expression | Ranked) -> tuple[str, ...]:
        return (self._node,)


class ByValue(Meeting):
    """The value of one attribute decides; who does not ask for single values of it meets its events everywhere.

    >>> import tamis
    >>> meeting = ByValue("city", ["A", "B"])
    >>> meeting.of_event({"city": "Graz"}), meeting.of_subscription(tamis.parse("city = 'Graz' AND price < 9"))
    ('A', ('A',))
    >>> meeting.of_subscription(tamis.parse("price < 9"))
    ('A', 'B')
    """

    def __init__(self, attribute: str, nodes: Sequence[str]) -> None:
        self._path = (attribute,)
        self._nodes = tuple(nodes)

    def of_event(self, event: Event) -> str:
        return self._node(attribute_value(event, self._path))

    def of_subscription(self, wanted: Expression | Ranked) -> tuple[str, ...]:
        condition = wanted.where if isinstance(wanted, Ranked) else wanted
        values = self._values(condition)
        return self._nodes if values is None else tuple(dict.fromkeys(map(self._node, values)))

    def _values(self, condition: Expression) -> list[Any] | None:
        """Return the values without one of which the condition cannot be true; None if there are no such."""
        match condition:
            case And(operands):
                lists = [values for each in operands if (values := self._values(each)) is not None]
                return min(lists, key=len) if lists else None
            case Compare("=", Attribute(path), Literal(value)) | Compare("=", Literal(value), Attribute(path)):
                return [value] if tuple(path) == self._path else None
            case In(Attribute(path), values) if tuple(path) == self._path:
                return list(values)
        return None

    def _node(self, value: Any) -> str:
        # Equal values meet, however they are written: 1, 1.0 and 1.00 are one number, a date is a midnight.
        if is_number(value):
            text = "NaN" if value != value else f"number {hash(value)}"
        elif isinstance(value, dt.date):
            text = f"time {instant(value)}"
        else:
            text = f"{type(value).__name__} {value}"
        return self._nodes[zlib.crc32(text.encode("utf-8", "surrogatepass")) % len(self._nodes)]
