"""The cheapest flats of the last minute, in a network of brokers.

Ann sits at one end of a line of three brokers, estate agents at the others. Her
broker ranks; the others know a filter. Run it, and see what she is told.
"""

from __future__ import annotations

from random import Random

from tamis.routing import Broker
from tamis.simulation import Network, TrafficCounters
from tamis.simulation.occurrences import EventDelivered
from tamis.topk import Ranked

AGENTS = ("b", "c")


def main() -> None:
    """Let agents offer flats for two minutes, and print what Ann is told, and when."""
    chance = Random(1)
    counters = TrafficCounters()
    network = Network(
        ["a", "b", "c"],
        [("a", "b"), ("b", "c")],
        lambda name: Broker(name, "covering", lateness_s=0.5, spread_s=0.5),
        chance,
        observers=[counters],
    )
    network.attach("ann", "a")
    for agent in AGENTS:
        network.attach(f"agent {agent}", agent)
    network.run()
    network.observers.append(
        lambda what: report(network, what) if isinstance(what, EventDelivered) else None
    )
    network.subscribe(
        "ann",
        "cheapest",
        Ranked.parse("TOP 2 BY rent ASC OVER 1 MINUTE WHERE kind = 'flat'"),
    )
    network.wait(1.0)
    for number in range(24):
        event = {
            "kind": chance.choice(["flat", "house"]),
            "rent": chance.randrange(400, 1200, 10),
        }
        network.publish(f"agent {chance.choice(AGENTS)}", f"offer {number}", event)
        network.wait(5.0)
    print(f"24 offers crossed links {counters.event_count} times,")
    print(f"and {counters.control_count} messages said which of them to send.")


def report(network: Network, delivered: EventDelivered) -> None:
    """Print a delivery."""
    event = delivered.publication.event
    print(f"{network.now:6.1f} s  {delivered.publication.key:9} rent {event['rent']}")


if __name__ == "__main__":
    main()
