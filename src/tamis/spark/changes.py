"""In which order do changes of subscriptions apply, and what becomes of those that cannot? A change log.

Changes come as rows of a stream: add a subscription (or give it another text), or remove one. Rows have no order of
their own, neither within a micro-batch nor between two, so a column says it: a number or a time that grows. Of the
changes of one id the last counts, whenever it comes; one that comes after a later one is late and changes nothing.

A change that cannot be applied (no such operation, no id, a text that is not a condition, an order that nobody can
know) is put aside with its reason, and what was in force stays in force. Nothing ends because of it.
"""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import pyarrow as pa
from pyarrow import parquet

from tamis.matching.admission import CandidateRow, admitted
from tamis.spark.folders import folder_at
from tamis.spark.subscription_log import ADD, REMOVE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.sql import DataFrame, SparkSession

    from tamis.language import Schema
    from tamis.spark.folders import Folder, Place
    from tamis.spark.subscription_log import SubscriptionLog


class RuleChange(NamedTuple):
    """A row of the stream."""

    operation: str | None
    id: Any
    condition: str | None
    sequence: int | None = None

    @property
    def text(self) -> str | None:
        """The text that is in force afterwards; None if the subscription is gone."""
        return self.condition if self.operation == ADD else None


Refused: TypeAlias = tuple[RuleChange, str, str]
"""A change, the kind of mistake, and the message."""
Last: TypeAlias = "tuple[int | None, str | None]"
"""The sequence of the last change of an id, and the text that it left."""


def applied(
    changes: Iterable[RuleChange], last: Mapping[Any, Last], schema: Schema | None = None, *, is_ordered: bool = True
) -> tuple[dict[Any, Last], list[Refused]]:
    """Return what changes come to, by id, and those that cannot be applied.

    >>> rows = [("remove", 1, None, 8), ("add", 1, "price < 5", 7), ("add", 2, "price <", 9)]
    >>> accepted, refused = applied([RuleChange(*row) for row in rows], {})
    >>> accepted, [(change.id, kind) for change, kind, _ in refused]
    ({1: (8, None)}, [(2, 'ExpressionSyntaxError')])
    """
    good, refused = _usable(list(dict.fromkeys(changes)), schema, is_ordered)
    by_id: dict[Any, dict[int | None, list[RuleChange]]] = {}
    for change in good:
        by_id.setdefault(change.id, {}).setdefault(change.sequence, []).append(change)
    accepted: dict[Any, Last] = {}
    for each, moments in by_id.items():
        known = last.get(each)
        in_force = known[0] if known is not None else None
        for sequence in sorted(moments, key=lambda moment: -1 if moment is None else moment):
            at_once = moments[sequence]
            texts = {change.text for change in at_once}
            if len(texts) > 1:
                refused += [(change, *_unordered(sequence)) for change in at_once]
            elif sequence is not None and in_force is not None and sequence <= in_force:
                if sequence < in_force or known is None or texts != {known[1]}:  # else it was only told again
                    refused += [(change, *_late(sequence, in_force)) for change in at_once]
            else:
                accepted[each] = (sequence, at_once[0].text)
    return accepted, refused


def _usable(
    changes: list[RuleChange], schema: Schema | None, is_ordered: bool
) -> tuple[list[RuleChange], list[Refused]]:
    """Return the changes that can be applied by themselves, and the others."""
    good: list[RuleChange] = []
    refused: list[Refused] = []
    for change in changes:
        if change.operation not in (ADD, REMOVE):
            message = f"an operation is '{ADD}' or '{REMOVE}', not {change.operation!r}"
            refused.append((change, "OperationError", message))
        elif change.id is None:
            refused.append((change, "NullIdError", "a subscription has an id, and this one has NULL"))
        elif change.operation == ADD and change.condition is None:
            refused.append((change, "NullConditionError", "a condition is a text, and this one is NULL"))
        elif is_ordered and change.sequence is None:
            refused.append((change, "NullSequenceError", "nothing says when this change was made: it has NULL"))
        else:
            good.append(change)
    rows = [
        CandidateRow(number, change.condition, 0, number)
        for number, change in enumerate(good)
        if change.operation == ADD
    ]
    _, bad = admitted(rows, schema)
    refused += [(good[row.row], row.error, row.reason) for row in bad]
    wrong = {row.row for row in bad}
    return [change for number, change in enumerate(good) if number not in wrong], refused


def _unordered(sequence: int | None) -> tuple[str, str]:
    if sequence is None:
        why = "several changes of this id came together, and nothing says which is the last; a column 'sequence' would"
    else:
        why = f"several changes of this id have the sequence {sequence}: which one is the last?"
    return "UnorderedChangeError", why


def _late(sequence: int, in_force: int) -> tuple[str, str]:
    if sequence == in_force:
        return "UnorderedChangeError", f"another change of this id had the sequence {sequence}, and is in force"
    return "LateChangeError", f"a later change of this id is in force: its sequence is {in_force}, and here {sequence}"


@dataclass
class Feeder:
    """What writes the changes of a stream to a log: a micro-batch of them is a version, written once."""

    log: SubscriptionLog
    rejected: Folder
    schema: Schema | None
    is_ordered: bool
    _last: dict[Any, Last] = field(default_factory=dict, repr=False)
    _read: int = 0

    def __reduce__(self) -> tuple[Any, ...]:
        return Feeder, (self.log, self.rejected, self.schema, self.is_ordered)

    def run(self, batch: DataFrame, number: int) -> None:
        """Write what a micro-batch comes to; its columns are the operation, the id, the condition, the sequence."""
        source = f"batch {number}"
        if self.log.version_of(source) is not None:
            return  # the crash came after the version, and before Spark knew of it
        self._read_on()
        changes = [RuleChange(*row) for row in batch.collect()]
        accepted, refused = applied(changes, self._last, self.schema, is_ordered=self.is_ordered)
        if refused:  # before the version: whoever sees that one can see these
            kind = batch.schema[1].dataType.simpleString()
            content = _encoded(refused, pa.string() if kind == "string" else pa.int64())
            self.rejected.put(f"{number:012}-{len(refused)}.parquet", content)
        if accepted:
            sequences = {each: sequence for each, (sequence, _) in accepted.items() if sequence is not None}
            functions = None if self.schema is None else self.schema.functions or None
            texts = {each: text for each, (_, text) in accepted.items()}
            self.log.append(texts, source, sequences, functions=functions)

    def _read_on(self) -> None:
        """Learn what was in force, and since when, from what the log has beyond what is known of it."""
        for version in range(self._read + 1, self.log.version + 1):
            for operation, each, condition, sequence in self.log.rows(version):
                self._last[each] = sequence, condition if operation == ADD else None
            self._read = version


def _encoded(refused: list[Refused], kind: Any) -> bytes:
    changes = [change for change, _, _ in refused]
    table = pa.table(
        {
            "operation": pa.array([change.operation for change in changes], pa.string()),
            "id": pa.array([change.id for change in changes], kind),
            "condition": pa.array([change.condition for change in changes], pa.string()),
            "sequence": pa.array([change.sequence for change in changes], pa.int64()),
            "error": pa.array([error for _, error, _ in refused], pa.string()),
            "message": pa.array([message for *_, message in refused], pa.string()),
        }
    )
    buffer = io.BytesIO()
    parquet.write_table(table, buffer)
    return buffer.getvalue()


def rejected_count(folder: Folder) -> int:
    """Return how many changes were put aside so far."""
    return sum(int(name.rpartition(".")[0].rpartition("-")[2]) for name in _files(folder))


def read_rejected(spark: SparkSession, path: Place) -> DataFrame:
    """Return the changes that a stream has put aside in a folder."""
    return read_rejected_from(spark, folder_at(path, spark))


def read_rejected_from(spark: SparkSession, folder: Folder) -> DataFrame:
    """Return the changes that were put aside: what they were, `error` and `message`, and the batch they came with."""
    tables = []
    for name in _files(folder):
        table = parquet.read_table(pa.BufferReader(folder.read(name)))
        tables.append(table.append_column("batch", pa.array([int(name[:12])] * table.num_rows, pa.int64())))
    if tables:
        return spark.createDataFrame(pa.concat_tables(tables))
    texts = "operation string, id string, condition string, sequence bigint, error string, message string, batch bigint"
    return spark.createDataFrame([], texts)


def _files(folder: Folder) -> list[str]:
    return [name for name in folder.names() if name.endswith(".parquet")]
