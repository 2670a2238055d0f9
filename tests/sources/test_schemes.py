"""One record per scheme: a scheme that the product does not have is added to the table, and everything knows it."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import json
from pathlib import Path

import pytest

import tamis
from tamis.sources import errors
from tamis.sources.places import require_place, sink_at, source_at, takes_messages
from tamis.sources.schemes import Deferred, Refusal, Sink, Source, scheme_at, table
from tests.cli.conftest import tamis as command
from tests.sources.shelf import SHELF, rows

SOURCE = Path(tamis.__file__).parent


@pytest.fixture
def shelf(monkeypatch, tmp_path):
    """A shelf with events, whose kind the table knows."""
    monkeypatch.setattr(table, "SCHEMES", (*table.SCHEMES, SHELF))
    (tmp_path / "events").mkdir()
    events = [{"number": number, "price": number % 7} for number in range(20)]
    (tmp_path / "events" / "a").write_text("\n".join(map(json.dumps, events)))
    (tmp_path / "rules.csv").write_text("subscription_id,condition\n1,price < 3\n")
    return tmp_path


CHEAP = [number for number in range(20) if number % 7 < 3]


def test_a_scheme_that_the_table_has_is_read_and_written_by_a_run(shelf):
    ran = command(
        "run", "--events", f"shelf://{shelf}/events", "--subscriptions", str(shelf / "rules.csv"),
        "--out", f"shelf://{shelf}/out", "--rejected", str(shelf / "bad.jsonl"), "--out-option", "suffix=.mine",
    )  # fmt: skip
    assert ran.exit_code == 0, ran.stderr
    assert [row["number"] for row in rows(f"shelf://{shelf}/out")] == CHEAP
    assert {path.suffix for path in (shelf / "out").iterdir()} == {".mine"}


def test_a_scheme_that_the_table_has_is_a_table_of_events_for_one_process(shelf):
    out = shelf / "out.jsonl"
    ran = command(
        "match", "--events", f"shelf://{shelf}/events", "--subscriptions", str(shelf / "rules.csv"),
        "--out", str(out), "--events-option", "first=1", "--json",
    )  # fmt: skip
    assert ran.exit_code == 0, ran.stderr
    assert json.loads(ran.stdout)["engine"] == "local"
    written = [json.loads(line) for file in sorted(out.glob("*.json")) for line in file.read_text().splitlines()]
    assert [row["number"] for row in written] == CHEAP[1:]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--events", "shelf:///nowhere"), "no shelf is at shelf:///nowhere"),
        (("--events", "shelf://{}/events", "--events-option", "frist=2"), "Did you mean first?"),
        (("--events", "shelf://{}/events", "--out", "shelf://{}/out", "--out-option", "sufix=a"), "Did you mean suffix?"),
        (("--events", "shelf://{}/events", "--durable", "me"), "--durable is for events of NATS"),
    ],
)  # fmt: skip
def test_a_scheme_says_what_is_wrong_with_an_address_before_anything_is_done(shelf, arguments, told):
    given = [argument.format(shelf) for argument in arguments]
    ran = command("run", "--subscriptions", str(shelf / "rules.csv"), *given)
    assert ran.exit_code == 2
    assert told in " ".join(ran.stderr.split())
    assert not (shelf / "out").exists()


@pytest.mark.spark
def test_a_scheme_that_the_table_has_is_read_and_written_on_spark(shelf, spark):
    from tamis.cli.addresses import events_of
    from tamis.spark.sources.delivering import UrlSink, delivered
    from tamis.spark.sources.delivering import sink_at as sink_of_stream
    from tamis.spark.sources.failures import plainly

    events = events_of(spark, f"shelf://{shelf}/events", {}, None, None, streaming=False)
    assert delivered(events.where("price < 3"), f"shelf://{shelf}/out") == {"rows": len(CHEAP)}
    assert sorted(row["number"] for row in rows(f"shelf://{shelf}/out")) == CHEAP
    from tamis.spark.folders import folder_at

    assert isinstance(sink_of_stream(f"shelf://{shelf}/out", folder_at(str(shelf)), {}), UrlSink)
    with (
        plainly(),
        pytest.raises(errors.ConnectorError, match=r"^shelf:///full is full: nothing more fits$"),
        plainly(),
    ):
        delivered(spark.createDataFrame([(-1,)], "number int"), "shelf:///full")


def test_what_no_record_has_is_files_and_paths_of_pathlib_hold_no_address():
    for place in ("a.csv", "file:/a.csv", "s3a://bucket/a.csv", "abfss://container/a.csv", Path("nats://a/b")):
        assert scheme_at(place) is table.FILES, place
        assert not takes_messages(place)
    with pytest.raises(errors.OptionError, match="not fetched from web servers"):
        source_at("https://example.org/events")
    with pytest.raises(errors.OptionError, match=r"cannot go to mqtt://host/a: a folder, nats://... or https://..."):
        sink_at("mqtt://anna:secret@host/a?token=1")
    with pytest.raises(errors.OptionError, match="has no option 'mode'"):
        require_place("matches", {"mode": "append"})


def test_no_two_records_share_a_prefix_or_a_name():
    prefixes = [prefix for scheme in table.SCHEMES for prefix in scheme.prefixes]
    assert len(set(prefixes)) == len(prefixes)
    assert prefixes == [prefix.lower() for prefix in prefixes]
    names = [scheme.name for scheme in table.SCHEMES]
    assert len(set(names)) == len(names)


def test_everything_that_a_record_names_is_there_and_takes_what_the_record_says():
    pytest.importorskip("tamis.spark")
    taken = {
        "look": ("url", "options", "streaming"),
        "table": ("url", "options", "schema", "keep"),
        "arriving": ("url", "options", "bad"),
        "durable": ("url", "options", "bad", "name", "ack_wait_s"),
        "on_spark": ("session", "url", "schema", "keep", "streaming", "remembered", "options"),
        "settings": (),
        "require": ("url", "options"),
        "ask": ("url", "options"),
        "writing": ("url", "options", "columns"),
    }
    for scheme in table.SCHEMES:
        for part in (scheme.source, scheme.sink):
            for field in dataclasses.fields(part) if not isinstance(part, Refusal) else ():
                deferred = getattr(part, field.name)
                if isinstance(deferred, Deferred):
                    parameters = inspect.signature(deferred.resolved()).parameters
                    by_name = [name for name in taken[field.name] if name in parameters and parameters[name].kind is inspect.Parameter.KEYWORD_ONLY]  # fmt: skip
                    by_place = [name for name in taken[field.name] if name not in by_name]
                    # raises if it cannot be called so
                    inspect.signature(deferred.resolved()).bind(*by_place, **dict.fromkeys(by_name))
        for kind in scheme.formats:
            assert kind.resolved().__doc__


def test_a_record_says_of_all_that_can_be_done_how_it_is_done():
    for scheme in table.SCHEMES:
        assert isinstance(scheme.source, Source | Refusal) and isinstance(scheme.sink, Sink | Refusal)
        if isinstance(scheme.source, Source) and scheme.is_server:
            assert scheme.source.look is not None, f"{scheme.name}: a wrong address is told before Spark starts"
        if isinstance(scheme.sink, Sink):
            assert scheme.sink.are_files == (not scheme.is_server)


def test_what_has_to_be_installed_is_said_by_the_record(monkeypatch):
    from tamis.sources.jetstream import JetStreamClient
    from tamis.sources.nats_address import nats_address

    monkeypatch.setattr("tamis.sources.schemes.row.find_spec", lambda name: None)
    with pytest.raises(errors.NatsError, match=r"^the client of NATS is not installed; .*pip install 'tamis\[nats\]'"):
        JetStreamClient(nats_address("nats://localhost/EVENTS"))


@pytest.mark.parametrize(
    "error",
    [
        errors.OptionError("max_messages: 3, not 4"),
        errors.NatsError("no NATS server answers"),
        errors.LostMessagesError("gone: 1 to 3"),
        errors.WebhookError("https://host/a:b", 503, "busy: come back: later"),
        errors.WebhookError("https://host/a", None, "answered 500: nothing"),
    ],
    ids=lambda error: type(error).__name__,
)  # fmt: skip
def test_an_error_is_read_back_from_its_text(error):
    again = type(error).recovered(str(error))
    assert type(again) is type(error) and again.args == error.args and vars(again) == vars(error)


EXCEPTIONS = {"nats_address.py": ["nats", "tls"], "kafka.py": ["kafka"]}
"""Which servers of NATS have a port of their own, and which lines of an error are Kafka's: no questions about addresses."""
SERVERS = {prefix for scheme in table.SCHEMES if scheme.is_server for prefix in scheme.prefixes}


def test_nobody_but_the_table_compares_the_beginnings_of_addresses():
    for path in (path for package in ("sources", "spark", "cli") for path in sorted((SOURCE / package).rglob("*.py"))):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            asked = []
            if isinstance(node, ast.Compare):
                asked = [node.left, *node.comparators]
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "startswith":
                asked = node.args
            words = [each.value for part in asked for each in ast.walk(part) if isinstance(each, ast.Constant)]
            named = [word for word in words if isinstance(word, str) and word.partition(":")[0].lower() in SERVERS]
            is_exception = EXCEPTIONS.get(path.name) == named
            assert not named or is_exception, f"{path}:{node.lineno} compares an address with {named}; ask scheme_at"
