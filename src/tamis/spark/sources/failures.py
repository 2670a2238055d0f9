"""What went wrong in a worker, in one line?

An error that is raised in a worker of Spark's comes back as the text of a Java exception with a stack of each
language in it. If it was one of ours, its own line says it all, and becomes an error of its own kind again. One of
Spark's own is told in our words, because nobody understands it in Spark's: events that come from another folder.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException

from tamis.spark import errors

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tamis.errors import TamisError

_OURS = re.compile(r"tamis\.(?:spark|sources)\.errors\.(\w+): ([^\n]*)")
_MOVED = re.compile(r"Wrong basePath (.*?) for the root path: (.*?)(?: SQLSTATE|\n|$)")
_ANSWER = re.compile(r"(.*?) (?:answered (\d+)|does not answer): (.*)")


@contextmanager
def plainly() -> Iterator[None]:
    """Raise what our code said in a worker as what it was; everything else as it is."""
    try:
        yield
    except Exception as error:
        found = understood(error)
        if found is None:
            raise
        raise found from None


def understood(error: BaseException) -> TamisError | None:
    """Return the error of ours that an error of Spark's carries.

    >>> understood(ValueError("nothing of ours"))
    """
    if not isinstance(error, PySparkException) and type(error).__name__ != "Py4JJavaError":
        return None
    moved = _MOVED.search(str(error))
    if moved:
        now, before = moved.groups()
        return errors.OptionError(
            f"this checkpoint belongs to a stream whose events came from another folder: it knows {before}, and now "
            f"they come from {now}. Let new files arrive in the folder of the old ones, or begin anew, with another "
            f"checkpoint and another folder for the matches"
        )
    matches = list(_OURS.finditer(str(error)))
    if not matches:
        return None
    name, told = matches[-1].groups()
    kind = getattr(errors, name, None)
    if kind is errors.WebhookError:
        parts = _ANSWER.fullmatch(told)
        if parts:
            return errors.WebhookError(parts[1], int(parts[2]) if parts[2] else None, parts[3])
    if isinstance(kind, type) and issubclass(kind, errors.ConnectorError | errors.OptionError | errors.ColumnError):
        return kind(told)
    return None
