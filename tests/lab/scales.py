"""A scale smaller than any that people would use."""

from tamis.lab.base import Scale

TINY = Scale(
    name="tiny",
    auction_counts=(60, 120),
    expression_counts=(60, 120),
    lengths=(4, 6),
    setting_count=80,
    memory_count=64,
    brute_counts=(10, 20),
    measured_s=0.002,
    most_events=8,
    passes=1,
)


def quiet(doing: str) -> None:
    """Listen to nobody."""
