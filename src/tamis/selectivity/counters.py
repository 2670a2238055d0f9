"""How does a running system learn how often its predicates are true? Counters, with exponential decay.

It counts: a table says of each predicate how many events fulfilled it, of those that came since it is known. A
matcher that sorts an event's values among the operands of its predicates counts more at once: how many events fell on
each operand and between two of them, which decides all comparisons there (`Tallied`). Old events count less and less
(`half_life`). Counters of several brokers, or of several partitions of a history, are added: each brings its own
events.

A predicate that is new has no count yet. Where others are known that ask about the same term, its share follows
from theirs, exactly or by interpolation (`lines`); as it is counted itself, that counts more and more.

Source: Bittner 2008, sections 6.4.2 and 6.6.1, the selectivity table and example 6.1 (docs/bibliography.md).
Departs: the published table has one number of events for all predicates, which is wrong for those that come late.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.language.expressions import COMPLEMENTS, Compare, Expression, IsNull, Not
from tamis.language.meaning import truth
from tamis.language.requirements import required_kinds
from tamis.selectivity.errors import HalfLifeError
from tamis.selectivity.lines import AFTER, BEFORE, BOOLEAN, Line, Place, standing
from tamis.selectivity.questions import Comparison, comparison, line_question
from tamis.selectivity.statistics import GUESS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tamis.language.schema import Schema

BELIEVED_FROM = 20.0
"""After so many events a predicate's own count is believed alone."""
_GREATEST_WEIGHT = 1e12
_FORGOTTEN = 1e-4
"""An operand is forgotten when it has so small a share of the events of its line: nobody asks for it any more."""


class Tallied(NamedTuple):
    """How often the values of a term fell on each of some operands, and between two of them.

    Operands are of one kind and in order. `counts` has 0 for no value (of that kind), then below the first operand, on
    it, between it and the second, and so on. Without operands the term is a predicate: unknown, false, true.
    """

    term: Expression
    operands: Sequence[Any] | None
    counts: npt.NDArray[Any]


class _Column:
    """What was tallied of a term's values of one kind: weights by place."""

    __slots__ = ("numbers", "present", "seen", "weights")

    def __init__(self) -> None:
        self.numbers: dict[Place, int] = {}
        self.weights = np.zeros((0, 3))
        """Of each place: what lies before it, what does not lie after it, and of how many events."""
        self.present = self.seen = 0.0

    def add(self, places: list[Any], weights: npt.NDArray[np.float64], present: float, seen: float) -> None:
        numbers = self.numbers
        for place in places:
            numbers.setdefault(place, len(numbers))
        if len(numbers) > len(self.weights):
            self.weights = np.concatenate([self.weights, np.zeros((len(numbers) - len(self.weights), 3))])
        np.add.at(self.weights, [numbers[place] for place in places], weights)
        self.present += present
        self.seen += seen
        least = _FORGOTTEN * self.weights[:, 2].max(initial=0.0)
        kept = self.weights[:, 2] > least
        if np.count_nonzero(kept) < len(kept) // 2:
            self.numbers = {place: at for at, place in enumerate(each for each in numbers if kept[numbers[each]])}
            self.weights = self.weights[kept]


class Counters:
    """The selectivity table: predicates, how often each was true, and of how many events.

    >>> import tamis
    >>> counters = Counters()
    >>> counters.observe([{"price": price} for price in range(100)], map(tamis.parse, ["price > 20", "price > 60"]))
    >>> [round(counters.share(tamis.parse(text)), 2) for text in ("price > 20", "price <= 20", "price > 40")]
    [0.79, 0.21, 0.59]

    With a `half_life` an event counts half after so many others, a quarter after twice as many.
    """

    def __init__(self, schema: Schema | None = None, *, half_life: float | None = None) -> None:
        if half_life is not None and not half_life > 0:
            raise HalfLifeError(half_life)
        self._schema = schema
        self._half_life = half_life
        self._weight = 1.0  # of an event now; what is old counts less because new events count more
        self._total = 0.0
        self._fulfilled: dict[Expression, float] = {}
        self._missed: dict[Expression, float] = {}  # of each predicate: the weight of the events it was not asked about
        self._columns: dict[tuple[Expression, str], _Column] = {}
        self._comparisons: dict[tuple[Expression, str], dict[Expression, Comparison]] = {}
        self._lines: dict[tuple[Expression, str], Line] = {}

    def __len__(self) -> int:
        return len(self._fulfilled)

    @property
    def event_count(self) -> float:
        """How many events count, those that are old less."""
        return self._total / self._weight

    # -- Counting

    def observe(self, events: Iterable[Mapping[str, Any]], predicates: Iterable[Expression]) -> None:
        """Count which of some predicates some events fulfil: the plain way, for those who have no matcher."""
        asked = list(dict.fromkeys(map(_positive, predicates)))
        self.know(asked)
        for event in events:
            self.add(1, [each for each in asked if truth(each, event, self._schema) is True])

    def add(self, event_count: int, fulfilled: Iterable[Expression] | Mapping[Expression, int]) -> None:
        """Count some events, of which all predicates were asked that are known, and those that they fulfilled."""
        counts: Counter[Expression] = Counter()
        for predicate, count in (fulfilled if isinstance(fulfilled, Mapping) else Counter(fulfilled)).items():
            counts[_positive(predicate)] += count
        self.know(counts)
        self._pass(event_count)
        for predicate, count in counts.items():
            self._fulfilled[predicate] += count * self._weight

    def take(self, event_count: int, tallied: Iterable[Tallied]) -> None:
        """Count some events, which a matcher tallied as far as it knew operands; all of them, or some of them."""
        self._pass(event_count)
        for term, operands, counts in tallied:
            seen = float(counts.sum())
            if not seen:
                continue
            if operands is None:
                for predicate, count in ((term, counts[2]), (Not(term), counts[1])):
                    self._credit(_positive(predicate), float(count), seen, event_count)
                continue
            stands = [standing(operand) for operand in operands]
            kinds = {each.kind for each in stands if each is not None}
            if len(kinds) == 1:
                rising = np.cumsum(counts[1:], dtype=np.float64)
                weights = np.stack([rising[:-1:2], rising[1::2], np.full(len(operands), seen)], axis=1)
                is_known = [each is not None for each in stands]  # NaN stands nowhere
                column = self._columns.setdefault((term, kinds.pop()), _Column())
                column.add(
                    [each.place for each in stands if each is not None],
                    weights[is_known] * self._weight,
                    float(rising[-1]) * self._weight,
                    seen * self._weight,
                )

    def _credit(self, predicate: Expression, count: float, seen: float, event_count: int) -> None:
        """Count a predicate that was asked of `seen` of the events that just passed."""
        if predicate not in self._fulfilled:
            self.know((predicate,))
            self._missed[predicate] -= event_count * self._weight
        self._fulfilled[predicate] += count * self._weight
        self._missed[predicate] += (event_count - seen) * self._weight

    def _pass(self, event_count: int) -> None:
        if self._half_life is not None:
            self._weight *= 2.0 ** min(900.0, event_count / self._half_life)
        self._total += event_count * self._weight
        self._lines = {}
        if self._weight > _GREATEST_WEIGHT:
            self._scale(1 / self._weight)

    def _scale(self, by: float) -> None:
        self._weight *= by
        self._total *= by
        for counts in (self._fulfilled, self._missed):
            for predicate in counts:
                counts[predicate] *= by
        for column in self._columns.values():
            column.weights *= by
            column.present *= by
            column.seen *= by

    def know(self, predicates: Iterable[Expression]) -> None:
        """Count predicates from now on, although they were never fulfilled yet."""
        for predicate in map(_positive, predicates):
            if predicate not in self._fulfilled:
                self._fulfilled[predicate] = 0.0
                self._missed[predicate] = self._total
                compared = comparison(predicate)
                if compared is not None:
                    self._comparisons.setdefault((compared.term, compared.kind), {})[predicate] = compared
                    self._lines = {}

    def merge(self, others: Counters) -> None:
        """Add what was counted elsewhere, on other events: each predicate by those that it was asked about."""
        by = self._weight / others._weight
        self.know(others._fulfilled)
        for predicate in self._fulfilled:
            missed = others._missed.get(predicate, others._total)
            self._missed[predicate] += missed * by
        for predicate, count in others._fulfilled.items():
            self._fulfilled[predicate] += count * by
        self._total += others._total * by
        for key, column in others._columns.items():
            own = self._columns.setdefault(key, _Column())
            own.add(list(column.numbers), column.weights * by, column.present * by, column.seen * by)
        self._lines = {}

    def forget(self, predicate: Expression) -> None:
        """Drop the counter of a predicate that nobody asks any more."""
        predicate = _positive(predicate)
        if self._fulfilled.pop(predicate, None) is None:
            return
        del self._missed[predicate]
        compared = comparison(predicate)
        if compared is not None:
            del self._comparisons[compared.term, compared.kind][predicate]
        self._lines = {}

    def forget_lines(self) -> None:
        """Let go of what was drawn to answer questions; whoever asks again waits for it again."""
        self._lines = {}

    # -- Asking

    def count(self, predicate: Expression) -> float:
        """Return how many events fulfilled a predicate, those that are old less; as many as its share says."""
        predicate = _positive(predicate)
        if predicate in self._fulfilled:
            return self._fulfilled[predicate] / self._weight
        return self.share(predicate) * self.event_count

    def share(self, predicate: Expression) -> float:
        """Return how often a predicate is true: counted, concluded from others, or guessed."""
        predicate = _positive(predicate)
        if predicate not in self._fulfilled:
            return self._concluded(predicate)
        seen = self._seen(predicate)
        doubt = max(0.0, min(BELIEVED_FROM, self.event_count) - seen)
        if not seen + doubt:
            return self._concluded(predicate)
        prior = self._concluded(predicate) if doubt else 0.0
        return _share((self._fulfilled[predicate] / self._weight + doubt * prior) / (seen + doubt))

    def _seen(self, predicate: Expression) -> float:
        return (self._total - self._missed[predicate]) / self._weight

    def _counted(self, predicate: Expression) -> float | None:
        """Return the share of a predicate's own count, if that is enough; None if there is none."""
        if predicate not in self._fulfilled:
            return None
        seen = self._seen(predicate)
        return (
            self._fulfilled[predicate] / self._weight / seen
            if seen >= min(BELIEVED_FROM, self.event_count) > 0
            else None
        )

    def _concluded(self, predicate: Expression) -> float:
        """Return the share of a predicate as far as others tell it."""
        match predicate:
            case IsNull(term):
                present = self._presence(term)
                return GUESS if present is None else _share(1.0 - present)
            case Not(IsNull(term)):
                present = self._presence(term)
                return GUESS if present is None else _share(present)
        asked = line_question(predicate)
        if asked is not None and (line := self._line(asked.term, asked.kind)):
            return _share(asked.share(line))
        complement = predicate.value if isinstance(predicate, Not) else _positive(Not(predicate))
        counted = self._counted(complement)
        if counted is None:
            return GUESS
        required = {attribute for attribute, _ in required_kinds(complement)}
        presences = [present for node in required if (present := self._presence(node)) is not None]
        return _share(min(presences, default=1.0) - counted)

    def _presence(self, term: Expression) -> float | None:
        """Return how often a term has a value; None if nobody counted that."""
        tallied = [
            column.present / column.seen for (each, _), column in self._columns.items() if each == term and column.seen
        ]
        if tallied:
            return min(1.0, sum(tallied))  # values of several kinds
        absent = self._counted(IsNull(term))
        return self._counted(Not(IsNull(term))) if absent is None else 1.0 - absent

    def _line(self, term: Expression, kind: str) -> Line:
        known = self._lines.get((term, kind))
        if known is None:
            known = self._lines[term, kind] = self._drawn(term, kind)
        return known

    def _drawn(self, term: Expression, kind: str) -> Line:
        counted: dict[tuple[str, Place], float] = {}
        for predicate, compared in self._comparisons.get((term, kind), {}).items():
            share = self._counted(predicate)
            if share is not None:
                counted[compared.operator, compared.place] = share
        column = self._columns.get((term, kind))
        present = None if column is None or not column.seen else column.present / column.seen
        if present is None:
            present = self._presence(term)
        if present is None:
            sums = [
                share + counted[COMPLEMENTS[operator], place]
                for (operator, place), share in counted.items()
                if (COMPLEMENTS[operator], place) in counted
            ]
            present = min(1.0, max(sums)) if sums else 1.0
        cuts: dict[tuple[Place, int], float] = {}
        points: dict[Place, float] = {}
        for (operator, place), share in counted.items():
            match operator:
                case "<":
                    cuts[place, BEFORE] = share
                case "<=":
                    cuts[place, AFTER] = share
                case ">=":
                    cuts.setdefault((place, BEFORE), present - share)
                case ">":
                    cuts.setdefault((place, AFTER), present - share)
                case "=":
                    points[place] = share
                case "<>":
                    points.setdefault(place, max(0.0, present - share))
        if column is not None:
            enough = min(BELIEVED_FROM * self._weight, float(column.weights[:, 2].max(initial=0.0)))
            for place, number in column.numbers.items():
                before, until, seen = column.weights[number].tolist()
                if seen and seen >= enough:
                    cuts[place, BEFORE], cuts[place, AFTER] = before / seen, until / seen
        line = Line(cuts, points, present)
        if kind == BOOLEAN:  # there are two values, so one tells the other
            known = [place for place in (0.0, 1.0) if place in points or (place, BEFORE) in cuts]
            if len(known) == 1:
                points[1.0 - known[0]] = max(0.0, present - line.equal(known[0]))
                line = Line(cuts, points, present)
        return line


def _positive(predicate: Expression) -> Expression:
    """Return a comparison for one that is negated."""
    match predicate:
        case Not(Compare(operator, left, right)) if operator in COMPLEMENTS:
            return Compare(COMPLEMENTS[operator], left, right)
    return predicate


def _share(value: float) -> float:
    return min(1.0, max(0.0, value))
