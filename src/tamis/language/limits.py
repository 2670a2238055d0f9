"""How large may a subscription be? Resource limits on input.

Subscriptions come from strangers. A limit keeps one of them from taking the memory or the time of all
others; beyond it stands a typed error, never a crash.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """The size that an expression from outside may have.

    >>> import tamis
    >>> tamis.parse("NOT " * 300 + "sold")
    Traceback (most recent call last):
        ...
    tamis.errors.LimitError: line 1, column 1001: depth is limited to 250, found more
    ...
    """

    text_length: int = 1_000_000
    """Characters of a text or of a JSON document."""
    depth: int = 250
    """Operators inside operators, parentheses included."""
    nodes: int = 100_000
    """Operators, attributes and literals; the values of an IN list are not counted here."""
    list_length: int = 1_000_000
    """Values of one IN list or one array."""
    pattern_length: int = 2_000
    """Characters of a LIKE pattern or regular expression."""
    pattern_memory: int = 1_000_000
    """Bytes that one compiled regular expression may take."""


DEFAULT_LIMITS = Limits()
