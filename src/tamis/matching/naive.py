"""Which subscriptions match? Ask every one of them.

The reference meaning behind the protocol of all matchers: slow, plainly right, and the oracle of the others.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tamis.language.expressions import Expression, postorder
from tamis.language.meaning import holds
from tamis.matching.base import Algorithm, Handles, Pairs, Snapshot

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tamis.language.schema import Schema
    from tamis.matching.columns import Events


class Naive(Algorithm):
    """Every event against every subscription."""

    name: ClassVar[str] = "naive"

    def __init__(self, schema: Schema | None = None) -> None:
        super().__init__(schema)
        self._expressions: dict[int, Expression] = {}
        self._snapshot: NaiveSnapshot | None = None

    def add(self, handles: Sequence[int], prepared: Sequence[Expression]) -> None:
        self._expressions.update(zip(handles, prepared, strict=True))
        self._snapshot = None

    def remove(self, handle: int) -> None:
        del self._expressions[handle]
        self._snapshot = None

    def snapshot(self) -> NaiveSnapshot:
        if self._snapshot is None:
            self._snapshot = NaiveSnapshot(dict(self._expressions), self.schema)
        return self._snapshot

    def memory(self) -> int:
        nodes = (node for expression in self._expressions.values() for node in postorder(expression))
        return sum({id(node): sys.getsizeof(node) for node in nodes}.values())


class NaiveSnapshot(Snapshot):
    """A set of expressions."""

    def __init__(self, expressions: dict[int, Expression], schema: Schema | None) -> None:
        self._expressions = expressions
        self._schema = schema

    def match_event(self, event: Mapping[str, Any], among: Handles | None = None) -> Handles:
        asked = self._expressions if among is None else {int(handle) for handle in among} & self._expressions.keys()
        return np.array([h for h in sorted(asked) if holds(self._expressions[h], event, self._schema)], np.int64)

    def match_events(self, events: Events, among: Handles | None = None, threads: int = 1) -> Pairs:
        handles_of_events = [self.match_event(event, among) for event in events.mappings()]
        numbers = np.repeat(np.arange(len(handles_of_events)), [len(handles) for handles in handles_of_events])
        return numbers, np.concatenate([np.zeros(0, np.int64), *handles_of_events])
