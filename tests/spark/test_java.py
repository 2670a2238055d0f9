from __future__ import annotations

import os
import stat

import pytest

from tamis.spark.errors import JavaError
from tamis.spark.java import java_version, require_java


def pretend(folder, told, monkeypatch):
    """Put a Java there that says what we like."""
    program = folder / "bin" / "java"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho '{told}' >&2\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("JAVA_HOME", str(folder))


def test_without_java_the_message_has_the_one_command_that_helps(monkeypatch, tmp_path):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sys.platform", "linux")
    assert java_version() is None
    with pytest.raises(JavaError, match=r"no Java. Install it:\n  sudo apt-get install openjdk-17"):
        require_java()


@pytest.mark.skipif(os.name == "nt", reason="a shell script")
def test_an_old_java_is_named(monkeypatch, tmp_path):
    pretend(tmp_path, 'openjdk version "1.8.0_401"', monkeypatch)
    with pytest.raises(JavaError, match="only Java 8"):
        require_java()


@pytest.mark.skipif(os.name == "nt", reason="a shell script")
def test_a_new_java_will_do(monkeypatch, tmp_path):
    pretend(tmp_path, 'openjdk version "21.0.1" 2023-10-17', monkeypatch)
    require_java()


def test_a_java_home_that_points_nowhere_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    with pytest.raises(JavaError, match="JAVA_HOME points"):
        require_java()
