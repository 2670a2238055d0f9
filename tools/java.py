"""Find the Java that Spark needs, get it where that is allowed, or say how to get it.

Spark runs on Java 17 or newer. Everything else of tamis works without it, and the tests that need
Spark are skipped with a message, so a missing Java is told, not fatal.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

LEAST_VERSION = 17
HOW = {
    "linux": "sudo apt-get install openjdk-17-jre-headless   (or your distribution's Java 17+)",
    "darwin": "brew install openjdk@17",
    "win32": "winget install EclipseAdoptium.Temurin.17.JRE",
}


def java_version() -> int | None:
    """Return the major version of the Java that Spark would start, or None where there is none."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if not java:
        return None
    try:
        told = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except OSError:
        return None
    found = re.search(r'version "(\d+)(?:\.(\d+))?', told.stderr + told.stdout)
    if not found:
        return None
    major = int(found[1])
    return int(found[2] or 0) if major == 1 else major  # Java 8 called itself 1.8


def install() -> bool:
    """Install Java with the system's package manager, if we may do that without asking anyone."""
    if sys.platform != "linux" or not shutil.which("apt-get") or os.geteuid() != 0:
        return False
    print("Installing Java 17 for Spark with apt-get ...")
    for command in (["apt-get", "update", "-qq"], ["apt-get", "install", "-y", "-qq", "openjdk-17-jre-headless"]):
        if subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode != 0:
            return False
    return True


def main() -> None:
    """Report what was found; never fail, because only Spark needs Java."""
    version = java_version()
    if version is None and install():
        version = java_version()
    if version is not None and version >= LEAST_VERSION:
        return
    found = "no Java" if version is None else f"only Java {version}"
    how = HOW.get(sys.platform, "install a Java 17+ runtime")
    print(f"Spark needs Java {LEAST_VERSION} or newer, and this machine has {found}.")
    print(f"Everything but the Spark parts works. To have those too: {how}")


if __name__ == "__main__":
    main()
