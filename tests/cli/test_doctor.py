from __future__ import annotations

import asyncio
import json
import socket
import sys

from tamis import compilation
from tamis.cli import doctor
from tamis.service.settings import Listener
from tests.cli.conftest import tamis
from tests.service.http.brokers import eventually, running


def findings():
    result = tamis("doctor", "--json")
    document = json.loads(result.stdout)
    return result.exit_code, document, {finding["name"]: finding for finding in document["findings"]}


def test_a_machine_that_has_everything_is_well():
    code, document, found = findings()
    assert (code, document["well"]) == (0, True)
    assert sys.executable in found["Python"]["found"]
    assert found["matching"]["found"].startswith("works")
    assert {"numpy", "numba", "pyarrow", "pyspark", "kernel cache"} <= found.keys()
    shown = tamis("doctor").stdout
    assert "✓" in shown and "Everything that is essential works." in shown


def test_without_java_it_is_well_and_says_how_to_get_one(monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    code, _, found = findings()
    assert code == 0
    assert not found["Java"]["is_well"]
    assert "JAVA_HOME" in found["Java"]["found"]
    assert found["Java"]["advice"]


def test_a_matcher_that_answers_wrongly_is_an_illness(monkeypatch):
    monkeypatch.setattr("tamis.matching.Matcher.match", lambda *_: ["another"])
    result = tamis("doctor")
    assert result.exit_code == 1
    assert "a wrong answer" in result.stdout
    assert "Something essential does not work" in result.stdout


def test_a_matcher_that_cannot_be_started_is_told_not_raised(monkeypatch):
    def broken(*_):
        raise RuntimeError("cannot cache function: no locator available")

    monkeypatch.setattr("tamis.matching.Matcher.add", broken)
    code, _, found = findings()
    assert code == 1
    assert "no locator available" in found["matching"]["found"]


def test_a_missing_library_is_named_with_what_installs_it(monkeypatch):
    monkeypatch.setattr(doctor, "ESSENTIAL", ("numpy", "no-such-library"))
    code, _, found = findings()
    assert code == 1
    assert found["no-such-library"]["advice"] == "pip install tamis"


def test_a_cache_that_cannot_be_written_to_is_told(monkeypatch):
    monkeypatch.setattr(compilation, "kernel_cache", lambda: None)
    code, _, found = findings()
    assert code == 0, "it works, only slowly"
    assert "NUMBA_CACHE_DIR" in found["kernel cache"]["advice"]


def test_it_looks_for_the_libraries_of_the_service(monkeypatch):
    _, _, found = findings()
    assert {"aiohttp", "msgspec", "uvloop"} <= found.keys()
    assert all(found[name]["is_well"] for name in ("aiohttp", "msgspec"))
    monkeypatch.setattr(doctor, "SERVICE", ("aiohttp", "no-such-library"))
    code, _, found = findings()
    assert code == 0, "only brokers and clients need it"
    assert "tamis[service]" in found["no-such-library"]["advice"]


def test_it_looks_whether_the_port_of_a_broker_is_free(monkeypatch):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        port = other.getsockname()[1]
        monkeypatch.setattr(doctor, "DEFAULT_PORT", port)
        other.listen()
        code, _, found = findings()
        assert code == 0
        finding = found[f"port {port}"]
        assert (finding["found"], finding["is_well"]) == ("another program listens there", False)
        assert f"--port {port + 1}" in finding["advice"]
    assert findings()[2][f"port {port}"]["found"] == "free"


@eventually
async def test_a_broker_that_listens_on_the_port_is_well(tmp_path):
    async with running(tmp_path) as broker:
        port = int(broker.url.rpartition(":")[2])
        finding = await asyncio.to_thread(doctor._port, port)
        assert (finding.found, finding.is_well) == ("a broker listens there", True)


def test_the_port_is_the_one_that_a_broker_takes():
    assert Listener().port == doctor.DEFAULT_PORT
