"""What does a matcher owe to those who change it for ever?

Two things that were wrong once: rules that are replaced in two steps are missed by whoever matches in between, and what
was removed left something behind.
"""

from __future__ import annotations

import threading
from os.path import getsize
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import TYPE_CHECKING, Any

from tamis.matching import Matcher
from tamis.matching.algorithms import ALGORITHMS
from tamis.matching.sightings import Sightings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

RULES = 100


def replaced_rules(changes: int = 2_000) -> Iterator[dict[str, Any]]:
    """How many matches miss a rule that another thread replaces, in two steps and in one?

    `wrong` counts only what `replace` is to blame for: that two steps are missed is the point.
    """
    for way in ("remove, add", "replace"):
        matcher = Matcher()
        matcher.add("rule", "price > 0")
        matcher.match({"price": 5})
        is_over = threading.Event()

        def change(matcher: Matcher = matcher, is_over: threading.Event = is_over, way: str = way) -> None:
            for number in range(changes):
                text = f"price > {-number}"
                if way == "replace":
                    matcher.replace("rule", text)
                else:
                    matcher.remove("rule")
                    matcher.add("rule", text)
            is_over.set()

        thread = threading.Thread(target=change)
        match_count = missed = 0
        thread.start()
        while not is_over.is_set() or not match_count:  # the other thread may be done before we begin
            missed += matcher.match({"price": 5}) != ["rule"]
            match_count += 1
        thread.join()
        yield {"way": way, "matches": match_count, "missed": missed, "wrong": missed if way == "replace" else 0}


def updates_left(
    updates: int = 300_000, algorithms: tuple[str, ...] = ("block", "counting")
) -> Iterator[dict[str, Any]]:
    """How much larger is a matcher after many updates than one that never had any, in memory and as a file?"""
    for algorithm in algorithms:
        assert algorithm in ALGORITHMS
        sizes = []
        matchers = []
        for count in (0, updates):
            matcher = Matcher(algorithm)
            matcher.add_many({number: _text(number) for number in range(RULES)})
            for turn in range(count // RULES):
                matcher.upsert_many({number: _text(number + turn) for number in range(RULES)})
                matcher.match({"price": turn % RULES})
            if count:
                matcher.upsert_many({number: _text(number) for number in range(RULES)})
            matcher.match_batch([{"price": 5}] * 2)
            with TemporaryDirectory() as folder:
                matcher.save(f"{folder}/saved")
                sizes.append((matcher.memory(), getsize(f"{folder}/saved"), Matcher.load(f"{folder}/saved").memory()))
            matchers.append(matcher)
        events = [{"price": price} for price in range(0, RULES, 7)]
        wrong = sum(matchers[0].match(event) != matchers[1].match(event) for event in events)
        names = ("memory", "file", "loaded")
        row = {f"{name} times": after / before for name, before, after in zip(names, *sizes, strict=True)}
        yield {"algorithm": algorithm, "updates": updates, "memory kB": sizes[1][0] / 1e3, **row, "wrong": wrong}


def sighted(event_count: int = 20_000) -> Iterator[dict[str, Any]]:
    """What does it cost a single event that its attributes are noted?"""
    matcher = Matcher()
    matcher.add_many({number: f"price < {number} AND bids > 3 AND title = 't{number}'" for number in range(1_000)})
    events = [{"price": n % 50, "bids": n % 7, "title": f"t{n % 999}", "signed": True} for n in range(event_count)]
    matcher.match_batch(events)
    sightings = Sightings()

    def seconds(work: Callable[[dict[str, Any]], Any]) -> float:
        start = perf_counter()
        for event in events:
            work(event)
        return perf_counter() - start

    seconds(matcher.match)
    match_s, look_s = seconds(matcher.match), seconds(sightings.look)
    wrong = int(sightings.event_count != event_count or sightings.kinds[("price",)] != {"number"})
    yield {
        "match µs": 1e6 * match_s / event_count,
        "look µs": 1e6 * look_s / event_count,
        "share": look_s / match_s,
        "wrong": wrong,
    }


def _text(number: int) -> str:
    return f"price > {number % RULES}"
