"""Jars that tests need beside Spark's own, as Maven fetches them, with whatever mirrors and settings its user has."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>tests</groupId><artifactId>tests</artifactId><version>1</version><dependencies>{}</dependencies></project>"""
_ONE = "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>{}</dependency>"
_ALONE = "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"


def require_maven(what: str) -> None:
    """Skip the test where there is no Maven."""
    if shutil.which("mvn") is None:
        pytest.skip(f"{what} are fetched with Maven, and there is no mvn")


def fetched(folder: Path, artifacts: tuple[str, ...], *, alone: bool) -> list[Path] | None:
    """Return the jars of artifacts, alone or with what they need, where Maven keeps them; None if they cannot be had."""
    folder.mkdir(parents=True, exist_ok=True)
    ones = "".join(_ONE.format(*each.split(":"), _ALONE if alone else "") for each in artifacts)
    (folder / "pom.xml").write_text(_POM.format(ones))
    told = folder / "classpath"
    command = ["mvn", "-q", "-B", "dependency:build-classpath", "-DincludeScope=runtime", f"-Dmdep.outputFile={told}"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600, check=False)
    return sorted(map(Path, told.read_text().split(os.pathsep))) if done.returncode == 0 else None
