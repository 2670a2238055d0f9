"""Do real brokers bear out what is computed of a network?

All other experiments on prunings compute the way of an event. Here brokers are processes with sockets between them
(`line_of_processes`): the same subscriptions, the same events, and four ways to tell neighbours of subscriptions: all
of them, without those that are covered, merged, and pruned for accuracy up to where the load bends in the thesis. What
crosses links is counted on both sides; where a strategy asks for nothing in vain, the two must be the same. With
pruning more crosses the links of real brokers: a link prunes what it sends, also what came to it pruned already.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tamis_lab.experiments.base import Claim, Curve, Experiment, Plot, Result, Row, Scale, Tell
from tamis_lab.experiments.routing.line_of_processes import LineOfProcesses
from tamis_lab.experiments.routing.overlays import LabOverlay
from tamis_lab.experiments.routing.prunings import Pruning
from tamis_lab.experiments.routing.sizes import BROKERS, sizes_of
from tamis_lab.experiments.routing.traffic import Traffic, auctions
from tamis_lab.experiments.statements import Judge

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

judged = Judge("routing", "true system")

PRUNED_SHARE = 0.75
"""Of all prunings: where the load bends in the thesis, if they are ordered by accuracy."""


@dataclass(frozen=True, slots=True)
class BrokerSystem:
    """A way to tell neighbours of subscriptions."""

    name: str
    strategy: str
    pruning: str = ""


SIMPLE, COVERING, MERGING, PRUNED = SYSTEMS = (
    BrokerSystem("un-optimised", "simple"),
    BrokerSystem("covering", "covering"),
    BrokerSystem("merging", "merging"),
    BrokerSystem("pruned", "simple", f'share = {PRUNED_SHARE}\nmeasure = "accuracy"'),
)
_FEW = {"tiny": 3, "quick": 3}
"""So many brokers where everything is a toy: to start one takes seconds."""


def run(scale: Scale, seed: int, tell: Tell) -> Result:
    """Play the same traffic on real brokers, with each system, and compute what crosses links beside it."""
    sizes = sizes_of(scale)
    broker_count = _FEW.get(scale.name, BROKERS)
    traffic = auctions(sizes, seed, count=sizes.covered)
    rows = []
    for system in SYSTEMS:
        tell(f"{broker_count} brokers, {system.name}")
        rows.append(_played(system, traffic, broker_count, seed))
    return result_of(rows, broker_count, len(traffic.filters), len(traffic.events))


def result_of(rows: list[Row], broker_count: int, subscription_count: int, event_count: int) -> Result:
    """Judge what real brokers came to."""
    by_name = {row["system"]: row for row in rows}
    simple, pruned = by_name[SIMPLE.name], by_name[PRUNED.name]
    exact = [by_name[each.name] for each in (SIMPLE, COVERING, MERGING)]
    claims: tuple[Claim, ...] = (
        judged(
            "as-computed",
            [row["event messages"] == row["computed messages"] for row in exact],
            details=", ".join(f"{row['event messages']:,} of {row['computed messages']:,}" for row in exact),
        ),
        judged("load-hardly-rises", pruned["load"] - simple["load"], remark=f"Computed {pruned['computed load']:.2f}."),
        judged("pruned-elapsed", pruned["ms"] / simple["ms"]),
        judged("pruned-processors", pruned["processor ms"] / simple["processor ms"]),
        judged("pruned-memory", pruned["memory of links, MB"] / max(simple["memory of links, MB"], 0.1)),
        judged("covering-entries", by_name[COVERING.name]["entries"] / simple["entries"]),
        judged("merging-entries", by_name[MERGING.name]["entries"] / by_name[COVERING.name]["entries"]),
    )
    setup = (
        f"Book auctions: {subscription_count:,} subscriptions on a line of {broker_count} brokers in processes of "
        f"their own, all on this machine, {event_count:,} events from all of them; {PRUNED_SHARE:.0%} of all prunings "
        "by accuracy, which each link makes of what it sends, also of what came pruned. Time is the clock's until "
        "nothing is on the way, divided by the events, and the processors' of all brokers, after all events have been "
        "played once; memory is what a process has more of once neighbours have told their filters."
    )
    places, names = tuple(range(1, len(rows) + 1)), tuple(row["system"] for row in rows)

    def curves(*columns: str) -> tuple[Curve, ...]:
        return tuple(Curve(each, places, tuple(row[each] for row in rows)) for each in columns)

    plots = (
        Plot("Time of an event, real brokers", "", "ms", curves("ms", "processor ms"), x_names=names),
        Plot("Messages on links", "", "events", curves("event messages", "computed messages"), x_names=names),
        Plot("Memory of all brokers", "", "MB", curves("memory, MB", "memory of links, MB"), x_names=names),
    )
    return Result(setup, claims, plots, tuple(rows))


def _played(system: BrokerSystem, traffic: Traffic, broker_count: int, seed: int) -> Row:
    homes = traffic.homes(broker_count)
    texts = [str(each) for each in traffic.filters]
    dealt = [
        [text for text, home in zip(texts, homes, strict=True) if home == broker] for broker in range(broker_count)
    ]
    events = traffic.events
    with LineOfProcesses(dealt, system.strategy, system.pruning) as line:
        line.publish(events, f"before-{seed}")  # from which brokers learn how often conditions are true
        alone = line.resident_bytes()
        line.join()
        joined = line.resident_bytes()
        line.publish(events, f"warm-{seed}")  # what came last is laid out in the background meanwhile
        sent, cpu_s = line.sent(), line.cpu_s()
        elapsed_s = line.publish(events, f"measured-{seed}")
        row: Row = {
            "system": system.name,
            "brokers": broker_count,
            "entries": line.entries(),
            "event messages": line.sent() - sent,
            "ms": 1e3 * elapsed_s / len(events),
            "processor ms": 1e3 * (line.cpu_s() - cpu_s) / len(events),
            "memory, MB": line.resident_bytes() / 1e6,
            "memory of links, MB": (joined - alone) / 1e6,
        }
    row["load"] = row["event messages"] / len(events) / (broker_count - 1)
    row["computed messages"] = computed_messages(traffic, broker_count, PRUNED_SHARE if system.pruning else 0.0)
    row["computed load"] = row["computed messages"] / len(events) / (broker_count - 1)
    return row


def computed_messages(traffic: Traffic, broker_count: int, share: float) -> int:
    """Return how often events cross a link of a line, after a share of all prunings; publishers take turns."""
    line, pruning = LabOverlay("line", broker_count), Pruning(traffic, "accuracy")
    seen: Sequence[np.ndarray] = line.seen(pruning.reached(line), pruning.steps(share))
    return sum(map(len, seen)) - len(traffic.events)


EXPERIMENT = Experiment(
    "true system",
    "Do real brokers, in processes with sockets between them, bear out what is computed of a network?",
    "Bittner 2008, section 8.1",
    run,
)
