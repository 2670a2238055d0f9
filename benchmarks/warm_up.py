"""How long does a new process take until its first match?

The kernels are compiled when they are first called, and kept on disk. Three processes, one after the other: the first
two start with an empty folder for them, and either answer at once, by Python, while kernels are compiled in the
background, or wait for them; the third reads what the second has left. Each matches twice, registration included; where
it waits, what the first time takes longer than the second is the kernels' share. `_s` is the time that passes, and
`_cpu_s` the processor time of all threads, which a busy machine does not stretch.
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

PROMISED_S = {("none", True): 5.0, ("none", False): None, ("all", False): 1.0}
"""What we promise from the start of the imports to the first answer: without kernels on disk, and with them."""

_FIRST_MATCH = """
import json
from time import perf_counter, process_time

start, start_cpu = perf_counter(), process_time()
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
answered_cpu = process_time()
second_s, _ = matched()
print(json.dumps([imported - start, first_s, second_s, answered_cpu - start_cpu, match_count]))
"""


def warm_up(few_subscriptions: int = 200, environment: Mapping[str, str] | None = None) -> Iterator[dict[str, Any]]:
    """How long does the first match of a process take, before and after the kernels are on disk?"""
    script = _FIRST_MATCH.format(subscription_count=few_subscriptions)
    with TemporaryDirectory() as empty, TemporaryDirectory() as filled:
        for kernels_on_disk, at_once, folder in (
            ("none", True, empty),
            ("none", False, filled),
            ("all", False, filled),
        ):
            surroundings = {**os.environ, "NUMBA_CACHE_DIR": folder, **(environment or {})}
            surroundings["TAMIS_COLD_START"] = "answer" if at_once else "wait"
            done = subprocess.run(
                [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, check=True, env=surroundings
            )
            import_s, first_s, second_s, cpu_s, match_count = json.loads(done.stdout)
            yield {
                "kernels_on_disk": kernels_on_disk,
                "at_once": at_once,
                "import_s": import_s,
                "first_match_s": first_s,
                "same_again_s": second_s,
                "answered_s": import_s + first_s,
                "answered_cpu_s": cpu_s,
                "promised_s": PROMISED_S[kernels_on_disk, at_once],
                "matches": match_count,
            }
