"""Which event shows it? Model construction, and its check.

Where attributes stand by themselves, any value of an attribute's set will do, and the event is right by construction.
Where functions of attributes or patterns are involved, values are guessed: the ends of the sets, the constants
of the question, texts that fit its patterns. A guess counts only if the reference meaning says that it is right.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from itertools import chain, islice, product
from math import inf, isfinite, sqrt
from random import Random
from typing import TYPE_CHECKING, Any

from tamis.language.expressions import Attribute, Expression, In, Like, Literal, Test, postorder
from tamis.language.functions import function_of
from tamis.language.meaning import holds
from tamis.language.patterns import ANY_CHARACTER, ANY_TEXT, like_pieces
from tamis.language.ranges.lines import (
    BOOLEAN,
    DOUBLE,
    NULL,
    NUMBER,
    TEXT,
    TIME,
    Cut,
    cut_at,
    first_value,
    last_value,
    places,
)
from tamis.language.ranges.value_sets import Values, is_member, stretches
from tamis.language.types import ArrayType, RecordType
from tamis.language.values import EXACT, compare, is_number
from tamis.relations.confinement import shape_of
from tamis.relations.regions import Ball

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Set

    from tamis.language.schema import Schema
    from tamis.relations.domains import TermAxis
    from tamis.relations.forms import Box
    from tamis.relations.search import Facts

Event = dict[str, Any]
Path = tuple[str, ...]
Choices = dict[Path, list[Any]]

_PREFERENCE = {NULL: 0, NUMBER: 1, TEXT: 2, BOOLEAN: 3, TIME: 4, DOUBLE: 5}
_MOST_GUESSES = 60
_MOST_CANDIDATES = 60
_MOST_HINTS = 2_000
_MOST_BALLS = 6
_LONGEST_TEXT = 1_000


def plain_event(box: Box, schema: Schema | None) -> Event:
    """Return an event that has, for each attribute of the box, a value of its set; what may be absent is."""
    chosen = {
        axis.term.path: readable_value(values, axis.line)
        for axis, values in box.items()
        if isinstance(axis.term, Attribute)
    }
    return completed(chosen, schema)


def readable_value(values: Values, line: str) -> Any:
    """Return a value of a set, a short one if there is one."""
    ranked = sorted(stretches(values), key=lambda stretch: _PREFERENCE.get(stretch[0][0], 9))
    low, high = ranked[0]
    first = first_value(low, high, line)
    for guess in _short(low, high, first, line):
        if any(low <= before < high for _, before, after, _ in places(guess, line) if before < after):
            return guess
    return first


def _short(low: Cut, high: Cut, first: Any, line: str) -> Iterator[Any]:
    rank = low[0]
    if rank == TEXT:
        yield from (first.removesuffix("\0") + "a", first) if first.endswith("\0") else (first,)
    elif rank in (NUMBER, DOUBLE):
        as_type: Any = float if rank == DOUBLE else Decimal if line == "decimal" else _same
        for end, rounding in (
            (first, ROUND_CEILING),
            (last_value(low, high, line) if len(high) > 1 else 0, ROUND_FLOOR),
        ):
            if len(low) == 1 and end is first:
                continue  # the least number of all
            if isfinite(end):
                whole = int(Decimal(end).to_integral_value(rounding)) if abs(end) < 1e15 else end
                yield from (as_type(each) for each in dict.fromkeys((end if len(str(end)) < 8 else whole, whole)))
    elif rank == TIME and len(low) == 1 and len(high) == 1:
        yield dt.date(2000, 1, 1) if line == "date" else dt.datetime(2000, 1, 1)


def _same(value: Any) -> Any:
    return value


def completed(chosen: Mapping[Path, Any], schema: Schema | None) -> Event:
    """Build the event with these values, and with whatever else the schema says is always there."""
    event: Event = {}
    for path in sorted(chosen, key=len):
        if chosen[path] is not None:
            _put(event, path, chosen[path])
    if schema is not None:
        event_type = event.get(schema.type_attribute)
        _complete(event, schema, None)
        _complete(event, schema, event_type if isinstance(event_type, str) else None)
    return event


def _put(event: Event, path: Path, value: Any) -> None:
    at: Any = event
    for name in path[:-1]:
        below = at.setdefault(name, {})
        if not isinstance(below, dict):
            return
        at = below
    if not isinstance(value, Mapping):
        at[path[-1]] = value
    elif not isinstance(at.get(path[-1]), Mapping):
        at[path[-1]] = dict(value)  # its own, for what lies in the record is put into it


def _complete(event: Event, schema: Schema, event_type: str | None) -> None:
    for name in sorted(schema.mandatory.union(*schema.mandatory_by_type.values())):
        path = tuple(name.split("."))
        if schema.type_of(path) is None:
            path = (name,)
        kind = schema.type_of(path)
        if kind is None or not schema.is_mandatory(path, event_type):
            continue
        at: Any = event
        for part in path:
            at = at.get(part) if isinstance(at, Mapping) else None
        if at is None:
            is_record, is_array = isinstance(kind, RecordType), isinstance(kind, ArrayType)
            _put(event, path, {} if is_record else [] if is_array else _DEFAULTS[str(kind).partition("(")[0]])


_DEFAULTS: dict[str, Any] = {
    "string": "",
    "int": 0,
    "double": 0.0,
    "decimal": Decimal(0),
    "bool": False,
    "date": dt.date(2000, 1, 1),
    "timestamp": dt.datetime(2000, 1, 1),
}


# -- Guesses


def is_witness(
    event: Event, matching: Iterable[Expression], missing: Iterable[Expression], schema: Schema | None
) -> bool:
    """Does the event match all of the ones, and none of the others?"""
    return all(holds(each, event, schema) for each in matching) and not any(
        holds(each, event, schema) for each in missing
    )


def guesses(
    box: Box, facts: Facts, axes: Iterable[TermAxis], loose: Set[Path], schema: Schema | None
) -> Iterator[Event]:
    """Return events in which the attributes of a question have values that may suit its functions and patterns.

    `loose` are the attributes that functions and patterns mention; of the others one value is as good as another.
    """
    axes = list(axes)
    involved = [axis.term for axis in axes if not axis.is_plain] + [predicate for predicate, _ in facts]
    hints = list(islice(_hints(involved, facts, box, axes, loose), _MOST_HINTS))
    choices: Choices = {}
    known: dict[tuple[Values, str], list[Any]] = {}  # most attributes of a long filter may have the same values
    for axis in axes:
        if isinstance(axis.term, Attribute):
            values, path = box.get(axis, axis.values), axis.term.path
            if path not in loose:
                choices[path] = [readable_value(values, axis.line)]
                continue
            if (values, axis.line) not in known:
                known[values, axis.line] = _candidates(values, axis.line, hints)
            choices[path] = known[values, axis.line]
    for chosen in chain(
        _beside_centres(axes, box, choices), _aligned(involved, axes, box, choices), _combinations(choices)
    ):
        yield completed(chosen, schema)


def _beside_centres(axes: list[TermAxis], box: Box, choices: Choices) -> Iterator[dict[Path, Any]]:
    """Give the attributes of balls the points of one that are farthest from another one's centre, and the nearest ones.

    If a ball is not part of another, the farthest point lies outside; if they have something in common, the nearest
    one, or the centre, is part of it. Candidates at random would seldom be either. Formulas know little of where
    coordinates lie, and a box may name the edge of a ball, so the points need not be in it: the meaning decides.
    """
    balls = [
        (axis, ball)
        for axis in axes
        if not axis.is_plain and isinstance(ball := shape_of(axis.term), Ball) and _paths_of(ball) <= choices.keys()
    ]
    if not balls:
        return
    by_path = {axis.term.path: axis for axis in axes if isinstance(axis.term, Attribute)}
    for axis, ball in islice(balls, _MOST_BALLS):
        points = [ball.centre]
        radius = _radius(box.get(axis, axis.values), axis.line)
        for _, other in islice(balls, _MOST_BALLS):
            if other.inputs == ball.inputs and other.weights == ball.weights and radius is not None:
                points[:0] = _ends(ball, other, radius)
        for point in points:
            chosen = {path: candidates[0] for path, candidates in choices.items()}
            values = point if len(point) == len(ball.inputs) else [list(point)]
            for attribute, value in zip(ball.inputs, values, strict=True):
                assert isinstance(attribute, Attribute)
                at = by_path[attribute.path]
                chosen[attribute.path] = next(_as_typed(value, at.values, at.line), chosen[attribute.path])
            yield chosen


def _paths_of(ball: Ball) -> Set[Path]:
    """Return the attributes of which a ball's points are made; all of them, or one that can not be chosen."""
    return {each.path if isinstance(each, Attribute) else () for each in ball.inputs}


def _radius(values: Values, line: str) -> float | None:
    """Return how far from its centre a ball reaches, a little less: what is on the border may be outside."""
    numbers = tuple(each for each in stretches(values) if each[0][0] in (NUMBER, DOUBLE))
    highs = [last_value(low, high, line) for low, high in numbers if len(high) > 1]
    if not highs or len(highs) < len(numbers) or not isfinite(max(highs)):
        return None
    return float(max(highs)) * (1 - 1e-9)


def _ends(ball: Ball, other: Ball, radius: float) -> list[tuple[float, ...]]:
    """Return the points of a ball that are farthest from another one's centre, and nearest."""
    ways = [mine - theirs for mine, theirs in zip(ball.centre, other.centre, strict=True)]
    apart = sqrt(sum(weight * way * way for weight, way in zip(ball.weights, ways, strict=True)))
    if not 0 < apart < inf:
        return []
    return [
        tuple(middle + way / apart * reach for middle, way in zip(ball.centre, ways, strict=True))
        for reach in (radius, -min(radius, apart))
    ]


def _aligned(involved: list[Expression], axes: list[TermAxis], box: Box, choices: Choices) -> Iterator[dict[Path, Any]]:
    """Give a function's attributes the values of its constants, in order: there `distance(lat, lon, 1, 2)` is 0."""
    by_path = {axis.term.path: axis for axis in axes if isinstance(axis.term, Attribute)}
    for node in involved:
        paths = [each.path for each in node.children if isinstance(each, Attribute)]
        values = [each.value for each in node.children if isinstance(each, Literal)]
        if len(paths) > 1 and len(paths) == len(values):
            chosen = {path: candidates[0] for path, candidates in choices.items()}
            for path, value in zip(paths, values, strict=True):
                axis = by_path[path]
                chosen[path] = next(_as_typed(value, box.get(axis, axis.values), axis.line), chosen[path])
            yield chosen


def _candidates(values: Values, line: str, hints: list[Any]) -> list[Any]:
    """Return the first few of what may be tried, each once."""
    distinct: dict[tuple[type, str], Any] = {}
    for each in _tried(values, line, hints):
        distinct.setdefault((type(each), repr(each)), each)
        if len(distinct) == _MOST_CANDIDATES:
            break
    return list(distinct.values())


def _tried(values: Values, line: str, hints: list[Any]) -> Iterator[Any]:
    """Return some values of a set: a short one, the hints that lie in it, the ends of its stretches."""
    if values[0] != (NULL,):
        yield readable_value(values, line)
    starts = [low[1].removesuffix("\0") for low, _ in stretches(values) if low[0] == TEXT and len(low) > 1][:2]
    for hint in hints:
        longer = [start + hint for start in starts if not hint.startswith(start)] if isinstance(hint, str) else []
        for each in (hint, *longer):
            yield from _as_typed(each, values, line)
    for low, high in islice(stretches(values), 6):
        yield first_value(low, high, line)
        if len(high) > 1:
            yield last_value(low, high, line)


def _as_typed(hint: Any, values: Values, line: str) -> Iterator[Any]:
    """Return what a hint is on a line, in the types that the line has, if it is one of some values there."""
    if isinstance(
        hint, list | dict
    ):  # no comparison has one for an operand: they lie together, each as good as another
        if is_member(cut_at(hint), values):
            yield hint
        return
    for _, before, after, _ in places(hint, line):
        if before < after and is_member(before, values):
            exact = hint if line == "any" and before[0] != DOUBLE else first_value(before, after, line)
            if compare(exact, hint) == 0:
                yield exact


def _combinations(choices: Choices) -> Iterator[dict[Path, Any]]:
    """Return all combinations if they are few, else some at random, always the same."""
    count = 1
    for values in choices.values():
        count *= len(values)
    if count <= _MOST_GUESSES:
        yield from (dict(zip(choices, chosen, strict=True)) for chosen in product(*choices.values()))
        return
    chance = Random(count)
    yield {path: values[0] for path, values in choices.items()}
    for _ in range(_MOST_GUESSES - 1):
        yield {path: chance.choice(values[:8] if chance.random() < 0.5 else values) for path, values in choices.items()}


def _hints(
    involved: list[Expression], facts: Facts, box: Box, axes: Iterable[TermAxis], loose: Set[Path]
) -> Iterator[Any]:
    """Return values that functions and patterns may want their attributes to have."""
    wanted = [predicate for (predicate, truth), is_so in facts.items() if truth and is_so]
    constants = list(islice(_constants(involved, box, axes, loose), _MOST_HINTS))
    lengths = [each for each in constants if type(each) is int and 0 <= each <= _LONGEST_TEXT]
    yield from _arrays(wanted, facts, lengths)
    yield from _texts(wanted, lengths)
    for value in constants:
        yield value
        if isinstance(value, str):
            yield from (value.upper(), value.lower(), f"{value} ")
        elif is_number(value) and isfinite(value):
            exact = Decimal(value)
            yield from (-value, *(EXACT.add(exact, Decimal(step)) for step in ("0.5", "-0.5", "1", "-1")))
    yield from (0, 1)
    yield from ("a" * length for length in lengths)


def _constants(involved: list[Expression], box: Box, axes: Iterable[TermAxis], loose: Set[Path]) -> Iterator[Any]:
    """Return the constants of functions, and the ends of the sets that functions and their attributes lie in."""
    for axis in axes:
        if not axis.is_order and (not axis.is_plain or axis.paths <= loose):
            for low, high in islice(stretches(box.get(axis, axis.values)), 3):
                yield from (readable_value((low, high), axis.line), first_value(low, high, axis.line))
    for node in involved:
        for each in postorder(node):
            yield from (each.value,) if isinstance(each, Literal) else each.values if isinstance(each, In) else ()


def _arrays(wanted: list[Expression], facts: Facts, lengths: list[int]) -> Iterator[list[Any]]:
    elements: dict[Expression, list[Any]] = {}
    for predicate in wanted:
        match predicate:
            case Test("array_contains", (array, Literal(element))):
                elements.setdefault(array, []).append(element)
    yield from elements.values()
    if any(isinstance(predicate, Test) and "array" in function_of(predicate.function).takes for predicate, _ in facts):
        yield from ([], [None])
    yield from ([None] * length for length in lengths)


def _texts(wanted: list[Expression], lengths: list[int]) -> Iterator[str]:
    """Return texts that fit the patterns, each by itself and all together, also of some lengths."""
    patterns = [like_pieces(each.pattern, each.escape) for each in wanted if isinstance(each, Like)]
    if len(patterns) > 1:
        starts = [pieces[0] for pieces in patterns if pieces and isinstance(pieces[0], str)]
        ends = [pieces[-1] for pieces in patterns if pieces and isinstance(pieces[-1], str)]
        inner = ["".join(_filled(pieces[1:-1], "")) for pieces in patterns if len(pieces) > 2]
        yield max(starts, key=len, default="") + "".join(inner) + max(ends, key=len, default="")
    for pieces in patterns:
        shortest = len(_filled(pieces, ""))
        for filler in ("", "a", *("a" * (length - shortest) for length in lengths if length > shortest)):
            yield _filled(pieces, filler)


def _filled(pieces: list[Any], filler: str) -> str:
    """Return a text that fits a pattern: the first `%` stands for the filler, and the others for nothing."""
    text = []
    for piece in pieces:
        if piece is ANY_TEXT:
            text.append(filler)
            filler = ""
        else:
            text.append("a" if piece is ANY_CHARACTER else piece)
    return "".join(text)
