from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from rich.text import Text

from tests.cli.conftest import tamis

if TYPE_CHECKING:
    from pathlib import Path


def test_an_explanation_is_a_verdict_and_a_tree():
    result = tamis("explain", "price < 20 OR bids > 3", "--event", '{"price": 12}')
    assert result.exit_code == 0
    assert result.stdout == (
        "The event matches.\n"
        "\n"
        "✓ OR   (1 of 2 is true)\n"
        "├─ ✓ price < 20   (price is 12)\n"
        "└─ ? bids > 3   (bids is absent)\n"
    )


@pytest.mark.parametrize(
    ("text", "exit_code", "verdict"),
    [
        ("price < 20", 0, "The event matches."),
        ("price > 20", 1, "The event does not match."),
        ("bids > 20", 1, "The event does not match: whether it should is unknown."),
        ("price >", 2, ""),
    ],
)
def test_the_exit_code_is_greps(text: str, exit_code: int, verdict: str):
    result = tamis("explain", text, "--event", '{"price": 12}')
    assert result.exit_code == exit_code
    assert result.stdout.split("\n")[0] == verdict


def test_an_event_comes_from_a_file_or_standard_input(tmp_path: Path):
    path = tmp_path / "event.json"
    path.write_text('{"price": 12}', encoding="utf-8")
    assert tamis("explain", "price = 12", "--event-file", str(path)).exit_code == 0
    assert tamis("explain", "price = 12", "--event-file", "-", input='{"price": 12}').exit_code == 0


def test_a_schema_reads_dates(schema: Path):
    arguments = ("explain", "day < DATE '2024-03-01'", "--event", '{"day": "2024-02-29"}')
    assert tamis(*arguments).exit_code == 1
    assert tamis(*arguments, "--schema", str(schema)).exit_code == 0


def test_an_event_that_does_not_fit_its_schema_is_a_mistake(schema: Path):
    result = tamis("explain", "price < 20", "--event", '{"price": "dear"}', "--schema", str(schema))
    assert result.exit_code == 2
    assert result.stderr == "✗ price is double, and 'dear' is not\n"


def test_json_holds_the_whole_explanation():
    result = tamis("explain", "price < 20 OR bids > 3", "--event", '{"price": 30}', "--json")
    assert result.exit_code == 1
    document = json.loads(result.stdout)
    assert document["matches"] is False
    assert document["truth"] == "unknown"
    assert [part["truth"] for part in document["explanation"]["parts"]] == ["false", "unknown"]


@pytest.mark.parametrize(
    "event",
    [
        "",
        "{",
        "{'price': 12}",
        "[1, 2]",
        "null",
        "12",
        '"price"',
        "[" * 100_000,
        '{"a": ' + "9" * 5000 + "}",
        "\x00\udcff",
    ],
    ids=["empty", "open", "python", "list", "null", "number", "text", "deep", "digits", "junk"],
)
def test_an_event_that_is_no_json_object_is_a_mistake(event: str):
    result = tamis("explain", "price < 20", "--event", event)
    assert result.exit_code == 2
    assert result.stderr.startswith("✗")
    document = json.loads(tamis("explain", "price < 20", "--event", event, "--json").stdout)
    assert document["error"]["message"]


def test_a_mistake_in_an_event_gets_a_caret_too():
    error = tamis("explain", "price < 20", "--event", "{'price': 12}").stderr.splitlines()
    assert error[1:3] == ["    {'price': 12}", "     ^"]


@pytest.mark.parametrize("events", [(), ("--event", "{}", "--event-file", "-")], ids=["none", "two"])
def test_an_explanation_needs_one_event(events: tuple[str, ...]):
    result = tamis("explain", "price < 20", *events, input="{}")
    assert result.exit_code == 2
    assert "--event-file FILE" in result.stderr


def test_the_deepest_expression_is_explained():
    text = "a AND (b OR (" * 60 + "c" + "))" * 60
    assert tamis("explain", text, "--event", "{}").exit_code == 1
    document = json.loads(tamis("explain", text, "--event", "{}", "--json").stdout)
    depth = 0
    node = document["explanation"]
    while node["parts"]:
        node, depth = node["parts"][-1], depth + 1
    assert depth == 120


# -- On a terminal


def test_truths_have_colours():
    shown = tamis("explain", "(a OR b) AND c", "--event", '{"a": true, "b": false}', terminal=True).stdout
    assert "\x1b[1;32m✓" in shown
    assert "\x1b[1;31m✗" in shown
    assert "\x1b[1;33m?" in shown


def test_a_long_reason_goes_on_beside_the_lines_of_the_tree():
    event = json.dumps({"title": "a title " * 6, "tags": ["one", "two"]})
    shown = tamis("explain", "NOT (title LIKE 'The %' OR size(tags) > 3)", "--event", event, terminal=True).stdout
    lines = Text.from_ansi(shown).plain.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[2:] == [
        "✓ NOT   (not of false is true)",
        "└─ ✗ OR   (none is true)",
        "   ├─ ✗ title LIKE 'The %'   (title is 'a title a title a title a title a",
        "   │    title a title ')",
        "   └─ ✗ size(tags) > 3   (size(tags) is 2)",
    ]


def test_an_escape_sequence_in_an_event_never_reaches_the_terminal():
    event = json.dumps({"title": "\x1b[2J", "\x1b": 1})
    shown = tamis("explain", "title = 'x' OR `\x1b` = 2", "--event", event)
    assert "\x1b" not in shown.stdout
    assert r"\u001b[2J" in shown.stdout


def test_a_plan_shows_how_a_text_is_found_and_needs_no_event():
    result = tamis("explain", "price < 20 AND (signed OR bids > 3)", "--plan")
    assert result.exit_code == 0
    assert result.stdout == (
        "subscription 'this text': price < 20 AND (signed OR bids > 3)\n"
        "segment 0: 1 subscription, laid out by operands alone\n"
        "clause 1 of 1: by bitmap, 25 % of events\n"
        "    key   price < 20   (price as number, 25 %)\n"
        "    tree 1: signed = TRUE   true: holds, false: go to 2\n"
        "    tree 2: bids > 3   true: holds, false: fails\n"
    )


def test_a_plan_follows_other_rules_and_past_events(tmp_path: Path):
    rules, past = tmp_path / "rules.csv", tmp_path / "past.jsonl"
    rules.write_text("subscription_id,condition\n1,price < 20\n2,title = 'a'\n", encoding="utf-8")
    past.write_text("".join(json.dumps({"price": 5, "title": f"t{n}"}) + "\n" for n in range(600)), encoding="utf-8")
    arguments = ("--plan", "--among", str(rules), "--sample", str(past), "--json")
    plan = json.loads(tamis("explain", "price < 20 AND title = 'b'", *arguments).stdout)
    assert (plan["segment_size"], plan["is_informed"]) == (3, True)
    (clause,) = plan["clauses"]
    assert (clause["path"], clause["leaves"][0]["text"]) == ("key", "title = 'b'")
    plan = json.loads(tamis("explain", "price < 20", *arguments).stdout)
    assert plan["twin_count"] == 2


def test_tables_without_a_plan_and_bad_texts_are_mistakes():
    assert tamis("explain", "price < 20", "--event", "{}", "--among", "rules.csv").exit_code == 2
    assert tamis("explain", "price <", "--plan").exit_code == 2
