"""How is a function called for each of some things, on all the machines of a cluster?

One task for each: the function and the things travel to the workers, what it returns travels back, in the order of the
things. Only what can be pickled can travel, and what the function needs must be installed where it arrives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql import SparkSession

Thing = TypeVar("Thing")
Answer = TypeVar("Answer")


def spread(session: SparkSession, function: Callable[[Thing], Answer], things: Sequence[Thing]) -> list[Answer]:
    """Return what a function makes of each of some things, in one Spark job with a task for each."""
    import pickle

    if not things:
        return []

    def answers(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow

        for batch in batches:
            for place in batch.column(0).to_pylist():
                answer = pickle.dumps(function(things[place]))
                yield pyarrow.RecordBatch.from_pydict({"place": [place], "answer": [answer]})

    places = session.range(0, len(things), 1, len(things))
    rows: list[Any] = places.mapInArrow(answers, "place long, answer binary").collect()
    by_place = {row.place: row.answer for row in rows}
    return [pickle.loads(bytes(by_place[place])) for place in range(len(things))]
