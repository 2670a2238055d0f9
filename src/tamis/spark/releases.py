"""Which part of this package needs which PySpark?

Tables, statistics and streams work with every PySpark from 4.0 on. What needs a newer one says so when it is imported,
instead of failing somewhere inside of PySpark.
"""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

from tamis.spark.errors import SparkMissingError, SparkVersionError

LEAST = "4.0"
ARROW_FUNCTIONS = "4.1"
"""Functions over Arrow columns, writers of streams that take Arrow batches, and state whose operators take rows."""
LIMITED_READERS = "4.2"
"""Sources in Python whose micro-batches have a limit."""


def installed() -> str:
    """Return the version of PySpark that is installed, without importing it; raise if there is none.

    >>> version_of(installed()) >= version_of(LEAST)
    True
    """
    spec = find_spec("pyspark")
    if spec is None:
        raise SparkMissingError("PySpark is not installed; install it with tamis: pip install 'tamis[spark]'")
    for folder in spec.submodule_search_locations or ():
        path = Path(folder) / "version.py"
        written = re.search(r'__version__[^=]*= *"([^"]+)"', path.read_text("utf-8")) if path.exists() else None
        if written is not None:
            return written[1]
    from pyspark import __version__  # of a zip, or of another kind of package

    return str(__version__)


def version_of(text: str) -> tuple[int, int]:
    """Return the first two numbers of a version.

    >>> version_of("4.1.0.dev2"), version_of("4.10")
    ((4, 1), (4, 10))
    """
    first, second = re.findall(r"\d+", text)[:2]
    return int(first), int(second)


def has(least: str) -> bool:
    """Is the PySpark that is installed at least of this version?"""
    return version_of(installed()) >= version_of(least)


def require_release(part: str, least: str) -> None:
    """Raise unless PySpark is new enough for a part of this package."""
    if not has(least):
        raise SparkVersionError(
            f"{part} needs PySpark {least} or newer, and {installed()} is installed: "
            f"pip install 'pyspark>={least},<4.4'"
        )
