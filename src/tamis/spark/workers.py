"""Will the workers find tamis?

Spark starts its Python workers with `PYSPARK_PYTHON`, or with whatever is called python3. In an environment that is not
activated that is another Python, without tamis, and what comes of it is a stack of Java. On one machine the right
Python is known: the one that is running. On a cluster nobody here knows the hosts, so one small task looks
before anything is done, and if it fails one sentence says what to set.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from pyspark.errors import PySparkException

from tamis.spark.errors import WorkerError
from tamis.spark.forests import is_connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NEEDED = ("tamis", "pyspark", "pyarrow", "numpy", "numba")
_LOOK = (
    "import sys; from importlib.util import find_spec; "
    f"sys.exit(sys.version_info[:2] != {sys.version_info[:2]!r} or any(find_spec(name) is None for name in {NEEDED!r}))"
)
_looked_at: WeakSet[Any] = WeakSet()
"""The sessions whose workers are known to find tamis."""


def require_workers(spark: SparkSession) -> None:
    """Have workers start with a Python that has tamis, or raise with what to set; once for each session."""
    if spark in _looked_at:
        return
    if not is_connect(spark) and str(spark.sparkContext.master).startswith("local"):
        _choose_python(spark.sparkContext)
    else:
        _ask_a_worker(spark)
    _looked_at.add(spark)


def has_tamis(python: str) -> bool:
    """Can a Python of this machine run our workers?

    >>> has_tamis(sys.executable), has_tamis("no-such-python")
    (True, False)
    """
    program = shutil.which(python)
    if program is None:
        return False
    if program == sys.executable:
        return True
    try:
        return subprocess.run([program, "-c", _LOOK], capture_output=True, timeout=60, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def _choose_python(context: Any) -> None:
    """Let workers on this machine be started with the Python that runs us, if their own would not do."""
    if has_tamis(context.pythonExec):
        return
    context.pythonExec = sys.executable  # what Spark would have taken from PYSPARK_PYTHON


def _ask_a_worker(spark: SparkSession) -> None:
    """Raise unless a worker of a cluster can import what it needs."""
    try:
        spark.range(1).mapInArrow(_unchanged, "id bigint").collect()
    except PySparkException as error:
        message = str(error)
        missing = next((name for name in NEEDED if f"No module named '{name}" in message), None)
        if missing is None and "PYTHON_VERSION_MISMATCH" not in message:
            raise
        version = ".".join(map(str, sys.version_info[:2]))
        failure = f"do not find {missing}" if missing else "run another Python than the driver"
        asked = os.environ.get("PYSPARK_PYTHON", "python3")
        raise WorkerError(
            f"the workers of this Spark are started with {asked!r}, and {failure}. Every host needs Python {version} "
            f"with tamis; say which one it is, before the session is started:\n"
            f"  export PYSPARK_PYTHON=/path/to/environment/bin/python"
        ) from None


def _unchanged(batches: Any) -> Any:
    """Return batches as they are; that this function is ours makes a worker import tamis."""
    return batches
