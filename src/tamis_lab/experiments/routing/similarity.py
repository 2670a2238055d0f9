"""What do routing strategies save where subscriptions are alike?

Mühl and others propose to let brokers use that filters are identical, cover each other or become one. They have no
measurements; what they expect is compared with what simulated brokers do.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from random import Random

from tamis.routing import STRATEGIES, Broker
from tamis.simulation.topologies import names
from tamis_lab.experiments.base import Claim, Curve, Experiment, Plot, Result, Row, Scale, Tell
from tamis_lab.experiments.routing.simulated import built, played
from tamis_lab.experiments.routing.sizes import sizes_of
from tamis_lab.experiments.routing.stocks import quotes
from tamis_lab.experiments.statements import Judge

judged = Judge("routing", "similarity")

TOPOLOGY, BROKER_COUNT = "balanced tree", 10
SHARE_COUNTS = (300, 100, 30, 10, 3)
FLOODING, SIMPLE, IDENTITY, COVERING, MERGING, IMPERFECT = STRATEGIES
PERFECT = (SIMPLE, IDENTITY, COVERING, MERGING)
TOLD = ("subscribe", "cancel")
_RETOLD = (
    "A merger is a new filter: it is sent to each neighbour and takes the old ones back in the same message, so fewer "
    "entries do not make fewer messages."
)


def run(scale: Scale, seed: int, tell: Tell) -> Result:
    """Subscribe, cancel and publish with every strategy, for fewer and fewer shares."""
    count = sizes_of(scale).simulated
    rows = []
    for share_count in SHARE_COUNTS:
        filters, events = quotes(count, count, share_count, seed)
        chance = Random(seed)
        homes = [chance.choice(names(BROKER_COUNT)) for _ in filters]
        for strategy in STRATEGIES:
            tell(f"{strategy}, {share_count} shares")
            network = built(TOPOLOGY, BROKER_COUNT, partial(Broker, strategy=strategy), seed)
            row = played(network, filters, homes, events, names(BROKER_COUNT))
            rows.append({"shares": share_count, "strategy": strategy, **row})
    setup = (
        f"{count} subscriptions to shares, a {TOPOLOGY} of {BROKER_COUNT} brokers, simulated; a fifth is cancelled "
        f"again, then {count} events are published. Entries are those of neighbours, in all brokers together."
    )
    return Result(setup, _claims(rows, count), _plots(rows), tuple(rows))


def _claims(rows: list[Row], count: int) -> tuple[Claim, ...]:
    simple = [row for row in rows if row["strategy"] == SIMPLE]
    others = BROKER_COUNT - 1
    entries = {name: _all(rows, name, "entries") for name in STRATEGIES}
    messages = {
        name: [one + two for one, two in zip(*(_all(rows, name, f"{each} messages") for each in TOLD), strict=True)]
        for name in STRATEGIES
    }
    carried = {name: _all(rows, name, "filters and keys in a cancellation") for name in STRATEGIES}
    return (
        judged("simple-knows-all", [row["entries"] == others * count for row in simple]),
        judged(
            "simple-tells-all",
            [
                row["subscribe messages"] == others * count and row["cancel messages"] == others * (count // 5)
                for row in simple
            ],
        ),
        judged(
            "flooding",
            [
                row["subscribe messages"] + row["cancel messages"] == 0 and row["event messages"] == others * count
                for row in rows
                if row["strategy"] == FLOODING
            ],
        ),
        judged(
            "tables-shrink",
            [_is_falling(*each) for each in _settings(entries, PERFECT)],
            details=_named(entries, PERFECT),
        ),
        judged(
            "control-messages-shrink",
            [_is_falling(*each) for each in _settings(messages, PERFECT[:3])],
            details=_named(messages, PERFECT[:3]),
        ),
        judged(
            "merging-fewer-messages",
            [_is_falling(*each) for each in _settings(messages, (COVERING, MERGING))],
            details=_ratios_in_words(messages, MERGING, COVERING),
            remark=f"{_RETOLD} The entries are fewer all the same: {_ratios_in_words(entries, MERGING, COVERING)}.",
        ),
        *(
            judged("more-alike-saves-more", SHARE_COUNTS, _saved(rows, name), name=name)
            for name in (IDENTITY, COVERING, MERGING)
        ),
        judged("nothing-lost", [_is_same(rows, each, PERFECT) for each in SHARE_COUNTS]),
        judged(
            "same-deliveries",
            [len({row["delivered"] for row in rows if row["shares"] == each}) == 1 for each in SHARE_COUNTS],
        ),
        judged(
            "cancellation-carries",
            [_is_falling(*each) for each in _settings(carried, (COVERING, SIMPLE))],
            details=_ratios_in_words(carried, COVERING, SIMPLE),
        ),
        judged(
            "imperfect-more-events",
            [
                one > two
                for one, two in zip(
                    _all(rows, IMPERFECT, "event messages"), _all(rows, SIMPLE, "event messages"), strict=True
                )
            ],
        ),
        judged(
            "imperfect-fewer-entries",
            [_is_falling(*each) for each in _settings(entries, (MERGING, IMPERFECT))],
            details=_ratios_in_words(entries, IMPERFECT, MERGING),
        ),
    )


def _settings(counts: dict[str, list[float]], strategies: tuple[str, ...]) -> list[tuple[float, ...]]:
    """Return what was counted with some strategies, setting by setting."""
    return list(zip(*(counts[name] for name in strategies), strict=True))


def _is_falling(*counts: float) -> bool:
    return all(one > two for one, two in pairwise(counts))


def _named(counts: dict[str, list[float]], strategies: tuple[str, ...]) -> str:
    """Write what was counted where subscriptions are least and most alike."""
    ends = ((0, SHARE_COUNTS[0]), (-1, SHARE_COUNTS[-1]))
    return "; ".join(
        f"{', '.join(f'{name} {counts[name][place]:,.0f}' for name in strategies)} with {shares} shares"
        for place, shares in ends
    )


def _ratios_in_words(counts: dict[str, list[float]], one: str, other: str) -> str:
    """Write how many times as many one strategy has as another, in all settings."""
    ratios = [mine / theirs for mine, theirs in _settings(counts, (one, other))]
    phrases = [f"{ratio:.2f} times with {shares} shares" for ratio, shares in zip(ratios, SHARE_COUNTS, strict=True)]
    return ", ".join(phrases)


def _saved(rows: list[Row], strategy: str) -> list[float]:
    sizes = {name: [row["entries"] for row in rows if row["strategy"] == name] for name in (strategy, SIMPLE)}
    return [mine / all_ for mine, all_ in zip(sizes[strategy], sizes[SIMPLE], strict=True)]


def _is_same(rows: list[Row], share_count: int, strategies: tuple[str, ...]) -> bool:
    mine = [row for row in rows if row["shares"] == share_count and row["strategy"] in strategies]
    return len({row["event messages"] for row in mine}) == 1


def _all(rows: list[Row], strategy: str, what: str) -> list[float]:
    return [float(row[what]) for row in rows if row["strategy"] == strategy]


def _plots(rows: list[Row]) -> tuple[Plot, ...]:
    shown = {
        "Table entries, all brokers": "entries",
        "Bytes of tables, as text": "table bytes",
        "Messages for subscribing": "subscribe messages",
        "Messages for cancelling": "cancel messages",
        "Messages for events": "event messages",
    }
    places = tuple(range(1, len(SHARE_COUNTS) + 1))
    return tuple(
        Plot(
            title,
            "shares that subscriptions are about",
            "",
            tuple(
                Curve(name, places, tuple(row[what] for row in rows if row["strategy"] == name)) for name in STRATEGIES
            ),
            x_names=tuple(map(str, SHARE_COUNTS)),
        )
        for title, what in shown.items()
    )


EXPERIMENT = Experiment(
    "similarity", "What do routing strategies save where subscriptions are alike?", "Mühl et al. 2002, section 2", run
)
