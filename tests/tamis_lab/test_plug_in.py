"""The literature is a plug-in: found by name where it is installed, missed politely where it is not, and never in the way."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from importlib.machinery import PathFinder

import pytest

from tamis import Matcher, literature
from tamis.errors import LabMissingError
from tamis.matching import UnknownAlgorithmError
from tamis.matching.algorithms import ALGORITHMS, OWN, PUBLISHED
from tamis_lab.matching import algorithms as published
from tests.cli.conftest import tamis

FRESH = """
import json, sys
{work}
print(json.dumps(sorted(each for each in sys.modules if each.split(".")[0] == "tamis_lab")))
"""


def lab_modules_after(work: str) -> list[str]:
    """Return which modules of the lab a fresh process has loaded after some work."""
    done = subprocess.run(
        [sys.executable, "-c", FRESH.format(work=work)], capture_output=True, text=True, timeout=300, check=True
    )
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture
def hidden(monkeypatch):
    """Hide the lab, as if it were not installed: no finder knows it, and nothing of it has been imported."""
    for name in [name for name in sys.modules if name.split(".")[0] == "tamis_lab"]:
        monkeypatch.delitem(sys.modules, name)

    class Hiding:
        @staticmethod
        def find_spec(name, path=None, target=None):
            return None if name.split(".")[0] == "tamis_lab" else PathFinder.find_spec(name, path, target)

    monkeypatch.setattr(sys, "meta_path", [each for each in sys.meta_path if each is not PathFinder] + [Hiding])
    assert not literature.is_installed()


@pytest.mark.parametrize(
    "work",
    [
        "import tamis",
        "import tamis.matching",
        "import tamis.matching, tamis.topk, tamis.relations, tamis.pruning, tamis.routing, tamis.cli.app",
        "import tamis\nm = tamis.Matcher()\nm.add('a', 'x < 1')\nassert m.match({'x': 0}) == ['a']",
    ],
)
def test_who_does_not_ask_for_the_literature_loads_none_of_it(work):
    assert lab_modules_after(work) == []


def test_an_algorithm_of_the_literature_is_imported_when_it_is_asked_for():
    loaded = lab_modules_after("import tamis\nm = tamis.Matcher('counting')")
    assert "tamis_lab.matching.counting" in loaded
    assert not [name for name in loaded if name.startswith("tamis_lab.experiments")]


def test_the_names_known_to_the_product_are_those_of_the_plug_in():
    assert tuple(published.ALGORITHMS) == PUBLISHED
    assert set(ALGORITHMS) == {*OWN, *PUBLISHED} and len(ALGORITHMS) == len(OWN) + len(PUBLISHED)
    assert all(ALGORITHMS[name] is published.ALGORITHMS[name] for name in PUBLISHED)


@pytest.mark.parametrize("name", PUBLISHED)
def test_without_the_plug_in_its_algorithms_say_what_to_install(hidden, name):
    with pytest.raises(LabMissingError, match=r"'tamis\[lab\]'") as caught:
        Matcher(name)
    assert repr(name) in str(caught.value)
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)


def test_without_the_plug_in_everything_else_works(hidden):
    for name in OWN:
        matcher = Matcher(name)
        matcher.add("cheap", "price < 20")
        assert matcher.match({"price": 5}) == ["cheap"]
    assert set(ALGORITHMS) == set(OWN) and "atree" not in ALGORITHMS
    with pytest.raises(UnknownAlgorithmError, match=r"only block, naive$"):
        Matcher("nothing")


def test_an_unknown_name_is_told_with_all_that_are_there():
    with pytest.raises(UnknownAlgorithmError, match=r"no algorithm 'nothing', only block, naive, boolean, .*atree"):
        Matcher("nothing")


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_saved_matcher_finds_its_algorithm_in_another_process(tmp_path, name):
    matcher = Matcher(name)
    matcher.add_many({"cheap": "price < 20", "dear": "price > 90"})
    matcher.save(tmp_path / "rules.tamis")
    work = f"""
import tamis
matcher = tamis.Matcher.load({str(tmp_path / "rules.tamis")!r})
assert matcher.algorithm == {name!r} and matcher.match({{"price": 5}}) == ["cheap"]
"""
    assert f"tamis_lab.matching.{name.partition('-')[0]}" in "".join(lab_modules_after(work))


def test_a_saved_matcher_whose_algorithm_is_not_installed_says_what_to_install(tmp_path, hidden, monkeypatch):
    with monkeypatch.context() as shown:
        shown.setattr(sys, "meta_path", [*sys.meta_path, PathFinder])
        matcher = Matcher("atree")
        matcher.add("cheap", "price < 20")
        matcher.save(tmp_path / "rules.tamis")
        for name in [name for name in sys.modules if name.split(".")[0] == "tamis_lab"]:
            del sys.modules[name]
    with pytest.raises(LabMissingError, match="'atree' is part of tamis_lab"):
        Matcher.load(tmp_path / "rules.tamis")


def test_the_command_says_what_to_install(hidden, tmp_path):
    for arguments in (("lab",), ("lab", "filtering", "--quick", "--out", str(tmp_path))):
        result = tamis(*arguments)
        assert result.exit_code == 2
        assert "pip install 'tamis[lab]'" in " ".join(result.stderr.split())


@pytest.mark.spark
def test_a_worker_of_spark_matches_with_an_algorithm_of_the_literature(spark, tmp_path):
    matcher = Matcher("counting")
    matcher.add_many({"cheap": "price < 20", "dear": "price > 90"})
    matcher.save(tmp_path / "rules.tamis")
    path = str(tmp_path / "rules.tamis")

    def matched(batches):
        import pyarrow as pa

        from tamis import Matcher

        loaded = Matcher.load(path)
        assert loaded.algorithm == "counting"
        for batch in batches:
            found = [loaded.match({"price": price}) for price in batch.column("price").to_pylist()]
            yield pa.RecordBatch.from_pydict(
                {"number": batch.column("number"), "found": [",".join(ids) for ids in found]}
            )

    events = spark.createDataFrame([(1, 12.0), (2, 50.0), (3, 99.0)], "number bigint, price double")
    rows = events.mapInArrow(matched, "number bigint, found string").collect()
    assert sorted((row.number, row.found) for row in rows) == [(1, "cheap"), (2, ""), (3, "dear")]
