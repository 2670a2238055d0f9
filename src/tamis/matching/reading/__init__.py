"""How do a million texts become tables in seconds? Reading columns of conditions, compiled."""

from tamis.matching.reading.reader import MANY, Reader, read_many

__all__ = ["MANY", "Reader", "read_many"]
