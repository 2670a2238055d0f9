"""What all tests share: how thorough hypothesis is, and one small Spark session."""

from __future__ import annotations

import gc
import os
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from tools.java import LEAST_VERSION, java_version

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

if os.environ.get("NUMBA_DISABLE_JIT") == "1":
    # Kernels count on unsigned numbers that wrap around; as plain Python numpy would warn of each.
    np.seterr(over="ignore")

# What is laid out when is tested, too; so nothing is answered without kernels because they are compiled at that moment.
os.environ.setdefault("TAMIS_COLD_START", "wait")

QUICK_SHARE = 4
"""The quick suite draws one of so many examples that a test asks for, and `make test-all` all of them."""
FEWEST_EXAMPLES = 5
FOR_COMPARISON = ("atree-published", "counting-sliced", "cluster-several")
"""Algorithms that nobody matches with but who compares: what is asked of every algorithm is asked of them by `make test-all`,
and the quick suite has tests of their own."""

# The quick suite draws the same examples each time, so that it says the same of the same code; the others explore.
settings.register_profile(
    "quick",
    max_examples=200 // QUICK_SHARE,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
settings.register_profile("exploring", settings.get_profile("quick"), derandomize=False, max_examples=200)
settings.register_profile("thorough", settings.get_profile("exploring"), max_examples=10_000)
settings.load_profile(os.environ.get("TAMIS_HYPOTHESIS", "quick"))


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist looks at the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep all tests that need Spark in one worker, so that one Java machine serves them all; draw fewer examples."""
    is_quick = os.environ.get("TAMIS_HYPOTHESIS", "quick") == "quick"
    for item in items:
        if item.get_closest_marker("spark"):
            item.add_marker(pytest.mark.xdist_group("spark"))
        if getattr(item, "callspec", None) and item.callspec.params.get("algorithm") in FOR_COMPARISON:
            item.add_marker(pytest.mark.slow)
        if is_quick and not item.get_closest_marker("slow"):
            draw_fewer(item)


def draw_fewer(item: pytest.Item) -> None:
    """Let a test that says how many examples it wants draw a share of them."""
    test = getattr(item, "obj", None)
    asked = getattr(test, "_hypothesis_internal_use_settings", None)  # where hypothesis's own plugin finds them
    if asked is None or asked.max_examples <= FEWEST_EXAMPLES or asked.max_examples == settings.default.max_examples:
        return
    if not hasattr(test, "asked_examples"):  # tests of several parameters share one function
        test.__dict__["asked_examples"] = asked.max_examples
        fewer = max(FEWEST_EXAMPLES, asked.max_examples // QUICK_SHARE)
        test.__dict__["_hypothesis_internal_use_settings"] = settings(asked, max_examples=fewer)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Put what was collected out of the garbage collector's sight, and say so if groups are lost.

    Thousands of tests are some hundred thousand objects that stay. A quarter of a second went into looking at them
    each time that somebody who measures collects garbage first, as the lab does, and more while tests ran.

    Groups are lost in a pytest that pytest-xdist does not know yet: each worker would do all of them.
    """
    gc.collect()
    gc.freeze()
    # Brokers and benchmarks freeze and unfreeze too. Within the tests that does nothing: it would bring all of this
    # back, and each of a thousand brokers that are started would walk through it.
    gc.freeze = gc.unfreeze = lambda: None
    if hasattr(session.config, "workerinput") and session.config.getvalue("loadgroup"):
        grouped = [item.nodeid for item in session.items if item.get_closest_marker("xdist_group")]
        lost = [nodeid for nodeid in grouped if "@" not in nodeid]
        assert not lost, f"pytest-xdist does not group tests with this pytest: {lost[:3]}"


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One small local Spark: UTC, no web page, and a Java machine tuned to start rather than to last."""
    if (java_version() or 0) < LEAST_VERSION:
        pytest.skip(f"Spark needs Java {LEAST_VERSION} or newer; `make setup` says how to get it")
    pytest.importorskip("pyspark")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    from pyspark.sql import SparkSession

    from tamis.spark.session import ARROW_BATCHES, java_options

    session = (
        SparkSession.builder.master("local[2]")
        .appName("tamis tests")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.driver.memory", "3g")
        .config("spark.python.daemon.module", "tamis.spark.daemon")
        .config(map={**ARROW_BATCHES})
        .config("spark.driver.extraJavaOptions", java_options(quick=True))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture
def rocks(spark: SparkSession) -> Iterator[SparkSession]:
    """The session, keeping the state of streams in RocksDB for as long as the test runs.

    So does the active one, if that is another: an earlier test may have made it, and commands take it.
    """
    from pyspark.sql import SparkSession

    from tamis.spark.session import ROCKS_DB, STATE_STORE

    sessions = [spark, SparkSession.getActiveSession() or spark]
    before = [session.conf.get(STATE_STORE) for session in sessions]
    for session in sessions:
        session.conf.set(STATE_STORE, ROCKS_DB)
    yield spark
    for session, provider in zip(sessions, before, strict=True):
        session.conf.set(STATE_STORE, provider)


@pytest.fixture(autouse=True, scope="package")
def small_batches_are_blocks() -> Iterator[None]:
    """Let batches of some dozens of events go through blocks, which take hundreds in the product."""
    from tamis.matching.block import algorithm

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(algorithm, "are_few", lambda parts, events: events.count <= 32)
        yield
