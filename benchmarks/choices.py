"""What does CASE cost beside the same conditions without?

    choices    batches matched by subscriptions with CASE, and by others that say the same in AND and OR

Each form is a way in which people use them: weights that add up, or speak against, a value where there is none, a value
that depends. The two sets must find the same matches; `wrong` counts where they do not.
"""

from __future__ import annotations

from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from benchmarks.cases import best_times
from tamis import Matcher

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PROMISED_RATIO = 2.0
"""We promise that CASE takes no longer than so many times the same conditions without, for 10,000 subscriptions."""
FORMS = ("weights", "partial", "against", "missing", "depending")


def texts(form: str, chance: Random) -> tuple[str, str]:
    """Return a condition with a choice, and the same without.

    >>> texts("missing", Random(1))
    ('coalesce(price, 0) < 17 AND category = 18', '(price < 17 OR price IS NULL) AND category = 18')
    """
    price, category, bids = chance.randrange(100), chance.randrange(20), chance.randrange(50)
    if form == "weights":
        conditions = f"price < {price}", f"category = {category}", f"bids < {bids}"
        one, two, three = conditions
        points = " + ".join(f"CASE WHEN {each} THEN 1 ELSE 0 END" for each in conditions)
        return f"{points} >= 2", f"{one} AND {two} OR {one} AND {three} OR {two} AND {three}"
    if form == "partial":
        points = f"if(price > {price + 850}, 2, 0) + if(bids < {bids}, 1, 0) + if(category = {category}, 1, 0)"
        return f"{points} >= 3", f"price > {price + 850} AND (bids < {bids} OR category = {category})"
    if form == "against":
        points = f"if(category = {category}, 2, 0) - if(bids < {bids}, 1, 0)"
        return f"{points} >= 2", f"category = {category} AND (bids < {bids}) IS NOT TRUE"
    if form == "missing":
        least = f"price < {price}{' OR price IS NULL' if price else ''}"
        return f"coalesce(price, 0) < {price} AND category = {category}", f"({least}) AND category = {category}"
    return (
        f"CASE WHEN signed THEN 2 * price ELSE price END < {price} AND category = {category}",
        f"(signed AND 2 * price < {price} OR signed IS NOT TRUE AND price < {price}) AND category = {category}",
    )


def choices(
    forms: Sequence[str] = FORMS,
    subscription_count: int = 10_000,
    event_count: int = 8_192,
    passes: int = 3,
    seed: int = 1,
) -> Iterator[dict[str, Any]]:
    """How many times as long do conditions with CASE take as the same without?"""
    for form in forms:
        chance = Random(seed)
        pairs = [texts(form, chance) for _ in range(subscription_count)]
        events = pa.Table.from_pylist([_event(chance) for _ in range(event_count)])
        matchers = {"choices": Matcher(), "plain": Matcher()}
        for number, matcher in enumerate(matchers.values()):
            matcher.add_many(dict(enumerate(pair[number] for pair in pairs)))
            matcher.compile()
        found = {
            name: set(zip(*matcher.match_batch(events).to_pydict().values(), strict=True))
            for name, matcher in matchers.items()
        }
        times = best_times(passes, {name: partial(matcher.match_batch, events) for name, matcher in matchers.items()})
        is_promised = subscription_count >= 10_000
        yield {
            "form": form,
            "subscriptions": subscription_count,
            "events": event_count,
            "matches": len(found["plain"]),
            "choices_events_per_s": round(event_count / times["choices"]),
            "plain_events_per_s": round(event_count / times["plain"]),
            "times_the_plain_ones": round(times["choices"] / times["plain"], 2),
            "promised": PROMISED_RATIO if is_promised else None,
            "wrong": len(found["plain"] ^ found["choices"]),
        }


def _event(chance: Random) -> dict[str, Any]:
    return {
        "price": None if chance.random() < 0.05 else chance.randrange(1_000),
        "category": chance.randrange(20),
        "bids": chance.randrange(500),
        "signed": chance.choice((True, False, None)),
    }
