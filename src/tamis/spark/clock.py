"""Where does the time of a micro-batch go?

Workers tell it. Each adds what it spent in the kernel, on its forest, and on everything else, which is receiving
events and sending matches as Arrow batches; and from when to when it was at work. What is left of the batch is Spark's
own: planning, scheduling, starting workers, writing files, committing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark.accumulators import AccumulatorParam

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_FAR = float("inf")


class Times(NamedTuple):
    """What workers spent, all of them together, and the moments between which any of them was at work."""

    kernel_s: float = 0.0
    forest_s: float = 0.0
    """Opening the forest, and laying it out by the first events."""
    arrow_s: float = 0.0
    """Receiving and sending; waiting for Spark's rows is in it."""
    first: float = _FAR
    last: float = -_FAR

    @property
    def workers_s(self) -> float:
        """How long somebody was at work.

        >>> Times(first=3.0, last=4.5).workers_s, Times().workers_s
        (1.5, 0.0)
        """
        return max(0.0, self.last - self.first)


class AddingTimes(AccumulatorParam[Times]):
    """How times add up."""

    def zero(self, value: Times) -> Times:
        """Return no time at all."""
        return Times()

    def addInPlace(self, value1: Times, value2: Times) -> Times:  # noqa: N802 - Spark's name for it
        """Return the times of both.

        >>> AddingTimes().addInPlace(Times(1, 0, 2, 10, 13), Times(2, 1, 2, 11, 14))
        Times(kernel_s=3, forest_s=1, arrow_s=4, first=10, last=14)
        """
        return Times(
            value1.kernel_s + value2.kernel_s,
            value1.forest_s + value2.forest_s,
            value1.arrow_s + value2.arrow_s,
            min(value1.first, value2.first),
            max(value1.last, value2.last),
        )


def clock(events: DataFrame) -> Any:
    """Return an accumulator of times; None under Spark Connect, which has no such thing."""
    spark = events.sparkSession
    return spark.sparkContext.accumulator(Times(), AddingTimes()) if hasattr(spark, "_sc") else None
