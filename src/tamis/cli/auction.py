"""Whom does the demonstration sell books to, and which?

A dozen subscriptions that between them use most of the language, and a stream of auction events in the manner of
the literature's favourite example. One seed decides the stream.
"""

from __future__ import annotations

from decimal import Decimal
from random import Random
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

SUBSCRIPTIONS = {
    "cheap thrillers": "category = 'Thriller' AND price < 10",
    "signed or very old": "signed OR year BETWEEN 1800 AND 1899",
    "poetry, not worn": "category = 'Poetry' AND NOT condition IN ('fair', 'poor')",
    "The … of …": "title LIKE 'The % of %'",
    "houses and castles": "lower(title) RLIKE 'house|castle' AND length(title) < 22",
    "two of three signs": "at_least(2, bids >= 8, seller.rating > 4.5, array_contains(tags, 'rare'))",
    "bargains": "price + shipping <= 0.5 * estimate",
    "near Zagreb": "distance(lat, lon, 45.81, 15.98) < 50",
    "nobody's yet": "reserve IS NULL AND bids = 0",
    "reserve not over 20": "NOT reserve > 20",  # no match where there is no reserve: NOT of unknown is unknown
    "picture books": "language IN ('fr', 'hr', 'it') AND arrays_overlap(tags, array('atlas', 'illustrated'))",
    "bound xor signed": "format = 'hardcover' XOR signed",
    "the careful buyer": "category = 'Novel' AND condition <> 'poor' AND seller.rating >= 4 AND price < 25",
}

_FIRST = ("The House", "The Castle", "The Garden", "The Island", "A History", "The Winter", "Songs", "The Bridge")
_SECOND = (
    "of Otranto",
    "on the Drina",
    "of Glass",
    "by the Sea",
    "of Silence",
    "in the Fog",
    "of Salt",
    "and the Moon",
)
_CATEGORIES = ("Thriller", "Novel", "Poetry", "Travel", "History", "Science")
_CONDITIONS = ("new", "good", "fair", "poor")
_LANGUAGES = ("en", "de", "fr", "hr", "it")
_TAGS = ("rare", "first edition", "illustrated", "atlas", "with dedication")
_CITIES = ((45.81, 15.98), (48.21, 16.37), (52.52, 13.40), (-36.85, 174.76), (51.51, -0.13))


def events(count: int, seed: int) -> Iterator[dict[str, Any]]:
    """Yield so many events of book auctions.

    >>> [event["title"] for event in events(2, seed=1)] == [event["title"] for event in events(2, seed=1)]
    True
    """
    chance = Random(seed)
    for _ in range(count):
        estimate = chance.lognormvariate(3, 0.7)
        latitude, longitude = chance.choice(_CITIES)
        event: dict[str, Any] = {
            "title": f"{chance.choice(_FIRST)} {chance.choice(_SECOND)}",
            "category": chance.choice(_CATEGORIES),
            "language": chance.choice(_LANGUAGES),
            "format": chance.choice(("hardcover", "paperback")),
            "condition": chance.choice(_CONDITIONS),
            "year": int(chance.triangular(1780, 2024, 1995)),
            "signed": chance.random() < 0.05,
            "estimate": _rounded(estimate),
            "price": _rounded(estimate * chance.uniform(0.3, 1.5)),
            "shipping": _rounded(chance.uniform(0, 6)),
            "bids": min(int(chance.expovariate(0.3)), 40),
            "tags": sorted(chance.sample(_TAGS, chance.choice((0, 0, 1, 1, 2)))),
            "seller": {"rating": _rounded(chance.triangular(2, 5, 4.4), 1)},
            "lat": round(latitude + chance.gauss(0, 0.4), 3),
            "lon": round(longitude + chance.gauss(0, 0.4), 3),
        }
        if chance.random() < 0.4:
            event["reserve"] = _rounded(estimate * chance.uniform(0.5, 1))
        yield event


def _rounded(number: float, places: int = 2) -> Decimal:
    return Decimal(f"{number:.{places}f}")  # money is exact
