"""What do routing strategies save where subscriptions are alike?

Mühl and others propose to let brokers use that filters are identical, cover each other or become one. They have no
measurements; what they expect is compared with what simulated brokers do.
"""

from __future__ import annotations

from functools import partial
from random import Random

from tamis.lab import verdicts
from tamis.lab.base import Claim, Experiment, Line, Plot, Result, Row, Scale, Tell
from tamis.lab.routing.simulated import built, played
from tamis.lab.routing.sizes import sizes_of
from tamis.lab.routing.stocks import quotes
from tamis.routing import STRATEGIES, Broker
from tamis.simulation.topologies import names

TOPOLOGY, BROKER_COUNT = "balanced tree", 10
SHARE_COUNTS = (300, 100, 30, 10, 3)
FLOODING, SIMPLE, IDENTITY, COVERING, MERGING, IMPERFECT = STRATEGIES
PERFECT = (SIMPLE, IDENTITY, COVERING, MERGING)
_RETOLD = (
    "A merger is a new filter: it is told to each neighbour and takes the old ones back in the same message, so fewer "
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
    alike = {row["strategy"]: row for row in rows if row["shares"] == SHARE_COUNTS[-1]}
    entries = {name: float(row["entries"]) for name, row in alike.items()}
    messages = {name: float(row["subscribe messages"] + row["cancel messages"]) for name, row in alike.items()}
    simple = [row for row in rows if row["strategy"] == SIMPLE]
    others = BROKER_COUNT - 1
    return (
        verdicts.by_share("With simple routing every broker knows every subscription of the others", "all of them",
                          [row["entries"] == others * count for row in simple], what="settings", where="2.3"),
        verdicts.by_share("With simple routing a subscription is told over every link, and so is a cancellation",
                          "every link", [row["subscribe messages"] == others * count
                                         and row["cancel messages"] == others * (count // 5) for row in simple],
                          what="settings", where="2.3"),
        verdicts.by_share("Flooding needs no control messages, and takes every event to every broker", "none, and all",
                          [row["subscribe messages"] + row["cancel messages"] == 0
                           and row["event messages"] == others * count for row in rows if row["strategy"] == FLOODING],
                          what="settings", where="2.2"),
        verdicts.by_order("Tables shrink from strategy to strategy (entries, many alike)", PERFECT, entries,
                          where="2.3 to 2.6"),
        verdicts.by_order("So do control messages, up to covering (many alike)", PERFECT[:3], messages,
                          where="2.3 to 2.5"),
        verdicts.by_direction("Merging takes fewer control messages than covering (many alike)", "fewer",
                              messages[MERGING] / messages[COVERING], is_more=False, where="2.6", remark=_RETOLD),
        *(
            verdicts.by_trend(f"The more alike, the more {name} saves (entries for each of simple routing)",
                              "depends on similarity", SHARE_COUNTS, _saved(rows, name), is_rising=False,
                              where=where)
            for name, where in ((IDENTITY, "2.4"), (COVERING, "2.5"), (MERGING, "2.6"))
        ),
        verdicts.by_share("Nothing is lost in quality: identity, covering and merging carry exactly the events that "
                          "simple routing carries", "the same",
                          [_is_same(rows, each, PERFECT) for each in SHARE_COUNTS],
                          what="settings", where="1, 2.4 to 2.6"),
        verdicts.by_share("Every strategy delivers the same", "the same",
                          [len({row["delivered"] for row in rows if row["shares"] == each}) == 1
                           for each in SHARE_COUNTS], what="settings", where="2.2"),
        verdicts.by_direction("A cancellation carries what takes its place, with covering (filters and keys in it, "
                              "for each with simple routing)", "covered ones are told again",
                              alike[COVERING]["filters and keys in a cancellation"]
                              / alike[SIMPLE]["filters and keys in a cancellation"], is_more=True, where="2.5"),
        verdicts.by_share("Imperfect merging carries more events than perfect routing", "irrelevant ones too",
                          [one > two for one, two in zip(_all(rows, IMPERFECT, "event messages"),
                                                         _all(rows, SIMPLE, "event messages"), strict=True)],
                          what="settings", where="2.6"),
        verdicts.by_direction("Imperfect merging has fewer entries than perfect merging (all settings)", "fewer",
                              sum(_all(rows, IMPERFECT, "entries")) / sum(_all(rows, MERGING, "entries")),
                              is_more=False, where="2.6"),
    )  # fmt: skip


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
                Line(name, places, tuple(row[what] for row in rows if row["strategy"] == name)) for name in STRATEGIES
            ),
            x_names=tuple(map(str, SHARE_COUNTS)),
        )
        for title, what in shown.items()
    )


EXPERIMENT = Experiment(
    "similarity", "What do routing strategies save where subscriptions are alike?", "Mühl et al. 2002, section 2", run
)
