"""What if an event lacks what its schema promises?

NOT and XOR nodes are right as long as their operands are true or false, which a schema can promise (see `certainty`).
An event that breaks the promise is rare, and must still be matched as the language says. For such an event the
expressions that rely on a promise are evaluated in three-valued logic, from the graph, node by node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tamis.language.meaning import attribute_value, truth
from tamis.language.values import kind_of
from tamis_lab.matching.atree.graph import kernels

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from tamis.language.expressions import Expression
    from tamis.language.schema import Schema
    from tamis.matching.columns import Events
    from tamis_lab.matching.atree.certainty import Promises

_COLUMN_KINDS = {
    "int": "number",
    "double": "number",
    "decimal": "number",
    "time": "time",
    "boolean": "boolean",
    "string": "string",
}


def is_kept(promises: Promises, event: Mapping[str, Any]) -> bool:
    """Does an event keep what was promised?"""
    return all(kind_of(attribute_value(event, path)) == kind for path, kind in promises.items())


def broken_by(promises: Promises, events: Events) -> npt.NDArray[np.int64]:
    """Return the events that break a promise."""
    is_broken = np.zeros(events.count, np.bool_)
    for path, kind in promises.items():
        column = events.column(path)
        if column is None:
            is_broken[:] = True
        elif column.kind == "object":
            is_broken |= np.array([kind_of(value) != kind for value in column.values], np.bool_)
        elif _COLUMN_KINDS[column.kind] != kind:
            is_broken[:] = True
        elif column.kind == "string":
            is_broken |= column.values < 0
        elif column.valid is not None:
            is_broken |= ~column.valid
    return np.flatnonzero(is_broken)


def true_roots(
    roots: Iterable[int],
    tables: Any,
    predicate_of: Callable[[int], Expression],
    event: Mapping[str, Any],
    schema: Schema | None,
) -> set[int]:
    """Return those of some nodes that are true for an event, in three-valued logic."""
    known: dict[int, bool | None] = {}
    roots = set(roots)
    stack = list(roots)
    while stack:
        node = stack[-1]
        if node in known:
            stack.pop()
            continue
        if node < 0:
            known[node] = truth(predicate_of(-1 - node), event, schema)
            continue
        row = tables.inner[node].tolist()
        start = row[kernels.CHILD_START]
        below = tables.children[start : start + row[kernels.CHILD_COUNT], 0].tolist()
        missing = [child for child in below if child not in known]
        if missing:
            stack += missing
        else:
            known[node] = _value(row, [known[child] for child in below])
    return {root for root in roots if known[root] is True}


def _value(row: list[int], below: list[bool | None]) -> bool | None:
    """Return the value of a node, given those of its operands."""
    if row[kernels.KIND] == kernels.ALWAYS:
        return True
    sure, possible = below.count(True), len(below) - below.count(False)
    need = row[kernels.NEED]
    if need > 0:
        return True if sure >= need else None if possible >= need else False
    if sure != possible:
        return None
    return sure % 2 == 1 if need == kernels.ODD else sure == 0
