"""What went wrong in a worker, in one line?

An error that is raised in a worker of Spark's comes back as the text of a Java exception with a stack of each
language in it. If it was one of ours, its own line says it all, and becomes an error of its own kind again. One of
Spark's own is told in our words, because nobody understands it in Spark's: events that come from another folder.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException

from tamis.spark import errors

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tamis.errors import TamisError

_MOVED = "Wrong basePath ", " for the root path: "
"""What Spark says of a checkpoint that knows another folder: now the one, before the other."""


def _kinds(kind: type[errors.PlaceError] = errors.PlaceError) -> Iterator[tuple[str, type[errors.PlaceError]]]:
    """Yield the errors of ours, each by the name that a traceback begins its line with."""
    for below in kind.__subclasses__():
        yield f"{below.__module__}.{below.__qualname__}: ", below
        yield from _kinds(below)


@contextmanager
def plainly() -> Iterator[None]:
    """Raise what our code said in a worker as what it was; everything else as it is."""
    try:
        yield
    except Exception as error:
        typed = understood(error)
        if typed is None:
            raise
        raise typed from None


def understood(error: BaseException) -> TamisError | None:
    """Return the error of ours that an error of Spark's carries.

    >>> understood(ValueError("nothing of ours"))
    """
    if not isinstance(error, PySparkException) and type(error).__name__ != "Py4JJavaError":
        return None
    text = str(error)
    if _MOVED[0] in text and _MOVED[1] in text:
        return _moved(text)
    kinds = dict(_kinds())
    for line in reversed(text.split("\n")):
        for name, kind in kinds.items():
            if name in line:
                return kind.recovered(line.partition(name)[2])
    return None


def _moved(text: str) -> errors.OptionError:
    """Return the error that says why events of another folder cannot be read."""
    now, _, before = text.partition(_MOVED[0])[2].partition(_MOVED[1])
    before = before.partition("\n")[0].partition(" SQLSTATE")[0]
    return errors.OptionError(
        f"this checkpoint belongs to a stream whose events came from another folder: it knows {before}, and now "
        f"they come from {now}. Let new files arrive in the folder of the old ones, or start again, with another "
        f"checkpoint and another folder for the matches"
    )
