"""Functions of a host, in a module that commands, brokers and workers can import."""

from __future__ import annotations

import time

import tamis


@tamis.function(takes=("number", "string"), gives="number", version=1)
def score(price, category):
    """What a price is worth in a category."""
    return price * (2 if category == "Crime" else 1)


@tamis.function(takes=("number",), gives="number", version=1)
def fragile(number):
    """Raises for 1, gives a text for 2 and nothing for 3."""
    if number == 1:
        raise ValueError("not that one")
    return "a text" if number == 2 else None if number == 3 else number


@tamis.function(takes=("number",), gives="boolean", version=2)
def is_even(number):
    """Is a number even?"""
    return number % 2 == 0


@tamis.function(takes=("number",), gives="number", version=1, limit_s=0.05)
def slow(number):
    """Takes its time for 5."""
    if number == 5:
        time.sleep(0.4)
    return number


functions = tamis.Functions([score, fragile, is_even, slow])
newer = tamis.Functions(
    [tamis.function(takes=("number", "string"), gives="number", version=2, name="score")(lambda price, category: 0)]
)
