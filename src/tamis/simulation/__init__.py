"""What do many brokers do together?

A `Network` is many brokers and clients in one process, with virtual time, links that delay (`travel`), and faults;
nothing happens in it that its seed does not decide. `topologies` says how brokers are linked, `clients` what those
remember who sit at them, `scenarios` what a run is made of, `actors` what is done next, and `stateful` what clients
with sequences and changes are sent; those of `requests` ask for steps only when a run is open. `ranked` has clients who
want the best k, `nodes` has those of nodes without reverse paths, and with `thresholds` homes tell what is of no
interest. `checking` looks on from outside and says what went wrong, `ranked_checking` does so for the best k, `tables`
whether brokers know of each other what they should, and `counting` how much was sent, kept and waited for.
Whatever happens is one of the `occurrences`.

    >>> from tamis.simulation import Scenario, simulate
    >>> run = simulate(Scenario.of_seed(7))
    >>> run.problems
    []
"""

from tamis.simulation.checking import Checker
from tamis.simulation.counting import TrafficCounters, measured
from tamis.simulation.network import Network
from tamis.simulation.nodes import NODE_STRATEGIES, simulate_nodes
from tamis.simulation.peers import PeerNetwork
from tamis.simulation.ranked import simulate_ranked
from tamis.simulation.ranked_checking import RankedChecker
from tamis.simulation.requests import RequestingHomes, simulate_requests
from tamis.simulation.scenarios import Run, Scenario, simulate
from tamis.simulation.stateful import StatefulClients, simulate_stateful
from tamis.simulation.thresholds import simulate_thresholds
from tamis.simulation.topologies import TOPOLOGIES

__all__ = [
    "NODE_STRATEGIES",
    "TOPOLOGIES",
    "Checker",
    "Network",
    "PeerNetwork",
    "RankedChecker",
    "RequestingHomes",
    "Run",
    "Scenario",
    "StatefulClients",
    "TrafficCounters",
    "measured",
    "simulate",
    "simulate_nodes",
    "simulate_ranked",
    "simulate_requests",
    "simulate_stateful",
    "simulate_thresholds",
]
