"""How does a stream get from one version of its subscriptions to the next? Snapshot versions by micro-batch.

By adding and removing, in a matcher that the driver keeps; only a version before the present one is built from the
start, and that happens once after a crash. Each version becomes a forest of its own, because tasks of the last
batch may still read the last one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import LongType, StringType

from tamis.errors import TamisError
from tamis.language.functions import NO_FUNCTIONS
from tamis.matching.admission import CandidateRow, admitted
from tamis.matching.matcher import Matcher
from tamis.matching.uniting import mentioned, united
from tamis.spark.carriers import SharedBytes, VersionLine
from tamis.spark.compiling import collected, numbered, rejected_frame
from tamis.spark.forests import felled, planted
from tamis.spark.subscriptions import Compiled

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType

    from tamis.language import Schema
    from tamis.matching.rejections import Rejected
    from tamis.spark.subscription_log import SubscriptionLog, Terms

_WORTH_A_JOB = 5_000
"""So many texts are worth a job of Spark's."""
_KEPT = 3


class Succession:
    """The subscriptions of one version of a log after the other, and those that do not fit the events."""

    def __init__(
        self, schema: Schema | None, matcher: Matcher | None = None, bad: dict[Any, Rejected] | None = None
    ) -> None:
        self._schema = schema
        self.matcher = Matcher(schema=schema) if matcher is None else matcher
        self.bad = {} if bad is None else bad

    def apply(self, changes: Mapping[Any, str | None], terms: Mapping[Any, Terms]) -> None:
        """Go on to the next version."""
        self.matcher.remove_many([each for each in changes if each in self.matcher])
        for each in changes:
            self.bad.pop(each, None)
        added = [
            CandidateRow(each, text, terms[each].priority if each in terms else 0)
            for each, text in changes.items()
            if text is not None
        ]
        try:
            self.matcher.add_many([tuple(row[:3]) for row in added])
        except TamisError:
            good, bad = admitted(added, self._schema)
            self.bad |= {row.id: row for row in bad}
            self.matcher.add_many([tuple(row[:3]) for row in added if row.id in good])


class Versions:
    """The compiled subscriptions of every version of a log that somebody asks for.

    Where the driver is elsewhere (Spark Connect) they are sent there before anything is compiled, and compiled there.
    """

    def __init__(self, log: SubscriptionLog, schema: Schema | None, id: str, where: str) -> None:
        self._log, self._schema, self._id, self._where = log, schema, id, where
        self._version = 0
        self._succession = Succession(schema)
        self._forests: dict[int, Compiled] = {}
        self._line = VersionLine()

    def __reduce__(self) -> tuple[Any, ...]:
        return Versions, (self._log, self._schema, self._id, self._where)

    def at(self, version: int, spark: SparkSession) -> Compiled:
        """Return the subscriptions of a version, ready to match."""
        if version not in self._forests:
            self._log.demand(version, self._succession.matcher.functions)
            if version < self._version or self._version == 0:
                self._start(version, spark)
            for number in range(self._version + 1, version + 1):
                self._succession.apply(self._log.changes(number), self._log.terms_of(number))
            self._version = version
            self._forests[version] = self._planted(spark)
            while len(self._forests) > _KEPT:  # batches come one after the other, so no job needs the first any more
                gone = self._forests.pop(next(iter(self._forests))).forest
                if gone is not None:
                    felled(gone)
        return self._forests[version]

    def rejected(self, spark: SparkSession) -> DataFrame:
        """Return what of the newest version is none for these events: id, condition, error and message."""
        version = self._log.version
        _, bad = admitted([CandidateRow(each, text) for each, text in self._log.at(version).items()], self._schema)
        return rejected_frame(spark, bad, self._id, self._where, self._id_kind())

    def _id_kind(self) -> DataType:
        return LongType() if self._log.id_type is int else StringType()

    def _start(self, version: int, spark: SparkSession) -> None:
        """Build a version from the start."""
        terms = self._log.terms(version)
        rows = [
            CandidateRow(each, text, terms[each].priority if each in terms else 0)
            for each, text in self._log.at(version).items()
        ]
        if len(rows) >= _WORTH_A_JOB:
            kind = "bigint" if isinstance(rows[0].id, int) else "string"
            frame = spark.createDataFrame([row[:3] for row in rows], f"id {kind}, condition string, priority bigint")
            functions = NO_FUNCTIONS if self._schema is None else self._schema.functions
            matchers, bad = collected(spark, numbered(frame), self._schema, functions)
            matcher = united(matchers, self._schema)
        else:
            matcher, bad = admitted(rows, self._schema)
        self._succession = Succession(self._schema, matcher, {row.id: row for row in bad})
        self._version = version

    def _planted(self, spark: SparkSession) -> Compiled:
        matcher, bad = self._succession.matcher, self._succession.bad
        attributes = mentioned(matcher)
        carriers = (None if each.forest is None else each.forest.carrier for each in self._forests.values())
        used = tuple(each.digest for each in carriers if isinstance(each, SharedBytes))
        forest = planted(spark, matcher, attributes, line=replace(self._line, used=used))
        kind = self._id_kind()
        rejected = rejected_frame(spark, list(bad.values()), self._id, self._where, kind)
        return Compiled(len(matcher), attributes, rejected, len(bad), self._id, kind, forest)
