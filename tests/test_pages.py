"""What pages outside of the tutorials show is done: with a broker of its own, in Node, and in the Spark of the tests."""

from __future__ import annotations

import configparser
import json
import re
import shlex
import shutil
import time
import tomllib
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import tamis
from tests.cli.conftest import tamis as run_tamis
from tests.ports import free_port
from tests.test_blocks import blocks
from tests.walkthrough import PATIENCE_S, ROOT, is_shown, steps, terminal

if TYPE_CHECKING:
    import queue

DOCS = ROOT / "docs"
ELSEWHERE = ("broker.example", "shop.example", "tamis token", "/backup/")
"""What commands name that do not run here: addresses that are not there, and tokens of roles that the page has not made.

`tests/cli/test_token.py`, `tests/service/test_webhooks.py` and `test_backup.py` do what these commands do.
"""


def contents(page: str, kind: str) -> list[str]:
    """Return the blocks of a kind on a page that are not run as doctests."""
    found = [content for other, content in blocks((DOCS / page).read_text("utf-8")) if other == kind]
    return [content for content in found if ">>>" not in content]


def answer(url: str) -> str:
    with urllib.request.urlopen(url, timeout=PATIENCE_S) as response:
        return response.read().decode()


def until(condition, patience_s: float = PATIENCE_S) -> None:
    end = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < end, "it did not come true"
        time.sleep(0.05)


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    """A broker that was started as the page says, and its address."""
    port = free_port()
    first, *others = contents("service.md", "console")
    ((command, shown),) = steps(f"```console\n{first}```\n")
    shown = [line.replace("7410", str(port)).replace("data in tamis-data", "data in …") for line in shown]
    shown = [line + "…" if line.startswith("  tamis ") else line for line in shown]  # for a port that is not the usual
    with terminal(tmp_path_factory.mktemp("service"), {"TAMIS_URL": f"http://127.0.0.1:{port}"}) as (run, _):
        run(f"{command} --port {port} &", shown)
        yield f"http://127.0.0.1:{port}"
    assert others


@pytest.mark.skipif(shutil.which("curl") is None, reason="the page uses curl")
def test_the_commands_of_the_service_do_what_the_page_says(broker, tmp_path):
    page = "".join(f"```console\n{content}```\n" for content in contents("service.md", "console")[1:])
    page = page.replace("localhost:7410", broker.removeprefix("http://"))
    (tmp_path / "events.jsonl").write_text('{"price": 1, "category": "Thriller"}\n{"price": 2}\n')
    (tmp_path / "log.jsonl").write_text('{"price": 3}\n')
    done = 0
    with terminal(tmp_path, {"TAMIS_URL": broker}) as (run, kept):
        position, passing, names = "", 0, []
        for command, shown in steps(page):
            if any(word in command for word in ELSEWHERE):
                continue
            command = command.replace("curl ", "curl -s ")  # without its progress
            runs_on = command.startswith(("curl -s -N", "tamis subscribe"))
            expected = "\n".join(shown)
            if runs_on:
                named = re.search(r"--as (\w+)", command)
                run(shlex_without_comment(command) + " &", [])
                if named is None:
                    passing += 1
                    until(lambda many=passing + len(names): f'state="live"}} {many}' in answer(f"{broker}/metrics"))
                    if expected:
                        listening, to_come = kept[-1], expected
                else:
                    names.append(named[1])
                    until(lambda name=named[1]: f'"{name}"' in answer(f"{broker}/subscribers"))
            else:
                command = command.replace("tail -f", "cat").replace("k3f9-812", position)
                lines = run(shlex_without_comment(command), shown)
                said = "\n".join(lines)
                if command.startswith("curl") and "position" in said:  # of an event behind ann's subscription
                    position = re.findall(r"[0-9a-f]{8}-\d+", said)[-1]
                if shown:
                    assert is_shown(flat(expected), flat(said)), f"$ {command}\n{said}\n\nexpected: {expected}"
                if command.startswith("tamis publish '") and to_come:
                    assert is_shown(flat(to_come), next_line(listening[1]))
                    to_come = ""
            done += 1
    assert done > 10


def next_line(arrived: queue.Queue[str | None]) -> str:
    """Return what comes next on a stream, but for the empty lines that keep it open."""
    while not (line := (arrived.get(timeout=PATIENCE_S) or "").strip()):
        pass
    return line


def flat(text: str) -> str:
    """Return it on one line, with anything where a position or an id stands."""
    text = re.sub(r"k3f9-\d+", "…", text)
    return "".join(line.strip() for line in text.splitlines())


def shlex_without_comment(command: str) -> str:
    """Return a command without the remark behind it, as a shell would have it.

    >>> shlex_without_comment("tamis dead ann      # what is given up?")
    'tamis dead ann'
    """
    return re.sub(r"\s{2,}# .*$", "", command)


def test_the_client_of_the_service_does_what_the_page_says(broker, capsys):
    (program,) = contents("service.md", "python")
    assert program.count("100_000") == program.count("event.done()") == 1
    program = program.replace("http://localhost:7410", broker).replace("100_000", "100")
    program = program.replace('name="ann"', 'name="python"').replace("event.done()", "event.done(); break")
    exec(compile(program, "service.md", "exec"), {})
    position, kind, price, is_again = capsys.readouterr().out.split()
    assert re.fullmatch(r"\w+-[\d.]+", position)
    assert kind in ("auction", "tamis.event", "order", "offer")  # what the broker has of the last hour
    assert is_again == "False"
    assert float(price) < 20


def test_the_module_for_javascript_does_what_the_page_says(broker):
    from tests.service.test_browser import node

    (program,) = contents("service.md", "js")
    file = Path(tamis.__file__).parent / "service" / "page" / "tamis.js"
    program = program.replace("http://localhost:7410/tamis.js", file.as_uri()).replace("http://localhost:7410", broker)
    program = program.replace(", { token }", "").replace('name: "ann"', 'name: "js"')
    program = program.replace("event.done(); //", "event.done(); process.exit(0); //")
    process = node(program)
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, err
    assert re.match(r"\w+-[\d.]+ \{ price: \d+ \}", out)


def test_the_settings_of_the_service_are_read(tmp_path):
    from tamis.cli.network import read_network
    from tamis.service.settings import read_settings

    issuers, sites, network, tracing = contents("service.md", "toml")
    centre, north = sites.split("\n\n")
    roles, every = contents("settings.md", "toml")
    for name, text in {
        "centre": centre,
        "north": north,
        "roles": roles,
        "every": every,
        "issuers": issuers,
        "tracing": tracing,
    }.items():
        file = tmp_path / f"{name}.toml"
        file.write_text(text)
        settings = read_settings(file)
        if name in ("centre", "north"):
            assert settings.name == name
            assert settings.link_secret == "a secret of the network"
        if name == "north":
            assert settings.links["centre"].may_send == "NOT confidential"
        if name == "issuers":
            assert settings.issuers["company"].role_names["staff"] == ("shop",)
        if name == "tracing":
            assert settings.tracing.endpoint.endswith("/v1/traces")
        if name == "roles":
            assert set(settings.roles) == set(tomllib.loads(text)["roles"])
    (tmp_path / "network.toml").write_text(network)
    assert set(read_network(tmp_path / "network.toml")) == {"centre", "north", "south"}


def test_the_unit_of_the_service_starts_it(tmp_path):
    (text,) = contents("service.md", "ini")
    unit = configparser.ConfigParser()
    unit.optionxform = str
    unit.read_string(text)
    program, command, *options = shlex.split(unit["Service"]["ExecStart"])
    assert (Path(program).name, command) == ("tamis", "serve")
    (tmp_path / "tamis.toml").write_text("")
    options = [str(tmp_path / "tamis.toml") if option == "/etc/tamis.toml" else option for option in options]
    assert run_tamis("serve", *options, "--check").exit_code == 0
    assert unit["Service"]["ExecReload"] == "/bin/kill -HUP $MAINPID"


def test_a_consumer_has_each_effect_once(broker):
    (program,) = [text for text in contents("service.md", "indented") if "unless_seen" in text]
    effects: dict[str, object] = {}

    def store(data, unless_seen):
        effects.setdefault(unless_seen, data["amount"])
        if len(effects) == 3:
            raise StopIteration

    with tamis.Client(broker) as client:
        since = client.publish_many({"amount": amount} for amount in (1, 2, 3))
        program = program.replace('name="ledger"', 'name="ledger", since="first"')
        with pytest.raises(StopIteration):
            exec(compile(program, "service.md", "exec"), {"client": client, "store": store})
    assert list(effects.values()) == [1, 2, 3]
    assert len(since) == 3


def test_the_probes_of_the_guide_to_containers_are_answered(broker):
    (text,) = contents("how-to/containers.md", "yaml")
    paths = re.findall(r"path: (\S+),", text)
    assert paths == ["/live", "/ready"]
    for path in paths:
        assert answer(broker + path)


def test_the_programs_of_the_language_run():
    first, *others = contents("language.md", "python")
    names: dict[str, object] = {}
    for program in (first, *others):
        exec(compile(program, "language.md", "exec"), names)
    assert str(names["lie"]).startswith("monotone of")


def test_a_file_of_functions_is_read_as_the_page_says(tmp_path):
    (program,) = contents("language.md", "")
    (tmp_path / "functions.py").write_text(program)
    names: dict[str, object] = {}
    exec(compile(program, "functions.py", "exec"), names)
    assert isinstance(names["functions"], tamis.Functions)
    condition = tamis.parse("score(price, category) > 30", functions=names["functions"])
    assert tamis.holds(condition, {"price": 20, "category": "Crime"})


EVENTS = [
    {"auction_id": number, "price": number * 5.0, "signed": number % 2 == 0, "bids": number} for number in range(8)
]
RULES = {"cheap": "price < 20", "signed": "signed AND bids <= 3"}


@pytest.mark.spark
def test_the_programs_of_spark_run(spark, tmp_path, monkeypatch, capsys):
    """One after the other, as a reader would; those that need NATS, Kafka or a broker are done by tests of these."""
    import tamis.spark

    monkeypatch.chdir(tmp_path)
    programs = [text for text in contents("spark.md", "python") if "nats://" not in text and "tamis://" not in text]
    (matched,) = (text for text in programs if "transform(tamis.spark.matching(" in text)
    (compiled,) = (text for text in programs if "ready.rejected" in text)
    (counting,) = (text for text in programs if "tamis.spark.tally(" in text)
    (following,) = (text for text in programs if "tamis.spark.follow(" in text)
    (ranked,) = (text for text in programs if "top_k(" in text)
    (register,) = (text for text in programs if "tamis.spark.register(" in text)
    (chosen,) = (text for text in programs if "tamis.spark.matches(" in text)
    (reducing,) = (text for text in programs if "tamis.spark.reduce(" in text)
    streams = [text for text in programs if "match_stream(" in text]
    assert len(programs) == 8 + len(streams), "a program that is not run"
    events = spark.createDataFrame(EVENTS, "auction_id bigint, price double, signed boolean, bids bigint")
    rules = spark.createDataFrame(list(RULES.items()), "subscription_id string, condition string")
    names = {
        "tamis": tamis,
        "spark": spark,
        "session": spark,
        "events": events,
        "subscriptions": rules,
        "monday": events,
    }
    exec(compile(matched, "spark.md", "exec"), names)
    expected = sorted(
        (event["auction_id"], id) for event in EVENTS for id, text in RULES.items() if tamis.holds(text, event)
    )
    assert sorted((row.auction_id, row.subscription_id) for row in names["pairs"].collect()) == expected
    exec(compile(compiled, "spark.md", "exec"), names)
    assert "subscription_id" in capsys.readouterr().out
    exec(compile(counting, "spark.md", "exec"), names)
    assert "matches" in capsys.readouterr().out
    assert names["some"].columns == ["auction_id", "subscription_id", "truth", "why"]

    names["events"] = events.selectExpr("auction_id AS number", "price", "'The Hobbit' AS title", "signed", "bids")
    names["events"].createOrReplaceTempView("events")
    rules.createOrReplaceTempView("rules_table")
    exec(compile(register, "spark.md", "exec"), names)
    (queries,) = contents("spark.md", "sql")
    found = [spark.sql(re.sub(r"\s+--.*$", "", query)).collect() for query in queries.splitlines()]
    cheap = sorted(number for number, id in expected if id == "cheap")  # the only rule that asks of what is shown
    assert sorted(row.number for row in found[0] if row.ids) == cheap
    assert sorted(row.number for row in found[1]) == cheap
    assert {row.number for row in found[2]} == {number for number, _ in expected}
    assert len(found[3]) == len(expected)
    names["rules"] = rules
    exec(compile(reducing, "spark.md", "exec"), names)
    assert names["rest"].count() == len(RULES)
    sold = "SELECT auction_id, price, signed, bids, TIMESTAMP '2026-11-17 12:00:00' AS sold FROM {events}"
    names["history"] = spark.sql(sold, events=events)
    exec(compile(following, "spark.md", "exec"), names)
    assert capsys.readouterr().out.splitlines()[-1] == f"{len(RULES)} 0 0 0"
    assert sorted((row.auction_id, row.subscription_id) for row in names["pairs"].collect()) == expected
    names["rules"] = tamis.spark.compiled(rules)
    for line in chosen.splitlines():
        exec(compile(f"shown = {line}", "spark.md", "exec"), names)
        assert names["shown"].count() == len(EVENTS)

    arriving = str(tmp_path / "arriving")
    events.write.parquet(arriving)
    (tmp_path / "changes").mkdir()
    (tmp_path / "changes" / "1.json").write_text(
        json.dumps({"operation": "add", "subscription_id": "cheap", "condition": "price < 20", "sequence": 1})
    )
    for number, program in enumerate(streams):
        names["events"] = spark.readStream.schema(events.schema).parquet(arriving)
        program = re.sub(r'"(matches|checkpoint)"', rf'"{tmp_path}/\g<1>{number}"', program)
        program = program.replace('"subscriptions"', f'"{tmp_path}/log"').replace('"changes"', f'"{tmp_path}/changes"')
        program = re.sub(
            r"^(log\.change|stream\.rejected|tamis\.spark\.read)",
            r"stream.await_all(); \1",
            program,
            flags=re.MULTILINE,
        )
        exec(compile(program, "spark.md", "exec"), names)
        names["stream"].stop()
    matches = tamis.spark.read_matches(spark, str(tmp_path / "matches0")).collect()
    assert sorted((row.auction_id, row.subscription_id) for row in matches) == expected

    best = [("best", "TOP 2 BY price ASC OVER 1 HOUR")]
    names["ranked"] = spark.createDataFrame(best, "subscription_id string, ranked string")
    timed = "SELECT auction_id, price, timestamp_seconds(1700000000 + auction_id) AS time FROM {events}"
    names["events"] = spark.sql(timed, events=events)
    first, _ = ranked.strip().splitlines()
    exec(compile(first, "spark.md", "exec"), names)
    told = sorted(names["deliveries"].collect(), key=lambda row: row.at)
    assert [row.auction_id for row in told][:2] == [0, 1]  # the others when these have left the window
    assert {row.auction_id for row in told} == {event["auction_id"] for event in EVENTS}


@pytest.mark.spark
def test_the_program_of_the_guide_to_changes_runs(spark, tmp_path, monkeypatch):
    assert spark is not None
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    (program,) = contents("how-to/changing-rules.md", "python")
    log = tamis.spark.SubscriptionLog("subscriptions")
    log.add({"signed": "signed"})
    exec(compile(program, "changing-rules.md", "exec"), names)
    assert log.at(log.version) == {"cheap": "price < 15"}


def test_the_commands_of_the_guide_to_clusters_name_what_is_there():
    submitted = next(text for text in contents("how-to/spark-cluster.md", "sh") if "__main__.py" in text)
    folder = re.search(r'python -c "?\'?(.+?)\'?"?\)', submitted)
    assert folder is not None
    import tamis.cli

    assert (Path(tamis.cli.__path__[0]) / "__main__.py").exists()
    words = shlex.split(submitted.replace("\\\n", " "))
    options = words[words.index("match") + 1 :]
    known = run_tamis("match", "--help").output
    assert all(option in known for option in options if option.startswith("--"))


def test_the_programs_of_the_guide_to_clusters_run():
    """What they set is what a session of ours sets; `tests/spark/test_cluster.py` and `test_connect.py` start them."""
    from tamis.spark.session import ARROW_BATCHES

    configured, connected = contents("how-to/spark-cluster.md", "python")
    given = dict(re.findall(r'config\("(.+?)", (.+?)\)', configured))
    assert {name: str(value) for name, value in ARROW_BATCHES.items()}.items() <= given.items()
    assert given["spark.python.daemon.module"] == '"tamis.spark.daemon"'
    compile(connected, "spark-cluster.md", "exec")


@pytest.mark.spark
def test_the_order_of_prunings_is_the_one_of_the_page(spark):
    from tamis.pruning import Goal

    (program,) = contents("pruning.md", "indented")
    rules = spark.createDataFrame([("a", "price < 20 AND bids > 3")], "subscription_id string, condition string")
    names = {"subscriptions": rules, "share": lambda leaf: 0.5, "Goal": Goal}
    for line in program.splitlines():
        exec(compile(re.sub(r"^(pru\w+\()", r"shown = \1", line), "pruning.md", "exec"), names)
    assert names["shown"].collect()
