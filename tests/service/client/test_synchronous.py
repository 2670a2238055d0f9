from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from itertools import islice

import pytest
import trustme

import tamis
from tamis.errors import LanguageError
from tamis.service.client.endpoints import Endpoint
from tamis.service.errors import ClosedError, SettingsError, UnauthenticatedError, UnreachableError
from tests.service.client.fake_broker import FakeBroker


class Threaded:
    """A broker in a loop and a thread of its own, for clients that block."""

    def __init__(self, **options) -> None:
        self.broker = FakeBroker()
        self._options = options
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)

    def run(self, call):
        return asyncio.run_coroutine_threadsafe(call, self._loop).result(60)

    def __enter__(self) -> Threaded:
        self._thread.start()
        self.run(self.broker.start(**self._options))
        return self

    def __exit__(self, *_: object) -> None:
        self.run(self.broker.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


def test_a_program_without_a_loop_publishes_and_receives():
    with Threaded() as served, tamis.Client(served.broker.url) as client:
        with client.subscribe("price < 20", name="ann") as subscription:
            assert client.publish({"price": 12}) == "k3f9-1"
            assert client.publish_many([{"price": 30}, {"price": 7}]) == ["k3f9-2", "k3f9-3"]
            events = list(islice(subscription, 2))
            assert [event.data["price"] for event in events] == [12, 7]
            for event in events:
                event.done()
        for _ in range(1_000):  # whoever closes a connection does not wait for the other end to read
            if served.broker.subscribers["ann"].done == {1, 3}:
                break
            time.sleep(0.01)
        assert served.broker.subscribers["ann"].done == {1, 3}
        assert [event.data["price"] for event in client.read("price > 10")] == [12, 30]
        assert client.match({"price": 5}) == [{"subscriber": "ann", "key": "default"}]
        with pytest.raises(LanguageError, match="column 8"):
            client.check("price <")


def test_a_restart_goes_unnoticed_by_a_program_without_a_loop():
    with Threaded() as served, tamis.Client(served.broker.url) as client:
        listening = client.listen("TRUE").ready()
        client.publish({"n": 0})
        served.run(served.broker.restart())
        client.publish({"n": 1})
        assert [event.data["n"] for event in islice(listening, 2)] == [0, 1]


def test_an_iterable_that_blocks_does_not_hold_up_the_loop():
    with Threaded() as served, tamis.Client(served.broker.url) as client:
        passed = threading.Event()

        def blocking():
            yield {"n": 0}
            assert passed.wait(60)
            yield {"n": 1}

        publishing = threading.Thread(target=client.publish_many, args=(blocking(),))
        publishing.start()
        client.publish({"n": 2})
        passed.set()
        publishing.join()
        assert sorted(event["n"] for event in served.broker.events) == [0, 1, 2]


def test_a_client_that_was_closed_says_so():
    with Threaded() as served:
        client = tamis.Client(served.broker.url)
        client.close()
        client.close()
        with pytest.raises(ClosedError):
            client.publish({"n": 1})


def test_nobody_there_is_an_error():
    with Threaded() as served:
        url = served.broker.url
    with tamis.Client(url) as client, pytest.raises(UnreachableError, match="tamis serve"):
        client.publish({"n": 1})


# -- Security


def test_a_broker_with_a_certificate_of_an_own_authority_is_trusted_if_that_is(tmp_path):
    import ssl

    authority = trustme.CA()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.configure_trust(context)
    context.verify_mode = ssl.CERT_REQUIRED
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    authority.issue_cert("ann@example.org").private_key_and_cert_chain_pem.write_to_path(tmp_path / "ann.pem")
    with Threaded(ssl_context=context) as served:
        url = f"wss://127.0.0.1:{served.broker.port}"
        with tamis.Client(url, ca=tmp_path / "ca.pem", certificate=tmp_path / "ann.pem") as client:
            assert client.publish({"n": 1}) == "k3f9-1"
        with tamis.Client(url) as client, pytest.raises(UnauthenticatedError, match="could not be verified"):
            client.publish({"n": 1})


@pytest.mark.parametrize(
    "url", ["ftp://host", "http://", "http://host:port", "http://ann:secret@host", "http://h/?a=1"]
)
def test_an_address_that_is_none_is_refused_and_no_password_is_repeated(url):
    with pytest.raises(SettingsError) as caught:
        Endpoint.read(url)
    assert "secret" not in str(caught.value)


def test_files_that_are_no_certificates_are_an_error(tmp_path):
    (tmp_path / "ca.pem").write_text("nothing")
    with pytest.raises(SettingsError, match=r"ca.pem"):
        tamis.Client("https://localhost", ca=tmp_path / "ca.pem")


# -- Acceptance 16


HEAVY = ("numba", "pyarrow", "pandas", "pyspark", "tamis.matching", "tamis.routing", "tamis.relations", "uvloop")


def in_a_new_process(code: str) -> str:
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ)
    return result.stdout.strip()


def test_acceptance_16_the_clients_load_neither_numba_nor_arrow():
    code = f"""
import sys, tamis.service.client
tamis.Client, tamis.AsyncClient
print([name for name in {HEAVY!r} if name in sys.modules])
"""
    assert in_a_new_process(code) == "[]"


def test_without_its_libraries_the_client_says_what_to_install():
    code = """
import sys
sys.modules["aiohttp"] = None
import tamis
try:
    tamis.Client
except tamis.errors.TamisError as error:
    print(type(error).__name__, error)
"""
    expected = "tamis.service.client needs aiohttp, which is not installed: pip install 'tamis[service]'"
    assert in_a_new_process(code) == f"ServiceMissingError {expected}"
