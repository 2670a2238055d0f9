"""Is there a Java that Spark can run on?

Spark 4 needs Java 17 or newer, and without it fails with a stack trace that names neither. So we look first.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

from tamis.spark.errors import JavaError

LEAST_VERSION = 17
HOW = {
    "linux": "sudo apt-get install openjdk-17-jre-headless",
    "darwin": "brew install openjdk@17",
    "win32": "winget install EclipseAdoptium.Temurin.17.JRE",
}


def java_program() -> str | None:
    """Return the Java that Spark would start: that of JAVA_HOME, or the first on the path."""
    home = os.environ.get("JAVA_HOME")
    return str(Path(home) / "bin" / "java") if home else shutil.which("java")


def java_version() -> int | None:
    """Return the major version of that Java, or None where there is none."""
    java = java_program()
    return version_in(java_says(java)) if java else None


def java_says(java: str) -> str:
    """Return what a Java says of itself; nothing if it cannot be started."""
    try:
        return _java_says(java, os.stat(java).st_mtime_ns)
    except OSError:
        return ""


@cache
def _java_says(java: str, _: int) -> str:
    done = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False)
    return done.stderr + done.stdout


def version_in(output: str) -> int | None:
    """Find the major version in what `java -version` says.

    >>> version_in('openjdk version "17.0.15" 2025-04-15'), version_in('java version "1.8.0_401"'), version_in("?")
    (17, 8, None)
    """
    match = re.search(r'version "(\d+)(?:\.(\d+))?', output)
    if not match:
        return None
    major = int(match[1])
    return int(match[2] or 0) if major == 1 else major  # Java 8 called itself 1.8


def require_java() -> None:
    """Raise unless Spark can be started here, and say what helps."""
    version = java_version()
    if version is not None and version >= LEAST_VERSION:
        return
    present = "no Java" if version is None else f"only Java {version}"
    if os.environ.get("JAVA_HOME") and version is None:
        present = f"no Java where JAVA_HOME points ({os.environ['JAVA_HOME']})"
    how = HOW.get(sys.platform, "install a Java 17+ runtime")
    raise JavaError(f"Spark needs Java {LEAST_VERSION} or newer, and this machine has {present}. Install it:\n  {how}")
