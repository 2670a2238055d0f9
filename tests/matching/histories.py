"""What do threads see that match while others register and remove? Stories of that, and how they are judged.

A writer's steps are a sequence of sets, S0, S1, ... A match that runs while steps are made sees one of the sets between the
last step that had ended when the match began and the last that had begun when it ended, and never a mixture of two:

    writer    S0 |--add a, b--| S1 |--remove a--| S2        a and b come in one call
    match              |-------------|                      finds {}, {a, b} or {b}, but never {a}
"""

from __future__ import annotations

import itertools
import threading
from bisect import bisect_left
from concurrent.futures import ThreadPoolExecutor
from random import Random

import tamis
from tamis.matching import Matcher

CONDITIONS = [f"n % 7 = {rest}" for rest in range(7)] + [f"n BETWEEN {low} AND {low + 9}" for low in range(0, 14, 2)]
CONDITIONS += ["n >= 0", "n < 0 OR n > 6 AND name = 'x'", "n IN (1, 3, 5, 9)", "at_least(2, n > 2, n < 9, name = 'x')"]
EVENTS = [{"n": number, "name": "xy"[number % 2]} for number in range(14)]
HOLDS = [[tamis.holds(tamis.parse(text), event) for text in CONDITIONS] for event in EVENTS]


class Writer:
    """A thread that registers and removes under ids of its own, and remembers its sets and when it made each step."""

    def __init__(self, name: str, matcher: Matcher, clock: itertools.count, seed: int) -> None:
        self.name, self.matcher, self.clock, self.chance = name, matcher, clock, Random(seed)
        self.sets: list[frozenset[str]] = [frozenset()]
        self.begins: list[int] = []
        self.ends: list[int] = []
        self.made = 0

    def run(self, steps: int) -> None:
        for _ in range(steps):
            present = self.sets[-1]
            if len(present) > 60 or (present and self.chance.random() < 0.4):
                gone = self.chance.choice(sorted(present))
                following = present - {gone}
            else:
                gone = None
                count = self.chance.choice([2, 2, 2, 10, 30])
                new = [f"{self.name}:{number}" for number in range(self.made, self.made + count)]
                self.made += count
                following = present.union(new)
            self.sets.append(following)  # before it begins, so that whoever sees the step knows its set
            self.begins.append(next(self.clock))
            if gone is not None:
                self.matcher.remove(gone)
            else:
                self.matcher.add_many({each: CONDITIONS[condition_of(each)] for each in new})
            self.ends.append(next(self.clock))

    def explain(self, begin: int, end: int, found: list[set[str]], events: list[int]) -> bool:
        """Is what was found between two moments, for each of some events, the answer of one of the sets?"""
        first, last = bisect_left(self.ends, begin), bisect_left(self.begins, end)
        return any(
            all(
                mine == {each for each in present if HOLDS[event][condition_of(each)]}
                for mine, event in zip(found, events, strict=True)
            )
            for present in self.sets[first : last + 1]
        )


def condition_of(subscription_id: str) -> int:
    return int(subscription_id.split(":")[1]) % len(CONDITIONS)


class History:
    """Two writers at a matcher, and threads that look at it meanwhile."""

    def __init__(self, matcher: Matcher, folder, *, seed: int = 0, pause: float = 0.05) -> None:
        self.matcher, self.folder, self.pause = matcher, folder, pause
        self.clock = itertools.count()
        self.writers = [Writer(name, matcher, self.clock, seed + number) for number, name in enumerate("ab")]
        self.is_over = threading.Event()

    # -- Ways to look: each returns some events, and the ids that were found for each

    def one_event(self, chance):
        event = chance.randrange(len(EVENTS))
        return [event], [self.matcher.match(EVENTS[event])]

    def by_priority(self, chance):
        event = chance.randrange(len(EVENTS))
        return [event], [[each for group in self.matcher.match_in_order(EVENTS[event]) for each in group]]

    def a_batch(self, chance):
        chosen = [chance.randrange(len(EVENTS)) for _ in range(chance.choice([5, 40, 300]))]
        return chosen, self.matcher.list_batch([EVENTS[event] for event in chosen], threads=2).to_pylist()

    def a_file(self, _):
        self.matcher.save(self.folder / "saved")
        loaded = Matcher.load(self.folder / "saved")
        return list(range(len(EVENTS))), [loaded.match(event) for event in EVENTS]

    def a_sample(self, chance):
        self.is_over.wait(self.pause)  # to learn is to lay everything out anew, and no merge would ever come to its end
        self.matcher.learn([chance.choice(EVENTS) for _ in range(50)])
        return [], []

    # -- The story

    def run(self, looks, steps: int):
        """Let the writers make their steps; return what was seen: begin, end, events and what was found for them."""
        with ThreadPoolExecutor(len(self.writers) + len(looks)) as pool:
            looking = [pool.submit(self._looked, look, number) for number, look in enumerate(looks)]
            writing = [pool.submit(writer.run, steps) for writer in self.writers]
            try:
                for future in writing:
                    future.result()
            finally:
                self.is_over.set()
            return [each for future in looking for each in future.result()]

    def _looked(self, look, number):
        chance = Random(number)
        seen = []
        while not self.is_over.is_set():
            begin = next(self.clock)
            events, found = look(chance)
            seen.append((begin, next(self.clock), events, found))
        return seen

    def check(self, seen) -> list[str]:
        """Everything that was seen is the set of one moment, and the last sets are what is left. Returns their ids."""
        for begin, end, events, found in seen:
            for writer in self.writers:
                mine = [{each for each in ids if each.startswith(writer.name)} for ids in found]
                assert writer.explain(begin, end, mine, events), f"{writer.name}, {begin} to {end}: {mine}"
        present = [each for writer in self.writers for each in writer.sets[-1]]
        for event, holds in zip(EVENTS, HOLDS, strict=True):
            assert set(self.matcher.match(event)) == {each for each in present if holds[condition_of(each)]}
        return present
