"""How do a million texts become tables in seconds? Reading columns of conditions, compiled."""

from tamis.matching.reading.reader import Reader

__all__ = ["Reader"]
