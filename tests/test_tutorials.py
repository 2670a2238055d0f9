"""Every tutorial is done as it says, command by command (`tests/walkthrough.py`)."""

from __future__ import annotations

import re
import runpy
import shutil
from typing import TYPE_CHECKING

import pytest
from tools.java import LEAST_VERSION, java_version

from tamis.simulation import Network
from tamis.topk import Ranked, TopK
from tests.ports import free_port
from tests.walkthrough import EXAMPLES, PATIENCE_S, ROOT, do, follow, steps, terminal

if TYPE_CHECKING:
    from pathlib import Path

TUTORIALS = ROOT / "docs" / "tutorials"
INCLUDED = re.compile(r'^``` \{ \.python title="(.+)" \}\n--8<-- "examples/(.+)"\n```$', re.MULTILINE)


def with_fewer(page: str) -> str:
    """Return the tutorial of the alerts with 1,000 searches; how many match then, nobody has to know."""
    assert "100000" in page
    page = page.replace("100000", "1000").replace("100,000 searches\n```", "1,000 searches\n```")
    page = page.replace("99,997", "997").replace("99997", "997").replace("99998", "998")
    return re.sub(r'"alerts": \d{4,}', '"alerts": …', page)


@pytest.mark.skipif(shutil.which("curl") is None, reason="the tutorial uses curl")
def test_the_tutorial_of_alerts_does_what_it_says(tmp_path):
    page = (TUTORIALS / "alerts.md").read_text("utf-8")
    do(with_fewer(page).replace("8080", str(free_port())), tmp_path)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("curl") is None, reason="the tutorial uses curl")
def test_the_tutorial_of_alerts_does_what_it_says_with_all_searches(tmp_path):
    page = (TUTORIALS / "alerts.md").read_text("utf-8")
    do(page.replace("8080", str(free_port())), tmp_path)


def test_the_tutorial_of_a_broker_does_what_it_says(tmp_path):
    port = str(free_port())
    page = (TUTORIALS / "broker.md").read_text("utf-8").replace("7410", port)
    (other_terminal,) = re.findall(r"^```text\n\S+ (.*)\n```", page, re.MULTILINE)
    shown_later = do(page, tmp_path, {"TAMIS_URL": f"http://127.0.0.1:{port}"})
    assert [line.partition(" ")[2] for line in shown_later] == [other_terminal]


@pytest.mark.skipif(shutil.which("curl") is None, reason="the tutorial uses curl")
def test_the_tutorial_of_a_webhook_does_what_it_says(tmp_path):
    port, hook = str(free_port()), str(free_port())
    page = (TUTORIALS / "webhook.md").read_text("utf-8").replace("7410", port).replace("7480", hook)
    (text,) = re.findall(r"^```toml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    (tmp_path / "tamis.toml").write_text(text)
    (other_terminal,) = re.findall(r"^```text\n(.*)\n```", page, re.MULTILINE)
    with terminal(tmp_path, {"TAMIS_URL": f"http://127.0.0.1:{port}"}) as (run, kept):
        follow(page, run)
        _, receiver = kept[1]
        assert receiver.get(timeout=PATIENCE_S) == other_terminal
        assert receiver.empty(), "nothing else is posted"


def test_the_example_of_a_network_tells_what_the_definition_tells(capsys, monkeypatch):
    """The same offers to one processor that ranks by the definition, at the times at which they were made."""
    processor, expected, publish = TopK("naive"), [], Network.publish
    processor.add("cheapest", Ranked.parse("TOP 2 BY rent ASC OVER 1 MINUTE WHERE kind = 'flat'"))

    def offer(network, client, key, event):
        expected.extend(processor.process(event, network.now, key))
        publish(network, client, key, event)

    monkeypatch.setattr(Network, "publish", offer)
    runpy.run_path(str(EXAMPLES / "ranked_network.py"), run_name="__main__")
    *told, crossed, _ = capsys.readouterr().out.splitlines()
    keys = [re.search(r"offer \d+", line)[0] for line in told]
    assert keys
    assert sorted(keys) == sorted({str(delivery.event) for delivery in expected})
    assert re.fullmatch(r"24 offers crossed links \d+ times,", crossed)


@pytest.mark.spark
def test_the_program_of_the_tutorial_of_spark_shows_what_the_page_shows(spark, tmp_path, monkeypatch, capsys):
    """In the session of the tests; the whole page, which starts a Java of its own, is a slow test."""
    assert spark is not None
    monkeypatch.setattr("sys.argv", ["spark_parquet.py", str(tmp_path / "shop")])
    runpy.run_path(str(EXAMPLES / "spark_parquet.py"))
    command, expected = steps((TUTORIALS / "spark.md").read_text("utf-8"))[0]
    assert command == "python spark_parquet.py shop"
    assert [line for line in capsys.readouterr().out.splitlines() if line.strip()] == expected


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.skipif((java_version() or 0) < LEAST_VERSION, reason="Spark needs Java")
def test_the_tutorial_of_spark_does_what_it_says(tmp_path):
    pytest.importorskip("pyspark")
    do((TUTORIALS / "spark.md").read_text("utf-8"), tmp_path, {"SPARK_LOCAL_IP": "127.0.0.1"})


def test_every_example_is_in_a_tutorial_that_is_run():
    included = {}
    for path in TUTORIALS.glob("*.md"):
        page = path.read_text("utf-8")
        commands = " ".join(command for command, _ in steps(page))
        for title, name in INCLUDED.findall(page):
            assert title == name and f"python {name}" in commands, f"{path.name} shows {name} and does not run it"
            included[name] = path.name
    by_itself = {"ranked_network.py"}  # test_the_example_of_a_network_tells_what_the_definition_tells
    assert set(included) | by_itself == {path.name for path in EXAMPLES.glob("*.py")}


def test_a_tutorial_that_shows_something_else_is_found(tmp_path):
    do('```console\n$ python -c "print(1, 2)"\n1 …\n```\n', tmp_path / _made(tmp_path, "right"))
    with pytest.raises(AssertionError, match="expected: 3"):
        do('```console\n$ python -c "print(1, 2)"\n3\n```\n', tmp_path / _made(tmp_path, "wrong"))
    with pytest.raises(AssertionError, match="import sys"):
        do('```console\n$ python -c "import sys; sys.exit(1)"\n```\n', tmp_path / _made(tmp_path, "failing"))


def _made(folder: Path, name: str) -> str:
    (folder / name).mkdir()
    return name
