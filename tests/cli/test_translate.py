from __future__ import annotations

import json

import pytest

from tamis.language import from_json
from tests.cli.conftest import tamis

PATTERN = {"source": ["shop"], "detail": {"state": [{"anything-but": "done"}]}}


def test_a_pattern_in_a_file_becomes_a_condition_and_its_assumptions(tmp_path):
    (tmp_path / "pattern.json").write_text(json.dumps(PATTERN, indent=1))
    ran = tamis("translate", "--from", "eventbridge", str(tmp_path / "pattern.json"))
    assert ran.exit_code == 0
    assert ran.stdout.strip() == (
        "(detail.state IS NOT NULL AND NOT detail.state = 'done' <=> TRUE) AND (source = 'shop' OR array_contains(source, 'shop'))"
    )
    assert "if detail.state is never null, an object or an array" in " ".join(ran.stderr.split())


def test_programs_are_told_the_same(tmp_path):
    (tmp_path / "rules.jsonl").write_text(f"{json.dumps(PATTERN)}\n\n{{}}\n")
    ran = tamis("translate", "--from", "eventbridge", "--lines", "--below", "data", "--json", str(tmp_path / "rules.jsonl"))  # fmt: skip
    assert ran.exit_code == 2
    told = json.loads(ran.stdout)
    assert (told["good"], told["bad"]) == (1, 1)
    good, bad = told["rules"]
    assert str(from_json(good["json"])) == good["condition"] and "data.detail.state" in good["condition"]
    assert {"attribute": "data.source", "never": ["an array of arrays"]} in good["assumes"]
    assert bad["place"].endswith("rules.jsonl:3") and "data is an object" in bad["error"]["message"]


def test_filters_of_cloud_events_come_as_text_or_as_json():
    for rule, condition in (
        ("type = 'a' OR EXISTS subject", "type = 'a' OR subject IS NOT NULL"),
        ('{"exact": {"type": "a"}}', "type = 'a'"),
    ):
        ran = tamis("translate", "--from", "cloudevents", "-", input=rule)
        assert (ran.exit_code, ran.stdout.strip()) == (0, condition)


@pytest.mark.parametrize(
    ("arguments", "rule", "told"),
    [
        (("--from", "eventbridge"), '{"a": [{"prefx": "b"}]}', "an operator 'prefx' that is not known"), (("--from", "cloudevents"), "type = ", "end of the text"),
        (("--from", "eventbridge", "--strict"), '{"a": [{"prefix": "b"}]}', "a is never an array"), (("--from", "knative"), "", "eventbridge"),
    ],
)  # fmt: skip
def test_mistakes_are_shown_with_what_would_be_right(arguments, rule, told):
    ran = tamis("translate", *arguments, "-", input=rule)
    assert ran.exit_code == 2
    assert told in " ".join(ran.stderr.split())


def test_a_schema_makes_a_translation_exact(tmp_path):
    (tmp_path / "schema.json").write_text('{"a": "string"}')
    ran = tamis("translate", "--from", "eventbridge", "--strict", "--schema", str(tmp_path / "schema.json"), "-", input='{"a": [{"prefix": "b"}]}')  # fmt: skip
    assert (ran.exit_code, ran.stdout.strip()) == (0, "startswith(a, 'b')")
