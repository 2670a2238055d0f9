"""What `make setup` does about Java, and what `tools/facts.py` measures."""

from __future__ import annotations

import json
import os

import pytest
from tools import facts, java


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


# -- Facts about the code


@pytest.fixture
def source(tmp_path):
    """A tiny source tree of which everything is known."""
    package = tmp_path / "tamis"
    (package / "matching").mkdir(parents=True)
    (package / "__init__.py").write_text("import json\n")
    (package / "errors.py").write_text("def long(a):\n    x = 1\n    y = 2\n    return x + y\n")
    (package / "matching" / "__init__.py").write_text("from tamis.matching import kernels\n")
    (package / "matching" / "kernels.py").write_text(
        "# why\nclass Some:\n    def wide(self, a, b, /, c, *d, e, **f):\n        return '# no comment'  # nor this\n"
    )
    (package / "ragged.py").write_text(
        "class Some:\n    def one(self):\n        told = 1\n\n        def two():\n            x = 1\n"
    )
    return tmp_path


def test_the_facts_are_those_of_the_source(source):
    measured = facts.facts(source, test_s=61.5)
    assert measured["longest function"] == {"name": "tamis.ragged.one", "lines": 5}
    assert measured["most parameters"] == {"name": "tamis.matching.kernels.wide", "parameters": 6}
    assert measured["kernels"] == {"modules": 1, "lines": 4, "comment lines": 1}
    assert measured["names"] == {"functions with a vague local": 1, "classes with one name in several modules": 1}
    assert measured["modules per package"] == {"tamis": 2, "tamis.matching": 1}
    assert measured["make test"] == {"seconds": 61.5}
    costs = measured["imports"]
    assert costs["tamis"]["own modules"] == 1 and costs["tamis.matching"]["own modules"] == 3
    assert costs["tamis.matching"]["modules"] == costs["tamis"]["modules"] + 2
    assert costs["tamis"]["seconds"] >= 0 <= costs["tamis"]["processor seconds"]


def test_the_time_of_the_tests_is_read_from_a_junit_file(source, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(facts, "TIMED", 1)
    junit = tmp_path / "results.xml"
    junit.write_text('<testsuites><testsuite name="pytest" tests="2" time="12.5"/></testsuites>')
    facts.main(["--source", str(source), "--junit", str(junit), "--json"])
    assert json.loads(capsys.readouterr().out)["make test"] == {"seconds": 12.5}
    facts.main(["--source", str(source)])
    shown = capsys.readouterr().out.splitlines()
    assert "most parameters: parameters: 6" in shown and "make test: seconds: not measured" in shown
