"""Functions of the host outside of matchers: standing subscriptions, brokers, simulated networks, commands."""

from __future__ import annotations

import json
import logging
import math
import sys
from collections import Counter
from random import Random

import pytest
from typer.testing import CliRunner

import tamis
from tamis.cli.app import app
from tamis.errors import FunctionError, UnknownFunctionError
from tamis.language.functions import imported_functions
from tamis.routing import (
    STRATEGIES,
    Broker,
    Entry,
    Hello,
    MessageError,
    OtherFunctionsError,
    Publish,
    Reject,
    Subscribe,
    decode,
    encode,
)
from tamis.simulation.network import Network
from tamis.simulation.occurrences import EventDelivered
from tamis.standing.errors import SavedStateError
from tamis.standing.naive import NaiveStanding
from tests.hosted import rules

ADDRESS = "tests.hosted.rules:functions"
run = CliRunner().invoke


def parse(text, functions=rules.functions):
    return tamis.parse(text, functions=functions)


STANDING = {
    "steps": "SEQUENCE is_even(a) AS x THEN score(a, category) > 3 AND a > x.a WITHIN 5 SECONDS PER user",
    "absent": "SEQUENCE is_even(a) THEN NOT (fragile(a) > 3) WITHIN 3 SECONDS",
    "turns": "CHANGE OF score(a, category) > 3 UNTIL fragile(a) < 4 PER user WHERE NOT is_even(user)",
    "plain": "fragile(a) >= 0 OR is_even(a)",
}


class TestStanding:
    @staticmethod
    def events(seed, count=40):
        chance = Random(seed)
        kinds = [None, 0, 1, 2, 3, 4, 5.5, math.nan, "x", True]
        return [
            {"a": chance.choice(kinds), "category": chance.choice(["Crime", None]), "user": chance.choice([1, 2, None])}
            for _ in range(count)
        ]

    @pytest.mark.parametrize("seed", range(4))
    def test_steps_and_conditions_that_call_functions_are_told_what_the_definition_tells(self, seed):
        processor, definition = tamis.Standing(functions=rules.functions), NaiveStanding()
        processor.add_many(STANDING)
        with rules.functions.in_use():
            for key, text in STANDING.items():
                definition.add(key, text)
        told, wanted = [], []
        for now, event in enumerate(self.events(seed)):
            told += processor.process(event, now=float(now), id=now)
            wanted += definition.process(event, float(now), id=now)
        assert told == wanted
        assert {each.subscription for each in told} == set(STANDING)

    def test_a_saved_state_has_names_and_versions_and_goes_on_with_the_same_ones_only(self, tmp_path):
        path = tmp_path / "standing.json"
        processor = tamis.Standing(functions=rules.functions)
        processor.add("steps", "SEQUENCE is_even(a) THEN score(a, 'Crime') > 3 WITHIN 1 HOUR")
        processor.process({"a": 2}, now=0.0, id="e1")
        processor.save(path)
        assert json.loads(path.read_text())["standing"]["functions"] == rules.functions.versions
        again = tamis.Standing.load(path, functions=rules.functions)
        assert [each.events for each in again.process({"a": 3}, now=1.0, id="e2")] == [("e1", "e2")]
        with pytest.raises(SavedStateError, match="the function fragile@1 is not registered"):
            tamis.Standing.load(path)
        others = tamis.Functions(
            [*(each for each in rules.functions.values() if each.name != "score"), *rules.newer.values()]
        )
        with pytest.raises(SavedStateError, match="score@1 is not registered, but score@2 is"):
            tamis.Standing.load(path, functions=others)

    def test_a_function_that_raises_in_one_subscription_changes_no_other(self):
        @tamis.function(takes=("any",), gives="boolean", version=1, null="called")
        def always_raises(value):
            raise RuntimeError("never")

        functions = tamis.Functions([always_raises])
        alone, beside = tamis.Standing(), tamis.Standing(functions=functions)
        plain = {
            key: text.replace("always_raises(a)", "FALSE")
            for key, text in {"t": "CHANGE TO a > 2", "p": "a > 1"}.items()
        }
        alone.add_many(plain)
        beside.add_many(
            {
                **plain,
                "bad": "SEQUENCE always_raises(a) THEN a > 0 WITHIN 1 HOUR",
                "worse": "CHANGE TO always_raises(a)",
            }
        )
        for now, number in enumerate([1, 2, 3, 1, None, 4]):
            told = beside.process({"a": number}, now=float(now), id=now)
            assert told == alone.process({"a": number}, now=float(now), id=now)
        assert functions.failures["always_raises@1"]["raised"] > 0


class TestBrokers:
    def test_a_filter_that_calls_a_function_is_matched_covered_and_sent_on(self):
        broker = Broker("middle", functions=rules.functions)
        broker.connect("north", 0.0)
        broker.receive(Hello(functions=versions(rules.functions)), "north", 0.0)
        broker.attach("ann")
        outputs = broker.receive(Subscribe((Entry("s", parse("score(a, b) > 5")),)), "ann", 0.0)
        assert [str(each.filter) for output in outputs for each in output.message.entries] == ["score(a, b) > 5"]
        assert broker.receive(Subscribe((Entry("t", parse("score(a, b) > 10")),)), "ann", 0.0) == [], "it is covered"
        outputs = broker.receive(Publish("e", {"a": 4, "b": "Crime"}), "north", 0.0)
        assert [(output.client, output.subscriptions) for output in outputs] == [("ann", ("s",))]

    def test_a_filter_with_an_unknown_function_is_a_reject_for_a_client_and_an_error_for_a_neighbour(self):
        broker = Broker("middle", functions=tamis.Functions([rules.is_even]))
        broker.connect("north", 0.0)
        broker.receive(Hello(functions=(("is_even", 2),)), "north", 0.0)
        broker.attach("ann")
        entries = (Entry(0, parse("score(a, b) > 5")), Entry(1, parse("is_even(a)")))
        outputs = broker.receive(Subscribe(entries), "ann", 0.0)
        reason = "the function score@1 is not registered; those of this host are is_even@2"
        assert Reject("ann", 0, reason) in outputs
        assert set(broker.wanted_by("ann")) == {1}, "the others of the message count"
        with pytest.raises(MessageError, match=r"score@1 is not registered; those of this host are is_even@2"):
            broker.receive(Subscribe(entries[:1]), "north", 0.0)
        assert broker.wanted_by("north") == {}

    def test_another_function_of_the_same_name_and_version_is_unknown(self):
        stranger = tamis.function(takes=("number", "string"), gives="number", version=1, name="score")(max)
        broker = Broker("middle", functions=tamis.Functions([stranger]))
        broker.attach("ann")
        outputs = broker.receive(Subscribe((Entry(0, parse("score(a, b) > 5")),)), "ann", 0.0)
        assert [type(output) for output in outputs] == [Reject]

    @pytest.mark.parametrize("as_schema", [False, True])
    def test_a_neighbour_with_other_functions_is_refused_and_the_error_says_which(self, as_schema):
        def made(name, functions):
            if not as_schema:
                return Broker(name, functions=functions)
            return Broker(name, schema=tamis.Schema({"a": "int"}, functions=functions))

        one, two = made("one", rules.functions), made("two", rules.newer)
        one.connect("two", 0.0)
        (hello,) = two.connect("one", 0.0)
        with pytest.raises(
            OtherFunctionsError, match=r"'two' has score@2, broker 'one' has fragile@1, is_even@2, score@1"
        ):
            one.receive(decode(encode(hello.message)), "two", 0.0)
        with pytest.raises(OtherFunctionsError):
            one.receive(Subscribe((Entry(0, parse("a > 1")),)), "two", 0.0)
        assert one.wanted_by("two") == {}

    def test_hello_has_names_and_versions_and_these_bytes(self):
        hello = Hello(schema="ffff", functions=(("is_even", 2), ("score", 1)))
        written = "a70400979090a466666666c000c29292a769735f6576656e0292a573636f726501"
        assert encode(hello).hex() == written
        assert decode(bytes.fromhex(written)) == hello
        assert encode(Hello(schema="ffff")).hex() == "a70400969090a466666666c000c2", "as before there were any"

    def test_filters_travel_as_text_and_are_read_with_the_functions_of_the_reader(self):
        message = Subscribe((Entry(0, parse("score(a, b) > 5")),))
        assert decode(encode(message), functions=rules.functions) == message
        with pytest.raises(MessageError, match="there is no function score"):
            decode(encode(message))

    @pytest.mark.parametrize(
        "functions", [[["a", -1]], [["a"]], [["b", 1], ["a", 1]], [["a", 1], ["a", 2]], [[1, 1]], [], "x"]
    )
    def test_functions_that_are_none_are_a_message_error(self, functions):
        import msgpack

        body = msgpack.packb([[], [], "", None, 0, False, functions])
        with pytest.raises(MessageError):
            decode(bytes((0xA7, 4, 0)) + body)


class TestNetworks:
    @pytest.mark.parametrize("strategy", STRATEGIES)
    def test_a_simulated_network_delivers_what_functions_say_under_every_strategy(self, strategy):
        names = ["left", "middle", "right"]
        delivered = Counter()

        def notice(occurrence):
            if isinstance(occurrence, EventDelivered):
                delivered[occurrence.client] += 1

        network = Network(
            names,
            [("left", "middle"), ("middle", "right")],
            lambda name: Broker(name, strategy, functions=rules.functions),
            Random(1),
            encodes=True,
            observers=[notice],
        )
        texts = ["score(a, b) > 5", "score(a, b) > 10", "fragile(a) > 2", "is_even(a) AND a > 3", "a > 3"]
        for number, text in enumerate(texts):
            network.attach(f"c{number}", names[number % 3])
            network.subscribe(f"c{number}", "s", parse(text))
        network.attach("publisher", "right")
        network.run()
        events = [{"a": a, "b": b} for a in (1, 2, 3, 4, 7, None, "x") for b in ("Crime", None)]
        for number, event in enumerate(events):
            network.publish("publisher", f"e{number}", event)
        network.run()
        for number, text in enumerate(texts):
            assert delivered[f"c{number}"] == sum(tamis.holds(parse(text), event) for event in events), text
        assert rules.functions.failures["fragile@1"]["raised"] > 0


class TestCommands:
    def test_check_explain_and_language_know_the_functions_that_are_named(self):
        assert run(app, ["check", "--functions", ADDRESS, "score(price, category) > 3"]).exit_code == 0
        result = run(app, ["check", "--json", "score(price, category) > 3"])
        assert result.exit_code == 2 and "there is no function score" in result.stdout
        event = '{"price": 3, "category": "Crime"}'
        result = run(app, ["explain", "--functions", ADDRESS, "score(price, category) > 3", "--event", event, "--json"])
        assert json.loads(result.stdout)["matches"] is True
        listed = json.loads(run(app, ["language", "--json", "--functions", ADDRESS]).stdout)
        assert [each["form"] for each in listed["Functions of the host"]] == ["score", "fragile", "is_even", "slow"]
        assert "Functions of the host" not in json.loads(run(app, ["language", "--json"]).stdout)

    def test_match_and_run_call_them_and_name_what_failed(self, tmp_path):
        (tmp_path / "rules.csv").write_text(
            "subscription_id,condition\nworth,\"score(a, 'Crime') > 5\"\nodd,fragile(a) > 2\n"
        )
        (tmp_path / "events.jsonl").write_text("".join(f'{{"a": {number}}}\n' for number in (1, 2, 3, 4)))
        arguments = ["--subscriptions", str(tmp_path / "rules.csv"), "--functions", ADDRESS, "--json"]
        before = dict(rules.fragile.failures)
        out = ["--events", str(tmp_path / "events.jsonl"), "--out", str(tmp_path / "pairs.jsonl"), "--engine", "local"]
        result = run(app, ["match", *out, *arguments])
        assert result.exit_code == 0, result.output
        summary = json.loads(result.stdout)
        assert summary["rows"] == 3
        assert summary["functions"]["fragile@1"]["raised"] > before.get("raised", 0)
        lines = (tmp_path / "events.jsonl").read_text()
        result = run(app, ["run", *arguments], input=lines)
        assert [json.loads(line) for line in result.stdout.splitlines()[:3]] == [
            {"a": 3, "subscription_id": "worth"},
            {"a": 4, "subscription_id": "odd"},
            {"a": 4, "subscription_id": "worth"},
        ]

    def test_match_with_times_notifies_of_sequences_that_call_them(self, tmp_path):
        (tmp_path / "rules.csv").write_text(
            "subscription_id,condition\ns,SEQUENCE is_even(a) THEN NOT is_even(a) WITHIN 1 HOUR\n"
        )
        (tmp_path / "events.jsonl").write_text('{"a": 2, "t": 0}\n{"a": 3, "t": 1}\n')
        result = run(
            app,
            ["match", "--events", str(tmp_path / "events.jsonl"), "--subscriptions", str(tmp_path / "rules.csv"), "--time", "t",
             "--out", str(tmp_path / "out.jsonl"), "--functions", ADDRESS, "--json"],
        )  # fmt: skip
        assert result.exit_code == 0 and json.loads(result.stdout)["rows"] == 1, result.output

    @pytest.mark.parametrize(
        ("address", "message"),
        [
            ("no_such_module:functions", "the module no_such_module cannot be imported: ModuleNotFoundError"),
            ("tests.hosted.rules:nothing", "the module tests.hosted.rules has no nothing"),
            ("tests.hosted.rules", "'tests.hosted.rules' does not name functions"),
            ("tests.hosted.rules:parse()", "does not name functions"),
            ("json:dumps", "json:dumps is a function, not tamis.Functions"),
        ],
    )
    def test_a_name_that_is_none_is_an_error_that_says_what_would_be_right(self, address, message):
        with pytest.raises(FunctionError, match="Write module:name"):
            imported_functions(address)
        result = run(app, ["check", "a > 1", "--functions", address, "--json"])
        assert result.exit_code == 2 and message in json.loads(result.stdout)["error"]["message"]

    def test_a_module_of_the_folder_that_the_command_runs_in_is_found(self, tmp_path, monkeypatch):
        (tmp_path / "own_rules_of_a_test.py").write_text(
            "import tamis\nhalf = tamis.function(takes=['number'], gives='number', version=1, name='half')(lambda a: a / 2)\n"
        )
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "path", list(sys.path))
        assert run(app, ["check", "half(a) > 1", "--functions", "own_rules_of_a_test:half"]).exit_code == 0


def versions(functions):
    return tuple(functions.versions.items())


def test_the_error_of_an_unknown_function_names_those_of_the_host():
    with pytest.raises(UnknownFunctionError, match="those of this host are fragile, is_even, score, slow"):
        parse("quite_different(a) > 1")


def test_a_hook_that_raises_says_nothing_and_is_counted(caplog):
    from tamis.relations import covers

    @tamis.function(takes=("number", "number"), gives="boolean", version=1, implies=lambda one, two: one[7] > two[7])
    def near(one, two):
        return abs(one - two) < 1

    functions = tamis.Functions([near])
    with caplog.at_level(logging.WARNING, "tamis.functions"):
        assert not covers(parse("near(a, 1)", functions), parse("near(a, 2)", functions))
    assert near.failures["hook"] > 0
    assert "a hook of near@1 raised IndexError" in caplog.text
