"""What does imperfect merging cost, by its budget and the length of the way?

One filter for several may match events that nobody behind wants. Each broker may waste a share of what a merger
matches, its budget; but mergers are merged again on the way.

Waste only shows where most events are wanted by nobody: if all were wanted, a filter that matches too many could not
carry one in vain. So more shares are traded than anybody subscribes to, in proportion to the subscriptions, and every
row says which part of the events is wanted; 5 to 20 % is what the knobs are set for. And it only adds up where brokers
on the way have something to merge with what comes to them: subscribers sit all along the line. Where on the way it
arises is counted link by link: near the publisher, filters have been merged at every broker behind.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from itertools import pairwise

from tamis.routing import Broker, ImperfectMerging, Merging, Publish, Strategy
from tamis.simulation.occurrences import MessageCarried
from tamis.simulation.topologies import names
from tamis_lab.experiments.base import Curve, Experiment, Plot, Result, Row, Scale, Tell
from tamis_lab.experiments.routing.simulated import built, played, wanted_by
from tamis_lab.experiments.routing.sizes import sizes_of
from tamis_lab.experiments.routing.stocks import quotes
from tamis_lab.experiments.statements import Judge
from tamis_lab.experiments.verdicts import rounded

judged = Judge("routing", "imperfection")

BUDGETS = (0.0, 0.1, 0.25, 0.5)
LENGTHS = (2, 5, 10)
SUBSCRIPTIONS_PER_SHARE = 3
TRADED_SHARES = 8
"""So many are traded for each that somebody subscribes to."""
_FEWEST = 30
"""Among fewer subscriptions there is hardly anything to merge."""


def run(scale: Scale, seed: int, tell: Tell) -> Result:
    """Let lines of brokers merge within budgets; the publisher sits at one end, subscribers at all other brokers."""
    count = max(_FEWEST, sizes_of(scale).simulated // 2)
    share_count = count // SUBSCRIPTIONS_PER_SHARE
    filters, events = quotes(count, 4 * count, share_count, seed, TRADED_SHARES * share_count)
    wanted = len({event for event, _ in wanted_by(dict(enumerate(filters)), events)}) / len(events)
    rows: list[Row] = []
    for length in LENGTHS:
        brokers = names(length)
        for budget in BUDGETS:
            tell(f"budget {budget:.0%}, {length} brokers")
            network = built("line", length, partial(Broker, strategy=_strategy(budget)), seed)
            homes = [brokers[number % (length - 1)] for number in range(count)]
            crossed: Counter[str] = Counter()
            network.observers.append(partial(_note, crossed))
            row = played(network, filters, homes, events, brokers[-1:], cancelled=0.0)
            by_distance = [
                crossed[broker] for broker in brokers[:-1]
            ]  # from the end that is farthest from the publisher
            rows.append(
                {"brokers": length, "budget": budget, "wanted by somebody": wanted, "links": by_distance, **row}
            )
    for row in rows:
        needed = next(each for each in rows if each["brokers"] == row["brokers"] and not each["budget"])
        row["in vain"] = row["event messages"] / max(1, needed["event messages"]) - 1
        row["in vain by distance"] = [
            (sent - least) / max(1, len(events) - least)
            for sent, least in zip(row["links"], needed["links"], strict=True)
        ]
    longest = [row for row in rows if row["brokers"] == LENGTHS[-1]]
    farthest = [row for row in rows if row["budget"] == BUDGETS[-1]]
    by_distance = longest[-1]["in vain by distance"]
    claims = (
        judged("fewer-entries", BUDGETS, [row["entries"] for row in longest]),
        judged("more-messages", BUDGETS, [row["event messages"] for row in longest]),
        judged("waste-adds-up", LENGTHS, [1 + row["in vain"] for row in farthest]),
        judged(
            "waste-by-distance", [one <= other for one, other in pairwise(by_distance)], details=_spread(by_distance)
        ),
    )
    setup = (
        f"{count} subscriptions to {share_count} shares all along lines of brokers, {4 * count} events about "
        f"{TRADED_SHARES * share_count} shares from one end, simulated; {wanted:.0%} of the events are wanted. "
        "In vain are messages that perfect merging does not send."
    )
    plots = (
        Plot("Event messages in vain", "budget", "share of those needed", _lines(rows, "in vain")),
        Plot(
            f"Event messages in vain on the links of {LENGTHS[-1]} brokers",
            "hops that filters have come",
            "share of the events that nobody behind wants",
            tuple(
                Curve(f"budget {row['budget']:.0%}", tuple(range(1, LENGTHS[-1])), tuple(row["in vain by distance"]))
                for row in longest
            ),
        ),
        Plot("Table entries, all brokers", "budget", "entries", _lines(rows, "entries")),
    )
    return Result(setup, claims, plots, tuple(rows))


def _spread(shares: list[float]) -> str:
    return f"from {rounded(shares[0])} one hop away to {rounded(shares[-1])} at {len(shares)}"


def _note(crossed: Counter[str], occurrence: object) -> None:
    """Count the events that come to each broker."""
    if isinstance(occurrence, MessageCarried) and isinstance(occurrence.message, Publish):
        crossed[occurrence.target] += 1


def _strategy(budget: float) -> Strategy:
    return ImperfectMerging(budget=budget) if budget else Merging()


def _lines(rows: list[Row], what: str) -> tuple[Curve, ...]:
    return tuple(
        Curve(f"{length} brokers", BUDGETS, tuple(row[what] for row in rows if row["brokers"] == length))
        for length in LENGTHS
    )


EXPERIMENT = Experiment(
    "imperfection",
    "What does imperfect merging cost, by its budget and the length of the way?",
    "Mühl et al. 2002, section 2.6",
    run,
)
