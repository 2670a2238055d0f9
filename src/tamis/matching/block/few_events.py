"""How many events are a batch? The break-even point between single matches and blocks.

A block of events pays a price before its first event: columns are made and sorted, every key and every broad clause is
looked at. A single event looks only at what lies under its own values. So few events are sooner matched one by one. How
many are few was measured (`benchmarks batch_sizes`): of mappings some for each axis, because each becomes a column, and
some more where there are many clauses; of the rows of a table far fewer, because its columns are there already, and
mappings would have to be made of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tamis.matching.block.parts import Part
    from tamis.matching.columns import Events

_MAPPINGS_PER_AXIS, _MOST_AXES = 13, 30
_CLAUSES_PER_MAPPING = 1_000
_REACHING_PER_AXIS, _CLAUSES_PER_REACHING = 4, 1_400
"""Of those whose destinations are asked for fewer are few: they are not matched in one call."""
_ROWS, _CLAUSES_PER_ROW = 24, 3_500
MOST_CODED = 512
"""So many events whose codes are known already are sooner matched one by one, whatever there is of clauses."""
_MOST_CLAUSES = 150_000
"""Up to so many axes and clauses it was measured, and beyond nothing is concluded."""


def are_few(parts: Sequence[Part], events: Events) -> bool:
    """Had events better be matched one by one?"""
    if events.count <= 1:
        return True
    drafts = [part.segment.draft for part in parts]
    clause_count = min(_MOST_CLAUSES, sum(draft.clause_count for draft in drafts))
    if events.table is not None:
        return events.count <= _ROWS + clause_count // _CLAUSES_PER_ROW
    return events.count <= _MAPPINGS_PER_AXIS * _axis_count(parts) + clause_count // _CLAUSES_PER_MAPPING


def are_few_to_reach(parts: Sequence[Part], events: Events) -> bool:
    """Had the destinations of events, few as they are, better be found one by one?"""
    if events.count <= 1 or events.table is not None:
        return True
    clause_count = min(_MOST_CLAUSES, sum(part.segment.draft.clause_count for part in parts))
    return events.count <= _REACHING_PER_AXIS * _axis_count(parts) + clause_count // _CLAUSES_PER_REACHING


def _axis_count(parts: Sequence[Part]) -> int:
    return min(_MOST_AXES, sum(len(part.segment.draft.axes) for part in parts))
