"""What `make setup` does about Java."""

from __future__ import annotations

import os

import pytest
from tools import java


@pytest.fixture
def bare(tmp_path, monkeypatch):
    """A Linux without Java, whose programs are the test's."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sys.platform", "linux")
    return tmp_path


def put(folder, name, script):
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


def test_where_java_may_not_be_installed_the_one_command_is_told_and_nothing_fails(bare, monkeypatch, capsys):
    put(bare, "apt-get", f"echo called >> {bare / 'calls'}")
    monkeypatch.setattr(os, "geteuid", lambda: 1000, raising=False)
    java.main()
    assert "sudo apt-get install openjdk-17-jre-headless" in capsys.readouterr().out
    assert not (bare / "calls").exists()


@pytest.mark.skipif(os.name == "nt", reason="shell scripts")
def test_where_it_may_java_is_installed(bare, monkeypatch, capsys):
    put(bare, "new-java", """echo 'openjdk version "17.0.1"' >&2""")
    moved = f"/bin/mv {bare / 'new-java'} {bare / 'java'}"
    put(bare, "apt-get", f'echo "$@" >> {bare / "calls"}; test "$1" = update || {moved}')
    monkeypatch.setattr(os, "geteuid", lambda: 0, raising=False)
    java.main()
    assert (bare / "calls").read_text().splitlines() == ["update -qq", "install -y -qq openjdk-17-jre-headless"]
    assert java.java_version() == 17
    assert "Install" in capsys.readouterr().out
