"""Does any event wait for a kernel to be compiled? Not once a node is warm."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="nothing is compiled")

SCRIPT = """
import sys
import time

import msgspec
from numba.core.registry import CPUDispatcher

from tamis.routing import Broker
from tamis.service.changes import FloorKept, Stored, SubscriberKept, SubscriptionKept
from tamis.service.cloud_events import record_of
from tamis.service.log.base import Block
from tamis.service.messages import Attach, Principal, Session
from tamis.service.node import LogFacts, Node
from tamis.service.permissions import Permissions
from tamis.service.positions import START

has_log = sys.argv[1] == "log"
cities = ("Leeds", "York", "Hull")
texts = [
    f"price < {number} AND weight >= {number}.5D AND city IN ('{cities[number % 3]}', 'Bath')"
    + (" OR data.at.zone > 3 AND NOT is_sold" if number % 2 else " AND time > TIMESTAMP '2024-01-01 00:00:00'")
    for number in range(600)
]


def event(number):
    data = {
        "price": number % 700, "weight": number / 3, "city": cities[number % 3], "is_sold": number % 5 == 0,
        "at": {"zone": number % 7},
    }
    members = {"id": str(number), "source": "/shop", "type": "offer", "specversion": "1.0", "data": data}
    return msgspec.json.encode({**members, "time": "2024-05-01T00:00:00Z"})


blocks = [Block(1, 1, tuple(map(event, range(1_500))), bytes(1_500))] if has_log else []
stored = Stored(
    subscribers=(SubscriberKept("ann", "root", 30.0, 0, False, 0.0), SubscriberKept("bob", "root", 30.0, 0, False, 0.0)),
    floors=(FloorKept("ann", START, (), 0), FloorKept("bob", START, (), 0)),
    subscriptions=tuple(
        SubscriptionKept("bob" if number else "ann", f"k{number}", number + 1, text, text, 0, 0, "root", (), True)
        for number, text in enumerate(texts)
    ),
    replays=(),
    dead_counts=(),
)
last = 1_500 if has_log else 0
node = Node(
    Broker("a", "identity"), Permissions({}), record_of, stored, LogFacts(1, last, 1 if has_log else 0), now=time.time()
)
node.warm(blocks)


def kernels():
    everything = {id(each): each for module in list(sys.modules.values())
                  if getattr(module, "__name__", "").startswith("tamis.") for each in vars(module).values()}
    return {each.py_func.__qualname__: len(each.signatures)
            for each in everything.values() if isinstance(each, CPUDispatcher)}


before = kernels()
assert sum(before.values()) > 5, before
records = [record_of(event(number)) for number in range(4_096)]
for size in (1, 2, 3, 7, 8, 30, 31, 64, 100, 200, 300, 512, 1_000, 2_048, 4_096):
    node._interest.hits(records[:size])
    node._interest.hits(records[:size], {"ann"})
    node._interest.hits_and_counts(records[:size])
    node._close_interest.hits(records[:size], [node.roster.subscribers["ann"]])
after = kernels()
late = sorted(name for name in after if after[name] != before.get(name, 0))
assert not late, late
print("warm")
"""


@pytest.mark.parametrize("what", ["log", "nothing"])
def test_no_group_of_events_makes_a_kernel_be_compiled_after_warming(what):
    run = subprocess.run([sys.executable, "-c", SCRIPT, what], capture_output=True, text=True, check=False)
    assert run.stdout == "warm\n", run.stderr[-3_000:]


def test_a_node_that_matched_one_event_only_is_not_warm():
    cold = SCRIPT.replace("node.warm(blocks)", "node._interest.hits([{'id': 'x'}])")
    run = subprocess.run([sys.executable, "-c", cold, "log"], capture_output=True, text=True, check=False)
    assert "'match_keys'" in run.stderr


def test_no_subscription_is_read_again_when_the_first_event_comes():
    asked = """
import tamis.routing.table
from tamis.service import unwanted

tamis.routing.table.paths_of = None
assert not unwanted.is_asked_for(node._broker)
print("read")
"""
    script = SCRIPT.partition("\ndef kernels")[0] + asked
    run = subprocess.run([sys.executable, "-c", script, "nothing"], capture_output=True, text=True, check=False)
    assert run.stdout == "read\n", run.stderr[-3_000:]
