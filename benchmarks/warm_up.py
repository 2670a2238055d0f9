"""How long does a new process take until its first match?

The kernels are compiled when they are first called, and kept on disk. Two processes, one after the other, start with an
empty folder for them: the first compiles, the second reads what the first has left. Each matches twice, registration
included; what the first time takes longer than the second is the kernels' share.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PROMISED_S = 1.0
"""What we promise for getting the kernels ready when they are on disk."""

_FIRST_MATCH = """
import json
from time import perf_counter

start = perf_counter()
from tamis.matching.matcher import Matcher
imported = perf_counter()
from tamis.workloads import Synthetic

workload = Synthetic("W2")
subscriptions, events = workload.subscriptions({subscription_count}, seed=1), workload.events(300, seed=2)
event = events.slice(0, 1).to_pylist()[0]

def matched():
    start = perf_counter()
    matcher = Matcher()
    matcher.add_many(subscriptions)
    match_count = len(matcher.match(event)) + matcher.match_batch(events).num_rows
    return perf_counter() - start, match_count

first_s, match_count = matched()
second_s, _ = matched()
print(json.dumps([imported - start, first_s, second_s, match_count]))
"""


def warm_up(few_subscriptions: int = 200, environment: Mapping[str, str] | None = None) -> Iterator[dict[str, Any]]:
    """How long does the first match of a process take, before and after the kernels are on disk?"""
    with TemporaryDirectory() as folder:
        surroundings = {**os.environ, "NUMBA_CACHE_DIR": folder, **(environment or {})}
        script = _FIRST_MATCH.format(subscription_count=few_subscriptions)
        for kernels_on_disk in ("none", "all"):
            told = subprocess.run(
                [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, check=True, env=surroundings
            )
            import_s, first_s, second_s, match_count = json.loads(told.stdout)
            yield {
                "kernels_on_disk": kernels_on_disk,
                "import_s": import_s,
                "first_match_s": first_s,
                "same_again_s": second_s,
                "kernels_ready_s": first_s - second_s,
                "promised_s": PROMISED_S if kernels_on_disk == "all" else None,
                "matches": match_count,
            }
