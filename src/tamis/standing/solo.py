"""What has one subscription to tell of one group? A state that fits into a row of a table.

Where events are spread over many workers, as on Spark, whoever has a group of a subscription has all its events, in
order, and nothing else. So the state is that group's alone, and no matcher is needed: conditions are asked one by one.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any, NamedTuple

from tamis.language.expressions import Expression
from tamis.matching.closures import holding
from tamis.standing.change import Change
from tamis.standing.errors import SavedStateError
from tamis.standing.runs import Plan
from tamis.standing.sequence import Sequence
from tamis.standing.sequences import Arrived, Sequences
from tamis.topk import SettingError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tamis.language.schema import Schema

_FORMAT = 1
_ONLY: tuple[Any, ...] = ()
"""The group: there is one, whatever it is called elsewhere."""


class SoloTelling(NamedTuple):
    """Something to tell."""

    events: tuple[Any, ...]
    at: float
    change: bool | None = None


class Solo:
    """One subscription in one group.

    >>> from tamis.standing import parse_subscription
    >>> wanted = parse_subscription("SEQUENCE a THEN b WITHIN 1 HOUR PER user")
    >>> solo = Solo(wanted)
    >>> solo.take(0.0, "e1", {"a": True})
    []
    >>> Solo(wanted, solo.saved()).take(1.0, "e2", {"b": True})
    [SoloTelling(events=('e1', 'e2'), at=1.0, change=None)]
    """

    def __init__(
        self,
        wanted: Expression | Sequence | Change,
        state: str | None = None,
        *,
        schema: Schema | None = None,
        retention: float = math.inf,
        most_open: int = 10_000,
    ) -> None:
        """Begin without a history, or take up a state that was `saved`; that of another text is not taken up."""
        self.wanted = wanted
        self._order = 0
        self._sequences = Sequences(most_open)
        self._is_true = False
        self._last = -math.inf
        self._asked: list[Callable[[Mapping[str, Any]], bool]]
        match wanted:
            case Sequence():
                self._plan = Plan(wanted, retention, schema)
                self._sequences.add(0, self._plan)
                self._asked = [holding(condition, schema) for condition in self._plan.conditions]
            case Change():
                self._asked = [holding(each, schema) for each in (wanted.where, wanted.condition, wanted.exit)]
            case Expression():
                self._asked = [holding(wanted, schema)]
            case _:
                raise SettingError(f"a {type(wanted).__name__} has no state of one group")
        if state is not None:
            self._restore(state)

    def take(self, at: float, id: Any, event: Mapping[str, Any]) -> list[SoloTelling]:
        """Take an event of the group; return what was due before it, and what it brings about."""
        tellings = self.advance(at, inclusive=False)
        self._order += 1
        if isinstance(self.wanted, Sequence):
            # Everything is one group here, so the event's own is not asked for.
            arrived = Arrived(at, self._order, id, event, {self.wanted.per: _ONLY})
            for step in self._plan.turns:
                if self._asked[step](event):
                    ended = self._sequences.take(0, step, arrived)
                    tellings += [SoloTelling(tuple(each.id for each in run), moment) for moment, _, run in ended]
        elif isinstance(self.wanted, Change):
            tellings += self._change(self.wanted, at, id, event)
        elif self._asked[0](event):
            tellings.append(SoloTelling((id,), at))
        return tellings

    def _change(self, change: Change, at: float, id: Any, event: Mapping[str, Any]) -> list[SoloTelling]:
        concerns, enters, leaves = self._asked
        if not concerns(event):
            return []
        if change.forget_after is not None and at > self._last + change.forget_after:
            self._is_true = False
        before, self._last = self._is_true, at
        if enters(event):
            self._is_true = True
        elif leaves(event):
            self._is_true = False
        is_told = self._is_true is not before and (self._is_true or change.is_both_ways)
        return [SoloTelling((id,), at, self._is_true)] if is_told else []

    def advance(self, now: float, *, inclusive: bool) -> list[SoloTelling]:
        """Let the time pass; return what was due."""
        ended = self._sequences.advance(now, inclusive=inclusive)
        return [SoloTelling(tuple(each.id for each in run), at) for at, _, run in ended]

    @property
    def due(self) -> float:
        """When something expires or is to be told although nothing comes; infinite if nothing does."""
        forgotten = math.inf
        if isinstance(self.wanted, Change) and self._is_true and self.wanted.forget_after is not None:
            forgotten = self._last + self.wanted.forget_after
        return min(self._sequences.due, forgotten)

    @property
    def is_empty(self) -> bool:
        """Is there nothing to remember?"""
        return not self._is_true and not (isinstance(self.wanted, Sequence) and self._sequences.saved(0))

    def saved(self) -> str:
        """Return what is to be remembered, as a text."""
        runs = self._sequences.saved(0) if isinstance(self.wanted, Sequence) else []
        last = None if self._last == -math.inf else self._last
        state = {
            "format": _FORMAT,
            "text": str(self.wanted),
            "order": self._order,
            "runs": runs,
            "is_true": self._is_true,
        }
        return json.dumps({**state, "last": last}, ensure_ascii=False, separators=(",", ":"))

    def _restore(self, state: str) -> None:
        data = json.loads(state)
        if data["format"] != _FORMAT:
            raise SavedStateError(f"a state is of format {data['format']}; this program reads format {_FORMAT}")
        if data["text"] != str(self.wanted):
            return  # another subscription by the same id, which starts without a history
        self._order = data["order"]
        self._is_true = data["is_true"]
        self._last = -math.inf if data["last"] is None else data["last"]
        if isinstance(self.wanted, Sequence):
            self._sequences.restore(0, data["runs"])
