"""A network of brokers from one file: started, shown, joined, and ended."""

from __future__ import annotations

import json
import signal
import subprocess
import time
import xml.etree.ElementTree as ElementTree

import pytest
from typer.testing import CliRunner

from tamis.cli.app import app
from tamis.cli.inputs import InputError
from tamis.cli.network import picture, read_network
from tests.service.processes import environment, tamis

THREE = """
strategy = "covering"
[brokers.hub]
[brokers.east]
calls = ["hub"]
[brokers."west & co"]
calls = ["hub"]
"""


def written(folder, text):
    path = folder / "network.toml"
    path.write_text(text)
    return path


def test_what_stands_before_the_brokers_counts_for_all(tmp_path):
    brokers = read_network(written(tmp_path, THREE))
    assert [broker["strategy"] for broker in brokers.values()] == ["covering"] * 3


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "names no brokers"),
        ("[brokers.a]\ncalls = ['b']\n", "which is not there"),
        ("[brokers.a]\ncalls = ['a']\n", "closes a cycle"),
        ("[brokers.a]\ncalls = ['b']\n[brokers.b]\ncalls = ['c']\n[brokers.c]\ncalls = ['a']", "closes a cycle"),
        ("[brokers.a]\ncalls = 'b'\n", "not a list"),
        ("[brokers", "network.toml"),
    ],
)
def test_a_file_that_makes_no_tree_is_refused(tmp_path, text, reason):
    with pytest.raises(InputError, match=reason):
        read_network(written(tmp_path, text))


def test_the_picture_shows_every_broker_and_link(tmp_path):
    drawn = ElementTree.fromstring(picture(read_network(written(tmp_path, THREE)), {"hub": "http://127.0.0.1:1"}))
    texts = [each.text for each in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert {"hub", "east", "west & co", "http://127.0.0.1:1"} == set(texts)
    assert len(list(drawn.iter("{http://www.w3.org/2000/svg}line"))) == 2


def test_a_network_is_started_joined_shown_and_ended(tmp_path):
    file = written(tmp_path, '[brokers.north]\n[brokers.south]\ncalls = ["north"]\n')
    process = subprocess.Popen(
        tamis("network", "up", str(file), "--data", str(tmp_path / "net"), "--json"),
        stdout=subprocess.PIPE, text=True, env=environment(),
        # A shell lets what runs in the background ignore Ctrl-C, and whoever is started there inherits that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    try:
        written_lines = ""
        while line := process.stdout.readline():
            written_lines += line
            if line.startswith("}"):
                break
        facts = json.loads(written_lines)
        assert set(facts["brokers"]) == {"north", "south"}
        runner = CliRunner()
        ends = time.monotonic() + 60
        while True:
            shown = runner.invoke(app, ["links", "--at", facts["brokers"]["south"], "--json"])
            assert shown.exit_code == 0, shown.output
            links = json.loads(shown.output)["links"]
            if links and links[0]["state"] == "live":
                break
            assert time.monotonic() < ends, links
            time.sleep(0.05)
        assert links[0]["name"] == "north"
        table = runner.invoke(app, ["links", "--at", facts["brokers"]["south"]])
        assert "north" in table.output
        assert "live" in table.output
        watched = runner.invoke(app, ["top", "--at", facts["brokers"]["north"], "--rounds", "2", "--every", "0.1"])
        assert watched.exit_code == 0, watched.output
        assert "events taken" in watched.output
        assert "south" in watched.output
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.terminate()  # it ends its brokers
            raise
        finally:
            process.stdout.close()
    assert process.returncode == 0
    assert (tmp_path / "net" / "network.svg").exists()
