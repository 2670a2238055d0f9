"""How do functions of the host get to Spark's workers, and what they could not do back to the driver?

With the forest, the schema and the subscriptions that call them: by the name that they are imported by, if a module has
them, and else by value (cloudpickle). A module must be there on every worker (`--py-files`, or installed); a client of
Spark Connect should have its functions in one. Nothing of this comes from a text: the driver's program registers them.

Workers are other processes, so what their functions could not do is counted there, and added to the driver's counts
when a task ends. Spark Connect has no such way back; there the log of the workers names them.
"""

from __future__ import annotations

import pickle
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pyspark import cloudpickle
from pyspark.accumulators import AccumulatorParam
from pyspark.sql.types import BooleanType, DoubleType, StringType, TimestampType

from tamis.errors import FunctionError
from tamis.language.functions import Functions, functions_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

    from tamis.language.functions import UserFunction

Failures = dict[str, dict[str, int]]
_TYPES = {"number": DoubleType(), "string": StringType(), "boolean": BooleanType(), "time": TimestampType()}


class AskedOf(dict[Any, Any]):
    """Subscriptions by id, which travel together with the functions that they call."""

    def __init__(self, asked: dict[Any, Any], functions: Functions) -> None:
        super().__init__(asked)
        self.functions = functions

    def __reduce__(self) -> tuple[Any, ...]:
        dumps: Any = cloudpickle.dumps
        return _arrived, (self.functions, dumps(dict(self)))


def _arrived(functions: Functions, content: bytes) -> AskedOf:
    with functions.in_use():
        return AskedOf(pickle.loads(content), functions)


class AddingFailures(AccumulatorParam[Failures]):
    """How the failures of workers add up; the driver's functions are told of them, too."""

    def __init__(self, functions: Functions | None = None) -> None:
        self._functions = functions

    def __reduce__(self) -> tuple[Any, ...]:
        return AddingFailures, ()  # on a worker nobody else is told

    def zero(self, value: Failures) -> Failures:
        """Return no failure at all."""
        return {}

    def addInPlace(self, value1: Failures, value2: Failures) -> Failures:  # noqa: N802 - Spark's name for it
        """Return the failures of both.

        >>> AddingFailures().addInPlace({"score@1": {"raised": 2}}, {"score@1": {"raised": 1, "late": 1}})
        {'score@1': {'raised': 3, 'late': 1}}
        """
        for name, counts in value2.items():
            own = value1.setdefault(name, {})
            for how, count in counts.items():
                own[how] = own.get(how, 0) + count
            if self._functions is not None:
                self._functions[name.partition("@")[0]].failures.update(counts)
        return value1


def failure_count(spark: SparkSession, functions: Functions) -> Any:
    """Return an accumulator by which workers tell the driver's functions of failures; None where there can be none."""
    if not functions or not hasattr(spark, "_sc"):
        return None
    return spark.sparkContext.accumulator({}, AddingFailures(functions))


@contextmanager
def counted(accumulator: Any, *functions: Functions) -> Iterator[None]:
    """Tell the driver which failures of these functions there were meanwhile, in a worker."""
    if accumulator is None:
        yield
        return
    before = [(each, Counter(each.failures)) for each in {own for some in functions for own in some.values()}]
    try:
        yield
    finally:
        for function, known in before:
            if more := function.failures - known:
                accumulator.add({function.written: dict(more)})


def register_functions(spark: SparkSession, functions: Functions | None = None) -> None:
    """Let Spark SQL call functions of the host by their names: `SELECT * FROM events WHERE score(price, category) > 3`.

    They give what they give here, NULL where they raise, are late or give another kind; a number is a double.
    """
    for function in functions_of(functions).values():
        kind = _TYPES.get(function.row.gives)
        if kind is None:
            raise FunctionError(f"{function.written} gives an array, which has no type in Spark SQL")
        spark.udf.register(function.name, _called(function), kind)


def _called(function: UserFunction) -> Callable[..., Any]:
    is_number = function.row.gives == "number"

    def run(*arguments: Any) -> Any:
        from tamis.language.values import value_of

        value = function.meaning(*map(value_of, arguments))
        return float(value) if is_number and value is not None else value

    return run
