"""What does it cost to remember earlier events?

    standing_sequences     events per second of many sequences of two steps, beside as many pairs of conditions
    standing_thresholds    time of many thresholds with CHANGE TO, beside plain matching of the same conditions
    standing_memory        what is kept after each tenth of many events

Prices of many symbols wander; a sequence asks for a rise and a fall of one symbol, with or without PER, a threshold for
a price above a limit. `wrong` counts what some of the subscriptions are told otherwise than by the definition. Both
sides of a comparison are measured in turns, by the processor's time.
"""

from __future__ import annotations

from random import Random
from resource import RUSAGE_SELF, getrusage
from time import process_time
from typing import TYPE_CHECKING, Any

from tamis.matching import Matcher
from tamis.standing import NaiveStanding, Standing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_BATCH = 1_000
_CHECKED_SUBSCRIPTIONS, _CHECKED_EVENTS = 10, 25


def prices(count: int, symbols: int, seed: int) -> list[dict[str, Any]]:
    """Return quotes: the price of a symbol wanders between 0 and 100, so it is near where it was."""
    chance = Random(seed)
    at = [chance.uniform(20, 80) for _ in range(symbols)]
    quotes = []
    for _ in range(count):
        symbol = chance.randrange(symbols)
        at[symbol] = min(100.0, max(0.0, at[symbol] + chance.gauss(0, 2)))
        quotes.append({"symbol": f"S{symbol}", "price": round(at[symbol], 2)})
    return quotes


def pairs(count: int, symbols: int, seed: int) -> list[tuple[str, str]]:
    """Return pairs of conditions: the price of a symbol is high, and then it is low."""
    chance = Random(seed)
    made = []
    for _ in range(count):
        symbol, low = chance.randrange(symbols), chance.uniform(5, 60)
        high = low + chance.uniform(5, 35)
        made.append((f"symbol = 'S{symbol}' AND price > {high:.2f}", f"symbol = 'S{symbol}' AND price < {low:.2f}"))
    return made


def standing_sequences(
    subscription_count: int = 100_000, event_count: int = 20_000, symbols: int = 1_000, seed: int = 1
) -> Iterator[dict[str, Any]]:
    """How many events a second do sequences take, beside as many pairs of conditions?"""
    asked, quotes = pairs(subscription_count, symbols, seed), prices(event_count, symbols, seed + 1)
    for name, ending in (("latest", ""), ("per symbol", " PER symbol"), ("every", " TAKING EVERY")):
        texts = [f"SEQUENCE {first} THEN {second} WITHIN 1 HOUR{ending}" for first, second in asked]
        matcher, standing = Matcher(), Standing()
        matcher.add_many((number, each) for number, each in enumerate(each for pair in asked for each in pair))
        standing.add_many(enumerate(texts))
        match_s, standing_s, matches, told = _in_turns(matcher, standing, quotes)
        yield {
            "sequences": name,
            "subscriptions": subscription_count,
            "events": event_count,
            "pairs_events_per_s": event_count / match_s,
            "events_per_s": event_count / standing_s,
            "share": match_s / standing_s,
            "promised": 0.5 if subscription_count >= 100_000 and name != "every" else None,
            "matches": matches,
            "told": told,
            "wrong": _wrong(texts, quotes),
        }


def standing_thresholds(
    subscription_count: int = 100_000, event_count: int = 20_000, symbols: int = 1_000, seed: int = 1
) -> Iterator[dict[str, Any]]:
    """How long do thresholds take that tell of changes, beside plain matching of their conditions?"""
    chance = Random(seed)
    limits = [(chance.randrange(symbols), chance.uniform(0, 100)) for _ in range(subscription_count)]
    quotes = prices(event_count, symbols, seed + 1)
    conditions = [f"symbol = 'S{symbol}' AND price > {limit:.2f}" for symbol, limit in limits]
    forms = {
        "PER symbol": [f"CHANGE TO {each} PER symbol" for each in conditions],
        "WHERE symbol": [f"CHANGE TO price > {limit:.2f} WHERE symbol = 'S{symbol}'" for symbol, limit in limits],
        "UNTIL": [
            f"CHANGE TO price > {limit:.2f} UNTIL price < {limit - 1:.2f} PER symbol WHERE symbol = 'S{symbol}'"
            for symbol, limit in limits
        ],
    }
    for name, texts in forms.items():
        matcher, standing = Matcher(), Standing()
        matcher.add_many(enumerate(conditions))
        standing.add_many(enumerate(texts))
        match_s, standing_s, matches, told = _in_turns(matcher, standing, quotes)
        yield {
            "changes": name,
            "subscriptions": subscription_count,
            "events": event_count,
            "matching_us": 1e6 * match_s / event_count,
            "change_us": 1e6 * standing_s / event_count,
            "ratio": standing_s / match_s,
            "promised": 2.0 if subscription_count >= 100_000 else None,
            "matches": matches,
            "told": told,
            "wrong": _wrong(texts, quotes),
        }


def standing_memory(
    subscription_count: int = 1_000, event_count: int = 1_000_000, symbols: int = 1_000, seed: int = 1
) -> Iterator[dict[str, Any]]:
    """What is kept after each tenth of many events, and what memory was taken at most? Neither grows."""
    asked = pairs(subscription_count, symbols, seed)
    standing = Standing()
    endings = ("", " PER symbol", " TAKING EVERY", " TAKING EACH ONCE")
    for number, (first, second) in enumerate(asked):
        last = f"NOT ({second})" if number % 5 == 4 else second
        standing.add(number, f"SEQUENCE {first} THEN {last} WITHIN 10 MINUTES{endings[number % 4]}")
        standing.add(f"c{number}", f"CHANGE OF {first} PER symbol FORGET AFTER 10 MINUTES")
    tenth = event_count // 10
    told = 0
    for part in range(10):
        for start in range(0, tenth, _BATCH):
            count = min(_BATCH, tenth - start)
            first_number = part * tenth + start
            quotes = prices(count, symbols, seed + first_number)
            told += len(standing.process_batch(quotes, [(first_number + n) / 10 for n in range(count)]))
        kept = standing.statistics()
        names = ("sequence_states", "open_events", "alarms", "change_states")
        yield {
            "events": (part + 1) * tenth,
            **{name: kept[name] for name in names},
            "peak_mb": getrusage(RUSAGE_SELF).ru_maxrss / 1024,
            "told": told,
            "wrong": 0,
        }


def _in_turns(matcher: Matcher, standing: Standing, quotes: list[dict[str, Any]]) -> tuple[float, float, int, int]:
    """Return the seconds of plain matching and of the processor, batch by batch in turns, and what came of both."""
    # The first batch compiles, and fills what is remembered; it is the same for both, and not measured.
    matcher.match_batch(quotes[:_BATCH])
    standing.process_batch(quotes[:_BATCH], 0.0)
    match_s = standing_s = 0.0
    matches = told = 0
    for start in range(0, len(quotes), _BATCH):
        part, now = quotes[start : start + _BATCH], 1.0 + start / _BATCH
        seconds, pairs_found = _timed(lambda part=part: matcher.match_batch(part))  # type: ignore[misc]
        match_s, matches = match_s + seconds, matches + pairs_found.num_rows
        seconds, notifications = _timed(lambda part=part, now=now: standing.process_batch(part, now))  # type: ignore[misc]
        standing_s, told = standing_s + seconds, told + len(notifications)
    return match_s, standing_s, matches, told


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = process_time()
    made = work()
    return process_time() - start, made


def _wrong(texts: list[str], quotes: list[dict[str, Any]]) -> int:
    """Return how much some subscriptions are told that the definition does not say, or the reverse."""
    # Events of one symbol, so that the few that are checked have something to tell.
    symbol = quotes[0]["symbol"]
    chosen = [text for text in texts if f"'{symbol}'" in text][:_CHECKED_SUBSCRIPTIONS]
    seen = [quote for quote in quotes if quote["symbol"] == symbol][:_CHECKED_EVENTS]
    fast, naive = Standing(), NaiveStanding(retention=86_400)
    for number, text in enumerate(chosen):
        fast.add(number, text)
        naive.add(number, text)
    told = {notification for now, quote in enumerate(seen) for notification in fast.process(quote, now, now)}
    expected = {notification for now, quote in enumerate(seen) for notification in naive.process(quote, now, now)}
    return len(told ^ expected)
