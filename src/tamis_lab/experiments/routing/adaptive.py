"""What is it worth to stop filtering for a neighbour to whom nearly everything goes?

Adaptive filtering: a broker that sends nearly every event to a neighbour stops asking which, and passes all of them on;
the neighbour asks for filtering again if too much of it is wanted by nobody behind it. A line of brokers, a publisher
at one end, subscribers at the other, and a share of the events that they want, which is turned; then it changes while
events come. Decisions are counted: each time a broker works out whether a neighbour wants an event.

Beside the links, every filter has its own share of the events, as the statistics of the source would have it: what is
wanted on a link is what any of its filters wants.
"""

from __future__ import annotations

from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any

from tamis.language import holds, parse
from tamis.routing import Broker, Publish
from tamis.routing.adaptation import Adaptation
from tamis.simulation.occurrences import EventDelivered, MessageCarried
from tamis.simulation.topologies import names
from tamis_lab.experiments.base import Curve, Experiment, Plot, Result, Row, Scale, Tell
from tamis_lab.experiments.errors import DisagreementError
from tamis_lab.experiments.routing.simulated import built, client_of, wanted_by
from tamis_lab.experiments.routing.sizes import BROKERS, sizes_of
from tamis_lab.experiments.statements import Judge

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tamis.simulation import Network

judged = Judge("routing", "adaptive")

WANTED = (0.1, 0.3, 0.5, 0.7, 0.85, 0.98, 1.0)
"""Shares of the events that somebody at the far end wants."""
BEFORE, AFTER = 0.98, 0.2
"""Where the share changes while events come."""
HIGHEST = 1_000
SETTINGS = Adaptation(stop_above=0.9, ask_above=0.3, event_count=20, wait_s=1.0)
_FILTERS = 4
_LEAST = 6 * SETTINGS.event_count


def run(scale: Scale, seed: int, tell: Tell) -> Result:
    """Turn the share of events that are wanted, with and without adaptation, and change it on the way."""
    count = max(_LEAST, 4 * sizes_of(scale).simulated)
    rows = []
    for share in WANTED:
        tell(f"{share:.0%} of the events are wanted")
        rows.append(_steady(share, count, seed))
    changing = _changing(count, seed)
    settled = [row for row in rows if abs(row["wanted"] - SETTINGS.stop_above) > 0.03]
    claims = (
        judged(
            "stops-where-nearly-all-match",
            [row["first link filters"] is (row["wanted"] <= SETTINGS.stop_above) for row in settled],
        ),
        judged(
            "messages-hardly-rise",
            max(row["event messages"] / row["messages without"] for row in rows),
            at="where most are in vain",
        ),
        judged("decisions-saved", rows[-1]["decisions"] / rows[-1]["decisions without"], at="where all are wanted"),
        judged("filters-again", [changing["first link filters"], changing["in vain at the end"] == 0]),
        judged("does-not-quarrel", [row["switches"] <= BROKERS - 1 for row in rows]),
    )
    shares = tuple(row["wanted"] for row in rows)
    plots = (
        Plot(
            "Decisions whether a neighbour wants an event",
            "share of the events that is wanted",
            "decisions an event",
            (
                Curve("adaptive", shares, tuple(row["decisions"] / count for row in rows)),
                Curve("always filtering", shares, tuple(row["decisions without"] / count for row in rows)),
            ),
        ),
        Plot(
            "Messages",
            "share of the events that is wanted",
            "messages an event",
            (
                Curve("adaptive", shares, tuple(row["event messages"] / count for row in rows)),
                Curve("always filtering", shares, tuple(row["messages without"] / count for row in rows)),
            ),
        ),
    )
    setup = (
        f"A line of {BROKERS} brokers, {_FILTERS} subscriptions at one end, {count} events from the other, simulated. "
        f"A link stops filtering when more than {SETTINGS.stop_above:.0%} of {SETTINGS.event_count} events go over it, "
        f"and begins again when more than {SETTINGS.ask_above:.0%} of so many are wanted by nobody behind it; the "
        "values are ours. Behind the first link that filters, all that comes is wanted, so later ones stop whatever "
        "the share is. In the last row it changes on the way."
    )
    return Result(setup, claims, plots, (*rows, changing))


def filters_of(share: float) -> list[str]:
    """Return subscriptions of which one wants such a share of the events, and the others less.

    >>> filters_of(0.5)[:2]
    ['price < 500', 'price < 250']
    """
    return [f"price < {round(share * HIGHEST / 2**number)}" for number in range(_FILTERS)]


def _events(count: int, seed: int) -> list[dict[str, Any]]:
    """Return events whose prices are spread evenly, in a random order: any run of some of them is much alike."""
    chance = Random(seed)
    rounds = -(-count // SETTINGS.event_count)
    step = HIGHEST / SETTINGS.event_count
    prices: list[float] = []
    for _ in range(rounds):
        some = [(place + chance.random()) * step for place in range(SETTINGS.event_count)]
        chance.shuffle(some)
        prices += some
    return [{"price": price} for price in prices[:count]]


def _steady(share: float, count: int, seed: int) -> Row:
    texts, events = filters_of(share), _events(count, seed)
    always = _played(_network(texts, None, seed), texts, events)
    adaptive = _played(_network(texts, SETTINGS, seed), texts, events)
    wanted = sum(holds(parse(texts[0]), event) for event in events) / count
    each = [sum(holds(parse(text), event) for event in events) / count for text in texts]
    return {
        "wanted": wanted,
        "wanted by each filter": each,
        **adaptive,
        "messages without": always["event messages"],
        "decisions without": always["decisions"],
    }


def _changing(count: int, seed: int) -> Row:
    """Let subscribers want nearly everything, and then little."""
    texts, few = filters_of(BEFORE), filters_of(AFTER)
    network = _network(texts, SETTINGS, seed)
    before = _played(network, texts, _events(count, seed))
    brokers = names(BROKERS)
    for number in range(len(texts)):
        network.unsubscribe(client_of(brokers[0]), number)
    for number, text in enumerate(few):
        network.subscribe(client_of(brokers[0]), number, parse(text))
    network.run()
    network.wait(2 * SETTINGS.wait_s)
    after = _played(network, few, _events(count, seed + 1), first=count)
    last = _played(network, few, _events(count, seed + 2), first=2 * count)
    needed = sum(holds(parse(few[0]), event) for event in _events(count, seed + 2)) * (BROKERS - 1)
    return {
        "wanted": AFTER,
        "before the change": BEFORE,
        **last,
        "switches": before["switches"] + after["switches"] + last["switches"],
        "in vain at first": after["event messages"],
        "in vain at the end": last["event messages"] - needed,
    }


def _network(texts: Sequence[str], settings: Adaptation | None, seed: int) -> Network:
    network = built("line", BROKERS, partial(Broker, strategy="simple", adaptation=settings), seed)
    for number, text in enumerate(texts):
        network.subscribe(client_of(names(BROKERS)[0]), number, parse(text))
    network.run()
    return network


def _played(network: Network, texts: Sequence[str], events: Sequence[dict[str, Any]], first: int = 0) -> Row:
    """Publish events one by one, and count decisions, messages and how often links change their mind."""
    brokers = names(BROKERS)
    receivers: list[str] = []
    got: set[tuple[Any, Any]] = set()

    def note(occurrence: object) -> None:
        if isinstance(occurrence, MessageCarried) and isinstance(occurrence.message, Publish):
            receivers.append(occurrence.target)
        if isinstance(occurrence, EventDelivered):
            got.update((occurrence.publication.key, key) for key in occurrence.subscriptions)

    network.observers.append(note)
    decisions = switches = 0
    states = _filtering(network)
    for number, event in enumerate(events, first):
        before = len(receivers)
        network.publish(client_of(brokers[-1]), number, event)
        network.run()
        decisions += sum(states.get(broker, False) for broker in (brokers[-1], *receivers[before:]))
        now = _filtering(network)
        switches += sum(now[broker] is not states[broker] for broker in now)
        states = now
    network.observers.remove(note)
    wanted = wanted_by({number: parse(text) for number, text in enumerate(texts)}, events)
    if got != {(first + number, key) for number, key in wanted}:
        raise DisagreementError("the brokers", "one matcher that knows everything", 0)
    return {
        "event messages": len(receivers),
        "decisions": decisions,
        "switches": switches,
        "links that filter": sum(states.values()),
        "first link filters": states[brokers[-1]],
    }


def _filtering(network: Network) -> dict[str, bool]:
    """Return which brokers filter for the next one towards the subscribers."""
    brokers = names(BROKERS)
    return {broker: network.brokers[broker].is_filtering(brokers[number]) for number, broker in enumerate(brokers[1:])}


EXPERIMENT = Experiment(
    "adaptive",
    "What is it worth to stop filtering for a neighbour to whom nearly everything goes?",
    "Mühl et al. 2002, section 2.8",
    run,
)
