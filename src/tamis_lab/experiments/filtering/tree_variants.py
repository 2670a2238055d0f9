"""What are the ways worth in which trees may be encoded and evaluated otherwise?

The widths of children in front of them, which would let evaluation skip any child at once; evaluation without short
circuits; least hits that know which predicates follow from others; and one grove for all event types. The text reports
of the first that it took more memory and no less time, and leaves the last two to others. All are on one load: book
auctions of all classes, each with an event type.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tamis_lab.experiments.base import Curve, Experiment, Plot, Result, Row, Scale, Tell
from tamis_lab.experiments.books import books
from tamis_lab.experiments.measuring import Field
from tamis_lab.experiments.statements import Judge
from tamis_lab.matching.boolean.algorithm import Boolean, BooleanSnapshot
from tamis_lab.matching.boolean.grove import GroveOptions

if TYPE_CHECKING:
    from collections.abc import Callable

    from tamis.matching.base import Algorithm
    from tamis_lab.experiments.measuring import Subject

judged = Judge("filtering", "tree variants")

AS_TIMED = GroveOptions(child_order="written")
"""As the source measured."""
PLAIN, WIDTHS, WITHOUT, SEMANTIC = "as published", "with widths", "without short circuits", "semantic least hits"
VARIANTS: dict[str, GroveOptions] = {
    PLAIN: AS_TIMED,
    WIDTHS: GroveOptions(child_order="written", with_widths=True),
    WITHOUT: GroveOptions(child_order="written", short_circuit=False),
    SEMANTIC: GroveOptions(child_order="written", semantic=True),
}
BY_TYPE, TOGETHER = "a grove for each type", "one grove"
TYPE_COUNT = 8
_COUNTED = 64


def run(scale: Scale, seed: int, tell: Tell) -> Result:
    """Measure the variants one by one, and event types with and without a grove of their own."""
    variants = _measured({name: partial(_boolean, options) for name, options in VARIANTS.items()}, 1, scale, seed, tell)
    groves = _measured({BY_TYPE: Boolean, TOGETHER: _Ungrouped}, TYPE_COUNT, scale, seed, tell)

    def ratio(what: str, name: str, rows: dict[str, Row], other: str = PLAIN) -> float:
        return float(rows[name][what] / rows[other][what])

    claims = (
        judged("widths-time", {name: variants[name]["event ms"] for name in (PLAIN, WIDTHS)}),
        judged("widths-memory", ratio("bytes", WIDTHS, variants)),
        judged("short-circuits", ratio("event ms", PLAIN, variants, WITHOUT)),
        judged("semantic-candidates", ratio("candidates", SEMANTIC, variants)),
        judged("types", ratio("event ms", BY_TYPE, groves, TOGETHER)),
    )
    rows = (*variants.values(), *groves.values())
    names = tuple(row["variant"] for row in rows)
    times = tuple(row["event ms"] for row in rows)
    plot = Plot(
        "Time to match an event",
        "",
        "ms",
        (Curve("all classes", tuple(range(1, len(rows) + 1)), times),),
        x_names=names,
    )
    setup = (
        f"{scale.setting_count:,} book auctions of all classes; for groves, each asks for one of {TYPE_COUNT} event "
        "types, as events have them. Children stand as they were written."
    )
    return Result(setup, claims, (plot,), rows)


def _boolean(options: GroveOptions, schema: Any = None) -> Boolean:
    return Boolean(schema, options)


class _Ungrouped(Boolean):
    """All subscriptions in one grove: their event type is a predicate like any other."""

    def _event_type(self, predicate: Any) -> None:
        return None


def _measured(
    kinds: dict[str, Callable[[], Algorithm]], type_count: int, scale: Scale, seed: int, tell: Tell
) -> dict[str, Row]:
    workload = books()
    texts = workload.subscriptions(scale.setting_count, seed)["condition"].to_pylist()
    events = workload.events(scale.most_events, seed + 1)
    if type_count > 1:
        texts = [f"type = 'T{number % type_count}' AND ({text})" for number, text in enumerate(texts)]
        types = pa.array([f"T{number % type_count}" for number in range(events.num_rows)])
        events = events.append_column("type", types)
    field = Field.of({name: kind() for name, kind in kinds.items()})
    field.register(texts, tell)
    times = field.event_s(events, scale, tell)
    return {
        name: {
            "variant": name,
            "event ms": 1e3 * times[name],
            "bytes": field[name].payload() / scale.setting_count,
            "candidates": _candidates(field[name], events.slice(0, _COUNTED)),
        }
        for name in kinds
    }


def _candidates(subject: Subject, events: pa.Table) -> float:
    """Return how many trees have hits enough to be evaluated, of an event."""
    snapshot = subject.engine.compiled_snapshot()
    assert isinstance(snapshot, BooleanSnapshot)

    def counted() -> int:
        return sum(int(grove.counts[0]) for grove in snapshot.groves.values())

    before = counted()
    subject.pairs(events)
    rate: float = (counted() - before) / events.num_rows
    return rate


EXPERIMENT = Experiment(
    "tree variants",
    "What are other ways worth to encode and evaluate trees?",
    "Bittner 2008, sections 4.2.2 and 4.5",
    run,
)
