"""How fast do texts become a matcher that has answered its first event?

The everyday language is read in columns (`tamis.matching.reading`). Beside it stands the way that texts went before:
each is parsed, and what was parsed is registered. Both ways are taken in one run, and by processor time, so their
quotient is true on a busy machine too. The predicates that the parser remembers are forgotten before, as if nobody had
seen such texts.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.feather as feather

import tamis
from benchmarks.cases import CASES, events_of
from tamis.language import parser
from tamis.matching.matcher import Matcher

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

NAMES = ("w1", "w2", "w3", "w4", "auction", "templates")
PROMISED_TEXTS_S = 100_000
"""What we promise: so many texts per second and core, the first answer included."""
PROMISED_MILLION_S, PROMISED_MILLION_MB = 10, 1_000
"""What we promise of a million texts of the auction."""
_WARM = 5_000
_BATCH = 256


def reading_texts(
    subscription_count: int = 100_000, names: Sequence[str] = NAMES, passes: int = 3, seed: int = 1
) -> Iterator[dict[str, Any]]:
    """Yield texts per second, read in columns and parsed one by one, until the first event is answered."""
    for name in names:
        workload = CASES[name]()
        table, batch = workload.subscriptions(subscription_count, seed), workload.events(_BATCH, seed + 1)
        _warm(workload.subscriptions(_WARM, seed + 2), batch)
        ids, texts = (table.column(number).to_pylist() for number in range(2))

        def parsed(matcher: Matcher, ids: list[Any] = ids, texts: list[str] = texts) -> None:
            matcher.add_many(dict(zip(ids, map(tamis.parse, texts), strict=True)))

        ways: dict[str, Callable[[Matcher], object]] = {
            "read in columns": partial(Matcher.add_many, subscriptions=table),
            "parsed one by one": parsed,
        }
        best = dict.fromkeys(ways, float("inf"))
        matchers: dict[str, Matcher] = {}
        event = events_of(batch)[0]
        for _ in range(passes):  # interleaved, so that a busy moment hits both
            for way, register in ways.items():
                parser._simple_predicates.clear()
                matcher = Matcher()
                start = process_time()
                register(matcher)
                matcher.match(event)
                best[way] = min(best[way], process_time() - start)
                matchers[way] = matcher
        found = {way: _pairs(matcher, batch) for way, matcher in matchers.items()}
        for way, elapsed in best.items():
            yield {
                "workload": name,
                "way": way,
                "texts": subscription_count,
                "answered_per_s": subscription_count / elapsed,
                "times_parsed": best["parsed one by one"] / elapsed,
                "bytes_each": matchers[way].memory() / subscription_count,
                "matches": len(found[way]),
                "wrong": len(found[way] ^ found["parsed one by one"]),
                "promised": f"{PROMISED_TEXTS_S:,}/s" if way == "read in columns" else "",
            }


def reading_a_million(
    subscription_count: int = 1_000_000, names: Sequence[str] = ("auction",), seed: int = 1
) -> Iterator[dict[str, Any]]:
    """Yield the time and the memory of a process of its own that registers a table from a file."""
    for name in names:
        with TemporaryDirectory() as folder:
            file = Path(folder) / "subscriptions.feather"
            workload = CASES[name]()
            feather.write_feather(workload.subscriptions(subscription_count, seed), str(file), compression="lz4")
            program = "import sys; from benchmarks.reading_texts import register; register(sys.argv[1])"
            answer = subprocess.run(
                [sys.executable, "-c", program, str(file)], capture_output=True, text=True, check=True
            )
        promised = f"{PROMISED_MILLION_S} s, {PROMISED_MILLION_MB:,} MB" if name == "auction" else ""
        yield {"workload": name, "texts": subscription_count, **json.loads(answer.stdout), "promised": promised}


def register(file: str) -> None:
    """Register a table from a file, and print what that took: the work of the process of its own."""
    table = feather.read_table(file)
    first = [{}, {"price": 12}]
    _warm(table.slice(0, _WARM), pa.table({"price": [12.0] * _BATCH}))
    before_mb = _peak_mb()
    matcher = Matcher()
    start = process_time()
    matcher.add_many(table)
    answers = [len(matcher.match(event)) for event in first]
    elapsed = process_time() - start
    print(
        json.dumps(
            {
                "seconds": elapsed,
                "per_s": len(matcher) / elapsed,
                "mb_before": before_mb,
                "mb_at_most": _peak_mb(),
                "bytes_each": matcher.memory() / len(matcher),
                "matches": sum(answers),
            }
        )
    )


def _warm(table: pa.Table, batch: pa.Table) -> None:
    """Compile what is measured."""
    matcher = Matcher()
    matcher.add_many(table)
    matcher.match_batch(batch)
    matcher.match(events_of(batch)[0])


def _pairs(matcher: Matcher, batch: pa.Table) -> set[tuple[Any, Any]]:
    matches = matcher.match_batch(batch).to_pydict()
    return set(zip(matches["event"], matches["subscription"], strict=True))


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1_024
