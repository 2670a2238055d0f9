"""Where in a query does a task stand?

A row that is sent again after a crash has the name that it had (`tamis.sources.place`), because the query, the batch
and the partition are the same.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark import TaskContext
from pyspark.sql.datasource import WriterCommitMessage

from tamis.sources.place import TaskPlace


@dataclass
class WrittenCounts(WriterCommitMessage):
    """What a task says of what it has sent, such as how many messages."""

    counts: dict[str, int]


def this_place(run: str) -> TaskPlace:
    """Return where a task of Spark's stands: in a micro-batch of a query, or in a job that is called `run`."""
    context = TaskContext.get()
    assert context is not None, "only tasks have a place"
    query = context.getLocalProperty("sql.streaming.queryId")
    batch = context.getLocalProperty("streaming.sql.batchId")
    if query and batch:
        return TaskPlace(query, int(batch), context.partitionId())
    return TaskPlace(run, 0, context.partitionId())
