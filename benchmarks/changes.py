"""What does a match cost right after a change?

A matcher in use changes: one subscription comes, another goes, and the next event wants an answer. Every match here is
timed alone, right after a change, and set beside those at rest, in the same run. The change itself is timed too: what
a match is spared should not be paid twice there.

A match also takes longer after any other work, because that takes the caches for itself. So there is a second base:
matches of a matcher that does not change, each after a subscription of an unrelated small matcher was replaced. What
the benchmark itself has parsed is kept from the garbage collector, which would walk through it in the middle of a
match.
"""

from __future__ import annotations

import gc
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.cases import CASES, built, events_of, parsed, percentile_us
from tamis.language.meaning import holds
from tamis.matching import Matcher

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tamis.language.expressions import Expression

PHASES = {
    "at rest": "",
    "at rest, after other work": "o",
    "after one add": "+",
    "after one remove": "-",
    "add, match, remove, match": "+-",
    "replace one, match": "±",
}
"""What is changed before each match, in turns; of ± both at once, and of o another matcher."""
_OTHERS = 1_000
"""How many subscriptions the other matcher has."""


def changes(
    names: Sequence[str] = ("w1", "auction"), subscription_count: int = 100_000, steps: int = 1_000, seed: int = 1
) -> Iterator[dict[str, Any]]:
    """What does a match cost right after a change?"""
    for name in names:
        case = built(name, subscription_count, steps, seed, with_yardstick=False)
        matcher, events = case.matcher, events_of(case.events)
        fresh = parsed(CASES[name]().subscriptions(len(PHASES) * steps, seed + 3))
        conditions = parsed(case.subscriptions)
        ids = matcher.match_batch(case.events.slice(0, 1))["subscription"].type
        is_text = str(ids) == "string"
        known: list[Any] = case.subscriptions["subscription_id"].to_pylist()
        living: dict[Any, Expression] = dict(zip(known, conditions, strict=True))
        chance = np.random.default_rng(seed)
        leaving = iter(chance.permutation(len(known)).tolist())
        other = Matcher()
        other.add_many(enumerate(conditions[:_OTHERS]))
        for event in events[:_OTHERS]:
            other.match(event)
        other._engine.settle()
        matcher._engine.settle()
        gc.collect()
        gc.freeze()
        number, rest_us, busy_us = subscription_count, 0.0, 0.0
        for phase, turns in PHASES.items():
            matching_s: list[float] = []
            changing_s: list[float] = []
            wrong = 0
            for step in range(steps):
                turn = turns[step % len(turns)] if turns else ""
                new = f"new {number}" if is_text else number + 1
                gone = known[next(leaving)] if turn in "-±" and turn else None
                start = perf_counter()
                if turn == "o":
                    other.replace(step % len(other), fresh[step])
                if turn in "-±" and turn:
                    matcher.remove(gone)
                if turn in "+±" and turn:
                    matcher.add(new, fresh[number - subscription_count])
                changed = perf_counter()
                matches = matcher.match(events[step % len(events)])
                matching_s.append(perf_counter() - changed)
                changing_s.append(changed - start)
                living.pop(gone, None)
                if turn in "+±" and turn:
                    living[new] = fresh[number - subscription_count]
                    number += 1
                    wrong += (new in matches) != holds(living[new], events[step % len(events)])
                wrong += gone in matches
                wrong += len(matches) != len({each for each in matches if each in living})
            rest_us = rest_us or percentile_us(matching_s, 50)
            busy_us = percentile_us(matching_s, 50) if turns == "o" else busy_us
            yield {
                "workload": name,
                "subscriptions": len(matcher),
                "phase": phase,
                "p50_us": percentile_us(matching_s, 50),
                "p99_us": percentile_us(matching_s, 99),
                "slowest_us": max(matching_s) * 1e6,
                "times_at_rest": percentile_us(matching_s, 50) / rest_us,
                "times_after_work": percentile_us(matching_s, 50) / busy_us if busy_us else None,
                "change_p50_us": percentile_us(changing_s, 50) if turns else None,
                "change_p99_us": percentile_us(changing_s, 99) if turns else None,
                "wrong": wrong,
            }
        matcher._engine.settle()
        gc.unfreeze()
