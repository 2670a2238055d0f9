"""An object store that speaks S3, on this machine: moto's server, and Hadoop's connector from its published jars."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from urllib.error import URLError
from urllib.parse import quote
from urllib.request import Request, urlopen
from xml.etree import ElementTree

import pyspark
import pytest

from tests.ports import free_port
from tests.spark.maven import fetched, require_maven

_NAMES = "{http://s3.amazonaws.com/doc/2006-03-01/}"

_SIGNED = "AWS4-HMAC-SHA256 Credential=x/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=x"
"""The server looks whether there is a signature, and at no more of it."""


def jars(folder):
    """Return the jars of Hadoop's connector to S3, of the Hadoop that is Spark's own; skip the test if there are none."""
    require_maven("Hadoop's jars for S3")
    own = next((Path(pyspark.__file__).parent / "jars").glob("hadoop-client-api-*.jar"))
    version = re.search(r"-(\d[\w.-]*)\.jar", own.name)[1]
    found = fetched(folder, (f"org.apache.hadoop:hadoop-aws:{version}",), alone=False)
    if found is None:
        pytest.skip(f"Maven cannot get org.apache.hadoop:hadoop-aws:{version} here")
    return found


class Store:
    """A bucket of a server of its own."""

    def __init__(self, folder, bucket="auctions"):
        pytest.importorskip("moto")
        pytest.importorskip("flask")
        port = free_port()
        self.bucket, self._url = bucket, f"http://127.0.0.1:{port}"
        command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
        with open(folder / "moto.log", "wb") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        for _ in range(600):
            with suppress(URLError, ConnectionError):
                self._ask("PUT", "")
                return
            assert self._process.poll() is None, (folder / "moto.log").read_text()[-2000:]
            time.sleep(0.1)
        raise AssertionError("moto does not start")

    @property
    def place(self):
        """The bucket, as Spark is told."""
        return f"s3a://{self.bucket}"

    def settings(self, jars):
        """What a Spark must be told to reach it."""
        reached = {
            "endpoint": self._url, "endpoint.region": "us-east-1", "path.style.access": "true", "access.key": "x", "secret.key": "x",
        }  # fmt: skip
        found = {f"spark.hadoop.fs.s3a.{name}": value for name, value in reached.items()}
        return found | {"spark.driver.extraClassPath": os.pathsep.join(map(str, jars))}

    def names(self, prefix=""):
        """The names of the objects that begin with something, in order."""
        found, more = [], ""
        while True:
            asked = f"?list-type=2&prefix={quote(prefix, safe='')}{more}"
            tree = ElementTree.fromstring(self._ask("GET", asked))
            found += [each.text for each in tree.iter(f"{_NAMES}Key")]
            token = tree.find(f"{_NAMES}NextContinuationToken")
            if token is None:
                return found
            more = f"&continuation-token={quote(token.text, safe='')}"

    def get(self, key):
        return self._ask("GET", f"/{quote(key)}")

    def put(self, key, content):
        self._ask("PUT", f"/{quote(key)}", content)

    def copied(self, folder):
        """Copy all that is there into a folder."""
        for key in self.names():
            if not key.endswith("/"):
                path = folder / key
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(self.get(key))
        return folder

    def stop(self):
        self._process.terminate()
        self._process.wait()

    def _ask(self, method, what, content=None):
        # A body without a type is taken for a form, and a request that nobody signed for a stranger's.
        headers = {"Content-Type": "application/octet-stream", "Authorization": _SIGNED}
        request = Request(f"{self._url}/{self.bucket}{what}", content, headers, method=method)
        with urlopen(request, timeout=60) as answer:
            return answer.read()
