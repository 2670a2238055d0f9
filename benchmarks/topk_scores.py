"""What do scores of all forms cost, and subscriptions that come while events come?

    ranked_scores     microseconds a subscription and event, for each form of score: all keys by the definition, one
                      after the other; all in columns; and an event taken by the processor, with the index that it chose
    ranked_arriving   an event's cost while subscriptions are added: with the index kept, and thrown away at each

`wrong` compares deliveries with those of columns alone. Times are the processor's.
"""

from __future__ import annotations

from functools import reduce
from time import process_time
from typing import TYPE_CHECKING, Any

from benchmarks.topk import NAMES, as_events, filled, heaviest, measured, nearest, points
from tamis.language.expressions import Attribute, Call, Expression, Literal
from tamis.relations.families import recognised
from tamis.topk import Ranked, TopK
from tamis.topk.scores import key
from tamis.topk.scoring import Group
from tamis.topk.windows import CountWindow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tamis.topk.delivery import Delivery


def _gaps(centre: Sequence[float]) -> tuple[Expression, ...]:
    sides = [Call("subtract", (Attribute((name,)), Literal(each))) for name, each in zip(NAMES, centre, strict=False)]
    return tuple(Call("multiply", (Literal(2.0), Call("abs", (side,)))) for side in sides)


def boxed(centre: Sequence[float], k: int, n: int) -> Ranked:
    """Ask for the k of the last n points with the least greatest weighted difference."""
    return Ranked(Call("greatest", _gaps(centre)), k, CountWindow(n))


def streetwise(centre: Sequence[float], k: int, n: int) -> Ranked:
    """Ask for the k of the last n points with the least sum of weighted differences."""
    return Ranked(reduce(lambda one, two: Call("add", (one, two)), _gaps(centre)), k, CountWindow(n))


def directed(axis: Sequence[float], k: int, n: int) -> Ranked:
    """Ask for the k of the last n points whose direction is most like an axis."""
    point = Call("array", tuple(Attribute((name,)) for name in NAMES[: len(axis)]))
    return Ranked(Call("cosine", (point, Call("array", tuple(map(Literal, axis))))), k, CountWindow(n), order="DESC")


FORMS: dict[str, Callable[[Sequence[float], int, int], Ranked]] = {
    "distance": nearest,
    "weighted sum": heaviest,
    "box": boxed,
    "city blocks": streetwise,
    "cosine": directed,
}


def ranked_scores(
    subscription_count: int = 20_000, width: int = 3, k: int = 3, n: int = 1_000, event_count: int = 300, seed: int = 1
) -> Iterator[dict[str, Any]]:
    """What does a score cost, a subscription and event, one by one, in columns, and with an index?"""
    events = as_events(points(n + event_count, width, seed))
    for form, make in FORMS.items():
        rankeds = [make(centre, k, n) for centre in points(subscription_count, width, seed + 1).tolist()]
        told_by: dict[str, list[Delivery]] = {}
        event_us: dict[str, float] = {}
        used = ""
        for index in ("columns", "auto"):
            processor = filled({"algorithm": "block", "index": index}, rankeds, events[:n])
            per_s, told_by[index] = measured(processor, events[n:], n, 1e9)
            event_us[index] = 1e6 / per_s
            groups = processor._engine._groups.values()  # type: ignore[attr-defined]
            used = ", ".join(sorted({getattr(group._index, "name", "columns") for group in groups}))
        yield {
            "score": form,
            "subscriptions": subscription_count,
            "one_by_one_us": _one_by_one_us(rankeds[:500], events[:4]),
            "keys_in_columns_us": _keys_us(rankeds, events[:50]),
            "columns_us": event_us["columns"] / subscription_count,
            "index_us": event_us["auto"] / subscription_count,
            "used": used,
            "wrong": int(told_by["auto"] != told_by["columns"]),
        }


def _one_by_one_us(rankeds: Sequence[Ranked], events: Sequence[dict[str, float]]) -> float:
    start = process_time()
    for event in events:
        for ranked in rankeds:
            key(ranked, event)
    return 1e6 * (process_time() - start) / len(events) / len(rankeds)


def _keys_us(rankeds: Sequence[Ranked], events: Sequence[dict[str, float]]) -> float:
    family = recognised(rankeds[0].score, rankeds[0].is_ascending)[0]
    group = Group(family)
    for ranked in rankeds:
        group.add(ranked, recognised(ranked.score, ranked.is_ascending)[1])
    group.keys(events[0])  # compiles
    start = process_time()
    for event in events:
        group.keys(event)
    return 1e6 * (process_time() - start) / len(events) / len(rankeds)


def ranked_arriving(
    subscription_count: int = 20_000,
    added_for_each_event: Sequence[float] = (0.0, 0.01, 0.1, 1.0),
    width: int = 2,
    k: int = 3,
    n: int = 1_000,
    event_count: int = 1_500,
    seed: int = 1,
) -> Iterator[dict[str, Any]]:
    """What does an event cost while subscriptions come?"""
    events = as_events(points(n + event_count, width, seed))
    centres = points(2 * subscription_count + event_count, width, seed + 1).tolist()
    rankeds = [nearest(centre, k, n) for centre in centres]
    for rate in added_for_each_event:
        told: dict[bool, list[Delivery]] = {}
        for is_kept in (False, True):
            processor = filled({"algorithm": "block", "index": "tree"}, rankeds[:subscription_count], events[:n])
            elapsed, added, told[is_kept] = 0.0, 0, []
            for place, event in enumerate(events[n:]):
                while added < rate * (place + 1):
                    processor.add(subscription_count + added, rankeds[subscription_count + added])
                    added += 1
                    if not is_kept:
                        _throw_away(processor)
                start = process_time()
                told[is_kept] += processor.process(event, float(n + place))
                elapsed += process_time() - start
            yield {
                "added_for_each_event": rate,
                "index_is_kept": is_kept,
                "subscriptions": subscription_count,
                "event_us": 1e6 * elapsed / event_count,
                "wrong": int(is_kept and told[True] != told[False]),
            }


def _throw_away(processor: TopK) -> None:
    for group in processor._engine._groups.values():  # type: ignore[attr-defined]
        group._index = None
